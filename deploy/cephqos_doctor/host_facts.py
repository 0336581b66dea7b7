"""What can be seen on a host: sockets, OSDs and exporters, and what OSDs say of themselves.

`gather` makes HostFacts, which the checks of `cephqos doctor host` judge. `dump` reads the same
OsdFacts from saved replies.
"""

import asyncio
import contextlib
import ctypes
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from cephqos_doctor import machine_facts
from cephqos_doctor.finding import Finding
from cephqos_doctor.machine_facts import Machine
from cephqos_doctor.processes import (
    OsdProcess,
    RunningExporter,
    answer_of,
    look,
    user_name,
)
from cephqos_exporter import core_options, sysfs
from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.discovery import Socket, find_sockets
from cephqos_exporter.cgroups import CgroupLimits, find_cgroups, read_limits
from cephqos_exporter.collectors.disks import read_diskstats
from cephqos_exporter.collectors.mclock.collector import POLICY
from cephqos_exporter.collectors.recovery import RESERVATIONS
from cephqos_exporter.config import Settings
from cephqos_exporter.daemon import Daemon, Host
from cephqos_exporter.daemon_errors import UnknownCommand
from cephqos_exporter.lookup import Lookup
from cephqos_exporter.qos.config import EffectiveConfig
from cephqos_exporter.qos.cost_models import Media, guess_media
from cephqos_exporter.qos.tags import QueueDump, read_queue_dump

_COMMANDS: Final = ("config show", "config diff", "dump_op_pq_state", "version", RESERVATIONS)
SECONDS: Final = 5.0  # for all questions to all OSDs of the host
_NOT_SYNCHRONISED: Final = 5  # what adjtimex returns: TIME_ERROR
_DISCARDS: Final = 11  # fields of diskstats, from 0, after the device's name
_DISCARD_MS: Final = 14


@dataclass(frozen=True, kw_only=True)
class ClosedDirectory:
    """A directory that this user may not read."""

    path: str
    owner: str


@dataclass(frozen=True, kw_only=True)
class SocketFacts:
    """An admin socket of an OSD, and how it answered."""

    path: Path
    osd: str
    owner: str
    failure: str = ""  # why no command was answered: a reason of cephqos_daemon_up; or empty
    unanswered: tuple[str, ...] = ()  # if some were: the others, each with its reason
    pid: int | None = None  # of the process that listens; None: not known


@dataclass(frozen=True, kw_only=True)
class OsdFacts:
    """What an OSD says of its configuration and its scheduler."""

    osd: str
    config: EffectiveConfig
    options: Mapping[str, str] = field(default_factory=dict)  # the values of all options
    queues: QueueDump | None = None  # None: it did not say (Crimson)
    version: tuple[int, ...] = ()  # such as (18, 2, 7); empty: not known
    rotational: bool | None = None  # what its device says, which Ceph believes; None: not known
    disks_rotate: bool | None = None  # what the disks below that device say; None: not known
    device_class: str = ""  # of CRUSH; empty: not known
    model: str = ""  # of its devices; empty: not known
    # Its rotating disks that keep writes in a cache. None: none of its disks is known to rotate.
    cached_disks: tuple[str, ...] | None = None
    discard_seconds: float | None = None  # mean since its host started; None: none was counted
    recovering: bool | None = None  # whether recovery runs or waits; None: not known
    directory_hangs: bool = False  # a look at its data directory had no answer
    cpu_limit: float | None = None  # CPUs of its container or unit
    memory_limit: int | None = None

    @property
    def release(self) -> int | None:
        return self.version[0] if self.version else None

    @property
    def scheduler(self) -> str | None:
        """The scheduler that runs, or else the one that is configured."""
        running = self.queues.scheduler if self.queues else "unknown"
        return self.config.text("osd_op_queue") if running == "unknown" else running

    @property
    def media(self) -> Media | None:
        """Whether it uses the mClock options of hdd or ssd: by its device, or by its shards."""
        if self.rotational is not None:
            return "hdd" if self.rotational else "ssd"
        return guess_media(self.config, len(self.queues.shards)) if self.queues else None


class Osds(Protocol):
    """Facts about OSDs: of this host, or of files from elsewhere."""

    @property
    def osds(self) -> Sequence[OsdFacts]: ...
    @property
    def policy(self) -> bool: ...


def of_each(
    find: Callable[[OsdFacts, Osds], Iterable[Finding]],
) -> Callable[[Osds], Iterator[Finding]]:
    """A check of one OSD as a check of all: the findings of each OSD, one after the other."""

    def of_all(facts: Osds) -> Iterator[Finding]:
        for osd in facts.osds:
            yield from find(osd, facts)

    return of_all


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """A host as one user sees it."""

    user: str
    patterns: Sequence[str]
    closed: Sequence[ClosedDirectory] = ()
    sockets: Sequence[SocketFacts] = ()
    processes: Sequence[OsdProcess] = ()
    stuck: Sequence[int] = ()  # pids of OSDs that hang in the kernel
    exporters: Sequence[RunningExporter] = ()
    osds: Sequence[OsdFacts] = ()
    policy: bool = False
    clock_synchronised: bool | None = None  # None: not known
    governor: str = ""  # of the CPUs' clock, where it is one that lowers it
    wake_seconds: float | None = None  # from the deepest sleep that the CPUs may enter
    swapped_bytes: int | None = None  # memory of the host that lies in swap; None: not known
    machine: Machine = field(default_factory=Machine)


async def gather(settings: Settings) -> HostFacts:
    """Look; nothing is changed, and only commands of the read-only list are sent."""
    patterns = settings[core_options.SOCKETS]
    proc = Path(settings[core_options.PROC])
    sockets = find_sockets(patterns, ["osd"])
    answered = await asyncio.gather(*(_ask(socket) for socket in sockets))
    running = await asyncio.to_thread(look, proc)
    host = Host(proc=proc, sys=Path(settings[core_options.SYS]))
    osds = await asyncio.to_thread(
        lambda: [
            _on_host(host, socket, facts, osd)
            for socket, (facts, osd) in zip(sockets, answered, strict=True)
            if osd is not None
        ]
    )
    return HostFacts(
        user=user_name(os.geteuid()),
        patterns=patterns,
        closed=tuple(closed_directories(patterns)),
        sockets=tuple(facts for facts, _ in answered),
        processes=running.osds,
        stuck=running.stuck,
        exporters=running.exporters,
        osds=tuple(osds),
        policy=bool(settings[POLICY]),
        clock_synchronised=_clock_synchronised(),
        governor=lowering_governor(host.sys),
        wake_seconds=wake_seconds(host.sys),
        swapped_bytes=swapped_bytes(host.proc),
        machine=machine_facts.look(host),
    )


def _on_host(host: Host, socket: Socket, facts: SocketFacts, osd: OsdFacts) -> OsdFacts:
    """An OSD with what this host says of its device and of the limits of its container."""
    daemon = Daemon("osd", socket.id, osd.options.get("fsid", ""), socket.path, facts.pid)
    limits = CgroupLimits()
    if facts.pid:
        text = sysfs.read_text(host.proc / str(facts.pid) / "cgroup") or ""
        limits = read_limits(find_cgroups(host, text))
    osd = replace(osd, cpu_limit=limits.cpus, memory_limit=limits.memory)
    # In a thread of its own: if the disk of the data directory died, a look at it never ends.
    find_devices = partial(
        sysfs.osd_devices, host, daemon, osd.config.text("osd_data"), sysfs.DATA_DIRECTORIES
    )
    try:
        devices = answer_of(Lookup(find_devices))
    except sysfs.DataDirectoryMissing:
        return osd
    except TimeoutError:
        return replace(osd, directory_hangs=True)
    return replace(
        osd,
        rotational=sysfs.is_rotational(host, devices),
        disks_rotate=disks_rotate(host, devices),
        model=models(host, devices),
        cached_disks=cached_disks(host, devices),
        discard_seconds=discard_seconds(host, devices),
    )


def models(host: Host, devices: Iterable[sysfs.OsdDevice]) -> str:
    """The models of the disks that an OSD uses, each once; empty if one is not known."""
    disks = {disk for device in devices for disk in sysfs.disks_under(host, device.device)}
    names = {
        sysfs.read_text(host.sys / "class/block" / disk / "device/model") or "" for disk in disks
    }
    return "" if "" in names else " + ".join(sorted(names))


def disks_rotate(host: Host, devices: Iterable[sysfs.OsdDevice]) -> bool | None:
    """Whether a disk turns below what an OSD keeps its objects on: bcache calls itself an SSD."""
    block = next((device.device for device in devices if device.role == "block"), None)
    if block is None or block.startswith("loop"):  # what a loop device says was set for a test
        return None
    disks = sysfs.disks_under(host, block)
    rotational = {sysfs.read_queue(host.sys, disk).rotational for disk in disks}
    return None if not rotational or "" in rotational else "1" in rotational


def _disks(host: Host, devices: Iterable[sysfs.OsdDevice]) -> set[str]:
    """The disks below what an OSD opens; none below loop devices and files, as tests use them."""
    opened = [it.device for it in devices if not it.in_file and not it.device.startswith("loop")]
    return {disk for device in opened for disk in sysfs.disks_under(host, device)}


def cached_disks(host: Host, devices: Iterable[sysfs.OsdDevice]) -> tuple[str, ...] | None:
    """The rotating disks of an OSD with a write cache that is on.

    Only SCSI and SATA disks are known: of others, such as a virtual machine's, it is the host's.
    """
    queues = {
        disk: sysfs.read_queue(host.sys, disk)
        for disk in sorted(_disks(host, devices))
        if (host.sys / "class/block" / disk / "device/scsi_disk").is_dir()
    }
    rotating = {disk: queue for disk, queue in queues.items() if queue.rotational == "1"}
    cached = tuple(disk for disk, queue in rotating.items() if queue.write_cache == "write back")
    return cached if rotating else None


def discard_seconds(host: Host, devices: Iterable[sysfs.OsdDevice]) -> float | None:
    """How long a discard took on average, on the disk of an OSD where it took longest."""
    try:
        counted = read_diskstats(host)
    except OSError:
        return None
    means = []
    for disk in _disks(host, devices):
        fields = counted.get(disk.encode(), [])
        # Discards and their milliseconds, which kernels count from 4.18 on.
        if len(fields) > _DISCARD_MS and (done := int(fields[_DISCARDS])):
            means.append(int(fields[_DISCARD_MS]) / 1000 / done)
    return max(means, default=None)


def swapped_bytes(proc: Path) -> int | None:
    """How much of the host's memory lies in swap."""
    known = machine_facts.meminfo(proc, "SwapTotal", "SwapFree")
    return known[0] - known[1] if known else None


def lowering_governor(sys: Path) -> str:
    """The governor of the CPUs' clock, where it lowers the clock; empty where it does not.

    `powersave` of the drivers that choose by themselves (intel_pstate, amd-pstate-epp) does not.
    """
    for cpu in sorted((sys / "devices" / "system" / "cpu").glob("cpu[0-9]*/cpufreq")):
        driver = sysfs.read_text(cpu / "scaling_driver") or ""
        governor = sysfs.read_text(cpu / "scaling_governor") or ""
        drives_itself = driver in ("intel_pstate", "amd-pstate-epp") and governor == "powersave"
        if governor in ("powersave", "ondemand", "conservative") and not drives_itself:
            return governor
    return ""


def wake_seconds(sys: Path) -> float | None:
    """How long a CPU needs to wake from the deepest sleep that it may enter."""
    longest = None
    for state in (sys / "devices" / "system" / "cpu").glob("cpu[0-9]*/cpuidle/state*"):
        latency = sysfs.read_text(state / "latency") or ""
        if latency.isdecimal() and sysfs.read_text(state / "disable") != "1":
            longest = max(longest or 0.0, int(latency) / 1e6)
    return longest


async def _ask(socket: Socket) -> tuple[SocketFacts, OsdFacts | None]:
    deadline = asyncio.get_running_loop().time() + SECONDS
    answers = await asok.ask_all(str(socket.path), _COMMANDS, deadline=deadline)
    replies = answers.parse()
    failure = "" if replies else next((e.reason for e in answers.errors.values()), "")
    # Crimson does not have all commands: that is no failure.
    errors = {} if failure else answers.errors
    unanswered = [
        f"{command} ({error.reason})"
        for command, error in errors.items()
        if not isinstance(error, UnknownCommand)
    ]
    try:
        owner = user_name(socket.path.stat().st_uid)
    except OSError:
        owner, failure = "", "gone"
    facts = SocketFacts(
        path=socket.path,
        osd=f"osd.{socket.id}",
        owner=owner,
        failure=failure,
        unanswered=tuple(unanswered),
        pid=answers.pid or None,
    )
    return facts, read_osd(facts.osd, replies)


def read_osd(osd: str, replies: Mapping[str, Any]) -> OsdFacts | None:
    """What an OSD's replies say; None if it does not show its configuration."""
    shown, diff = replies.get("config show"), replies.get("config diff")
    if not isinstance(shown, dict) or not isinstance(diff, dict):
        return None
    values = {str(key): str(value) for key, value in shown.items()}
    differences = diff.get("diff", {})
    queues, version = replies.get("dump_op_pq_state"), replies.get("version")
    return OsdFacts(
        osd=osd,
        config=EffectiveConfig(values=values, differences=differences),
        options=values,
        queues=read_queue_dump(queues) if isinstance(queues, dict) and queues else None,
        version=version_of(str(version.get("version")) if isinstance(version, dict) else ""),
        recovering=_recovering(replies.get(RESERVATIONS)),
    )


def version_of(text: str) -> tuple[int, ...]:
    """The first version in a text such as `ceph version 18.2.7 (...)`; empty without one."""
    found = re.search(r"(?<!\d)(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?", text)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def _recovering(reply: Any) -> bool | None:
    """Whether a placement group recovers here or waits for it, as a primary or as a replica."""
    if not isinstance(reply, dict) or not reply:
        return None
    sides = [side for side in reply.values() if isinstance(side, dict)]
    return any(side.get("queues") or side.get("in_progress") for side in sides)


def closed_directories(patterns: Sequence[str]) -> Iterator[ClosedDirectory]:
    """Directories on the way to the patterns that exist and that this user may not list."""
    seen = set()
    for pattern in patterns:
        parts = Path(pattern).parts
        for end in range(2, len(parts) + 1):
            for path in _matching(parts[:end]):
                if path not in seen and _is_closed(path):
                    seen.add(path)
                    with contextlib.suppress(OSError):  # it has just been removed
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


def _clock_synchronised() -> bool | None:
    """What the kernel says of its clock: reading it needs no rights."""
    buffer = ctypes.create_string_buffer(1024)  # struct timex, modes 0: read only
    try:
        state = int(ctypes.CDLL(None).adjtimex(buffer))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _NOT_SYNCHRONISED
