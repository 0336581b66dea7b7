"""What can be seen on a host: sockets, OSDs and exporters, and what OSDs say of themselves."""

import asyncio
import contextlib
import ctypes
import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import ConfigError
from cephqos_exporter import options
from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.discovery import Socket, find_sockets
from cephqos_exporter.cli import read_settings
from cephqos_exporter.collectors.mclock import POLICY
from cephqos_exporter.config import Settings
from cephqos_exporter.qos.config import EffectiveConfig
from cephqos_exporter.qos.tags import QueueDump, read_queue_dump

_ASKED: Final = ("config show", "config diff", "dump_op_pq_state")
_SECONDS: Final = 5.0
_CAP_DAC_OVERRIDE: Final = 1 << 1
_TIME_ERROR: Final = 5  # of adjtimex: the kernel's clock is not synchronised


@dataclass(frozen=True, kw_only=True)
class ClosedDirectory:
    """A directory that this user may not read."""

    path: str
    owner: str


@dataclass(frozen=True, kw_only=True)
class SocketFacts:
    """An admin socket of an OSD. `failure` is the error of asking it, or empty."""

    path: Path
    osd: str
    owner: str
    failure: str = ""  # a reason of cephqos_daemon_up


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
    overrides: bool = False  # it has CAP_DAC_OVERRIDE


@dataclass(frozen=True, kw_only=True)
class OsdFacts:
    """What an OSD says of its configuration and its scheduler."""

    osd: str
    config: EffectiveConfig
    options: Mapping[str, str] = field(default_factory=dict)  # all of them
    queues: QueueDump | None = None  # None: it did not say (Crimson)


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """A host as one user sees it."""

    user: str
    patterns: Sequence[str]
    closed: Sequence[ClosedDirectory] = ()
    sockets: Sequence[SocketFacts] = ()
    processes: Sequence[OsdProcess] = ()
    exporters: Sequence[RunningExporter] = ()
    osds: Sequence[OsdFacts] = ()
    policy: bool = False
    clock_synchronised: bool | None = None  # None: not known


async def gather(settings: Settings) -> HostFacts:
    """Look; nothing is changed, and only commands of the read-only list are sent."""
    patterns = settings[options.SOCKETS]
    proc = Path(settings[options.PROC])
    found = find_sockets(patterns, ["osd"])
    asked = await asyncio.gather(*(_ask(socket) for socket in found))
    return HostFacts(
        user=user_name(os.geteuid()),
        patterns=patterns,
        closed=tuple(closed_directories(patterns)),
        sockets=tuple(facts for facts, _ in asked),
        processes=tuple(osd_processes(proc)),
        exporters=tuple(exporter_processes(proc)),
        osds=tuple(osd for _, osd in asked if osd is not None),
        policy=bool(settings[POLICY]),
        clock_synchronised=_clock_synchronised(),
    )


async def _ask(socket: Socket) -> tuple[SocketFacts, OsdFacts | None]:
    deadline = asyncio.get_running_loop().time() + _SECONDS
    answers = await asok.ask_all(str(socket.path), _ASKED, deadline=deadline)
    replies = answers.parse()
    failure = "" if replies else next((e.reason for e in answers.errors.values()), "")
    try:
        owner = user_name(socket.path.stat().st_uid)
    except OSError:
        owner, failure = "", "gone"
    facts = SocketFacts(path=socket.path, osd=f"osd.{socket.id}", owner=owner, failure=failure)
    return facts, read_osd(facts.osd, replies)


def read_osd(osd: str, replies: Mapping[str, Any]) -> OsdFacts | None:
    """What an OSD's replies say; None if it does not show its configuration."""
    shown, diff = replies.get("config show"), replies.get("config diff")
    if not isinstance(shown, dict) or not isinstance(diff, dict):
        return None
    values = {str(key): str(value) for key, value in shown.items()}
    differences = diff.get("diff", {})
    queues = replies.get("dump_op_pq_state")
    return OsdFacts(
        osd=osd,
        config=EffectiveConfig(values=values, differences=differences),
        options=values,
        queues=read_queue_dump(queues) if isinstance(queues, dict) and queues else None,
    )


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def closed_directories(patterns: Sequence[str]) -> Iterator[ClosedDirectory]:
    """Directories on the way to the patterns that exist and that this user may not list."""
    told = set()
    for pattern in patterns:
        parts = Path(pattern).parts
        for end in range(2, len(parts) + 1):
            for path in _matching(parts[:end]):
                if path not in told and _is_closed(path):
                    told.add(path)
                    with contextlib.suppress(OSError):  # gone meanwhile
                        yield ClosedDirectory(path=str(path), owner=user_name(path.stat().st_uid))


def _matching(parts: tuple[str, ...]) -> list[Path]:
    pattern = str(Path(*parts[1:]))
    try:
        return sorted(Path(parts[0]).glob(pattern))
    except (OSError, ValueError):
        return []


def _is_closed(path: Path) -> bool:
    try:
        return path.is_dir() and not os.access(path, os.R_OK | os.X_OK)
    except PermissionError:
        return False  # the directory above it is the one to name


def osd_processes(proc: Path) -> Iterator[OsdProcess]:
    for pid, arguments in _processes(proc):
        if not Path(arguments[0]).name.startswith(("ceph-osd", "crimson-osd")):
            continue
        given = dict(pairwise(arguments))
        name = given.get("-i") or given.get("--id") or given.get("-n", "").removeprefix("osd.")
        if name:
            paths = tuple(_listens_on(proc / str(pid), name))
            yield OsdProcess(pid=pid, osd=f"osd.{name}", sockets=paths)


def _listens_on(process: Path, osd: str) -> Iterator[str]:
    """Sockets in the network namespace of a process that are named after it."""
    for line in _read(process / "net" / "unix").splitlines():
        path = line.split(maxsplit=7)[-1]
        if re.search(rf"osd\.{re.escape(osd)}\.asok$", path):
            yield path


def exporter_processes(proc: Path) -> Iterator[RunningExporter]:
    """Exporters of the role osd."""
    for pid, arguments in _processes(proc):
        named = any(Path(word).name == "cephqos-exporter" for word in arguments[:3])
        if not (named or "cephqos_exporter.cli" in arguments) or "osd" not in roles_of(arguments):
            continue
        status = dict(
            line.split(":", 1)
            for line in _read(proc / str(pid) / "status").splitlines()
            if ":" in line
        )
        if "Uid" in status and "CapEff" in status:
            overrides = bool(int(status["CapEff"], 16) & _CAP_DAC_OVERRIDE)
            user = user_name(int(status["Uid"].split()[1]))
            yield RunningExporter(pid=pid, user=user, overrides=overrides)


def roles_of(arguments: Sequence[str]) -> Sequence[str]:
    """The roles of an exporter with these arguments; of what cannot be read, the default."""
    given = dict(word.split("=", 1) for word in arguments if word.startswith("--") and "=" in word)
    given |= {a: b for a, b in pairwise(arguments) if a in ("--role", "--config.file")}
    if "--role" in given:
        return given["--role"].split(",")
    try:
        return read_settings({"config.file": given.get("--config.file")}, {})[options.ROLE]
    except ConfigError:
        return options.ROLE.default


def _processes(proc: Path) -> Iterator[tuple[int, list[str]]]:
    for directory in sorted(proc.glob("[1-9]*")):
        arguments = _read(directory / "cmdline").rstrip("\0").split("\0")
        if arguments[0]:
            yield int(directory.name), arguments


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _clock_synchronised() -> bool | None:
    """What the kernel says of its clock: reading it needs no rights."""
    buffer = ctypes.create_string_buffer(1024)  # struct timex, modes 0: read only
    try:
        state = int(ctypes.CDLL(None).adjtimex(buffer))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR
