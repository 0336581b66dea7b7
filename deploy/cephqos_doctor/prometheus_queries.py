"""What the doctor asks a Prometheus, or another engine with its query language."""

from typing import Final

from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.series import ClusterSeries, DaemonSeries, ExporterSeries

_UP: Final = f'up{{job=~"{RuleSettings().job}"}}'
DOWN: Final = f"{_UP} == 0"
# Of each job, seconds between samples: the fullest ten minutes of an hour, so that a gap does not
# count, and of targets that were there ten minutes ago, so that a new one does not.
INTERVALS: Final = (
    f"min by (job) (600 / max_over_time(count_over_time({_UP}[599s])[1h:10m]) and {_UP} offset 10m)"
)

# A target is one job and instance, from however many Prometheus servers its samples come.
_OSDS: Final = f"count by (cluster, ceph_daemon, job, instance) ({DaemonSeries.UP} == 1)"
_CLUSTERS: Final = f"count by (cluster, job, instance) ({ClusterSeries.UP} == 1)"

# Ceph's own counters of an OSD: also shown by Ceph's exporter and its manager.
_COUNTER: Final = "ceph_osd_op_w"
# From one of our exporters, and from something else too. Two clusters have daemons of the same
# names, so two sources of the others' kind are none of our business; where the others' series name
# the cluster by its FSID, neither is another cluster's.
_OURS: Final = f"on (job, instance) {ExporterSeries.BUILD_INFO}"
_FSID: Final = "[0-9a-f]{8}-.*"
_MINE: Final = f"count by (cluster, ceph_daemon) ({_COUNTER} and {_OURS})"
_OF_A_CLUSTER: Final = f'{_COUNTER}{{cluster=~"{_FSID}"}} unless {_OURS}'
_OF_SOME: Final = f'{_COUNTER}{{cluster!~"{_FSID}"}} unless {_OURS}'
_LOST: Final = ExporterSeries.RECORDER_LOST

# By the name of the fact. A fact holds where its query has a result, whose labels say where.
FACTS: Final = {
    "exporters": ExporterSeries.BUILD_INFO,
    "replicas": f"{_OSDS} > 1",
    "doubled_osds": f"count by (cluster, ceph_daemon) ({_OSDS}) > 1",
    "doubled_clusters": f"count by (cluster) ({_CLUSTERS}) > 1",
    "doubled_counters": f"({_MINE} and on (cluster, ceph_daemon) ({_OF_A_CLUSTER}))"
    f" or ({_MINE} and on (ceph_daemon) ({_OF_SOME}))",
    # Ten minutes: a single odd reply is not a newer release.
    "not_understood": "sum by (cluster, ceph_daemon, instance, collector, what)"
    f" (increase({ExporterSeries.COLLECTOR_NOT_UNDERSTOOD}[10m])) > 0",
    # Exporters that record, and what they lost within a day.
    "recorders": f"group by (instance) ({ExporterSeries.RECORDER_PAGES})",
    "recorder_lost": f"sum by (instance, reason) ({_LOST} - ({_LOST} offset 1d or {_LOST} * 0))"
    " > 0",
    "label_taken": f'count by (job, instance) ({DaemonSeries.UP}{{exported_cluster!=""}}'
    f' or {DaemonSeries.UP}{{exported_ceph_daemon!=""}})',
}
