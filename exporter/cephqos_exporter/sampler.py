"""The threads of one process, sampled: CPU time, waiting and switches summed by thread group.

    samples.of(view).groups["tp_osd_tp"].wait_ns

A group's sums add up the differences between two readings of each thread. So they do not fall when
a thread exits or changes its name. What a thread uses between its last reading and its end is
missing in its group, but not in the process's own times, where the kernel keeps it.
"""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Self

from cephqos_exporter.config import Settings, flag, integer, seconds
from cephqos_exporter.daemon import Daemon, DaemonView, ReplyMissing
from cephqos_exporter.procfs import (
    CLOCK_TICKS,
    Descriptors,
    Stat,
    parse_stat,
    parse_status,
    parse_thread_stat,
    read_once,
)

# The groups that decide an OSD's pace or compete with those that do. All others are `other`.
OSD_GROUPS = frozenset((
    *("tp_osd_tp", "msgr-worker", "cfin", "log"),
    *("bstore_aio", "bstore_kv_sync", "bstore_kv_final", "bstore_mempool"),
    *("rocksdb:low", "rocksdb:high"),
    *("reactor", "alien-store-tp"),  # Crimson
    *("tp_fstore_op", "filestore_sync", "journal_write"),  # FileStore
))  # fmt: skip
OTHER = "other"

ALL_GROUPS: Final = flag(
    "collector.threads.all-groups",
    False,
    "Name every thread group. By default, groups that do not decide an OSD's pace are one: other.",
)
SWITCHES_INTERVAL: Final = seconds(
    "collector.threads.switches-interval",
    30.0,
    "Seconds between reads of context switches, which cost more to read than anything else "
    "about a thread.",
)
DESCRIPTORS: Final = integer(
    "collector.threads.descriptors",
    -1,
    "Files of /proc to keep open at most, which makes reading them cheaper; -1: as many as the "
    "limit of open files allows.",
    least=-1,
    most=10_000_000,
)

_NS_PER_TICK = 1_000_000_000 // CLOCK_TICKS
_DIGITS = re.compile(r"\d+")
_GONE = (ProcessLookupError, FileNotFoundError)


def group_of(name: str, groups: frozenset[str] | None) -> str:
    """The group of a thread: its name without numbers, or `other` if that is not in `groups`.

    >>> group_of("msgr-worker-2", OSD_GROUPS), group_of("rocksdb:low1", None)
    ('msgr-worker', 'rocksdb:low')
    """
    if name == "crimson-osd":  # Seastar names the reactors from 1 on; 0 is the main thread
        name = "reactor"
    group = _DIGITS.sub("", name).rstrip("-_ ")
    return group if group and (groups is None or group in groups) else OTHER


@lru_cache(4096)
def _named(raw: bytes) -> tuple[bytes, str]:
    """The same objects for all threads of a name: thousands of them have a hundred names."""
    return raw, raw.decode(errors="replace") or "unnamed"  # a name may be empty


@dataclass(slots=True)
class Thread:
    """One thread's last reading; times in clock ticks or nanoseconds as the kernel gives them."""

    tid: int
    fd: int  # of the file that is read at every scrape (ProcessSample._scraped_file); -1: not open
    stat_fd: int = -1  # of stat, where that is another file and the thread runs often
    raw: bytes = b""  # that file as last read: if it is the same again, the thread did not run
    raw_name: bytes | None = None
    name: str = ""
    group: str = OTHER
    start: int = 0  # ticks since the boot
    user: int = 0  # ticks
    system: int = 0  # ticks
    run_ns: int = 0  # on a CPU
    run_at_stat: int = -_NS_PER_TICK  # `run_ns` when stat was last read
    wait_ns: int = 0  # ready to run, without a CPU
    cpu: int = -1  # the last CPU; -1: not known
    voluntary: int = 0  # context switches
    involuntary: int = 0
    allowed: str = ""  # list of CPUs
    raw_at_status: bytes = b""  # `raw` when status was last read


@dataclass(slots=True)
class ThreadGroup:
    """A thread group's sums since the process, or the exporter, started."""

    threads: int = 0  # now
    user: int = 0  # ticks
    system: int = 0  # ticks
    wait_ns: int = 0
    busiest_ns: int = 0  # sum over the scrapes of what the busiest thread ran since the one before
    voluntary: int = 0
    involuntary: int = 0
    busiest_in_scrape: int = field(default=0, repr=False)  # ns, while threads are being read


class ProcessSample:
    """Samples one process; `update` raises ReplyMissing when it has gone.

    `switches_interval` is the seconds between reads of `status`, the most expensive file.
    """

    def __init__(
        self,
        *,
        proc: Path,
        pid: int,
        descriptors: Descriptors,
        groups: frozenset[str] | None,
        switches_interval: float,
    ) -> None:
        self.pid = pid
        self.threads: dict[int, Thread] = {}
        self.groups: dict[str, ThreadGroup] = {}
        self.updated: float | None = None  # time of the last scrape
        self._path = f"{proc}/{pid}"
        self._descriptors = descriptors
        self._named_groups = groups
        self._status_interval = switches_interval
        self._next_status_at: float | None = None
        self._reads_status = True  # in this scrape
        self._list_is_whole = False  # False: descriptors ran out while threads were taken up
        self._fd = -1  # of the process's stat
        try:
            self._fd = descriptors.open(f"{self._path}/stat")
            self.process = self._read_process()
            self.waits_known = self._has_schedstat()
        except (OSError, ValueError) as exc:
            descriptors.close(self._fd)
            if not isinstance(exc, (*_GONE, PermissionError)):
                raise  # such as the last descriptor: one that is lost here never comes back
            # /proc mounted with hidepid hides other users' processes.
            reason = "permission" if isinstance(exc, PermissionError) else "gone"
            raise ReplyMissing(self._path, reason) from exc
        self.start = self.process.start
        self._scraped_file = "schedstat" if self.waits_known else "stat"

    def _has_schedstat(self) -> bool:
        """Kernels without CONFIG_SCHED_INFO have no such file, or zeros in it."""
        try:
            return read_once(f"{self._path}/schedstat", 64).split() != [b"0"] * 3
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close what is kept open; the sample is of no use afterwards."""
        for thread in self.threads.values():
            self._close(thread)
        self.threads.clear()
        self._descriptors.close(self._fd)
        self._fd = -1

    def update(self, now: float) -> None:
        """Read what has changed, once per scrape for all callers (`now` is the scrape's time)."""
        if now == self.updated:
            return
        first = self.updated is None
        try:
            self.process = self._read_process()
            if self.process.start != self.start:  # the number was given to another process
                raise ProcessLookupError
            # Also after the clock was set back: else it would not be due for as long.
            due = self._next_status_at
            self._reads_status = due is None or not due - self._status_interval <= now < due
            gone = self._read_threads(self.threads.values())
            if gone or self.process.threads != len(self.threads) or not self._list_is_whole:
                self._list_is_whole = False
                self._list_threads(gone)
                self._list_is_whole = True
            self._read_statuses(now)
        except _GONE as exc:
            raise ReplyMissing(self._path, "gone") from exc
        for group in self.groups.values():
            # The first reading has all that threads ever ran: it tells nothing of one interval.
            if not first:
                group.busiest_ns += group.busiest_in_scrape
            group.busiest_in_scrape = 0
        self.updated = now

    def _read_process(self) -> Stat:
        raw = os.pread(self._fd, 1024, 0) if self._fd >= 0 else read_once(f"{self._path}/stat")
        return parse_stat(raw)

    def _list_threads(self, gone: list[Thread]) -> None:
        """Drop the threads that have gone, take up the new ones."""
        for thread in gone:
            self._drop(thread)
        present = {int(tid) for tid in os.listdir(f"{self._path}/task")}  # noqa: PTH208 - hot
        for tid in self.threads.keys() - present:
            self._drop(self.threads[tid])
        new = []
        for tid in sorted(present - self.threads.keys()):
            try:
                file = self._file_of(tid, self._scraped_file)
                new.append(Thread(tid, self._descriptors.open(file)))
            except _GONE:
                continue
            self.threads[tid] = new[-1]
        for thread in self._read_threads(new):
            self._drop(thread)
        for group in self.groups.values():
            group.threads = 0
        for thread in self.threads.values():
            self.groups[thread.group].threads += 1

    def _file_of(self, tid: int, name: str) -> str:
        return f"{self._path}/task/{tid}/{name}"

    def _drop(self, thread: Thread) -> None:
        if self.threads.pop(thread.tid, None):
            self._close(thread)

    def _close(self, thread: Thread) -> None:
        self._descriptors.close(thread.fd)
        self._descriptors.close(thread.stat_fd)

    def _read_threads(self, threads: Iterable[Thread]) -> list[Thread]:
        """Read each thread that has run since the last scrape; returns those that have ended."""
        gone = []
        pread = os.pread
        for thread in threads:
            try:
                fd = thread.fd
                raw = (
                    pread(fd, 512, 0)
                    if fd >= 0
                    else read_once(self._file_of(thread.tid, self._scraped_file))
                )
                if raw != thread.raw:
                    self._read_thread(thread, raw)
            except _GONE:
                gone.append(thread)
        return gone

    def _read_thread(self, thread: Thread, raw: bytes) -> None:
        if self.waits_known:
            fields = raw.split()
            run_ns, wait_ns = int(fields[0]), int(fields[1])
            # Its stat counts in ticks: until it has run for a tick, nothing is new there. run_ns
            # begins again at 0 if the thread's number was given to a new thread.
            if self._reads_status or not 0 <= run_ns - thread.run_at_stat < _NS_PER_TICK:
                self._take_stat(thread, self._read_stat(thread))
                thread.run_at_stat = run_ns
        else:
            self._take_stat(thread, raw)
            run_ns, wait_ns = (thread.user + thread.system) * _NS_PER_TICK, 0
        group = self.groups[thread.group]
        group.busiest_in_scrape = max(group.busiest_in_scrape, run_ns - thread.run_ns)
        group.wait_ns += max(0, wait_ns - thread.wait_ns)
        thread.raw, thread.run_ns, thread.wait_ns = raw, run_ns, wait_ns

    def _take_stat(self, thread: Thread, raw: bytes) -> None:
        name, user, system, start, cpu = parse_thread_stat(raw)
        if start != thread.start:
            if thread.start:  # the number was given to a new thread
                raise ProcessLookupError
            thread.start = start
        if name != thread.raw_name:
            self._rename(thread, name)
        group = self.groups[thread.group]
        group.user += max(0, user - thread.user)
        group.system += max(0, system - thread.system)
        thread.user, thread.system, thread.cpu = user, system, cpu

    def _read_stat(self, thread: Thread) -> bytes:
        """Its descriptor stays open from the second read on: many threads never run again, and
        two in five of an idle OSD run again and again."""
        if thread.stat_fd < 0 and thread.start:
            thread.stat_fd = self._descriptors.open(self._file_of(thread.tid, "stat"))
        if thread.stat_fd >= 0:
            return os.pread(thread.stat_fd, 1024, 0)
        return read_once(self._file_of(thread.tid, "stat"), 1024)

    def _rename(self, thread: Thread, raw_name: bytes) -> None:
        """Move a thread to the group of its new name. Threads get names a moment after their start.

        What it has used so far stays in the sums of the old group.
        """
        known = thread.name != ""
        old = self.groups.get(thread.group)
        thread.raw_name, thread.name = _named(raw_name)
        thread.group = group_of(thread.name, self._named_groups)
        new = self.groups.setdefault(thread.group, ThreadGroup())
        if known and old:
            old.threads -= 1
            new.threads += 1

    def _read_statuses(self, now: float) -> None:
        if not self._reads_status:
            return
        # The first interval is shorter, by pid, so that the host's daemons are not due together.
        first_share = (self.pid % 8 + 1) / 8 if self._next_status_at is None else 1
        self._next_status_at = now + self._status_interval * first_share
        for thread in self.threads.values():
            if thread.raw == thread.raw_at_status and thread.tid != self.pid:
                continue
            try:
                status = parse_status(read_once(self._file_of(thread.tid, "status")))
            except _GONE:
                continue  # the next scrape drops it
            group = self.groups[thread.group]
            group.voluntary += max(0, status.voluntary - thread.voluntary)
            group.involuntary += max(0, status.involuntary - thread.involuntary)
            thread.voluntary, thread.involuntary = status.voluntary, status.involuntary
            thread.allowed, thread.raw_at_status = sys.intern(status.allowed), thread.raw


class ThreadSamples:
    """The samples of all daemons, shared by the collectors that need them.

    `groups`: the named ones of OSDs, as for `group_of`. Other daemons' groups are all named.
    """

    def __init__(
        self,
        *,
        groups: frozenset[str] | None = OSD_GROUPS,
        switches_interval: float = 30.0,
        descriptors: Descriptors | None = None,
    ) -> None:
        self.descriptors = descriptors or Descriptors()
        self._groups = groups
        self._interval = switches_interval
        self._samples: dict[tuple[str, str], ProcessSample] = {}
        self._gone: set[Daemon] = set()  # their pids may belong to other processes by now

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        limit = settings[DESCRIPTORS]
        return cls(
            groups=None if settings[ALL_GROUPS] else OSD_GROUPS,
            switches_interval=settings[SWITCHES_INTERVAL],
            descriptors=Descriptors(limit if limit >= 0 else None),
        )

    def of(self, view: DaemonView) -> ProcessSample:
        """The daemon's threads as of this scrape; ReplyMissing where there is no such process."""
        daemon = view.daemon
        if not daemon.pid:
            raise ReplyMissing("pid", "unknown")
        if daemon in self._gone:
            raise ReplyMissing("pid", "gone")
        key = (daemon.cluster, daemon.name)
        sample = self._samples.get(key)
        # Of the process before a restart, which may have had the same pid.
        if sample and (sample.pid != daemon.pid or daemon.start not in (None, sample.start)):
            self._samples.pop(key).close()
            sample = None
        try:
            if sample is None:
                groups = self._groups if daemon.kind == "osd" else None
                sample = self._samples[key] = self.open(view.host.proc, daemon.pid, groups)
                if daemon.start not in (None, sample.start):
                    raise ReplyMissing("pid", "gone")
            sample.update(view.time)
        except ReplyMissing as exc:
            self.forget(daemon)
            if exc.reason == "gone":
                self._gone.add(daemon)
            raise
        return sample

    def open(self, proc: Path, pid: int, groups: frozenset[str] | None = None) -> ProcessSample:
        """A sample of any process, which the caller updates and closes."""
        return ProcessSample(
            proc=proc,
            pid=pid,
            descriptors=self.descriptors,
            groups=groups,
            switches_interval=self._interval,
        )

    def forget(self, daemon: Daemon) -> None:
        """Drop the daemon's sample, unless it is already that of its successor."""
        self._gone.discard(daemon)
        key = (daemon.cluster, daemon.name)
        sample = self._samples.get(key)
        if sample and sample.pid == daemon.pid:
            self._samples.pop(key).close()
