"""Cases of the alerts that say that the other rules cannot see."""

from dataclasses import replace
from typing import Final

from .cases import RuleCase, firing, silent
from .qos import TARGET_OSDS, osd, without
from .series import CLUSTER, IDLE, Series, State, flat, merged, osds

_TARGET: Final = {"job": "cephqos", "instance": "host1"}
_TICKET: Final = {"severity": "warning"}
_HOST: Final = {"cluster": CLUSTER, "instance": "host1"}
FEW = "CephQosTooFewSamples"
MISSING = "CephQosFiguresMissing"
RESTARTS = "CephQosExporterRestarts"
LABEL = "CephQosClusterLabelTaken"


def _up(values: str) -> Series:
    return flat("up", values, **_TARGET)


def _restarting(every: int, count: int, then: str) -> Series:
    """A counter that begins at zero `count` times, every so many samples."""
    return flat(
        "cephqos_qos_delivered_normalised_ops_total",
        " ".join([f"0+100x{every - 1}"] * count) + " " + then,
        ceph_daemon="osd.0",
        **_HOST,
    )


# One OSD of four is not scraped any more, and the others would miss the cluster's target.
_HALF: Final = State(client=700, in_progress=(20,), waiting=5, store=20)
_NOT_ALL_SCRAPED: Final = merged(
    *osds(3, ((28, _HALF),), **TARGET_OSDS),
    replace(
        osd((8, _HALF), (20, replace(_HALF, scrape=False)), **TARGET_OSDS),
        id=3,
    ),
    flat(
        "cephqos_qos_cluster_target_reservation_normalised_ops_per_second",
        2600,
        cluster=CLUSTER,
        class_="client",
        instance="host1",
    ),
)


CASES = [
    RuleCase(
        name="scrapes every 60 s are too few for rules made for 15 s",
        alert=FEW,
        series=_up(" ".join(["1 _x3"] * 25) + " 1x100"),
        moments=(silent(14), firing(16, {**_TARGET, **_TICKET}), silent(32)),
    ),
    RuleCase(
        name="every fourth scrape that fails is one too many",
        alert=FEW,
        series=_up("1x20 " + " ".join(["0 1x2"] * 40)),
        moments=(
            silent(14),
            firing(25, {**_TARGET, **_TICKET}),
            firing(30, {**_TARGET, **_TICKET}),
        ),
    ),
    RuleCase(
        name="an exporter that is down, one that came just now and one lost scrape are not too few",
        alert=FEW,
        series=merged(
            _up("1x20 0x200"),
            flat("up", "_x100 1x100", job="cephqos", instance="host2"),
            flat("up", "1x60 0 1x100", job="cephqos", instance="host3"),
        ),
        moments=(silent(20), silent(29), silent(40)),
    ),
    RuleCase(
        name="OSDs that answer and whose work nobody shows",
        alert=MISSING,
        series=merged(
            without(("cephqos_qos",), osd((20, IDLE))),
            {
                name: f"_x80 {values}"
                for name, values in osd((20, IDLE)).series().items()
                if name.startswith("cephqos_qos_normalised")
            },
            flat("cephqos_daemon_up", 1, reason="", ceph_daemon="osd.0", job="cephqos", **_HOST),
        ),
        moments=(silent(10.5), firing(12, {**_HOST, **_TICKET}), silent(23)),
    ),
    RuleCase(
        name="an OSD that has just come is given time, one that is hung has an alert of its own",
        alert=MISSING,
        series=merged(
            osd((8, replace(IDLE, scrape=False)), (20, IDLE)),
            replace(osd((8, IDLE), (20, replace(IDLE, up=0))), id=1),
        ),
        moments=(silent(9), silent(20), silent(27)),
    ),
    RuleCase(
        name="an exporter that restarts every minute is told, and one that does so no more is not",
        alert=RESTARTS,
        series=_restarting(4, 20, "0+100x300"),
        moments=(
            silent(3.75),
            firing(5, {**_HOST, **_TICKET}),
            firing(60, {**_HOST, **_TICKET}),
            silent(90),
        ),
    ),
    RuleCase(
        name="an exporter that was restarted twice in an hour may do so",
        alert=RESTARTS,
        series=_restarting(60, 2, "0+100x200"),
        moments=(silent(31), silent(59)),
    ),
    RuleCase(
        name="a cluster label of Prometheus' own hides the FSID until labels are honoured",
        alert=LABEL,
        series=flat(
            "cephqos_daemon_up", "1x79 stale", exported_cluster="f1", ceph_daemon="osd.0", **_HOST
        ),
        moments=(silent(4.5), firing(5.5, {**_HOST, **_TICKET}), silent(21)),
    ),
    RuleCase(
        name="a cluster label that is the FSID hides nothing",
        alert=LABEL,
        series=merged(osd((20, IDLE))),
        moments=(silent(6), silent(19)),
    ),
    RuleCase(
        name="a target for the cluster is not judged while the OSDs of a host are not scraped",
        alert="CephQosPolicyTargetViolated",
        series=_NOT_ALL_SCRAPED,
        moments=(silent(15), silent(27)),
    ),
    RuleCase(
        name="monitors and managers that are scraped make up for no OSD that is not",
        alert="CephQosPolicyTargetViolated",
        series=merged(
            _NOT_ALL_SCRAPED,
            *(
                flat("cephqos_daemon_up", 1, reason="", ceph_daemon=name, job="cephqos", **_HOST)
                for name in ("mon.a", "mgr.a")
            ),
            *(
                flat("cephqos_cluster_osd_up", 1, ceph_daemon=f"osd.{i}", cluster=CLUSTER)
                for i in range(4)
            ),
        ),
        moments=(silent(15), silent(27)),
    ),
]
