"""How an OSD's QoS state is written: names, help texts and labels of the cephqos_qos_* families."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cephqos_exporter.model import Family, FamilyType, LabelText, extend_labels
from cephqos_exporter.qos.classes import IMMEDIATE, SCHEDULED
from cephqos_exporter.qos.model import BandwidthModel, EarlyModel, Promise, Qos
from cephqos_exporter.qos.policy import Target
from cephqos_exporter.qos.tags import QueueDump, limit_hold, reservation_lag

_OPS: Final = "_normalised_ops_per_second"
_BYTES: Final = "_bytes_per_second"
_UNIT: Final = "in normalised ops/s (1 is the cost of a small operation)"

# Throttles in which client ops wait before or behind the scheduler's queues.
THROTTLES: Final[Mapping[str, str]] = {
    "throttle-bluestore_throttle_bytes": "bluestore",
    "throttle-bluestore_throttle_deferred_bytes": "bluestore_deferred",
    "throttle-osd_client_bytes": "osd_client_bytes",
    "throttle-osd_client_messages": "osd_client_messages",
}


class Labels:
    """The labels of one OSD's series, each rendered once."""

    def __init__(self, base: LabelText) -> None:
        self.base = base
        self._known: dict[tuple[tuple[str, str], ...], LabelText] = {}

    def of(self, **pairs: str) -> LabelText:
        """The OSD's own labels and these; a trailing underscore keeps a name off the keywords."""
        key = tuple(pairs.items())
        found = self._known.get(key)
        if found is None:
            found = extend_labels(self.base, {k.rstrip("_"): v for k, v in pairs.items()})
            self._known[key] = found
        return found


def one(name: str, kind: FamilyType, text: str, labels: LabelText, value: float) -> Family:
    """A family with a single sample."""
    return Family(f"cephqos_qos_{name}", kind, text, [("", labels, value)])


def scheduler_info(labels: Labels, about: Mapping[str, str]) -> Family:
    """What runs and how it is set; labels that are not known are left empty."""
    return Family(
        "cephqos_qos_scheduler_info",
        "info",
        "The scheduler in force (from its queues) and configured, its profile and cost model, the "
        "kind of device it assumes, and where the capacity and the reservations come from.",
        [("", extend_labels(labels.base, about), 1)],
    )


def settings(qos: Qos, labels: Labels, *, in_force: bool) -> Iterable[Family]:
    """How the OSD charges; and, if mClock is in force, what it believes it can do."""
    base = labels.base
    yield one("shards", "gauge", "Shards, each with a scheduler of its own.", base, qos.shards)
    if isinstance(qos.cost, BandwidthModel):
        text = "Bytes that cost one normalised op; a smaller item costs no less."
        yield one("cost_per_io_bytes", "gauge", text, base, qos.cost.cost_per_io)
    elif isinstance(qos.cost, EarlyModel):
        text = "Cost of an operation of no bytes, in the scheduler's cost units."
        yield one("cost_per_io_units", "gauge", text, base, qos.cost.per_io)
        text = "Cost of each byte of an operation, in the scheduler's cost units."
        yield one("cost_per_byte_units", "gauge", text, base, qos.cost.per_byte)
    if not in_force:
        return
    text = f"What the OSD believes it can do, {_UNIT}."
    yield one(f"capacity{_OPS}", "gauge", text, base, qos.cost.capacity)
    if qos.cost.capacity_bytes is not None:
        text = "What the OSD believes it can do in large operations, in bytes/s."
        yield one(f"capacity{_BYTES}", "gauge", text, base, qos.cost.capacity_bytes)


def promises(
    promised: Mapping[str, Promise], labels: Labels, *, shards: int, bytes_per_op: float | None
) -> Iterable[Family]:
    """Reservation and limit of each class; what has no bound has no series."""
    bounds = (
        ("reservation", {c: (p.reservation_ratio, p.reservation) for c, p in promised.items()}),
        ("limit", {c: (p.limit_ratio, p.limit) for c, p in promised.items()}),
    )
    for bound, values in bounds:
        yield from _bound(bound, values, labels, shards, bytes_per_op)
    weight = Family("cephqos_qos_weight", "gauge", "Weight of a class in sharing what is left.")
    for cls, promise in promised.items():
        if promise.weight:
            weight.add(labels.of(class_=cls), promise.weight)
    yield weight


def _bound(
    bound: str,
    values: Mapping[str, tuple[float | None, float | None]],
    labels: Labels,
    shards: int,
    bytes_per_op: float | None,
) -> Iterable[Family]:
    name = f"cephqos_qos_{bound}"
    text = f"The {bound} of a class on the whole OSD"
    ratio = Family(f"{name}_ratio", "gauge", f"{text}, as a share of its capacity.")
    ops = Family(f"{name}{_OPS}", "gauge", f"{text}, {_UNIT}.")
    in_bytes = Family(f"{name}{_BYTES}", "gauge", f"{text}, in bytes/s.")
    text = f"The {bound} of a class in each shard"
    shard_ops = Family(f"{name}_per_shard{_OPS}", "gauge", f"{text}, {_UNIT}.")
    shard_bytes = Family(f"{name}_per_shard{_BYTES}", "gauge", f"{text}, in bytes/s.")
    for cls, (share, rate) in values.items():
        if share is None or rate is None:
            continue
        own = labels.of(class_=cls)
        ratio.add(own, share)
        ops.add(own, rate)
        shard_ops.add(own, rate / shards)
        if bytes_per_op is not None:
            in_bytes.add(own, rate * bytes_per_op)
            shard_bytes.add(own, rate * bytes_per_op / shards)
    return ratio, ops, in_bytes, shard_ops, shard_bytes


def queue_lengths(
    dump: QueueDump, counted: Mapping[str, Mapping[str, float]], labels: Labels
) -> Family:
    """Requests waiting, by class and shard, from the counters or else from the dump."""
    family = Family(
        "cephqos_qos_queue_length", "gauge", "Requests that wait in the scheduler's queue."
    )
    for shard in dump.shards:
        lengths = counted.get(shard.index)
        if lengths is None and not shard.told:
            continue
        if lengths is None:
            # A class that has never been used is not in the dump.
            known = (*SCHEDULED, IMMEDIATE) if IMMEDIATE in shard.lengths else SCHEDULED
            lengths = {cls: shard.lengths.get(cls, 0) for cls in known}
        for cls, length in lengths.items():
            family.add(labels.of(class_=cls, shard=shard.index), length)
    return family


def tags(
    dump: QueueDump, promised: Mapping[str, Promise], now: float, labels: Labels
) -> Iterable[Family]:
    """How late each class is served, and how long its limit holds it back yet, in each shard."""
    lag = Family(
        "cephqos_qos_reservation_lag_seconds",
        "gauge",
        "How far the request at the head of the queue is past the moment its reservation fell "
        "due, by dmClock's own tags; 0 when none is.",
    )
    hold = Family(
        "cephqos_qos_limit_hold_seconds",
        "gauge",
        "For how long the limit of the class yet holds back the request at the head of the queue.",
    )
    for shard in dump.shards:
        if not shard.told:
            continue
        for cls, promise in promised.items():
            own = labels.of(class_=cls, shard=shard.index)
            heads = shard.heads.get(cls, ())
            if promise.reservation > 0:
                behind = reservation_lag(heads, now)
                if behind is not None:
                    lag.add(own, behind)
            if promise.limit is not None:
                hold.add(own, limit_hold(heads, now))
    return lag, hold


def targets(held: Mapping[str, Target], capacity: float | None, labels: Labels) -> Iterable[Family]:
    """What a policy asks of this OSD; a share of a capacity that is not known is left out."""
    families = {
        bound: Family(
            f"cephqos_qos_target_{bound}{_OPS}",
            "gauge",
            f"The {bound} that the policy sets for a class on this OSD, {_UNIT}.",
        )
        for bound in ("reservation", "limit")
    }
    for cls, target in held.items():
        baseline = target.baseline or capacity
        if baseline is None:
            continue
        for bound, share in _shares(target):
            families[bound].add(labels.of(class_=cls), share * baseline)
    return families.values()


def cluster_targets(held: Sequence[tuple[str, Target]]) -> Iterable[Family]:
    """What a policy asks of whole clusters; every host of a cluster says the same."""
    families = {
        bound: Family(
            f"cephqos_qos_cluster_target_{bound}{_OPS}",
            "gauge",
            f"The {bound} that the policy sets for a class over all OSDs, {_UNIT}.",
        )
        for bound in ("reservation", "limit")
    }
    for cluster, target in held:
        labels = Labels(extend_labels(LabelText(""), {"cluster": cluster}))
        for bound, share in _shares(target):
            rate = share * (target.baseline or 0.0)
            families[bound].add(labels.of(class_=target.cls), rate)
    return families.values()


def _shares(target: Target) -> Iterable[tuple[str, float]]:
    for bound, share in (
        ("reservation", target.reservation_ratio),
        ("limit", target.limit_ratio),
    ):
        if share is not None:
            yield bound, share


def work(done: Mapping[str, float], shown: Iterable[str], labels: Labels) -> Iterable[Family]:
    """Work by class, and all of it."""
    attained = Family(
        "cephqos_qos_normalised_ops_total",
        "counter",
        "Work done for a class in normalised ops since the exporter first saw the daemon, at the "
        "cost in force when it was done. Estimated but for client reads: sizes are known to a "
        "power of two and a sum.",
    )
    for cls in shown:
        attained.add(labels.of(class_=cls), done[cls])
    text = (
        "All work of the OSD that its counters show, in normalised ops: a lower bound where the "
        "release does not count scrubs, and without snapshot trimming and PG deletion."
    )
    name = "delivered_normalised_ops_total"
    return attained, one(name, "counter", text, labels.base, sum(done.values()))


def throttle_use(loggers: Mapping[str, Mapping[str, Any]], labels: Labels) -> Family:
    """How full each throttle is; one without a bound is left out."""
    family = Family(
        "cephqos_qos_throttle_used_ratio",
        "gauge",
        "How full a throttle is that client operations pass; at 1 they wait.",
    )
    for throttle, counters in loggers.items():
        if counters["max"]:
            family.add(labels.of(throttle=throttle), counters["val"] / counters["max"])
    return family


def store(bluestore: Mapping[str, Any], labels: Labels) -> Iterable[Family]:
    """Work under way behind the scheduler, where BlueStore takes it without making it wait."""
    # Renamed in 17.x.
    commits = bluestore.get("txc_commit_lat") or bluestore.get("commit_lat")
    if commits is None:
        return
    text = (
        "Time that transactions of all classes took in BlueStore, summed over transactions: its "
        "rate is how many were under way on average (Little's law)."
    )
    base = labels.base
    yield one("store_seconds_total", "counter", text, base, commits["sum"])
    text = "Transactions of all classes that BlueStore committed."
    yield one("store_transactions_total", "counter", text, base, commits["avgcount"])
    # The counters below are Ceph's own too, which not every setup keeps; rules need them.
    batches = bluestore.get("kv_commit_lat")
    if batches is not None:
        text = "Time that BlueStore's key-value commits took, each of a batch of transactions."
        yield one("store_kv_commit_seconds_total", "counter", text, base, batches["sum"])
        text = "Key-value commits of BlueStore."
        yield one("store_kv_commits_total", "counter", text, base, batches["avgcount"])
