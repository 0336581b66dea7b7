"""Cases of the alerts on whether anybody looks at all, and of those that are there to silence."""

from typing import Final

from .cases import RuleCase, firing, silent
from .series import CLUSTER, Series, flat, merged
from .state import AT, TICKET, case

_TARGET: Final = {"job": "cephqos", "instance": "host1"}
_DAEMON = flat("cephqos_daemon_up", 1, reason="", **AT, **_TARGET)
_CLUSTER_UP = flat("cephqos_cluster_up", 1, reason="", cluster=CLUSTER, **_TARGET)
_CLUSTER_TICKET = {"cluster": CLUSTER, **TICKET}


def _daemon_up(values: str, reason: str, instance: str = "host1", osd: str = "osd.0") -> Series:
    at = {**AT, **_TARGET, "instance": instance, "ceph_daemon": osd}
    return flat("cephqos_daemon_up", values, reason=reason, **at)


_CAN_WAIT = 'count(osd:cephqos_finding:value{finding="DaemonNotAnsweringCanWait"})'
_COLLECTOR = {**AT, "collector": "mclock"}
_NOT_UNDERSTOOD = "cephqos_collector_not_understood_total"
_ODD = {"collector": "mclock", "what": "class"}

CASES = [
    case(
        "CephQosExporterDown",
        "an exporter that does not answer",
        flat("up", "1x20 0x60 1x60", **_TARGET),
        silent(9),
        firing(11, {**_TARGET, **TICKET}),
        silent(30),
    ),
    case(
        "CephQosExporterDown",
        "an exporter that restarts, and another job's",
        merged(flat("up", "1x20 0x4 1x100", **_TARGET), flat("up", 0, job="node", instance="x")),
        silent(6.25),
        silent(30),
    ),
    case(
        "CephQosNothingScraped",
        "the scrape job is gone, and comes back",
        merged(
            flat("up", "1x20 stale _x100 1x40", **_TARGET),
            flat("up", 1, job="node", instance="x"),
        ),
        silent(19),
        firing(21, TICKET),
        silent(35),
    ),
    case(
        "CephQosNothingScraped",
        "exporters that are scraped and do not answer are told of one by one",
        flat("up", "0x200", **_TARGET),
        silent(40),
    ),
    case(
        "CephQosDaemonNotAnswering",
        "a daemon that hangs",
        merged(_daemon_up("1x20 stale", ""), _daemon_up("_x21 0x40 _x100", "timeout")),
        silent(7),
        firing(8, {**AT, "instance": "host1", "severity": "critical"}),
        silent(21),
    ),
    case(
        "CephQosDaemonNotAnswering",
        "a daemon that answers every third scrape, and one that does not answer every third",
        merged(
            _daemon_up(" ".join(["1 stale _"] * 40), ""),
            _daemon_up(" ".join(["_ 0 0"] * 40), "timeout"),
            _daemon_up(" ".join(["1 1 stale"] * 40), "", osd="osd.2"),
            _daemon_up(" ".join(["_ _ 0"] * 40), "timeout", osd="osd.2"),
        ),
        silent(3),
        firing(5, {**AT, "instance": "host1", "severity": "critical"}),
    ),
    case(
        "CephQosDaemonNotAnswering",
        "a daemon that hangs until it is down in the map, from where Ceph heals it",
        merged(
            _daemon_up("0x200", "timeout"),
            flat("cephqos_cluster_osd_up", "1x39 0x100", **AT, **_TARGET),
        ),
        silent(1.5),
        firing(3, {**AT, "instance": "host1", "severity": "critical"}),
        silent(10.5),
    ),
    case(
        "CephQosDaemonNotAnswering",
        "a daemon that was stopped for ten minutes, and has just come back",
        merged(
            _daemon_up("0x40 stale", "refused"),
            _daemon_up("_x41 1x100", ""),
            flat("cephqos_cluster_osd_up", "0x40 1x100", **AT, **_TARGET),
        ),
        silent(9),
        silent(10.5),
        silent(11.5),
        silent(20),
    ),
    case(
        "CephQosDaemonNotAnswering",
        "a daemon that the exporter may not ask",
        _daemon_up("0x200", "permission"),
        silent(3),
        silent(40),
    ),
    RuleCase(
        name="daemons that are down in the map, or are not asked, can wait",
        alert="CephQosDaemonNotAnswering",
        series=merged(
            _daemon_up("0x100 1x100", "permission"),
            flat("cephqos_daemon_up", 0, reason="refused", cluster=CLUSTER, ceph_daemon="osd.1"),
            flat("cephqos_cluster_osd_up", 0, cluster=CLUSTER, ceph_daemon="osd.1"),
            flat("cephqos_daemon_up", 0, reason="refused", cluster=CLUSTER, ceph_daemon="osd.2"),
        ),
        moments=(),
        values=((5, _CAN_WAIT, 2), (30, _CAN_WAIT, 1)),
        group="found",
    ),
    case(
        "CephQosDaemonNotAnswering",
        "a daemon that another exporter can reach",
        merged(_daemon_up("0x200", "refused"), _daemon_up("1x200", "", "host2")),
        silent(8),
        silent(40),
    ),
    case(
        "CephQosOsdDown",
        "an OSD that goes down and comes up",
        flat("cephqos_cluster_osd_up", "1x20 0x40 1x40", **AT, **_TARGET),
        silent(5),
        firing(5.5, {**AT, "severity": "none"}),
        silent(16),
    ),
    case(
        "CephQosOsdDown",
        "an OSD that one of two exporters has not yet seen come up",
        merged(
            flat("cephqos_cluster_osd_up", 0, **AT, **_TARGET),
            flat("cephqos_cluster_osd_up", 1, **AT, job="cephqos", instance="host2"),
        ),
        silent(5),
        silent(59),
    ),
    case(
        "CephQosOsdNotScraped",
        "an OSD that is up and that nobody scrapes",
        merged(
            _CLUSTER_UP,
            flat("cephqos_cluster_osd_up", 1, **AT, **_TARGET),
            _daemon_up("1x8 stale _x51 1x100", ""),
        ),
        silent(2),
        firing(3, {**AT, **TICKET}),
        silent(16),
        group="found",
    ),
    case(
        "CephQosOsdNotScraped",
        "an OSD that is scraped, and one that is down",
        merged(
            _DAEMON,
            flat("cephqos_cluster_osd_up", 1, **AT, **_TARGET),
            flat("cephqos_cluster_osd_up", 0, cluster=CLUSTER, ceph_daemon="osd.1", **_TARGET),
        ),
        silent(11),
        silent(59),
        group="found",
    ),
    case(
        "CephQosClusterExporterAbsent",
        "OSDs without an exporter of role cluster, until there is one",
        merged(
            _DAEMON,
            flat("cephqos_cluster_up", "_x80 1x100", reason="", cluster=CLUSTER, **_TARGET),
        ),
        silent(9),
        firing(11, _CLUSTER_TICKET),
        silent(21),
    ),
    case(
        "CephQosClusterExporterAbsent",
        "an exporter of role cluster whose monitors are gone is there",
        merged(
            _DAEMON, flat("cephqos_cluster_up", 0, reason="timeout", cluster=CLUSTER, **_TARGET)
        ),
        silent(11),
        silent(59),
    ),
    case(
        "CephQosClusterExporterDoubled",
        "two exporters of role cluster for one cluster",
        merged(
            _CLUSTER_UP,
            flat(
                "cephqos_cluster_up",
                "1x79 stale",
                cluster=CLUSTER,
                job="cephqos",
                instance="host2",
            ),
        ),
        silent(9),
        firing(11, {"cluster": CLUSTER, "severity": "info"}),
        silent(21),
    ),
    case(
        "CephQosClusterExporterDoubled",
        "one exporter each for two clusters",
        merged(_CLUSTER_UP, flat("cephqos_cluster_up", 1, cluster="c2", **_TARGET)),
        silent(11),
        silent(59),
    ),
    case(
        "CephQosScrapeNearDeadline",
        "a scrape that takes nine of ten seconds",
        flat("scrape_duration_seconds", "9x60 1x60", **_TARGET),
        silent(4),
        firing(6, {**_TARGET, **TICKET}),
        silent(20),
    ),
    case(
        "CephQosScrapeNearDeadline",
        "one slow scrape in ten",
        flat("scrape_duration_seconds", " ".join(["9 1x8"] * 20), **_TARGET),
        silent(6),
        silent(30),
    ),
    case(
        "CephQosCollectorFailing",
        "a collector that cannot make its metrics",
        flat("cephqos_collector_success", "1x8 0x80 1x40", **_COLLECTOR),
        silent(2),
        firing(3, {**_COLLECTOR, **TICKET}),
        silent(25),
        group="found",
    ),
    case(
        "CephQosCollectorFailing",
        "a collector of an OSD that is down in the map",
        merged(
            flat("cephqos_collector_success", 0, **_COLLECTOR),
            flat("cephqos_cluster_osd_up", 0, **AT, **_TARGET),
        ),
        silent(11),
        silent(25),
        group="found",
    ),
    case(
        "CephQosReplyNotUnderstood",
        "a class of work that is read at every scrape and never understood",
        flat(_NOT_UNDERSTOOD, "0+8x120 stale", instance="host1", **AT, **_ODD),
        silent(10),
        firing(12, {"cluster": CLUSTER, "instance": "host1", **_ODD, **TICKET}),
        silent(37),
    ),
    case(
        "CephQosReplyNotUnderstood",
        "one reply that was odd",
        flat(_NOT_UNDERSTOOD, "3x20 4x100", instance="host1", **AT, **_ODD),
        silent(12),
        silent(29),
    ),
    case(
        "CephQosTooManySeries",
        "an exporter that gives more series than the budget",
        merged(
            _DAEMON, flat("scrape_samples_post_metric_relabeling", "1300x90 1200x100", **_TARGET)
        ),
        silent(14),
        firing(16, {"instance": "host1", "severity": "info"}),
        silent(24),
    ),
    case(
        "CephQosTooManySeries",
        "an exporter within the budget",
        merged(_DAEMON, flat("scrape_samples_post_metric_relabeling", 1200, **_TARGET)),
        silent(16),
        silent(59),
    ),
    case(
        "CephQosMaintenance",
        "noout is set, then not",
        flat("cephqos_cluster_flag", "0x10 1x20 0x20", cluster=CLUSTER, flag="noout"),
        silent(2.5),
        firing(3, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
        silent(10),
    ),
    case(
        "CephQosMaintenance",
        "a run sets a flag and dies: the flag silences nothing any more, one of an operator does",
        merged(
            flat("cephqos_cluster_flag", "0x10 1x60", cluster=CLUSTER, flag="noscrub"),
            flat("cephqos_cluster_flag", "1x70", cluster=CLUSTER, flag="noout"),
            flat(
                "cephqos_run_info", "1x30 stale", cluster=CLUSTER, run="r1", scenario="s", phase="l"
            ),
        ),
        firing(2, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
        firing(
            5,
            {"cluster": CLUSTER, "flag": "noout", "severity": "none"},
            {"cluster": CLUSTER, "flag": "noscrub", "severity": "none"},
        ),
        firing(9, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
        firing(17, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
    ),
    case(
        "CephQosMaintenance",
        "no flag is set",
        flat("cephqos_cluster_flag", 0, cluster=CLUSTER, flag="noout"),
        silent(5),
        silent(59),
    ),
    case(
        "CephQosTestRun",
        "a run that announces itself, then ends",
        flat(
            "cephqos_run_info",
            "_x8 1x20 stale",
            cluster=CLUSTER,
            run="r1",
            scenario="s",
            phase="load",
        ),
        silent(1.5),
        firing(2, {"cluster": CLUSTER, "run": "r1", "scenario": "s", "severity": "none"}),
        silent(11),
    ),
    case("CephQosTestRun", "no run", _DAEMON, silent(5), silent(59)),
    case(
        "CephQosWatchdog",
        "always",
        {},
        firing(0, {"severity": "none"}),
        firing(59, {"severity": "none"}),
    ),
]
