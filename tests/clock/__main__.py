"""Run tests as if it were another day, in another time zone, in another language, in another order.

    python -m tests.clock NAME COMMAND ...   the command as in this setting
    python -m tests.clock                    the fast tests in every setting, and a table

The date moves, waits do not (dates.c). Children see the same date. What is compared with the date
of the machine itself, such as the start of a process in /proc, must allow for CLOCK_SHIFT.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from cephqos_base import marked

_BUILD: Final = Path("build/clock")
_FOLDERS: Final = ("tests/unit", "tests/contract", "tests/golden", "tests/promtool")
_DAY: Final = 86400
_NEW_YORK: Final = "America/New_York"
_NOBODY: Final = 65534


@dataclass(frozen=True, slots=True)
class Setting:
    """What is different from the machine as it is."""

    name: str
    days: float = 0
    at: datetime | None = None  # instead of a number of days from now
    zone: str = "UTC"
    language: str = "C.UTF-8"
    shuffled: bool = False
    user: int | None = None

    def shift(self) -> int:
        """Seconds from now to the date of the setting."""
        return round(self.at.timestamp() - time.time() if self.at else self.days * _DAY)

    def environment(self) -> dict[str, str]:
        changes = {"TZ": self.zone, "LANG": self.language, "LC_ALL": self.language}
        if self.language not in ("C", "C.UTF-8"):
            changes["LOCPATH"] = str(_locale(self.language))
        if shift := self.shift():
            changes |= {"CLOCK_SHIFT": str(shift), "LD_PRELOAD": str(_dates())}
        return changes

    def wrapped(self, command: list[str]) -> list[str]:
        options = [f"--shuffle={time.time_ns() % 10000}"] if self.shuffled else []
        if self.user is None:
            return [*command, *options]
        ids = (f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups")
        # What needs root is skipped there, which CI would call a failure.
        packages = ("exporter", "loadgen", "dashboards", "alerts", "deploy")
        search = ":".join(str(self.home / "cephqos" / name) for name in packages)
        of_user = (f"HOME={self.home}", f"PYTHONPATH={search}", "PATH=/usr/local/bin:/usr/bin:/bin")
        as_user = ("env", "--unset=CI", *of_user)
        return ["setpriv", *ids, *as_user, *command, *options]

    @property
    def home(self) -> Path:
        return _BUILD.resolve() / f"home-{self.user}"

    def folder(self) -> Path:
        """Where the tests run: this checkout, or what is committed of it as the user's own."""
        if self.user is None:
            return Path()
        checkout = self.home / "cephqos"
        marked.renew(self.home, "clock")
        for argv in (
            ("git", "clone", "--quiet", "--no-hardlinks", ".", str(checkout)),
            ("chown", "--recursive", f"{self.user}:{self.user}", str(checkout)),
        ):
            subprocess.run(argv, check=True, timeout=120)
        return checkout


def _new_york(year: int, month: int, day: int, hour: int, minute: int) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(_NEW_YORK))


# Some carry what needs no run of its own, such as a language. Those at a certain minute begin
# before it, so that tests run while it passes.
SETTINGS: Final = (
    Setting("today"),
    Setting("again", shuffled=True),
    Setting("tomorrow", days=1, language="C"),
    Setting("a-month", days=30, language="de_DE.UTF-8"),
    Setting("two-years", days=730),
    Setting("leap-day", at=datetime(2028, 2, 29, 23, 59, tzinfo=UTC), shuffled=True),
    Setting("spring-forward", at=_new_york(2027, 3, 14, 1, 59), zone=_NEW_YORK),
    Setting("fall-back", at=_new_york(2027, 11, 7, 1, 29), zone=_NEW_YORK),
    Setting("kolkata", zone="Asia/Kolkata"),
    Setting("behind", days=-30),
    Setting("not-root", user=_NOBODY),
)


def _dates() -> Path:
    """dates.c as a library, made once for each version of it."""
    source = Path(__file__).with_name("dates.c")
    library = (_BUILD / "dates.so").resolve()
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        made = library.with_suffix(f".{os.getpid()}")
        argv = ["cc", "-O1", "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"]
        subprocess.run(argv, check=True, timeout=60)
        made.rename(library)
    return library


def _locale(name: str) -> Path:
    """A folder with this locale, which few machines have ready."""
    folder = (_BUILD / "locale").resolve()
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        language, _, charset = name.partition(".")
        argv = ["localedef", "-i", language, "-f", charset, str(folder / name)]
        subprocess.run(argv, check=True, timeout=60)
    return folder


def _run(setting: Setting, command: list[str]) -> int:
    environment = os.environ | setting.environment()
    # `make` sets it for what it starts. Tests show that children import nothing of where they run.
    environment.pop("PYTHONPATH", None)
    command = setting.wrapped([_absolute(command[0]), *command[1:]])
    print(f"as {setting.name}:", *command, flush=True)  # with the seed of a random order
    return subprocess.run(command, env=environment, cwd=setting.folder(), check=False).returncode


def _absolute(program: str) -> str:
    """A program by its path, from wherever it is started."""
    return str(Path(program).absolute()) if "/" in program else program


def _every(settings: list[Setting]) -> int:
    pytest = [sys.executable, "-m", "pytest", *_FOLDERS, "-m", "not full", "-n", "auto", "-q"]
    rows = []
    for setting in settings:
        print(f"== {setting.name}", flush=True)
        began = time.monotonic()
        status = _run(setting, pytest)
        rows.append((setting.name, "passed" if not status else "FAILED", time.monotonic() - began))
    for name, result, seconds in rows:
        print(f"{name:16} {result} {seconds:6.0f} s")
    return int(any(result != "passed" for _, result, _ in rows))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clock", description=__doc__)
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--only", help=f"names, by commas: {', '.join(names)}")
    parser.add_argument("setting", nargs="?", choices=names)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.setting:
        return _run(SETTINGS[names.index(arguments.setting)], arguments.command)
    only = arguments.only.split(",") if arguments.only else names
    return _every([SETTINGS[names.index(name)] for name in only])


if __name__ == "__main__":
    sys.exit(main())
