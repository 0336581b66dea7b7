"""Block devices, CPUs and NUMA nodes as /sys tells them, and which devices an OSD lives on."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from cephqos_base.units import parse_cpu_list
from cephqos_exporter.daemon import Daemon, Host
from cephqos_exporter.procfs import Mount, mount_of, parse_mountinfo

# What an OSD's data directory holds, and what it means. SeaStore adds block.<type>.<number>.
_ROLES = {"block": "block", "block.db": "db", "block.wal": "wal", "journal": "journal"}
_LINK_LIMIT = 16
_MOST_NAMES: Final = 10_000  # in a directory
# Bytes of a file. A buffer for the largest takes four times as long as to read a usual one.
_LARGEST_FILE: Final = 1 << 20
_USUAL_FILE: Final = 4096


def read_text(path: Path | str) -> str | None:
    """A small file without its newline; None where it is not there or cannot be read.

    Only regular files are read, and without waiting: the path may come from a daemon.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        raw = os.read(fd, _USUAL_FILE)
        if len(raw) == _USUAL_FILE:
            raw += os.read(fd, _LARGEST_FILE)
        return raw.decode(errors="replace").strip()
    except OSError:
        return None
    finally:
        os.close(fd)


def device_by_number(sys: Path, number: str) -> str | None:
    """The kernel's name of the block device `major:minor`."""
    link = sys / "dev" / "block" / number
    return link.resolve().name if link.exists() else None


def disks_under(host: Host, device: str) -> tuple[str, ...]:
    """The disks beneath a device, through partitions, device-mapper, md and loop devices.

    A disk is a device that has none beneath it. For a whole disk the result is itself.
    """
    disks: dict[str, None] = {}
    seen: set[str] = set()
    pending = [device]
    while pending:
        name = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        below = _directly_under(host, name)
        if below:
            pending.extend(below)
        else:
            disks[name] = None
    return tuple(disks)


def _directly_under(host: Host, device: str) -> list[str]:
    node = host.sys / "class" / "block" / device
    if (node / "partition").exists():
        return [node.resolve().parent.name]
    backing = read_text(node / "loop" / "backing_file") or ""
    if backing:  # a loop device, over a block device or a file
        if backing.startswith("/dev/"):
            below = _device_at(host, "", _target(host, "", backing), None)
        else:
            below = _file_system_device(host, backing.removesuffix(" (deleted)"), "", pid=1)
        return [below] if below else []
    try:
        return sorted(slave.name for slave in (node / "slaves").iterdir())
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class Queue:
    """The settings of a block device's queue, as text; empty where the kernel has none."""

    scheduler: str
    nr_requests: str
    read_ahead_kb: str
    rotational: str
    write_cache: str


def read_queue(sys: Path, device: str) -> Queue:
    """Queue settings; a partition has those of its disk."""
    node = sys / "class" / "block" / device
    if not (node / "queue").is_dir():
        node = node.resolve().parent
    text = {name: read_text(node / "queue" / name) or "" for name in Queue.__dataclass_fields__}
    return Queue(**{**text, "scheduler": in_force(text["scheduler"])})


def in_force(text: str) -> str:
    """Of a list such as `[none] mq-deadline` what is in brackets; a single value has none."""
    before, bracket, after = text.partition("[")
    return after.partition("]")[0] if bracket else before.strip()


# Where a disk says what it is: SCSI and SATA, and NVMe.
_HARDWARE: Final = (("model", ("model",)), ("firmware", ("rev", "firmware_rev")))
_PCI_ADDRESS: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def read_hardware(sys: Path, device: str) -> dict[str, str]:
    """Model and firmware of a disk, and the PCI address of its controller, as far as it says them.

    A partition has those of its disk; what lies above disks (LVM, crypt, RAID) has none.
    """
    node = (sys / "class" / "block" / device).resolve()
    if not (node / "device").exists():
        node = node.parent
    found = {}
    for label, names in _HARDWARE:
        texts = (read_text(node / "device" / name) for name in names)
        if said := next((text for text in texts if text), ""):
            found[label] = said
    if found and (on_the_way := _PCI_ADDRESS.findall(str(node))):
        found["controller"] = on_the_way[-1]
    return found


@dataclass(frozen=True, slots=True)
class OsdDevice:
    """A block device that an OSD opens, or that holds the files it lives in."""

    role: str  # block, db, wal; journal
    device: str
    in_file: bool = False  # the OSD opens a file on the device, not the device


# Where OSDs keep their data on the host, for daemons whose own files cannot be reached.
DATA_DIRECTORIES = ("/var/lib/ceph/osd/ceph-{id}", "/var/lib/ceph/{cluster}/osd.{id}")


class DataDirectoryMissing(Exception):
    """No data directory of the OSD can be reached; `reason` is gone or permission."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def osd_devices(
    host: Host, daemon: Daemon, osd_data: str | None, data_dirs: Sequence[str]
) -> list[OsdDevice]:
    """Find an OSD's devices by its data directory.

    First as the daemon sees it: `osd_data` of its configuration, below /proc/PID/root. That works
    in containers, and needs the same user or CAP_SYS_PTRACE. Then on the host: `osd_data`, and
    `data_dirs`, templates of `{id}` and `{cluster}`.
    """
    reason = "gone"
    for root, directory in _data_directories(host, daemon, osd_data, data_dirs):
        try:
            names = _names_in(root + directory)
        except PermissionError:
            reason = "permission"
            continue
        except (OSError, ValueError):  # ValueError: a zero byte in the path
            continue
        return list(_devices_in(host, daemon, root, directory, names))
    raise DataDirectoryMissing(reason)


def _names_in(directory: str) -> list[str]:
    """The names in a directory, at most _MOST_NAMES: a daemon may name one with millions."""
    with os.scandir(directory) as entries:
        return [entry.name for entry in islice(entries, _MOST_NAMES)]


def is_rotational(host: Host, devices: Iterable[OsdDevice]) -> bool | None:
    """Whether the device of an OSD's objects is rotational, by the kernel; None if not known.

    BlueStore reads the same file when it opens the device, and the OSD goes by it.
    """
    for device in devices:
        if device.role == "block":
            return {"1": True, "0": False}.get(read_queue(host.sys, device.device).rotational)
    return None


def _data_directories(
    host: Host, daemon: Daemon, osd_data: str | None, data_dirs: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """(root, directory) to try: the daemon's root, or "" for the host's own."""
    inside = osd_data or f"/var/lib/ceph/osd/ceph-{daemon.id}"
    if daemon.pid:
        yield f"{host.proc}/{daemon.pid}/root", inside
    names = {"id": daemon.id, "cluster": daemon.cluster}
    for directory in (inside, *(template.format(**names) for template in data_dirs)):
        if _belongs(directory, daemon):
            yield "", directory


def _belongs(directory: str, daemon: Daemon) -> bool:
    """Whether the files in a directory of the host name no other OSD. The path may be that of a
    container, and another OSD's on the host."""
    expected = {"ceph_fsid": daemon.cluster, "whoami": daemon.id}
    return all(read_text(Path(directory) / name) in (None, text) for name, text in expected.items())


def _devices_in(
    host: Host, daemon: Daemon, root: str, directory: str, names: Sequence[str]
) -> Iterator[OsdDevice]:
    pid = daemon.pid if root else None
    roles = [(name, role) for name in sorted(names) if (role := _role(name))]
    if "current" in names:  # FileStore: its data are files here
        roles.insert(0, ("current", "block"))
    for name, role in roles:
        path = _target(host, root, f"{directory}/{name}")
        device = _device_at(host, root, path, pid)
        if device:
            in_file = not path.startswith("/dev/") and _on_host(host, root, path).is_file()
            yield OsdDevice(role, device, in_file)


def _role(name: str) -> str | None:
    if name in _ROLES:
        return _ROLES[name]
    parts = name.split(".")
    return "block" if len(parts) == 3 and parts[0] == "block" and parts[2].isdigit() else None


def _target(host: Host, root: str, path: str) -> str:
    """The path that a link leads to, through further links. `root`: as of _data_directories."""
    for _ in range(_LINK_LIMIT):
        try:
            target = _on_host(host, root, path).readlink()
        except OSError:
            break
        path = os.path.normpath(PurePosixPath(path).parent / target)
    return path


def _device_at(host: Host, root: str, path: str, pid: int | None) -> str | None:
    """The block device at `path`, or the one whose file system holds that file."""
    try:
        status = _on_host(host, root, path).stat()
    except OSError:
        return None
    if stat.S_ISBLK(status.st_mode):
        return device_by_number(host.sys, _number(status.st_rdev))
    if path.startswith("/dev/"):  # a recorded tree has plain files for nodes
        name = PurePosixPath(path).name
        return name if (host.sys / "class" / "block" / name).exists() else None
    return _file_system_device(host, path, root, pid)


def _on_host(host: Host, root: str, path: str) -> Path:
    return host.dev / path[5:] if path.startswith("/dev/") else Path(root + path)


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def _file_system_device(host: Host, path: str, root: str, pid: int | None) -> str | None:
    """The device of the file system that holds a file: by the mounts that the process sees, or
    else by the file's own device number."""
    mount = mount_of(path, _mounts(host, pid)) if pid else None
    if mount is None:
        try:
            return device_by_number(host.sys, _number(Path(root + path).stat().st_dev))
        except OSError:
            return None
    if mount.device.startswith("0:") and mount.source.startswith("/dev/"):  # such as btrfs
        return _device_at(host, root, _target(host, root, mount.source), None)
    return device_by_number(host.sys, mount.device)


def _mounts(host: Host, pid: int) -> list[Mount]:
    try:
        return parse_mountinfo((host.proc / str(pid) / "mountinfo").read_text(errors="replace"))
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class Topology:
    """For each CPU that is online: its NUMA node, physical core and socket."""

    node: Mapping[int, int]
    core: Mapping[int, int]  # numbered by us, socket by socket: neighbours have numbers in a row
    socket: Mapping[int, int]

    def place(self, cpu: int) -> tuple[int, int]:
        """The CPU's socket, and the NUMA node in it: OSDs are spread over places or kept in one."""
        return self.socket[cpu], self.node[cpu]

    @property
    def places(self) -> int:
        return len({self.place(cpu) for cpu in self.core})

    def siblings(self, cpu: int) -> frozenset[int]:
        """The other hardware threads of the CPU's core."""
        core = self.core.get(cpu)
        return frozenset(c for c, other in self.core.items() if other == core and c != cpu)


def read_topology(sys: Path) -> Topology:
    """Read nodes, sockets and cores; a machine without NUMA or topology files is one of each."""
    base = sys / "devices" / "system"
    cpus = parse_cpu_list(read_text(base / "cpu" / "online") or "")
    node = dict.fromkeys(cpus, 0)
    for directory in sorted((base / "node").glob("node[0-9]*")):
        for cpu in parse_cpu_list(read_text(directory / "cpulist") or ""):
            node[cpu] = int(directory.name[4:])
    cores = {}  # CPU -> its socket, and the first CPU of its core
    for cpu in cpus:
        topology = base / "cpu" / f"cpu{cpu}" / "topology"
        socket = int(read_text(topology / "physical_package_id") or 0)
        siblings = parse_cpu_list(read_text(topology / "thread_siblings_list") or str(cpu))
        cores[cpu] = (socket, min(siblings, default=cpu))
    number_of = {core: number for number, core in enumerate(sorted(set(cores.values())))}
    return Topology(
        node={cpu: node[cpu] for cpu in cpus},
        core={cpu: number_of[core] for cpu, core in cores.items()},
        socket={cpu: socket for cpu, (socket, _) in cores.items()},
    )
