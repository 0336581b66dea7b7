"""cephqos itself: is it there, what does it cost, what does it miss."""

from typing import Final

from cephqos_base.series import OSD, Cluster, Daemon, Exporter
from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import ROWS, top

JOB: Final = 'job=~"cephqos.*"'

UP: Final = (
    Query(f"count(up{{{JOB}}} == 1) or vector(0)", "up"),
    Query(f"count(up{{{JOB}}} == 0) or vector(0)", "down"),
)
DAEMONS: Final = (
    Query(f"count(max by (cluster, ceph_daemon) ({Daemon.UP}) == 1)", "answer"),
    Query(f"count(max by (cluster, ceph_daemon) ({Daemon.UP}) == 0) or vector(0)", "silent"),
)
FAILING: Final = Query(
    f"count(min by ({OSD}, collector) ({Exporter.COLLECTOR_SUCCESS}) == 0) or vector(0)",
    "failing collectors",
)
CLUSTER: Final = Query(f"min by (cluster) ({Cluster.UP})", "{{cluster}}")
SERIES: Final = Query(f"sum(scrape_samples_post_metric_relabeling{{{JOB}}})", "series")
VERSIONS: Final = Query(f"count by (version) ({Exporter.BUILD_INFO})", "{{version}}")
WATCHDOG: Final = Query(
    'count(ALERTS{alertname="Watchdog", alertstate="firing"}) or vector(0)', "watchdog"
)

STATE: Final = Query(
    f"max by (instance) (up{{{JOB}}}) and on (instance)"
    f" bottomk({ROWS}, min_over_time(up{{{JOB}}}[$__range] @ end()))",
    "{{instance}}",
)
SCRAPE: Final = Query(
    top(f"max by (instance) (scrape_duration_seconds{{{JOB}}})", "instance"), "{{instance}}"
)
SERIES_BY_TARGET: Final = Query(
    top(f"max by (instance) (scrape_samples_post_metric_relabeling{{{JOB}}})", "instance"),
    "{{instance}}",
)
CPU: Final = Query(
    top(
        f"max by (instance) (rate(process_cpu_seconds_total{{{JOB}}}[$__rate_interval]))",
        "instance",
    ),
    "{{instance}}",
)
MEMORY: Final = Query(
    top(f"max by (instance) (process_resident_memory_bytes{{{JOB}}})", "instance"), "{{instance}}"
)
COLLECTORS: Final = Query(
    f"max by (collector) ({Exporter.COLLECTOR_DURATION_SECONDS})", "{{collector}}"
)
DAEMON_TIME: Final = Query(
    top(
        f'max by (ceph_daemon) ({Daemon.SCRAPE_DURATION_SECONDS}{{ceph_daemon=~".+"}})',
        "ceph_daemon",
    ),
    "{{ceph_daemon}}",
)
MISSING: Final = Query(
    f"topk({ROWS}, max by ({OSD}, collector) ({Exporter.COLLECTOR_SUCCESS} == 0) + 1)",
    name="failing",
)
SILENT: Final = Query(
    f"topk({ROWS}, max by (cluster, ceph_daemon, instance, reason) ({Daemon.UP} == 0) + 1)",
    name="silent",
)
CLUSTER_AGE: Final = Query(f"max by (part) ({Cluster.DATA_AGE_SECONDS})", "{{part}}")
CLUSTER_COMMANDS: Final = Query(
    f"sum by (command) (rate({Cluster.COMMAND_SECONDS}[$__rate_interval]))",
    "{{command}}",
)
RULES: Final = Query(
    """
    max by (group) (label_replace(
      prometheus_rule_group_last_duration_seconds{rule_group=~".*cephqos.*"},
      "group", "$1", "rule_group", ".*;(.*)"
    ))
    """,
    "{{group}}",
)
RULES_MISSED: Final = (
    Query(
        "sum(rate(prometheus_rule_group_iterations_missed_total[$__rate_interval]))",
        "evaluations missed per second",
    ),
    Query(
        "sum(rate(prometheus_rule_evaluation_failures_total[$__rate_interval]))",
        "evaluations failed per second",
    ),
)
_RECEIVED: Final = "sum(rate(loki_distributor_lines_received_total[$__rate_interval]))"
LOKI_LINES: Final = Query(_RECEIVED, "lines received")
# Loki shows what it discards from the first line on; before that it is 0 where Loki is scraped.
LOKI_LOST: Final = Query(
    f"sum(rate(loki_discarded_samples_total[$__rate_interval])) or 0 * {_RECEIVED}",
    "discarded by Loki",
)
