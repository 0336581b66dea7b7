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

# Ceph's own counters of an OSD come from one of our exporters (the job and instance of BUILD_INFO),
# and perhaps from Ceph's exporter or manager too, which counts them double. Two clusters have
# daemons of the same names. So a foreign series that names its cluster by FSID must match in
# cluster and daemon, and one that names none, in the daemon.
_COUNTER: Final = "ceph_osd_op_w"
_FROM_OURS: Final = f"on (job, instance) {ExporterSeries.BUILD_INFO}"
_FSID: Final = "[0-9a-f]{8}-.*"
_OUR_COUNTERS: Final = f"count by (cluster, ceph_daemon) ({_COUNTER} and {_FROM_OURS})"
_FOREIGN_WITH_FSID: Final = f'{_COUNTER}{{cluster=~"{_FSID}"}} unless {_FROM_OURS}'
_FOREIGN_WITHOUT_FSID: Final = f'{_COUNTER}{{cluster!~"{_FSID}"}} unless {_FROM_OURS}'
_LOST: Final = ExporterSeries.RECORDER_LOST

# By the field of PrometheusFacts. A fact is true where its query has a result: its labels say
# where.
FACTS: Final = {
    "exporters": ExporterSeries.BUILD_INFO,
    "replicas": f"{_OSDS} > 1",
    "doubled_osds": f"count by (cluster, ceph_daemon) ({_OSDS}) > 1",
    "doubled_clusters": f"count by (cluster) ({_CLUSTERS}) > 1",
    "doubled_counters": f"({_OUR_COUNTERS} and on (cluster, ceph_daemon) ({_FOREIGN_WITH_FSID}))"
    f" or ({_OUR_COUNTERS} and on (ceph_daemon) ({_FOREIGN_WITHOUT_FSID}))",
    # Ten minutes: a single broken reply is not a newer release.
    "not_understood": "sum by (cluster, ceph_daemon, instance, collector, what)"
    f" (increase({ExporterSeries.COLLECTOR_NOT_UNDERSTOOD}[10m])) > 0",
    # Exporters that record, and what they lost within a day.
    "recorders": f"group by (instance) ({ExporterSeries.RECORDER_PAGES})",
    "recorder_lost": f"sum by (instance, reason) ({_LOST} - ({_LOST} offset 1d or {_LOST} * 0))"
    " > 0",
    "label_taken": f'count by (job, instance) ({DaemonSeries.UP}{{exported_cluster!=""}}'
    f' or {DaemonSeries.UP}{{exported_ceph_daemon!=""}})',
}
