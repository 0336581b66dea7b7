"""Cheap reads of /proc, and the few of its formats that the host collectors need.

Costs decide how it is read. Per thread, measured on Linux 6.18 from CPython 3.11:
`open()` and `read()` of `stat` 11.9 µs, the three bare system calls 6.7 µs, `pread` on a
descriptor that stays open 3.0 µs; of `schedstat` 9.5, 4.5 and 0.8 µs; of `status` 16, 10.8 and
6.9 µs. So what is read at every scrape stays open (`Descriptors` says how much of it may), and
what is expensive is read only when `schedstat` says that the thread has run.
"""

import errno
import os
import resource
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

# Descriptors for the rest of the process: sockets of daemons and of scrapers. An open file of /proc
# takes up to 10 KiB of the kernel (measured: the page that it prints into, inode, dentry).
RESERVED_DESCRIPTORS = 512

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")

OUT_OF_DESCRIPTORS = frozenset({errno.ENFILE, errno.EMFILE})

PRESSURE_RESOURCES = ("cpu", "memory", "io")

KERNEL_THREAD = 0x00200000  # PF_KTHREAD in the flags of stat


class Descriptors:
    """Counts the files of /proc that stay open, of all daemons' threads, against a limit.

    The default limit is the soft limit of open files less `RESERVED_DESCRIPTORS`. Above it, files
    are opened for each read, which is slower.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            limit = soft - RESERVED_DESCRIPTORS
        self.limit = max(0, limit)
        self.used = 0

    def open(self, path: str) -> int:
        """A descriptor, or -1 where no more may be kept."""
        if self.used >= self.limit:
            return -1
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as exc:
            if exc.errno in OUT_OF_DESCRIPTORS:
                self.limit = self.used
                return -1
            raise
        self.used += 1
        return fd

    def close(self, fd: int) -> None:
        """Close a descriptor that `open` gave; nothing for -1."""
        if fd >= 0:
            os.close(fd)
            self.used -= 1


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one, where that is allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def process_ids(proc: Path) -> list[int]:
    """The processes of a host, whose procfs may be mounted elsewhere than at /proc."""
    with os.scandir(proc) as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def process_name(proc: Path, pid: int) -> bytes | None:
    """The first 15 bytes of a process's name; None if it is gone or hidden.

    The kernel keeps no more. The whole name is in the arguments, but to read those of a process
    that hangs takes as long as it hangs.
    """
    try:
        return parse_stat(read_once(f"{proc}/{pid}/stat", 1024)).name
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def read_once(path: str, size: int = 4096) -> bytes:
    """The first `size` bytes by bare system calls: half the cost of a file object."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def read_all(path: str) -> bytes:
    """A whole file of any length."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


# Fields of a stat line by their names in proc(5), counted from 0 behind the thread's name.
_STATE, _FLAGS, _UTIME, _STIME, _NUM_THREADS, _STARTTIME, _RSS = 0, 6, 11, 12, 17, 19, 21
_PROCESSOR = 36


class Stat(NamedTuple):
    """What the collectors need of /proc/PID/stat or /proc/PID/task/TID/stat; times in ticks."""

    name: bytes
    stopped: bool  # by a signal or a debugger
    flags: int
    user: int
    system: int
    threads: int
    start: int
    resident_pages: int
    cpu: int


def parse_stat(raw: bytes) -> Stat:
    """Parse a stat line. The name may hold blanks and parentheses: it ends at the last `)`."""
    end = raw.rindex(b")")
    fields = raw[end + 2 :].split()
    return Stat(
        name=raw[raw.index(b"(") + 1 : end],
        stopped=fields[_STATE] in (b"T", b"t"),
        flags=int(fields[_FLAGS]),
        user=int(fields[_UTIME]),
        system=int(fields[_STIME]),
        threads=int(fields[_NUM_THREADS]),
        start=int(fields[_STARTTIME]),
        resident_pages=int(fields[_RSS]),
        cpu=int(fields[_PROCESSOR]),
    )


def parse_thread_stat(raw: bytes) -> tuple[bytes, int, int, int, int]:
    """A thread's name, user and system ticks, start and last CPU, from its stat line.

    Not `parse_stat`, which takes twice as long: two thousand threads may run between two scrapes.
    """
    end = raw.rindex(b")")
    fields = raw[end + 2 :].split(None, _PROCESSOR + 1)
    return (
        raw[raw.index(b"(") + 1 : end],
        int(fields[_UTIME]),
        int(fields[_STIME]),
        int(fields[_STARTTIME]),
        int(fields[_PROCESSOR]),
    )


class ThreadStatus(NamedTuple):
    """What the collectors need of /proc/PID/task/TID/status."""

    allowed: str  # CPU list
    voluntary: int  # context switches
    involuntary: int


_CPUS_ALLOWED: Final = b"\nCpus_allowed_list:"
_VOLUNTARY: Final = b"\nvoluntary_ctxt_switches:"
_INVOLUNTARY: Final = b"\nnonvoluntary_ctxt_switches:"


def parse_status(raw: bytes) -> ThreadStatus:
    """Parse three lines of a status file: all of it would take twice as long.

    The search begins at the end: the switches are the last two lines.
    """
    voluntary = raw.rindex(_VOLUNTARY) + len(_VOLUNTARY)
    voluntary_end = raw.index(_INVOLUNTARY, voluntary)
    involuntary = voluntary_end + len(_INVOLUNTARY)
    allowed = raw.rindex(_CPUS_ALLOWED, 0, voluntary) + len(_CPUS_ALLOWED)
    return ThreadStatus(
        allowed=raw[allowed : raw.index(b"\n", allowed)].strip().decode(),
        voluntary=int(raw[voluntary:voluntary_end]),
        involuntary=int(raw[involuntary : raw.index(b"\n", involuntary)]),
    )


class Mount(NamedTuple):
    """A line of /proc/PID/mountinfo."""

    device: str  # major:minor; 0:N where the file system has no device of its own (btrfs)
    point: str
    source: str
    root: str = "/"  # the part of the file system that is mounted there


def parse_mountinfo(text: str) -> list[Mount]:
    """The mounts that a process sees, paths as it sees them."""
    mounts = []
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        if separator and len(fields) >= 5 and len(tail) >= 2:
            device, root, point = fields[2], _unescape(fields[3]), _unescape(fields[4])
            mounts.append(Mount(device, point, _unescape(tail[1]), root))
    return mounts


def parse_cgroup(text: str) -> dict[str, str]:
    """/proc/PID/cgroup: the path by controller; that of version 2 has the empty name.

    >>> parse_cgroup("4:cpu,cpuacct:/a\\n0::/b")
    {'cpu,cpuacct': '/a', '': '/b'}
    """
    rows = (line.split(":", 2) for line in text.splitlines())
    return {row[1]: row[2] for row in rows if len(row) == 3}


def parse_pressure(raw: bytes) -> float:
    """Seconds in which at least one thread waited, from a pressure file (PSI).

    >>> parse_pressure(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\\nfull ...")
    2.5
    """
    return int(raw[: raw.index(b"\n")].rpartition(b"total=")[2]) / 1e6


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that holds `path`. Of several at one point the last, which hides the others."""
    best: Mount | None = None
    for mount in mounts:
        prefix = mount.point.rstrip("/") + "/"
        if (path + "/").startswith(prefix) and (not best or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _unescape(field: str) -> str:
    """mountinfo writes blank, tab, newline and backslash as octal."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field
