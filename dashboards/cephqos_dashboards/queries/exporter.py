"""cephqos itself: is it there, what does it cost, what does it miss."""

from typing import Final

from cephqos_base.recorded import PerCluster
from cephqos_base.series import OSD, ClusterSeries, DaemonSeries, ExporterSeries
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import ROWS, highest

JOB: Final = 'job=~"cephqos.*"'

UP: Final = (
    PanelQuery(f"count(up{{{JOB}}} == 1) or vector(0)", "up"),
    PanelQuery(f"count(up{{{JOB}}} == 0) or vector(0)", "down"),
)
DAEMONS: Final = (
    PanelQuery(f"count(max by (cluster, ceph_daemon) ({DaemonSeries.UP}) == 1)", "answer"),
    PanelQuery(
        f"count(max by (cluster, ceph_daemon) ({DaemonSeries.UP}) == 0) or vector(0)", "silent"
    ),
)
FAILING: Final = PanelQuery(
    f"count(min by ({OSD}, collector) ({ExporterSeries.COLLECTOR_SUCCESS}) == 0) or vector(0)",
    "failing collectors",
)
CLUSTER: Final = PanelQuery(f"min by (cluster) ({ClusterSeries.UP})", "{{cluster}}")
SERIES: Final = PanelQuery(f"sum(scrape_samples_post_metric_relabeling{{{JOB}}})", "series")
VERSIONS: Final = PanelQuery(f"count by (version) ({ExporterSeries.BUILD_INFO})", "{{version}}")
RULES_RUN: Final = PanelQuery(f"clamp_max(count({PerCluster.OSDS}), 1) or vector(0)", "rules")

STATE: Final = PanelQuery(
    f"max by (instance) (up{{{JOB}}}) and on (instance)"
    f" bottomk({ROWS}, min_over_time(up{{{JOB}}}[$__range] @ end()))",
    "{{instance}}",
)
SCRAPE: Final = highest(f"max by (instance) (scrape_duration_seconds{{{JOB}}})", "instance")
SERIES_BY_TARGET: Final = highest(
    f"max by (instance) (scrape_samples_post_metric_relabeling{{{JOB}}})", "instance"
)
CPU: Final = highest(
    f"max by (instance) (rate(process_cpu_seconds_total{{{JOB}}}[$__rate_interval]))", "instance"
)
MEMORY: Final = highest(f"max by (instance) (process_resident_memory_bytes{{{JOB}}})", "instance")
COLLECTORS: Final = PanelQuery(
    f"max by (collector) ({ExporterSeries.COLLECTOR_DURATION_SECONDS})", "{{collector}}"
)
DAEMON_TIME: Final = highest(
    f'max by (ceph_daemon) ({DaemonSeries.SCRAPE_DURATION_SECONDS}{{ceph_daemon=~".+"}})',
    "ceph_daemon",
)
MISSING: Final = PanelQuery(
    f"topk({ROWS}, max by ({OSD}, collector) ({ExporterSeries.COLLECTOR_SUCCESS} == 0) + 1)",
    name="failing",
)
SILENT: Final = PanelQuery(
    f"topk({ROWS}, max by (cluster, ceph_daemon, instance, reason) ({DaemonSeries.UP} == 0) + 1)",
    name="silent",
)
CLUSTER_AGE: Final = PanelQuery(f"max by (part) ({ClusterSeries.DATA_AGE_SECONDS})", "{{part}}")
CLUSTER_COMMANDS: Final = PanelQuery(
    f"sum by (command) (rate({ClusterSeries.COMMAND_SECONDS}[$__rate_interval]))", "{{command}}"
)
RULES: Final = PanelQuery(
    """
    max by (group) (label_replace(
      prometheus_rule_group_last_duration_seconds{rule_group=~".*cephqos.*"},
      "group", "$1", "rule_group", ".*;(.*)"
    ))
    """,
    "{{group}}",
)
RULES_MISSED: Final = (
    PanelQuery(
        "sum(rate(prometheus_rule_group_iterations_missed_total[$__rate_interval]))",
        "evaluations missed per second",
    ),
    PanelQuery(
        "sum(rate(prometheus_rule_evaluation_failures_total[$__rate_interval]))",
        "evaluations failed per second",
    ),
)
_RECEIVED: Final = "sum(rate(loki_distributor_lines_received_total[$__rate_interval]))"
LOKI_LINES: Final = PanelQuery(_RECEIVED, "lines received")
# Loki shows what it discards from the first line on; before that it is 0 where Loki is scraped.
LOKI_LOST: Final = PanelQuery(
    f"sum(rate(loki_discarded_samples_total[$__rate_interval])) or 0 * {_RECEIVED}",
    "discarded by Loki",
)
