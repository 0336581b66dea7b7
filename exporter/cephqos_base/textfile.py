"""Text files that commands write and compare. Every failure is an error of one line."""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cephqos_base.errors import UsageError


def reason_of(error: OSError | UnicodeDecodeError) -> str:
    """The reason of an error, without its number and file name: the caller's message has the name.

    `Permission denied`, or `it is not text`.
    """
    if isinstance(error, UnicodeDecodeError):
        return "it is not text"
    return error.strerror or str(error)


def found_instead(error: OSError) -> str:
    """What was found where a readable file should be: for messages `found …; allowed: …`."""
    words = {
        errno.ENOENT: "no such file",
        errno.EISDIR: "a directory",
        errno.EACCES: "no right to read it",
    }
    return words.get(error.errno or 0) or reason_of(error)


def regular_file(file: Path) -> Path:
    """The path itself; OSError if reading from it might never end.

    Opening a FIFO waits until another process writes to it, and a device may have no end.
    """
    mode = file.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and str(file) != os.devnull:
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def write(file: Path, text: str, *, rights_of: Path | None = None) -> None:
    """Write all of it at once, as Prometheus or Grafana may read it at any moment.

    A file that is there keeps its rights. A new one gets those of `rights_of`, whose secrets it
    holds.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        model = file if file.exists() else rights_of
        _replace(file, text, model.stat() if model else None)
    except OSError as exc:
        raise UsageError(f"{file}: cannot be written: {reason_of(exc)}") from exc


def _replace(file: Path, text: str, rights: os.stat_result | None) -> None:
    """Write beside the file, then rename over it. `rights`: the mode and owner to give it."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    # A process with the same pid may have been killed here: in containers, pids are used again.
    new.unlink(missing_ok=True)
    try:
        new.touch(0o600 if rights else 0o666, exist_ok=False)
        new.write_text(text, encoding="utf-8")
        if rights:
            new.chmod(stat.S_IMODE(rights.st_mode))
            if os.geteuid() == 0:
                os.chown(new, rights.st_uid, rights.st_gid)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def differing(files: Mapping[Path, str]) -> list[str]:
    """The files that are missing or have another text."""
    return [str(file) for file, text in files.items() if _read(file) != text]


def begins_with(file: Path, text: str) -> bool:
    """Whether a file begins with this text."""
    wanted = text.encode()
    try:
        with regular_file(file).open("rb") as opened:
            return opened.read(len(wanted)) == wanted
    except OSError as exc:
        raise UsageError(f"{file}: cannot be read: {reason_of(exc)}") from exc


def remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as exc:
        raise UsageError(f"{file}: cannot be removed: {reason_of(exc)}") from exc


def _read(file: Path) -> str | None:
    try:
        return regular_file(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"{file}: cannot be read: {reason_of(exc)}") from exc
