"""Recovery of a whole cluster: what is left to do, what was done, placement groups by state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cephqos_exporter.cluster.rates import Rates, time_left
from cephqos_exporter.cluster.replies import ClusterStatus, Pool, count_states, whole
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import MISREAD, NotUnderstood

# States that belong to recovery, or that keep data from being whole or reachable.
STATES: Final = (
    *("recovering", "recovery_wait", "recovery_toofull", "recovery_unfound", "forced_recovery"),
    *("backfilling", "backfill_wait", "backfill_toofull", "backfill_unfound", "forced_backfill"),
    *("degraded", "undersized", "remapped", "peering", "activating", "peered"),
    *("inconsistent", "repair", "failed_repair", "incomplete", "down", "stale", "unknown"),
)
_UNCLEAN: Final = "unclean"  # not a state of Ceph's: all that are not clean
# More states, shown for the cluster only. They come and go while nothing is wrong: to read them by
# pool would be too much.
CLUSTER_STATES: Final = (
    *STATES,
    *("creating", "laggy", "wait", "snaptrim", "snaptrim_wait", "snaptrim_error", _UNCLEAN),
)
_KNOWN: Final = frozenset({*CLUSTER_STATES, "active", "clean", "scrubbing", "deep", "premerge"})
# Shown for every pool; the others from the first time that the pool has any.
POOL_STATES: Final = ("recovering", "recovery_wait", "backfilling", "backfill_wait")

# With one of these states, mClock's bandwidth model takes recovery of a placement group as
# background_recovery, else as best effort.
_AT_RISK: Final = frozenset({"degraded", "undersized", "forced_recovery", "forced_backfill"})
_ACTIVE: Final = (("recovering", "recovery"), ("backfilling", "backfill"))

_SUMS: Final = (
    (
        "num_objects_recovered",
        "cephqos_recovery_pool_objects_total",
        "Copies of objects recovered since the exporter began to look; of an erasure-coded pool, "
        "objects.",
    ),
    (
        "num_bytes_recovered",
        "cephqos_recovery_pool_bytes_total",
        "Bytes recovered since the exporter began to look.",
    ),
    (
        "num_keys_recovered",
        "cephqos_recovery_pool_keys_total",
        "Omap keys recovered since the exporter began to look.",
    ),
)
_LEFT: Final = (
    (
        "num_objects_misplaced",
        "cephqos_recovery_pool_misplaced_objects",
        "Copies of objects that exist on another OSD than they should.",
    ),
    (
        "num_objects_degraded",
        "cephqos_recovery_pool_degraded_objects",
        "Copies of objects that are missing.",
    ),
    (
        "num_objects_unfound",
        "cephqos_recovery_pool_unfound_objects",
        "Objects of which no OSD that is up has the newest version.",
    ),
    (
        "num_object_copies",
        "cephqos_recovery_pool_object_copies",
        "Copies of objects that should exist, misplaced and degraded ones included.",
    ),
)


_NEEDED: Final = tuple(key for key, _, _ in (*_SUMS, *_LEFT))


@dataclass(slots=True)
class _Counter:
    """A counter that never falls, from a sum that falls when a placement group or an OSD is gone.

    It begins at 0 and not at the sum, which may be below what an exporter before this one has
    shown: Prometheus would take all of it for new work.
    """

    last: float  # the sum at the last poll
    total: float = 0.0

    def follow(self, value: float) -> None:
        self.total += max(0.0, value - self.last)
        self.last = value


def _known(values: Mapping[str, Any], not_understood: NotUnderstood) -> Mapping[str, int]:
    """The sums of a pool that are whole numbers; those that are not are counted, and left out."""
    known = {}
    for key in _NEEDED:
        try:
            known[key] = whole(values[key])
        except MISREAD:
            not_understood.add("counter", key)
    return known


class RecoveryTotals:
    """Keeps recovery counters of each pool that never fall, and their rates."""

    def __init__(self) -> None:
        self.sums: Mapping[int, Mapping[str, int]] = {}
        self.rates: Rates[tuple[int, str]] = Rates()
        self._counters: dict[tuple[int, str], _Counter] = {}
        self._seen_states: dict[int, set[str]] = {}  # by pool; these have series

    def update(
        self, sums: Mapping[int, Mapping[str, Any]], now: float, not_understood: NotUnderstood
    ) -> None:
        """Take in the sums over each pool's placement groups; one that is missing is left out."""
        sums = {pool: _known(values, not_understood) for pool, values in sums.items()}
        self.sums = sums
        for pool, values in sums.items():
            for key, _, _ in _SUMS:
                if key in values:
                    followed = self._counters.setdefault((pool, key), _Counter(values[key]))
                    followed.follow(values[key])
                    self.rates.add((pool, key), now, followed.total)
        for pool, key in [pair for pair in self._counters if pair[0] not in sums]:
            del self._counters[pool, key]
            self._seen_states.pop(pool, None)
        self.rates.keep(set(self._counters))

    def families(self, pools: Mapping[int, Pool], labels: Labels) -> Iterable[Family]:
        """What is left and what was done, per pool."""
        known = [(pools[pool], values) for pool, values in self.sums.items() if pool in pools]
        for key, name, text in _LEFT:
            family = gauge(name, text)
            for pool, values in known:
                if key in values:
                    family.add(labels.of("pool", pool.name), values[key])
            yield family
        for key, name, text in _SUMS:
            family = counter(name, text)
            for pool, values in known:
                if key in values:
                    family.add(labels.of("pool", pool.name), self._counters[pool.id, key].total)
            yield family
        yield from self._rate_families([pool for pool, _ in known], labels)

    def _rate_families(self, pools: Iterable[Pool], labels: Labels) -> Iterable[Family]:
        objects = gauge(
            "cephqos_recovery_pool_objects_per_second",
            "Copies of objects recovered, over the last minute.",
        )
        size = gauge(
            "cephqos_recovery_pool_bytes_per_second", "Bytes recovered, over the last minute."
        )
        eta = gauge(
            "cephqos_recovery_pool_eta_seconds",
            "Time until nothing is degraded or misplaced, at the rate of the last "
            "minute. Absent while nothing moves.",
        )
        for pool in pools:
            text = labels.of("pool", pool.name)
            rate = self.rates.of((pool.id, "num_objects_recovered"))
            if rate is not None:
                objects.add(text, rate)
            bytes_rate = self.rates.of((pool.id, "num_bytes_recovered"))
            if bytes_rate is not None:
                size.add(text, bytes_rate)
            moving = self.rates.since_begun((pool.id, "num_objects_recovered"))
            left = self.left(pool.id)
            seconds = None if left is None else time_left(left, moving)
            if seconds is not None:
                eta.add(text, seconds)
        return objects, size, eta

    def left(self, pool: int) -> int | None:
        """Copies still to be made or moved."""
        sums = self.sums[pool]
        degraded, misplaced = sums.get("num_objects_degraded"), sums.get("num_objects_misplaced")
        return None if degraded is None or misplaced is None else degraded + misplaced

    def pool_state_family(
        self, counts: Mapping[int, Mapping[str, int]], pools: Mapping[int, Pool], labels: Labels
    ) -> Family:
        """Placement groups by state and pool."""
        family = gauge(
            "cephqos_recovery_pool_pgs",
            "Placement groups of the pool in a state of recovery; one in several states counts in "
            "each.",
        )
        for pool in pools.values():
            of_pool = counts.get(pool.id, {})
            seen = self._seen_states.setdefault(pool.id, set(POOL_STATES))
            seen.update(state for state in STATES if of_pool.get(state))
            for state in STATES:
                if state in seen:
                    text = labels.of("pool", pool.name, "state", state)
                    family.add(text, of_pool.get(state, 0))
        return family


def is_recovering(status: ClusterStatus) -> bool:
    """Whether any placement group is in a state that is shown."""
    return not count_states(status.pgs_by_state).keys().isdisjoint(STATES)


def cluster_families(
    status: ClusterStatus, labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    """Placement groups of the cluster by state, and why those recover that do."""
    counts = count_states(status.pgs_by_state)
    for state in counts.keys() - _KNOWN:
        not_understood.add("state", state)
    counts[_UNCLEAN] = sum(
        count for names, count in status.pgs_by_state.items() if "clean" not in names.split("+")
    )
    by_state = gauge(
        "cephqos_recovery_cluster_pgs",
        "Placement groups in a state of recovery, or that keeps data from being whole, reachable "
        "or trimmed; one in several states counts in each. unclean: all that are not clean.",
    )
    for state in CLUSTER_STATES:
        by_state.add(labels.of("state", state), counts.get(state, 0))
    total = gauge("cephqos_cluster_pgs", "Placement groups of the cluster.")
    total.add(labels.base, status.pgs)
    shallow_and_deep = _scrubbing(status, counts.get("scrubbing", 0), labels)
    return by_state, _active(status, labels), shallow_and_deep, total


def _active(status: ClusterStatus, labels: Labels) -> Family:
    active = gauge(
        "cephqos_recovery_cluster_active_pgs",
        "Placement groups that recover now, by method and reason. at_risk (degraded, "
        "undersized or forced) is background_recovery in mClock's bandwidth model, "
        "misplaced is background_best_effort.",
    )
    working: dict[tuple[str, str], int] = {}
    for names, count in status.pgs_by_state.items():
        states = frozenset(names.split("+"))
        reason = "misplaced" if states.isdisjoint(_AT_RISK) else "at_risk"
        for state, kind in _ACTIVE:
            if state in states:
                working[kind, reason] = working.get((kind, reason), 0) + count
    for kind in ("recovery", "backfill"):
        for reason in ("at_risk", "misplaced"):
            text = labels.of("kind", kind, "reason", reason)
            active.add(text, working.get((kind, reason), 0))
    return active


def _scrubbing(status: ClusterStatus, both: float, labels: Labels) -> Family:
    """`both`: how many are being scrubbed at either level."""
    scrubbing = gauge("cephqos_scrub_cluster_pgs", "Placement groups being scrubbed, by level.")
    deep = sum(
        count
        for names, count in status.pgs_by_state.items()
        if {"scrubbing", "deep"} <= set(names.split("+"))
    )
    scrubbing.add(labels.of("level", "shallow"), both - deep)
    scrubbing.add(labels.of("level", "deep"), deep)
    return scrubbing
