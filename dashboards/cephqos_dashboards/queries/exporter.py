"""cephqos itself: is it there, what does it cost, what does it miss."""

from typing import Final

from cephqos_dashboards.panels import Query
from cephqos_dashboards.queries.common import ROWS, top

JOB: Final = 'job=~"cephqos.*"'

UP: Final = (
    Query(f"count(up{{{JOB}}} == 1) or vector(0)", "up"),
    Query(f"count(up{{{JOB}}} == 0) or vector(0)", "down"),
)
DAEMONS: Final = (
    Query("count(max by (cluster, ceph_daemon) (cephqos_daemon_up) == 1)", "answer"),
    Query("count(max by (cluster, ceph_daemon) (cephqos_daemon_up) == 0) or vector(0)", "silent"),
)
FAILING: Final = Query(
    "count(min by (cluster, ceph_daemon, collector) (cephqos_collector_success) == 0) or vector(0)",
    "failing collectors",
)
CLUSTER: Final = Query("min by (cluster) (cephqos_cluster_up)", "{{cluster}}")
SERIES: Final = Query(f"sum(scrape_samples_post_metric_relabeling{{{JOB}}})", "series")
VERSIONS: Final = Query("count by (version) (cephqos_exporter_build_info)", "{{version}}")
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
    "max by (collector) (cephqos_collector_duration_seconds)", "{{collector}}"
)
DAEMON_TIME: Final = Query(
    top(
        'max by (ceph_daemon) (cephqos_daemon_scrape_duration_seconds{ceph_daemon=~".+"})',
        "ceph_daemon",
    ),
    "{{ceph_daemon}}",
)
MISSING: Final = Query(
    f"topk({ROWS}, max by (cluster, ceph_daemon, collector) (cephqos_collector_success == 0) + 1)",
    name="failing",
)
SILENT: Final = Query(
    f"topk({ROWS}, max by (cluster, ceph_daemon, instance, reason) (cephqos_daemon_up == 0) + 1)",
    name="silent",
)
CLUSTER_AGE: Final = Query("max by (part) (cephqos_cluster_data_age_seconds)", "{{part}}")
CLUSTER_COMMANDS: Final = Query(
    "sum by (command) (rate(cephqos_cluster_command_seconds_total[$__rate_interval]))",
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
LOKI_LINES: Final = Query(
    "sum(rate(loki_distributor_lines_received_total[$__rate_interval]))", "lines received"
)
LOKI_LOST: Final = (
    Query("sum(rate(loki_discarded_samples_total[$__rate_interval]))", "discarded by Loki"),
    Query(
        "sum(rate(otelcol_exporter_send_failed_log_records_total[$__rate_interval]))",
        "not sent by the collector",
    ),
)
