"""Samples of an OSD's operations, read once per scrape for all collectors that need them.

    samples.commands(daemon)   what to ask for in the next scrape
    samples.of(view)           the operations of this scrape, or None if none were due

A sample is the OSD's list of operations in progress (`ops`), as long as they are few. While there
are many, the list would cost the OSD most when it has no time. Then a sample is its record of
completed operations (`dump_historic_ops`), which holds 20. Samples cost the OSD at most 0.25 ms of
CPU per second on average: after a list that was longer than expected, the next one comes later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from cephqos_exporter.collectors.counters import CounterCommands, figure
from cephqos_exporter.collectors.interval import SLOWLY, ReadInterval
from cephqos_exporter.config import Settings, integer, number
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.not_understood import NotUnderstood, listed
from cephqos_exporter.qos.waits import SampledOperations, completed, in_progress

LIST: Final = "ops"
RECORD: Final = "dump_historic_ops"
BLOCKED: Final = "dump_blocked_ops_count"

# Measured on 18.2: 14 to 20 us of the OSD's CPU for each listed operation, 40 us for each in the
# record (it has more events): 0.8 ms for the 20 that it holds.
_LISTED_SECONDS: Final = 16e-6
_CPU_SHARE: Final = 0.25e-3  # of one CPU, for lists, at most
_PAUSE_PER_LISTED: Final = _LISTED_SECONDS / _CPU_SHARE  # seconds until the next list
_LONGEST_SECONDS: Final = 60.0  # that one sample stands for
# Blocked operations are counted one by one, 0.5 us each: 0.1 ms of CPU per second at most for that.
_PAUSE_PER_BLOCKED: Final = 0.5e-6 / 0.1e-3
_MOST_PAUSE: Final = 60.0
# From 18.x on: client operations in the queue. `op_wip` counts those that the OSD has begun.
_CLIENTS_QUEUED: Final = "mclock-shard-queue-", "mclock_client_queue_len"

AT_MOST: Final = integer(
    "collector.ops.sample-at-most",
    512,
    "List the operations in progress, to sample where they wait, when at most this many are in "
    "progress (replica writes included). With more, the record of completed operations is read. "
    "0: take no samples.",
    least=0,
    most=100_000,
)
INTERVAL: Final = number(
    "collector.ops.sample-interval",
    10.0,
    "Seconds between samples of operations. The interval grows when more than 150 are listed.",
    least=0,
    most=3600,
    unit="seconds",
)


@dataclass(frozen=True, slots=True)
class OperationSample:
    """The operations of one sample.

    The record of completed operations keeps the slowest of ten minutes: shares of them say nothing
    of quick operations.
    """

    in_progress: bool  # else completed since the last sample
    operations: Sequence[SampledOperations] = ()


@dataclass(slots=True)
class _ReplicaWrites:
    """How many replica writes are in progress, from the time that the completed ones took.

    Little's law: seconds of latency that were added per second are the mean number in progress.
    """

    seconds: float | None = None  # the OSD's sum of latencies at the last scrape
    time: float = 0.0  # of the last scrape

    def in_progress(self, seconds: float, now: float) -> float:
        before, elapsed = self.seconds, now - self.time
        self.seconds, self.time = seconds, now
        if before is None or elapsed <= 0:
            return 0.0
        return max(seconds - before, 0.0) / elapsed


@dataclass(slots=True)
class _Osd:
    interval: ReadInterval
    replica_writes: _ReplicaWrites = field(default_factory=_ReplicaWrites)
    clients: float = 0.0  # client operations in progress at the last scrape
    all_kinds: float = 0.0  # operations in progress then, an estimate
    blocked: float = 0.0  # operations, at the last count
    listed: int = 0  # operations in the last list; 0 again once its pause is over
    listed_at: float = 0.0
    in_progress_known_at: float | None = None
    record: frozenset[tuple[str, str]] | None = None  # description and start, at the last look
    time: float | None = None  # of the last scrape
    sample: OperationSample | None = None  # of the last scrape


class OperationSamples:
    """The samples of all OSDs of this host."""

    def __init__(self, *, at_most: int = 512, interval: float = 10.0) -> None:
        self._at_most = at_most
        self._interval = interval
        self._osds: dict[Daemon, _Osd] = {}
        self._counters = CounterCommands()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(at_most=settings[AT_MOST], interval=settings[INTERVAL])

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        """What the next scrape must ask for, so that a sample comes when it is due."""
        osd = self._osds.get(daemon)
        pause = 0.0 if osd is None else min(osd.blocked * _PAUSE_PER_BLOCKED, _MOST_PAUSE)
        # Few different values: what is asked for is kept by them.
        wanted = [Command(BLOCKED, max(SLOWLY, round(pause))), *self._counters.commands(daemon)]
        if osd is not None and self._at_most and osd.all_kinds and osd.interval.due:
            wanted.append(Command(LIST if osd.all_kinds <= self._at_most else RECORD))
        return wanted

    def of(self, view: DaemonView) -> OperationSample | None:
        """The sample of this scrape; None where none was due, or its reply did not come."""
        osd = self._osds.get(view.daemon)
        if osd is None:
            osd = self._osds[view.daemon] = _Osd(ReadInterval(self._interval))
        if osd.time != view.time:
            osd.time, osd.sample = view.time, None
            self._count_in_progress(view, osd)
            if self._at_most:
                read = view.not_understood.all_of(LIST, lambda: [self._read(view, osd)])
                osd.sample = read[0] if read else None
        return osd.sample

    def clients(self, view: DaemonView) -> float:
        """Client operations in progress. If the last list was too long, all that it had."""
        self.of(view)
        osd = self._osds[view.daemon]
        list_was_long = osd.listed > AT_MOST.default
        return osd.listed if osd.clients and list_was_long else osd.clients

    def may_list(self, view: DaemonView) -> bool:
        """Whether the pause after the last list is over."""
        return not self._osds[view.daemon].listed

    def forget(self, daemon: Daemon) -> None:
        self._osds.pop(daemon, None)
        self._counters.forget(daemon)

    def _read(self, view: DaemonView, osd: _Osd) -> OperationSample | None:
        sample, now = None, view.time
        ops, record = view.replies.get(LIST), view.replies.get(RECORD)
        if osd.interval.due and ops is not None:
            operations = self._in_progress(listed(ops["ops"]), view, osd)
            sample = OperationSample(in_progress=True, operations=operations)
        elif osd.interval.due and record is not None:
            operations = _new(listed(record["ops"]), osd, view.not_understood)
            sample = OperationSample(in_progress=False, operations=operations)
        osd.interval.scraped(now, read=sample is not None)
        pause = min(osd.all_kinds, self._at_most) * _PAUSE_PER_LISTED
        osd.interval.seconds = max(self._interval, pause)
        if not osd.all_kinds and osd.interval.due:  # an idle OSD need not be asked
            osd.in_progress_known_at = now
            sample = OperationSample(in_progress=True)
        return sample

    def _in_progress(
        self, ops: Sequence[Mapping[str, Any]], view: DaemonView, osd: _Osd
    ) -> Sequence[SampledOperations]:
        """Each operation stands for the time since the last sample (Little's law), which is 0 at
        the first. It never stands for more than _LONGEST_SECONDS.
        """
        since, osd.in_progress_known_at = osd.in_progress_known_at, view.time
        length = 0.0 if since is None else min(max(view.time - since, 0.0), _LONGEST_SECONDS)
        return in_progress(ops, length, view.not_understood)

    def _count_in_progress(self, view: DaemonView, osd: _Osd) -> None:
        """Estimate the operations in progress, to decide what to ask for. No series shows this.

        No counter has those that a placement group holds back: for them the last list counts.
        """
        not_understood, now = view.not_understood, view.time
        loggers = self._counters.loggers(view)
        counters = loggers.required("osd")
        queued = loggers.total(*_CLIENTS_QUEUED) or 0.0
        osd.clients = (figure(counters, "op_wip", not_understood) or 0.0) + queued
        seconds = figure(counters, "subop_w_latency", not_understood, "sum")
        replicas = 0.0 if seconds is None else osd.replica_writes.in_progress(seconds, now)
        reply = view.replies.get(BLOCKED)
        blocked = None if reply is None else figure(reply, "num_blocked_ops", not_understood)
        osd.blocked = blocked or 0.0
        if LIST in view.replies:
            osd.listed = len(not_understood.all_of(LIST, lambda: listed(view.replies[LIST]["ops"])))
            osd.listed_at = now
        elif not 0 <= now - osd.listed_at < osd.listed * _PAUSE_PER_LISTED:
            osd.listed = 0
        osd.all_kinds = max(osd.clients + replicas, osd.blocked, osd.listed)


def _new(
    ops: Sequence[Mapping[str, Any]], osd: _Osd, not_understood: NotUnderstood
) -> Sequence[SampledOperations]:
    """The operations that were not in the record at the last look.

    None at the first look: those in the record may have ended at any time before.
    """
    before = osd.record
    record = {(op["description"], op["initiated_at"]): op for op in ops}
    osd.record = frozenset(record)
    if before is None:
        return ()
    return completed([op for key, op in record.items() if key not in before], not_understood)
