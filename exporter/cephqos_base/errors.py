"""The root of all errors that are meant for a user: one line, and an exit status."""

from pathlib import Path

from cephqos_base.terminal import printable


class CephqosError(Exception):
    """Something failed. The text is one line that a user can act on."""

    exit_status = 1


class UsageError(CephqosError):
    """The request cannot be served: bad option, missing tool, too little of something. Exit 2."""

    exit_status = 2


class ConfigError(UsageError):
    """Bad input, in one line: file, line, key, what was found, what is allowed."""

    def __init__(
        self, *, where: str | Path, key: str, found: object, allowed: str, line: int | None = None
    ) -> None:
        place = f"{where}:{line}" if line else f"{where}"
        subject = f"{place}: {key}" if key else place
        super().__init__(printable(f"{subject}: found {_shown(found)}; allowed: {allowed}"))
        self.where = str(where)
        self.line = line
        self.key = key


class NoSuchFile(ConfigError):
    """A file that was named is not there."""

    def __init__(self, file: str | Path, *, key: str = "", hint: str = "") -> None:
        named = f" ({key})" if key else ""
        UsageError.__init__(self, printable(f"no such file: {file}{named}{hint and f'; {hint}'}"))
        self.where, self.line, self.key = str(file), None, key


class Described:
    """Words for what was found, where the value itself must not or cannot be shown."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __str__(self) -> str:
        return self._words


MISSING = Described("nothing")
UNKNOWN_KEY = Described("an unknown key")


def _shown(found: object) -> str:
    """As it would stand in a file or on a command line, in one line of bounded length."""
    line = " ".join(_words(found).split())
    return line if len(line) <= 200 else line[:197] + "..."


def _words(found: object) -> str:
    if isinstance(found, Described):
        return str(found)
    if found is None or found == ():
        return "nothing"
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, tuple):
        return ", ".join(map(repr, found))
    return repr(found)
