"""What the cluster itself says is wrong: the checks of `ceph health`."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cephqos_exporter.cluster.replies import ClusterStatus, text, whole
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood

_SEVERITIES: Final = {"HEALTH_WARN": "warning", "HEALTH_ERR": "error"}


def health_families(
    status: ClusterStatus, labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    """The checks that fail now. A muted one is left out: an operator knows about it."""

    def read(check: tuple[str, Mapping[str, Any]]) -> tuple[str, str, int] | None:
        name, state = check
        if state["muted"]:
            return None
        return text(name), _SEVERITIES[state["severity"]], whole(state["summary"]["count"])

    family = gauge(
        "cephqos_cluster_health_check",
        "How many things fail this check of `ceph health`: daemons, placement groups, pools, or 1."
        " Absent while the check is passed or muted. severity: warning or error.",
    )
    checks = not_understood.all_of("status: health", lambda: status.health["checks"].items())
    for check in not_understood.each("status: a health check", checks, read):
        if check:
            name, severity, count = check
            family.add(labels.of("check", name, "severity", severity), count)
    return [family]


def election_families(
    status: ClusterStatus, labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    """How often monitors have elected a leader: whenever one of them leaves or comes back."""
    if status.election_epoch is None:
        return
    family = counter(
        "cephqos_cluster_elections_total",
        "Elections of monitors since the cluster was made. There is one when a monitor leaves the "
        "quorum, also for seconds, and one when it comes back.",
    )
    epochs = not_understood.each("status: election_epoch", [status.election_epoch], whole)
    for epoch in epochs:
        family.add(labels.base, epoch // 2)  # each takes two epochs
    yield family
