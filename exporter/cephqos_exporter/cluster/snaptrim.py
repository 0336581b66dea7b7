"""Trimming of deleted snapshots: how many are left, how fast it goes, which OSDs do it.

An OSD removes what deleted snapshots have kept, placement group by placement group. Each group has
a queue of snapshots, and only its length is reported. What was done is counted from one look to the
next: by how much the queue of a group has become shorter.

A group may have a queue and neither trim nor wait: it stands still, is being scrubbed, or the flag
nosnaptrim is set. The pass over all groups, which the schedule of scrubs needs, finds these, too.
Groups that are not clean are left out: they trim once they have recovered.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cephqos_exporter.cluster.rates import Rates, time_left
from cephqos_exporter.cluster.replies import PgStat, Pool, text, whole
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood, listed

TRIMMING_STATES: Final = ("snaptrim", "snaptrim_wait")
# One snapshot of a group may take minutes.
_RATE_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class TrimmingGroup:
    """A placement group that trims snapshots, or waits for it."""

    pgid: str
    pool: int
    primary: int
    queue: int  # snapshots left
    trims: bool  # now; else it waits for its turn


def parse_trimming(
    reply: Mapping[str, Any], not_understood: NotUnderstood
) -> list[TrimmingGroup] | None:
    """Placement groups in one of TRIMMING_STATES; None if one of them is not understood."""
    if reply.keys() <= {"pg_ready"}:
        return []
    rows = listed(reply["pg_stats"])
    groups = not_understood.each("a placement group", rows, _parse)
    return None if len(groups) < len(rows) else groups


def _parse(row: Mapping[str, Any]) -> TrimmingGroup:
    pgid = text(row["pgid"])
    return TrimmingGroup(
        pgid=pgid,
        pool=int(pgid.partition(".")[0]),
        primary=whole(row["acting_primary"]),
        queue=whole(row["snaptrimq_len"]),
        trims="snaptrim" in row["state"].split("+"),
    )


class SnapTrim:
    """What is left and what was done, by pool; which OSDs trim."""

    def __init__(self) -> None:
        self._groups: dict[str, TrimmingGroup] | None = {}  # None: not known
        # By group: the pool, and the queue of one that neither trims nor waits. In this pass over
        # all groups, and in the last.
        self._still: dict[str, tuple[int, int]] = {}
        self._still_before: dict[str, tuple[int, int]] = {}
        self._trimmed: Counter[int] = Counter()  # snapshots of placement groups, by pool
        self._rates: Rates[int] = Rates(_RATE_SECONDS)

    def observe(self, groups: Sequence[TrimmingGroup] | None, now: float) -> None:
        """Take in all groups that trim or wait; None if they are not known."""
        before, self._groups = self._groups or {}, None
        if groups is None:
            return
        self._groups = {group.pgid: group for group in groups}
        for pgid in self._groups:
            self._forget_still(pgid)
        for pgid, last in before.items():
            left = self._groups[pgid].queue if pgid in self._groups else 0
            self._trimmed[last.pool] += max(0, last.queue - left)
        for pool in {group.pool for group in groups} | self._trimmed.keys():
            self._rates.add(pool, now, self._trimmed[pool])

    def observe_any(self, groups: Iterable[PgStat]) -> None:
        """Take in some groups, in any state."""
        for group in groups:
            self._forget_still(group.pgid)
            waits = not group.states.isdisjoint(TRIMMING_STATES)
            if group.trim_queue > 0 and "clean" in group.states and not waits:
                self._still[group.pgid] = group.pool, group.trim_queue

    def end_round(self) -> None:
        """A pass over all groups is over: forget those that it did not find."""
        self._still_before, self._still = self._still, {}

    def _forget_still(self, pgid: str) -> None:
        self._still.pop(pgid, None)
        self._still_before.pop(pgid, None)

    def families(self, pools: Mapping[int, Pool], labels: Labels) -> Iterable[Family]:
        """Pools that have trimmed since the exporter began to look have all series."""
        if self._groups is None:
            return
        left_family = gauge(
            "cephqos_snaptrim_pool_snapshots",
            "Deleted snapshots that are still to be trimmed, summed over placement groups: a "
            "snapshot counts once in each. Groups that neither trim nor wait are read once in "
            "`--cluster.schedule-interval`; those that are not clean are left out. "
            "Absent while more than 4,000 placement groups trim or wait.",
        )
        trimmed = counter(
            "cephqos_snaptrim_pool_trimmed_snapshots_total",
            "Deleted snapshots that placement groups have trimmed since the exporter began to "
            "look. Absent for pools that never trimmed.",
        )
        eta = gauge(
            "cephqos_snaptrim_pool_eta_seconds",
            "Time until all deleted snapshots are trimmed, at the rate of the last ten minutes. "
            "Absent while nothing is trimmed.",
        )
        left: Counter[int] = Counter()
        for group in self._groups.values():
            left[group.pool] += group.queue
        for pgid, (of, queue) in (self._still_before | self._still).items():
            left[of] += 0 if pgid in self._groups else queue
        for pool in pools.values():
            of_pool = labels.of("pool", pool.name)
            left_family.add(of_pool, left[pool.id])
            if pool.id in self._trimmed:
                trimmed.add(of_pool, self._trimmed[pool.id])
            if left[pool.id]:
                seconds = time_left(left[pool.id], self._rates.since_begun(pool.id))
                if seconds is not None:
                    eta.add(of_pool, seconds)
        yield from (left_family, trimmed, eta, self._osd_family(labels))

    def _osd_family(self, labels: Labels) -> Family:
        family = gauge(
            "cephqos_snaptrim_osd_pgs",
            "Placement groups in which the OSD, as their primary, trims deleted snapshots now. "
            "Absent for OSDs that trim nothing.",
        )
        groups = (self._groups or {}).values()
        for osd, count in sorted(Counter(g.primary for g in groups if g.trims).items()):
            family.add(labels.of("ceph_daemon", f"osd.{osd}"), count)
        return family
