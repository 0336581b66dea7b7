"""Work that an OSD does for others: replica writes, and what no counter shows of erasure coding."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cephqos_exporter.collectors.counters import Loggers, timed
from cephqos_exporter.collectors.scrub import QUEUE, QUEUE_TTL_SECONDS
from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood

_POOLS: Final = "get_mapped_pools"
_HISTORY: Final = "dump_pgstate_history"

_POOLS_TTL_SECONDS: Final = 60.0

# Pools whose type one OSD may tell, beside those that are known. None holds so many.
_POOLS_OF_AN_OSD: Final = 10_000

# Scrapes for which a pool stays unknown before an OSD is asked for all its groups' histories: its
# neighbours may know better, and are read in the same scrape.
_PATIENCE: Final = 2


# Of their sum, and of their count.
_WRITES: Final = (
    (
        "cephqos_qos_replica_write_seconds_total",
        "Time that replica writes took on this OSD, from receipt to commit, summed over"
        " writes. Its rate is how many were in progress on average (Little's law). Ceph"
        " counts replicated pools only.",
    ),
    (
        "cephqos_qos_replica_writes_total",
        "Replica writes that this OSD committed. Ceph counts replicated pools only.",
    ),
)


def replica_writes(
    loggers: Loggers, labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    """Writes that this OSD makes for the primaries of replicated pools."""
    return timed(loggers.required("osd"), "subop_w_latency", _WRITES, labels.base, not_understood)


def lower_bound(erasure_coded: bool | None, labels: Labels) -> Iterable[Family]:
    """Whether what the OSD delivers is only known to be at least so much."""
    if erasure_coded is not None:
        text = (
            "1: this OSD holds placement groups of erasure-coded pools. Ceph counts "
            "none of their sub-operations, so the work delivered, and that of class "
            "immediate, is only a lower bound. 0: it holds none. Absent while this is "
            "not known."
        )
        name = "cephqos_qos_delivered_is_lower_bound"
        yield single(name, "gauge", text, labels.base, erasure_coded)


class ErasureCodedPools:
    """Which pools are erasure-coded, learned from the OSDs themselves.

    An OSD names its pools by number only. The name of a placement group of an erasure-coded pool
    has a shard (`3.1s0`): the scrub queue of a primary has such names at hardly any cost. A pool
    may have no primary on this host. Then the history of all groups is asked for. It is long, but
    a pool never changes its type, so it is asked for only once per unknown pool.
    """

    def __init__(self) -> None:
        self._types: dict[tuple[str, int], bool] = {}  # by cluster and pool: erasure-coded?
        self._looks: dict[Daemon, int] = {}  # scrapes with an unknown pool, one after the other
        self._told: dict[Daemon, int] = {}  # of how many pools each OSD has reported the type

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        wanted = [Command(_POOLS, ttl=_POOLS_TTL_SECONDS), Command(QUEUE, ttl=QUEUE_TTL_SECONDS)]
        if self._looks.get(daemon) == _PATIENCE:
            wanted.append(Command(_HISTORY))
        return wanted

    def forget(self, daemon: Daemon) -> None:
        self._looks.pop(daemon, None)
        self._told.pop(daemon, None)

    def on_osd(self, view: DaemonView) -> bool | None:
        """Whether the OSD holds placement groups of erasure-coded pools; None if not known."""
        cluster = view.daemon.cluster
        groups = (entry["pgid"] for entry in view.replies.get(QUEUE, ()))
        self._learn(view.daemon, groups)
        history: Mapping[str, Any] = view.replies.get(_HISTORY, {})
        self._learn(view.daemon, (entry["pg"] for entry in history.get("pgs", ())))
        pools = view.replies.get(_POOLS)
        if pools is None:
            return None
        types = [self._types.get((cluster, pool)) for pool in pools]
        self._looks[view.daemon] = self._looks.get(view.daemon, 0) + 1 if None in types else 0
        if True in types:
            return True
        return None if None in types else False

    def _learn(self, daemon: Daemon, groups: Iterable[str]) -> None:
        for group in groups:
            pool, _, rest = group.partition(".")
            key = (daemon.cluster, int(pool))
            if key not in self._types:
                told = self._told[daemon] = self._told.get(daemon, 0) + 1
                if told > _POOLS_OF_AN_OSD:
                    raise ReplyMissing(QUEUE, "too_large")
            self._types[key] = "s" in rest
