"""The OSDs and exporters that run on a host, as /proc shows them.

Not psutil: it would wait for a process that hangs in the kernel, and does not tell capabilities.
"""

import pwd
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

from cephqos_base.errors import ConfigError
from cephqos_exporter import core_options
from cephqos_exporter.ceph.pids import daemon_id, read_file
from cephqos_exporter.cli import read_settings
from cephqos_exporter.lookup import PATIENCE_SECONDS, Lookup

_OSDS: Final = ("ceph-osd", "crimson-osd")
# Names of processes that may be OSDs or exporters. The kernel cuts names after 15 characters. An
# exporter is its script, or the Python that runs it.
_NAMES: Final = (*_OSDS, "cephqos-exporte", "python")
_CAP_DAC_OVERRIDE: Final = 1 << 1
_PATIENCE_SECONDS: Final = PATIENCE_SECONDS
_ROLE_VARIABLES: Final = ("CEPHQOS_EXPORTER_ROLE", "CEPHQOS_EXPORTER_CONFIG_FILE")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class OsdProcess:
    """A running OSD, and the admin sockets that it listens on, as it names them."""

    pid: int
    osd: str
    sockets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunningExporter:
    """A running cephqos-exporter for OSDs."""

    pid: int
    user: str
    overrides: bool = False  # it has CAP_DAC_OVERRIDE: it may open the sockets of any user


@dataclass(frozen=True, kw_only=True)
class Running:
    """What runs on the host."""

    osds: tuple[OsdProcess, ...]
    exporters: tuple[RunningExporter, ...]
    stuck: tuple[int, ...]  # pids of OSDs whose arguments cannot be read in time


def look(proc: Path) -> Running:
    """Look at all processes. Each that hangs takes half a second."""
    commands, stuck = _commands(proc)
    return Running(
        osds=tuple(_osds(proc, commands)), exporters=tuple(_exporters(proc, commands)), stuck=stuck
    )


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _read_in_time(path: Path) -> str | None:
    """A file's text, empty if it cannot be read; None if that takes long.

    Arguments and environment of a process cannot be read while its memory is being changed. If it
    hangs in the kernel at that time, the read never ends and cannot be interrupted.
    """
    try:
        return answer_of(Lookup(partial(read_file, path)))
    except TimeoutError:
        return None


def answer_of(lookup: Lookup[T]) -> T:
    """The answer of a lookup, waited for as long as the first lookup of an exporter may take.

    While one lookup hangs, another waits only a moment, because the exporter asks again.
    """
    try:
        return lookup.answer()
    except TimeoutError:
        end = time.monotonic() + _PATIENCE_SECONDS
        while lookup.under_way and time.monotonic() < end:
            time.sleep(0.01)
        return lookup.answer()


def _commands(proc: Path) -> tuple[Mapping[int, list[str]], tuple[int, ...]]:
    """Arguments by pid, and the OSDs of which they cannot be read."""
    commands: dict[int, list[str]] = {}
    stuck = []
    for directory in sorted(proc.glob("[1-9]*")):
        name = read_file(directory / "comm")  # never blocks
        if name and not name.startswith(_NAMES):
            continue
        text = _read_in_time(directory / "cmdline")
        if text is None and name.startswith(_OSDS):
            stuck.append(int(directory.name))
        if words := (text or "").rstrip("\0"):
            commands[int(directory.name)] = words.split("\0")
    return commands, tuple(stuck)


def _osds(proc: Path, commands: Mapping[int, list[str]]) -> Iterator[OsdProcess]:
    for pid, arguments in commands.items():
        if not Path(arguments[0]).name.startswith(_OSDS):
            continue
        if name := daemon_id("osd", arguments):
            paths = tuple(_listens_on(proc / str(pid), name))
            yield OsdProcess(pid=pid, osd=f"osd.{name}", sockets=paths)


def _listens_on(process: Path, osd: str) -> Iterator[str]:
    """Sockets in the network namespace of a process that are named after it."""
    for line in read_file(process / "net" / "unix").splitlines():
        path = line.split(maxsplit=7)[-1]
        if re.search(rf"osd\.{re.escape(osd)}\.asok$", path):
            yield path


def _exporters(proc: Path, commands: Mapping[int, list[str]]) -> Iterator[RunningExporter]:
    """Exporters of the role osd."""
    for pid, arguments in commands.items():
        is_script = any(Path(word).name == "cephqos-exporter" for word in arguments[:3])
        if not (is_script or "cephqos_exporter.cli" in arguments):
            continue
        process = proc / str(pid)
        environ = (_read_in_time(process / "environ") or "").split("\0")
        variables = dict(word.split("=", 1) for word in environ if "=" in word)
        if "osd" not in roles_of(arguments, variables, process / "root"):
            continue
        lines = read_file(process / "status").splitlines()
        status = dict(line.split(":", 1) for line in lines if ":" in line)
        if "Uid" in status and "CapEff" in status:
            overrides = bool(int(status["CapEff"], 16) & _CAP_DAC_OVERRIDE)
            user = user_name(int(status["Uid"].split()[1]))
            yield RunningExporter(pid=pid, user=user, overrides=overrides)


def roles_of(
    arguments: Sequence[str], variables: Mapping[str, str], root: Path = Path("/")
) -> Sequence[str]:
    """The roles of an exporter with these arguments and variables; if not known, the default.

    `root` is its file system, which is not ours where it runs in a container.
    """
    given = dict(word.split("=", 1) for word in arguments if word.startswith("--") and "=" in word)
    given |= {
        flag: value for flag, value in pairwise(arguments) if flag in ("--role", "--config.file")
    }
    known = {name: variables[name] for name in _ROLE_VARIABLES if name in variables}
    file = given.get("--config.file") or known.pop(_ROLE_VARIABLES[1], "")
    for path in (f"{root}/{file}", file) if file else ("",):
        try:
            flags = {"config.file": path or None, "role": given.get("--role")}
            return read_settings(flags, known)[core_options.ROLE]
        except ConfigError:
            continue
    return given["--role"].split(",") if "--role" in given else core_options.ROLE.default
