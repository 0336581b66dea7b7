"""Settings of each class of an OSD: capacity, reservations, limits, weights, targets."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cephqos_base.series import SCHEDULED
from cephqos_exporter.daemon import Daemon
from cephqos_exporter.families import Family, gauge, single
from cephqos_exporter.labels import Labels, LabelText, extend_labels
from cephqos_exporter.qos.config import EffectiveConfig
from cephqos_exporter.qos.cost_models import ClassSettings, QosState
from cephqos_exporter.qos.policy import Policy, Target

_UNIT: Final = "in normalised ops/s (1 is the cost of a small operation)"

# Of each bound: as a share, in normalised ops, in bytes; of a shard in normalised ops, in bytes.
_BOUNDS: Final = {
    "reservation": (
        "cephqos_qos_reservation_ratio",
        "cephqos_qos_reservation_normalised_ops_per_second",
        "cephqos_qos_reservation_bytes_per_second",
        "cephqos_qos_reservation_per_shard_normalised_ops_per_second",
        "cephqos_qos_reservation_per_shard_bytes_per_second",
    ),
    "limit": (
        "cephqos_qos_limit_ratio",
        "cephqos_qos_limit_normalised_ops_per_second",
        "cephqos_qos_limit_bytes_per_second",
        "cephqos_qos_limit_per_shard_normalised_ops_per_second",
        "cephqos_qos_limit_per_shard_bytes_per_second",
    ),
}
_TARGETS: Final = {
    "reservation": "cephqos_qos_target_reservation_normalised_ops_per_second",
    "limit": "cephqos_qos_target_limit_normalised_ops_per_second",
}
_CLUSTER_TARGETS: Final = {
    "reservation": "cephqos_qos_cluster_target_reservation_normalised_ops_per_second",
    "limit": "cephqos_qos_cluster_target_limit_normalised_ops_per_second",
}


def policy_targets(policy: Policy, daemon: Daemon) -> Mapping[str, Target]:
    """What the policy asks of this OSD, by class."""
    targets = {c: policy.for_osd(c, daemon.id, daemon.cluster) for c in SCHEDULED}
    return {cls: target for cls, target in targets.items() if target is not None}


def classes_in_force(
    qos: QosState | None, targets: Mapping[str, Target], *, mclock: bool
) -> Mapping[str, ClassSettings]:
    """What mClock reserves; where it does not run, the targets of the policy count."""
    if qos is None:
        return {}
    return qos.classes if mclock else _policy_classes(targets, qos)


def _policy_classes(held: Mapping[str, Target], qos: QosState) -> Mapping[str, ClassSettings]:
    """Where the scheduler reserves nothing, the targets of the policy count as its settings."""
    in_force = {}
    for cls, target in held.items():
        baseline = target.baseline or qos.cost.iops
        limit = target.limit_ratio
        in_force[cls] = ClassSettings(
            reservation_ratio=target.reservation_ratio or 0.0,
            reservation=(target.reservation_ratio or 0.0) * baseline,
            limit_ratio=limit,
            limit=None if limit is None else limit * baseline,
            weight=0.0,
        )
    return in_force


def scheduler_info(
    config: EffectiveConfig,
    qos: QosState | None,
    in_force: Mapping[str, ClassSettings],
    scheduler: str,
    labels: Labels,
    *,
    mclock: bool,
) -> Family:
    """What runs and how it is set; labels that are not known are left empty."""
    about = {
        "in_force": scheduler,
        "configured": config.text("osd_op_queue") or "",
        "profile": config.text("osd_mclock_profile") or "" if mclock else "",
        "model": "bandwidth" if qos else "",
        "media": qos.media if qos else "",
        "capacity_origin": qos.capacity_origin if qos and mclock else "",
        "reservations": "config" if mclock and in_force else "policy" if in_force else "none",
    }
    return Family(
        "cephqos_qos_scheduler_info",
        "gauge",
        "The scheduler in force (seen from its queues) and the one configured, profile,"
        " cost model, assumed media, and where the capacity and the reservations come "
        "from. What is not known is empty.",
        [("", extend_labels(labels.base, about), 1)],
    )


def capacity_and_costs(qos: QosState, labels: Labels, *, mclock: bool) -> Iterable[Family]:
    """How the OSD charges; and, if mClock is in force, what it believes it can do."""
    base = labels.base
    yield single(
        "cephqos_qos_shards",
        "gauge",
        "Shards of the OSD. Each has its own scheduler.",
        base,
        qos.shards,
    )
    text = (
        "Bytes that cost one normalised op. A smaller item costs the same. On 16.2 the default of"
        " later releases."
    )
    yield single("cephqos_qos_cost_per_io_bytes", "gauge", text, base, qos.cost.cost_per_io)
    if not mclock:
        return
    text = f"Capacity that the OSD assumes it has, {_UNIT}. Absent under WPQ."
    yield single(
        "cephqos_qos_capacity_normalised_ops_per_second", "gauge", text, base, qos.cost.iops
    )
    text = (
        "Capacity that the OSD assumes it has for large operations, in bytes/s. Absent under WPQ."
    )
    yield single("cephqos_qos_capacity_bytes_per_second", "gauge", text, base, qos.cost.bandwidth)


def bounds(
    in_force: Mapping[str, ClassSettings], qos: QosState, labels: Labels
) -> Iterable[Family]:
    """Reservation and limit of each class; what has no bound has no series."""
    per_op = qos.cost.cost_per_io
    kinds = (
        ("reservation", {c: (p.reservation_ratio, p.reservation) for c, p in in_force.items()}),
        ("limit", {c: (p.limit_ratio, p.limit) for c, p in in_force.items()}),
    )
    for bound, values in kinds:
        yield from _bound(bound, values, labels, qos.shards, per_op)
    weight = gauge(
        "cephqos_qos_weight",
        "Weight of a class when the scheduler shares what reservations leave over.",
    )
    for cls, settings in in_force.items():
        if settings.weight:
            weight.add(labels.of("class", cls), settings.weight)
    yield weight


def _bound(
    bound: str,
    values: Mapping[str, tuple[float | None, float | None]],
    labels: Labels,
    shards: int,
    bytes_per_op: float,
) -> Iterable[Family]:
    texts = (
        f"The {bound} of a class on the whole OSD, as a share of its capacity",
        f"The {bound} of a class on the whole OSD, {_UNIT}",
        f"The {bound} of a class on the whole OSD, in bytes/s",
        f"The {bound} of a class in each shard, {_UNIT}",
        f"The {bound} of a class in each shard, in bytes/s",
    )
    ratio, ops, in_bytes, shard_ops, shard_bytes = (
        gauge(name, f"{text}. Absent where there is none.")
        for name, text in zip(_BOUNDS[bound], texts, strict=True)
    )
    for cls, (share, rate) in values.items():
        if share is None or rate is None:
            continue
        own = labels.of("class", cls)
        ratio.add(own, share)
        ops.add(own, rate)
        shard_ops.add(own, rate / shards)
        in_bytes.add(own, rate * bytes_per_op)
        shard_bytes.add(own, rate * bytes_per_op / shards)
    return ratio, ops, in_bytes, shard_ops, shard_bytes


def targets(held: Mapping[str, Target], capacity: float | None, labels: Labels) -> Iterable[Family]:
    """What a policy asks of this OSD; a share of a capacity that is not known is left out."""
    families = _of_policy(_TARGETS, "on this OSD")
    for cls, target in held.items():
        baseline = target.baseline or capacity
        if baseline is None:
            continue
        for bound, share in _shares(target):
            families[bound].add(labels.of("class", cls), share * baseline)
    return families.values()


def cluster_targets(held: Sequence[tuple[str, Target]]) -> Iterable[Family]:
    """What a policy asks of whole clusters; every host of a cluster says the same."""
    families = _of_policy(_CLUSTER_TARGETS, "over all OSDs")
    for cluster, target in held:
        labels = Labels(extend_labels(LabelText(""), {"cluster": cluster}))
        for bound, share in _shares(target):
            rate = share * (target.baseline or 0.0)
            families[bound].add(labels.of("class", target.cls), rate)
    return families.values()


def _of_policy(names: Mapping[str, str], where: str) -> Mapping[str, Family]:
    """A family for each bound."""
    text = f"that the policy sets for a class {where}, {_UNIT}."
    return {bound: gauge(name, f"The {bound} {text}") for bound, name in names.items()}


def _shares(target: Target) -> Iterable[tuple[str, float]]:
    for bound, share in (
        ("reservation", target.reservation_ratio),
        ("limit", target.limit_ratio),
    ):
        if share is not None:
            yield bound, share
