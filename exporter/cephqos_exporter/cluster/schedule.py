"""How far a cluster's scrubs are behind their schedule, from the stamps of its placement groups.

A placement group is "due" when its last scrub is older than the interval: the next one should begin
as soon as the OSDs have room. It is "overdue" when Ceph warns of it (PG_NOT_SCRUBBED,
PG_NOT_DEEP_SCRUBBED): the last scrub is older than the interval times 1 plus a ratio. OSDs begin
scrubs by their own intervals, and the manager warns by its own: an interval that is set for `osd`
alone does not change the warning.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cephqos_exporter.cluster.rates import time_left
from cephqos_exporter.cluster.replies import LEVELS, Level, OsdMap, Pool
from cephqos_exporter.cluster.scrub_progress import PgRecord, ScrubProgress
from cephqos_exporter.cluster.time_left import DUE_SCRUBS, add_bounds
from cephqos_exporter.families import Family, gauge
from cephqos_exporter.labels import Labels

# An option, and the kind of daemon that reads it.
DaemonOption = tuple[str, str]
OPTIONS: Final[tuple[DaemonOption, ...]] = (
    ("osd", "osd_scrub_min_interval"),
    ("osd", "osd_deep_scrub_interval"),
    ("mgr", "osd_scrub_max_interval"),
    ("mgr", "osd_deep_scrub_interval"),
    ("mgr", "mon_warn_pg_not_scrubbed_ratio"),
    ("mgr", "mon_warn_pg_not_deep_scrubbed_ratio"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Ages of the last scrub, in seconds, from which on the next one is due and overdue."""

    due: float
    overdue: float


def limits_of(pool: Pool, options: Mapping[DaemonOption, float]) -> Mapping[Level, Limits]:
    """A pool's limits: by its own intervals, or by the cluster's where it has none."""

    def interval(who: str, key: str) -> float:
        return pool.intervals.get(key, options[who, f"osd_{key}"])

    def late(key: str, ratio: str) -> float:
        return interval("mgr", key) * (1 + options["mgr", ratio])

    return {
        "shallow": Limits(
            interval("osd", "scrub_min_interval"),
            late("scrub_max_interval", "mon_warn_pg_not_scrubbed_ratio"),
        ),
        "deep": Limits(
            interval("osd", "deep_scrub_interval"),
            late("deep_scrub_interval", "mon_warn_pg_not_deep_scrubbed_ratio"),
        ),
    }


@dataclass(slots=True)
class Backlog:
    """One pool's placement groups, by how far they are behind at one level."""

    on_time: int = 0
    due: int = 0
    overdue: int = 0
    due_objects: int = 0  # of PGs whose next scrub is due
    oldest: float = 0.0  # age in seconds of the oldest last scrub

    @property
    def pgs(self) -> int:
        return self.on_time + self.due + self.overdue

    def count(self, record: PgRecord, age: float, limits: Limits) -> None:
        self.oldest = max(self.oldest, age)
        if age >= limits.due:
            self.due_objects += record.objects
        if age >= limits.overdue:
            self.overdue += 1
        elif age >= limits.due:
            self.due += 1
        else:
            self.on_time += 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """The backlog of every pool, at one moment."""

    limits: Mapping[int, Mapping[Level, Limits]]
    backlogs: Mapping[tuple[int, Level], Backlog]  # of pools that have placement groups
    counted: int  # placement groups whose scrub times are known
    flags: frozenset[str] = field(default_factory=frozenset)


def make_schedule(
    records: Iterable[PgRecord], osd_map: OsdMap, options: Mapping[DaemonOption, float], now: float
) -> Schedule:
    """Sort placement groups by the age of their last scrubs."""
    limits = {pool.id: limits_of(pool, options) for pool in osd_map.pools.values()}
    backlogs = {(pool, level): Backlog() for pool in limits for level in LEVELS}
    counted = 0
    for record in records:
        if record.pool not in limits:
            continue
        counted += 1
        of_pool = limits[record.pool]
        shallow, deep = now - record.scrubbed, now - record.deep_scrubbed
        backlogs[record.pool, "shallow"].count(record, shallow, of_pool["shallow"])
        backlogs[record.pool, "deep"].count(record, deep, of_pool["deep"])
    # A pool without known placement groups would look as if nothing were due.
    known = {key: backlog for key, backlog in backlogs.items() if backlog.pgs}
    return Schedule(limits, known, counted, osd_map.flags)


def schedule_families(
    schedule: Schedule, pools: Mapping[int, Pool], progress: ScrubProgress, labels: Labels
) -> Iterable[Family]:
    """Backlog, limits and whether scrubs may begin at all, per pool and level."""
    families = {name: gauge(name, text) for name, text in _TEXTS.items()}
    shown = [
        (pools[pool_id], level, limits)
        for pool_id, limits_by_level in schedule.limits.items()
        if pool_id in pools
        for level, limits in limits_by_level.items()
    ]
    for pool, level, limits in shown:
        text = labels.of("pool", pool.name, "level", level)
        families["cephqos_scrub_pool_interval_seconds"].add(text, limits.due)
        families["cephqos_scrub_pool_overdue_after_seconds"].add(text, limits.overdue)
        flag = "noscrub" if level == "shallow" else "nodeep-scrub"
        families["cephqos_scrub_pool_allowed"].add(text, flag not in schedule.flags | pool.flags)
        backlog = schedule.backlogs.get((pool.id, level))
        if backlog is None:
            continue
        families["cephqos_scrub_pool_oldest_seconds"].add(text, backlog.oldest)
        for state in ("on_time", "due", "overdue"):
            with_state = labels.of("pool", pool.name, "level", level, "state", state)
            pgs = getattr(backlog, state)
            families["cephqos_scrub_pool_schedule_pgs"].add(with_state, pgs)
        families["cephqos_scrub_pool_backlog_objects"].add(text, backlog.due_objects)
        left = time_left(backlog.due_objects, progress.pace.since_begun((pool.id, level)))
        eta = families["cephqos_scrub_pool_backlog_eta_seconds"]
        known, names = not progress.beside_recovery, ("pool", pool.name, "level", level)
        add_bounds(eta, left, DUE_SCRUBS, labels, *names, interval=known)
    return families.values()


_TEXTS: Final = {
    "cephqos_scrub_pool_interval_seconds": (
        "Age of the last scrub at which the next one is due: the pool's own interval, or the"
        " cluster's."
    ),
    "cephqos_scrub_pool_overdue_after_seconds": (
        "Age of the last scrub at which Ceph warns that the next one is overdue: by the manager's"
        " interval, which may differ from that of the OSDs."
    ),
    "cephqos_scrub_pool_allowed": (
        "Whether scrubs of this level may begin: 0 while noscrub or nodeep-scrub is set, on the"
        " pool or on the cluster."
    ),
    "cephqos_scrub_pool_oldest_seconds": (
        "Age of the oldest last scrub among the pool's placement groups."
    ),
    "cephqos_scrub_pool_schedule_pgs": (
        "Placement groups by the age of their last scrub of this level: on_time, due (older than"
        " the interval), overdue (so old that Ceph warns). cephqos_cluster_data_age_seconds tells"
        " how old this is."
    ),
    "cephqos_scrub_pool_backlog_objects": (
        "Objects of the placement groups whose next scrub is due."
    ),
    "cephqos_scrub_pool_backlog_eta_seconds": (
        "Time until the placement groups that are due are scrubbed, at the rate of the last five"
        " minutes. bound: low, likely, high (90 % of recorded scrubs were between low and high; not"
        " while the cluster recovers). Absent while nothing moves."
    ),
}
