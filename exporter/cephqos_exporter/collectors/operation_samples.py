"""Samples of an OSD's operations, read once per scrape for all collectors that need them.

    samples.commands(daemon)   what to ask for in the next scrape
    samples.of(view)           the operations of this scrape, or None if none were due

Few operations in progress are listed. In a storm the list would cost the OSD most when it has no
time: then the record of completed ones is read, which holds 20. Either costs the OSD at most
0.25 ms of CPU per second, whatever it has in progress. A list that was longer than expected is
paid for before the next one.
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
_SHARE: Final = 0.25e-3  # of a CPU of the OSD, at most
_SECONDS_EACH: Final = _LISTED_SECONDS / _SHARE  # between two lists
_LONGEST_SECONDS: Final = 60.0
# From 18.x on. What was begun is not among them, and `op_wip` counts nothing else.
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
    """The operations that one sample found. `listed`: in progress, else completed since the last.

    Of the completed ones, the OSD keeps the slowest of ten minutes: shares of them are no
    estimate for the quick ones.
    """

    listed: bool
    operations: Sequence[SampledOperations] = ()


@dataclass(slots=True)
class _Replicas:
    """How many replica writes are in progress, from the time that the completed ones took."""

    seconds: float | None = None
    time: float = 0.0

    def in_progress(self, seconds: float, now: float) -> float:
        before, length = self.seconds, now - self.time
        self.seconds, self.time = seconds, now
        if before is None or length <= 0:
            return 0.0
        return max(seconds - before, 0.0) / length


@dataclass(slots=True)
class _Osd:
    interval: ReadInterval
    replicas: _Replicas = field(default_factory=_Replicas)
    clients: float = 0.0  # client operations in progress at the last scrape
    busy: float = 0.0  # operations of all kinds
    listed: int = 0  # operations in the last list, until the OSD has paid for it
    listed_at: float = 0.0
    sampled: float | None = None  # when operations in progress were last known
    seen: frozenset[tuple[str, str]] | None = None  # the record as of the last look
    time: float | None = None  # of the last scrape, and what it found
    found: OperationSample | None = None


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
        wanted = [Command(BLOCKED, SLOWLY), *self._counters.commands(daemon)]
        osd = self._osds.get(daemon)
        if osd is not None and self._at_most and osd.busy and osd.interval.due:
            wanted.append(Command(LIST if osd.busy <= self._at_most else RECORD))
        return wanted

    def of(self, view: DaemonView) -> OperationSample | None:
        """The sample of this scrape; None where none was due, or its reply did not come."""
        osd = self._osds.get(view.daemon)
        if osd is None:
            osd = self._osds[view.daemon] = _Osd(ReadInterval(self._interval))
        if osd.time != view.time:
            osd.time, osd.found = view.time, None
            self._count(view, osd)
            if self._at_most:
                read = view.not_understood.all_of(LIST, lambda: [self._read(view, osd)])
                osd.found = read[0] if read else None
        return osd.found

    def clients(self, view: DaemonView) -> float:
        """Client operations in progress; all that the last list had, if that was a storm's."""
        self.of(view)
        osd = self._osds[view.daemon]
        return osd.clients and (osd.listed if osd.listed > AT_MOST.default else osd.clients)

    def is_paid(self, view: DaemonView) -> bool:
        """Whether the OSD has paid for the last list, by asking for no other one."""
        return not self._osds[view.daemon].listed

    def forget(self, daemon: Daemon) -> None:
        self._osds.pop(daemon, None)
        self._counters.forget(daemon)

    def _read(self, view: DaemonView, osd: _Osd) -> OperationSample | None:
        found, now = None, view.time
        ops, record = view.replies.get(LIST), view.replies.get(RECORD)
        if osd.interval.due and ops is not None:
            found = OperationSample(True, self._in_progress(listed(ops["ops"]), view, osd))
        elif osd.interval.due and record is not None:
            found = OperationSample(False, _new(listed(record["ops"]), osd, view.not_understood))
        osd.interval.scraped(now, read=found is not None)
        osd.interval.seconds = max(self._interval, min(osd.busy, self._at_most) * _SECONDS_EACH)
        if not osd.busy and osd.interval.due:
            osd.sampled = now
            found = OperationSample(True)
        return found

    def _in_progress(
        self, ops: Sequence[Mapping[str, Any]], view: DaemonView, osd: _Osd
    ) -> Sequence[SampledOperations]:
        """Each stands for the time since the last sample (Little's law), which is 0 at the first.

        One sample says nothing of a long time without samples.
        """
        since, osd.sampled = osd.sampled, view.time
        length = 0.0 if since is None else min(max(view.time - since, 0.0), _LONGEST_SECONDS)
        return in_progress(ops, length, view.not_understood)

    def _count(self, view: DaemonView, osd: _Osd) -> None:
        """Operations in progress. These decide whether to look, and are no figures.

        What no counter has, as operations that a placement group holds back, the last list tells.
        """
        not_understood, now = view.not_understood, view.time
        loggers = self._counters.loggers(view)
        counters = loggers.required("osd")
        queued = loggers.total(*_CLIENTS_QUEUED) or 0.0
        osd.clients = (figure(counters, "op_wip", not_understood) or 0.0) + queued
        seconds = figure(counters, "subop_w_latency", not_understood, "sum")
        replicas = 0.0 if seconds is None else osd.replicas.in_progress(seconds, now)
        told = view.replies.get(BLOCKED)
        blocked = None if told is None else figure(told, "num_blocked_ops", not_understood)
        if LIST in view.replies:
            osd.listed = len(not_understood.all_of(LIST, lambda: listed(view.replies[LIST]["ops"])))
            osd.listed_at = now
        elif not 0 <= now - osd.listed_at < osd.listed * _SECONDS_EACH:
            osd.listed = 0
        osd.busy = max(osd.clients + replicas, blocked or 0.0, osd.listed)


def _new(
    ops: Sequence[Mapping[str, Any]], osd: _Osd, not_understood: NotUnderstood
) -> Sequence[SampledOperations]:
    """The operations that were not in the record at the last look.

    What it holds at the first look happened before, at unknown times.
    """
    before = osd.seen
    record = {(op["description"], op["initiated_at"]): op for op in ops}
    osd.seen = frozenset(record)
    if before is None:
        return ()
    return completed([op for key, op in record.items() if key not in before], not_understood)
