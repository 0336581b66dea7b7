"""What waits in an OSD's scheduler: queue lengths, and how late each class is served."""

from collections.abc import Iterable, Mapping
from typing import Final

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY, SCHEDULED
from cephqos_exporter.collectors.counters import Loggers, figure
from cephqos_exporter.families import Family, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.cost_models import ClassSettings
from cephqos_exporter.qos.tags import QueueDump, limit_wait, reservation_lag

_QUEUE_LOGGER: Final = "mclock-shard-queue-"
_QUEUE_COUNTERS: Final[Mapping[str, str]] = {
    CLIENT: "mclock_client_queue_len",
    RECOVERY: "mclock_recovery_queue_len",
    BEST_EFFORT: "mclock_best_effort_queue_len",
    IMMEDIATE: "mclock_immediate_queue_len",
}
_BELOW_0: Final = 2.0**63  # from there on: 64 bits without a sign


def queue_lengths(
    dump: QueueDump, loggers: Loggers, labels: Labels, not_understood: NotUnderstood
) -> Family:
    """Requests waiting, by class and shard, from the counters or else from the dump."""
    family = gauge(
        "cephqos_qos_queue_length",
        "Requests waiting in the scheduler's queue. Absent on 16.2 and under WPQ.",
    )
    counted = _counted_lengths(dump, loggers, not_understood)
    for shard in dump.shards:
        lengths = counted.get(shard.index)
        if lengths is None and not (shard.told and shard.whole):
            continue
        if lengths is None:
            # A class that has never been used is not in the dump.
            known = (*SCHEDULED, IMMEDIATE) if IMMEDIATE in shard.lengths else SCHEDULED
            lengths = {cls: shard.lengths.get(cls, 0) for cls in known}
        for cls, length in lengths.items():
            family.add(labels.of("class", cls, "shard", shard.index), length)
    return family


def _counted_lengths(
    queues: QueueDump, loggers: Loggers, not_understood: NotUnderstood
) -> Mapping[str, Mapping[str, float]]:
    """Queue lengths from counters, which 18.x and later have; none of what went below 0.

    Ceph declares them as sums, so that `perf reset` makes them 0 while requests wait.
    """
    lengths = {}
    for shard in queues.shards:
        counters = loggers.get(f"{_QUEUE_LOGGER}{shard.index}")
        if counters is not None:
            counted = {
                c: figure(counters, key, not_understood) for c, key in _QUEUE_COUNTERS.items()
            }
            known = {c: length for c, length in counted.items() if length is not None}
            if max(known.values(), default=0) < _BELOW_0:
                lengths[shard.index] = known
    return lengths


def late_heads(
    dump: QueueDump, in_force: Mapping[str, ClassSettings], now: float, labels: Labels
) -> Iterable[Family]:
    """How late each class is served, and how long its limit holds it back yet, in each shard."""
    lag = gauge(
        "cephqos_qos_reservation_lag_seconds",
        "Time since the reservation of the request at the head of the queue fell due, "
        "from dmClock's own tags. 0: none is late. Absent for a class without a "
        "reservation, on 16.2, under WPQ, and where the dump was not understood.",
    )
    hold = gauge(
        "cephqos_qos_limit_wait_seconds",
        "Time until the limit of the class lets the request at the head of the queue "
        "go. 0: the limit does not hold it back. Absent for a class without a limit, on"
        " 16.2, under WPQ, and where the dump was not understood.",
    )
    for shard in dump.shards:
        if not shard.told:
            continue
        for cls, settings in in_force.items():
            own = labels.of("class", cls, "shard", shard.index)
            heads = shard.heads.get(cls, ())
            if not heads and not shard.whole:
                continue  # it may have one that was not understood
            if settings.reservation or (settings.reservation is None and heads):
                behind = reservation_lag(heads, now)
                if behind is not None:
                    lag.add(own, behind)
            if settings.limit is not None:
                hold.add(own, limit_wait(heads, now))
    return lag, hold


def limited_share(dump: QueueDump, in_force: Mapping[str, ClassSettings], now: float) -> float:
    """Of the shards in which clients wait, the share where only their limit holds them back."""
    settings = in_force.get(CLIENT)
    waiting = [heads for shard in dump.shards if (heads := shard.heads.get(CLIENT, ()))]
    if not waiting or settings is None or settings.limit is None:
        return 0.0
    # What is due by its reservation is served whatever the limit says.
    held = [limit_wait(h, now) > 0 and not reservation_lag(h, now) for h in waiting]
    return sum(held) / len(held)
