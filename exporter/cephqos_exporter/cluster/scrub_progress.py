"""Scrub progress of a whole cluster, put together from what its placement groups report.

Ceph has no counter of scrub work. Per placement group it reports when the last scrub ended and
(from 18.2 on) how many objects the scrub under way has done. `observe` compares every row of
statistics with the last one of the same group. What was done in between is added to counters of
its pool.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_exporter.cluster.rates import Rates, time_left
from cephqos_exporter.cluster.replies import LEVELS, Level, PgStat, Pool
from cephqos_exporter.cluster.time_left import RUNNING_SCRUBS, add_bounds
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import Labels, LabelText

Key = tuple[int, Level]

# Beside clients and recovery scrubs stand still for a minute, and then go on. Of recorded ones the
# time left was said better by the rate of five minutes.
_PACE_SECONDS: Final = 300.0


@dataclass(slots=True)
class Done:
    """What scrubs of one level have done in one pool since the exporter began to look."""

    objects: int = 0
    bytes: float = 0.0
    pgs: int = 0
    seconds: float = 0.0
    timed: int = 0  # scrubs in `seconds`
    last_ended: float = 0.0
    last_duration: float | None = None


@dataclass(slots=True)
class PgRecord:
    """What was last known of a placement group."""

    pool: int
    primary: int
    scrubbed: float  # when the last scrub ended, as in PgStat
    deep_scrubbed: float
    objects: int
    round: int  # of visits, in which it was last observed
    credited: int = 0  # objects of the scrub under way that are counted already
    began: float = 0.0  # when the scrub under way was first reported; 0: none is
    # objects_scrubbed of the scrub before. A new scrub shows it until it has its slots.
    left_over: int | None = None


class ScrubProgress:
    """Counts scrub work per pool and level, and knows all placement groups that it observed."""

    def __init__(self) -> None:
        self.records: dict[str, PgRecord] = {}  # by PG
        self.running: Sequence[PgStat] = ()  # being scrubbed at the last poll
        self.knows_running = True  # unless the list of them was not understood
        # Recorded scrubs stood still beside recovery, for as long as clients worked: their interval
        # is not known.
        self.beside_recovery = False
        self.done: dict[Key, Done] = {}
        self.rates: Rates[Key] = Rates()
        self.pace: Rates[Key] = Rates(_PACE_SECONDS)
        self.round = 0
        # Whether this release reports how far a scrub is; not known before the first row.
        self.reports_objects = False

    def observe(self, pgs: Iterable[PgStat]) -> None:
        """Take in statistics of some placement groups, in any order, from any listing."""
        for pg in pgs:
            if "unknown" in pg.states:  # to a manager that has not heard of it: its stamps are 0
                continue
            self.reports_objects = pg.objects_scrubbed is not None
            record = self.records.get(pg.pgid)
            if record is None:
                self._observe_first(pg)
            else:
                self._compare(pg, record)
            self._remember_last(pg)

    def list_running(self, pgs: Sequence[PgStat]) -> set[int]:
        """Take in the whole list of PGs being scrubbed. Returns the primaries of those that are
        not in the list any more: their scrubs have ended."""
        self.observe(pgs)
        listed = {pg.pgid for pg in pgs}
        ended = {pg.primary for pg in self.running if pg.pgid not in listed}
        self.running = pgs
        return ended

    def tick(self, now: float, pools: Iterable[int]) -> None:
        """Read the counters for the rates, once per poll."""
        keys: set[Key] = {(pool, level) for pool in pools for level in LEVELS}
        for key in keys:
            for rates in (self.rates, self.pace):
                rates.add(key, now, self.done.get(key, _NOTHING).objects)
        self.rates.keep(keys)
        self.pace.keep(keys)
        for key in self.done.keys() - keys:  # pools come and go for years
            del self.done[key]

    def end_round(self) -> None:
        """A round over all OSDs is over: forget PGs that the last two rounds did not find."""
        self.round += 1
        gone = [pgid for pgid, record in self.records.items() if record.round < self.round - 2]
        for pgid in gone:
            del self.records[pgid]

    def keep_running_only(self) -> None:
        """Forget all but those that are being scrubbed."""
        self.records = {
            pg.pgid: self.records[pg.pgid] for pg in self.running if pg.pgid in self.records
        }

    def _observe_first(self, pg: PgStat) -> None:
        record = PgRecord(
            pg.pool, pg.primary, pg.scrubbed, pg.deep_scrubbed, pg.objects, self.round
        )
        if pg.scrubbing:
            # `began` stays unknown: the last change of state need not be the scrub's beginning.
            record.credited = pg.objects_scrubbed or 0
        else:
            record.left_over = pg.objects_scrubbed
        self.records[pg.pgid] = record

    def _compare(self, pg: PgStat, record: PgRecord) -> None:
        if pg.scrubbed > record.scrubbed or pg.deep_scrubbed > record.deep_scrubbed:
            self._finish(pg, record)
        if pg.scrubbing:
            self._advance(pg, record)
        else:
            record.credited, record.began, record.left_over = 0, 0.0, pg.objects_scrubbed
        record.pool, record.primary, record.objects = pg.pool, pg.primary, pg.objects
        record.scrubbed, record.deep_scrubbed = pg.scrubbed, pg.deep_scrubbed
        record.round = self.round

    def _finish(self, pg: PgStat, record: PgRecord) -> None:
        """A scrub has ended since the last row. It may also have begun since then."""
        level: Level = "deep" if pg.deep_scrubbed > record.deep_scrubbed else "shallow"
        # What it has done in all: all objects of the PG, if the row has no number, or that of the
        # next scrub, or 0 because the primary has changed.
        done_in_all = pg.objects if pg.scrubbing else pg.objects_scrubbed or pg.objects
        self._credit(pg, level, max(0, done_in_all - record.credited))
        done = self._done_of(pg.pool, level)
        done.pgs += 1
        duration = pg.duration
        if duration is None and record.began:
            duration = max(0.0, pg.scrubbed - record.began)
            done.last_duration, done.last_ended = duration, pg.scrubbed
        if duration is not None:
            done.seconds += duration
            done.timed += 1
        record.credited, record.began = 0, 0.0
        record.left_over = done_in_all

    def _advance(self, pg: PgStat, record: PgRecord) -> None:
        """A scrub is under way: count the objects that it has done since the last row."""
        record.began = record.began or pg.changed
        if pg.objects_scrubbed is None:
            return
        if record.left_over is not None:
            if pg.objects_scrubbed == record.left_over != 0:
                return
            record.left_over = None
        if pg.objects_scrubbed < record.credited:  # given up and started again
            record.credited = 0
        self._credit(pg, pg.level, pg.objects_scrubbed - record.credited)
        record.credited = pg.objects_scrubbed

    def _credit(self, pg: PgStat, level: Level, objects: int) -> None:
        done = self._done_of(pg.pool, level)
        done.objects += objects
        if pg.objects:
            done.bytes += objects * pg.bytes / pg.objects

    def _done_of(self, pool: int, level: Level) -> Done:
        return self.done.setdefault((pool, level), Done())

    def _remember_last(self, pg: PgStat) -> None:
        if pg.duration is None or pg.scrubbing:
            return
        done = self._done_of(pg.pool, pg.last_level)
        if pg.scrubbed >= done.last_ended:
            done.last_ended, done.last_duration = pg.scrubbed, pg.duration

    def objects_done(self, pg: PgStat) -> int:
        """Objects that the scrub under way has done, as far as that is reported."""
        record = self.records.get(pg.pgid)
        if record is not None and record.left_over is not None:
            return 0
        return pg.objects_scrubbed or 0


_NOTHING: Final = Done()


@dataclass(slots=True)
class _Running:
    """The scrubs under way of one pool and level. The last three are objects."""

    pgs: int = 0
    objects: int = 0
    done: int = 0
    left: int = 0


def running_families(
    progress: ScrubProgress, pools: Mapping[int, Pool], labels: Labels
) -> Iterable[Family]:
    """The scrubs under way, per pool and level."""
    pgs = gauge(
        "cephqos_scrub_pool_running_pgs",
        "Placement groups being scrubbed now, or reserving for it.",
    )
    objects = gauge(
        "cephqos_scrub_pool_running_objects", "Objects of the placement groups being scrubbed now."
    )
    done = gauge(
        "cephqos_scrub_pool_running_objects_done",
        "Objects that the scrubs in progress have done. Absent before 18.2.",
    )
    left = gauge(
        "cephqos_scrub_pool_running_objects_left",
        "Objects that the scrubs in progress still have to do. Absent before 18.2.",
    )
    eta = gauge(
        "cephqos_scrub_pool_running_eta_seconds",
        "Time until the last of the scrubs in progress is done, at the rate of the last five "
        "minutes. bound: low, likely, high (90 % of recorded scrubs were between low and high; not "
        "while the cluster recovers). Absent while none runs, or nothing moves, and before 18.2.",
    )
    counts = _count_running(progress)
    for (pool, level), text in _labelled(pools, labels):
        of_pool = ("pool", pools[pool].name, "level", level)
        running = counts.get((pool, level), _Running())
        pgs.add(text, running.pgs)
        objects.add(text, running.objects)
        if progress.reports_objects:
            done.add(text, running.done)
            left.add(text, running.left)
            if running.pgs:
                seconds = time_left(running.left, progress.pace.since_begun((pool, level)))
                known = not progress.beside_recovery
                add_bounds(eta, seconds, RUNNING_SCRUBS, labels, *of_pool, interval=known)
    return pgs, objects, done, left, eta


def _count_running(progress: ScrubProgress) -> dict[Key, _Running]:
    counts: dict[Key, _Running] = {}
    for pg in progress.running:
        running = counts.setdefault((pg.pool, pg.level), _Running())
        running.pgs += 1
        running.objects += pg.objects
        done = progress.objects_done(pg)
        running.done += min(done, pg.objects)
        running.left += max(0, pg.objects - done)
    return counts


Labelled = Sequence[tuple[Key, LabelText]]


def done_families(
    progress: ScrubProgress, pools: Mapping[int, Pool], labels: Labels
) -> Iterable[Family]:
    """What scrubs have done since the exporter began to look, per pool and level."""
    labelled = tuple(_labelled(pools, labels))
    return [*_amounts(progress, labelled), *_pace(progress, labelled)]


def _amounts(progress: ScrubProgress, labelled: Labelled) -> list[Family]:
    objects = counter(
        "cephqos_scrub_pool_objects_total",
        "Objects scrubbed. On 16.2 those of a placement group are added when its scrub ends.",
    )
    size = counter(
        "cephqos_scrub_pool_bytes_total",
        "Data in the objects scrubbed, estimated from the mean object size of each "
        "placement group. A deep scrub reads every copy of it.",
    )
    pgs = counter("cephqos_scrub_pool_pgs_total", "Scrubs of placement groups that ended.")
    for key, text in labelled:
        done = progress.done.get(key, _NOTHING)
        objects.add(text, done.objects)
        size.add(text, done.bytes)
        pgs.add(text, done.pgs)
    return [objects, size, pgs]


def _pace(progress: ScrubProgress, labelled: Labelled) -> list[Family]:
    rate = gauge("cephqos_scrub_pool_objects_per_second", "Objects scrubbed, over the last minute.")
    took = Family(
        "cephqos_scrub_pool_duration_seconds",
        "summary",
        "Duration of the scrubs that ended. On 16.2 only of scrubs that were seen to "
        "run, from their last change of state.",
    )
    last = gauge(
        "cephqos_scrub_pool_last_duration_seconds", "Duration of the scrub that ended last."
    )
    for key, text in labelled:
        done = progress.done.get(key, _NOTHING)
        took.add(text, done.seconds, "_sum")
        took.add(text, done.timed, "_count")
        per_second = progress.rates.of(key)
        if per_second is not None:
            rate.add(text, per_second)
        if done.last_duration is not None:
            last.add(text, done.last_duration)
    return [rate, took, last]


def _labelled(pools: Mapping[int, Pool], labels: Labels) -> Iterable[tuple[Key, LabelText]]:
    for pool in pools.values():
        for level in LEVELS:
            yield (pool.id, level), labels.of("pool", pool.name, "level", level)
