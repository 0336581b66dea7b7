"""Alerts on whether everything is monitored: exporters, daemons, scrape deadlines.

Also HELPERS, which are not sent: they silence others during maintenance and test runs.
"""

from typing import Final

from cephqos_alerts.alerts.known import likely_cause_on_osd
from cephqos_alerts.rules.findings import OsdFinding
from cephqos_alerts.rules.rule import (
    MORNING,
    NOT_SENT,
    NOW,
    SOME_DAY,
    Alert,
    FirstCommand,
    RuleGroup,
)
from cephqos_alerts.rules.template import ITSELF, query, when
from cephqos_base.series import OSD, ClusterSeries, DaemonSeries, ExporterSeries, RunSeries

# The reason can change while a daemon does not answer, so it is no label of the alert.
_REASONS: Final = when(
    query(
        f"{DaemonSeries.UP}{{cluster=%q,ceph_daemon=%q,instance=%q}}",
        *("$labels.cluster", "$labels.ceph_daemon", "$labels.instance"),
    ),
    when(". | first", when(".Labels.reason", f": {ITSELF}")),
)

# Reasons of the exporter not to ask an OSD. They are no fault of the OSD: its clients do not wait.
_NO_FAULT: Final = "permission|costly"

COVERAGE: Final = RuleGroup(
    name="cephqos-coverage-alerts",
    rules=(
        Alert(
            name="CephQosExporterDown",
            expr='up{job=~"@job@"} == 0',
            urgency=MORNING,
            where="exporter",
            likely="the exporter or its host is down, or a firewall is between",
            first=FirstCommand(
                line="curl -sS http://{{ $labels.instance }}/-/healthy", on="prometheus"
            ),
            hold=300,
            summary="no answer from the exporter at {{ $labels.instance }}",
            description="""
            Prometheus gets no answer from {{ $labels.instance }} (job {{ $labels.job }}). The QoS
            of its OSDs is not monitored.
            """,
        ),
        Alert(
            name="CephQosNothingScraped",
            expr='absent(up{job=~"@job@"})',
            urgency=MORNING,
            where="prometheus",
            likely="the scrape job is gone or has another name",
            first=FirstCommand(
                line="curl -sS 'http://localhost:9090/api/v1/targets?state=active'"
                """ | grep -o '"scrapePool":"[^"]*"' | sort | uniq -c""",
                on="prometheus",
            ),
            hold=900,
            summary="no exporter of cephqos is scraped",
            description="""
            This Prometheus has these rules, and no target whose job matches @job@. No OSD is
            monitored.
            """,
        ),
        Alert(
            name="CephQosDaemonNotAnswering",
            about=("absence",),
            expr=f"""
            sum by ({OSD}, instance) (
              count_over_time({DaemonSeries.UP}{{reason!~"|{_NO_FAULT}"}}[@hold@])
            ) >= @half@ * @hold_evaluations@
              unless on ({OSD}) (
                sum by ({OSD}, instance) (sum_over_time({DaemonSeries.UP}[@hold@]))
                > @half@ * @hold_evaluations@
              )
              unless on ({OSD}) max by ({OSD}) ({ClusterSeries.OSD_UP}) == 0
            """,
            urgency=NOW,
            likely=likely_cause_on_osd("the OSD hangs, or its device does."),
            first=FirstCommand(line="ceph osd tree"),
            within="@hold@",
            summary="{{ $labels.ceph_daemon }} does not answer",
            description=f"""
            {{{{ $labels.ceph_daemon }}}} did not answer half of the scrapes of @hold@ on
            its admin socket at {{{{ $labels.instance }}}}{_REASONS}. Its clients are probably
            waiting too.
            """,
        ),
        Alert(
            name="CephQosScrapeNearDeadline",
            expr='scrape_duration_seconds{job=~"@job@"} > 10 * @coverage@',
            urgency=MORNING,
            where="exporter",
            likely="too many OSDs or collectors for one CPU, or other programs take it",
            first=FirstCommand(line="top -b -n 1 | head -20", on="host"),
            hold=300,
            summary="scraping {{ $labels.instance }} takes {{ $value | humanizeDuration }}",
            description="""
            A scrape of {{ $labels.instance }} takes {{ $value | humanizeDuration }}. After 10 s
            it fails and all its samples are lost.
            """,
        ),
    ),
)

# None is sent to a person: they inhibit others, or prove that alerting works. They have a rule file
# of their own, to leave out if Alertmanager does not have the routes and inhibitions of cephqos: it
# would send them.
HELPERS: Final = RuleGroup(
    name="cephqos-helpers",
    rules=(
        # Ceph's own alerts report it. This one only keeps others quiet.
        Alert(
            name="CephQosOsdDown",
            expr=f"max by ({OSD}) ({ClusterSeries.OSD_UP}) == 0",
            urgency=NOT_SENT,
            summary="{{ $labels.ceph_daemon }} is down in the map",
            description="""
            {{ $labels.ceph_daemon }} is down in the map. This
            alert is not sent. It silences the alerts about that OSD.
            """,
        ),
        Alert(
            name="CephQosMaintenance",
            expr=f"max by (cluster, flag) ({ClusterSeries.FLAG}) == 1",
            urgency=NOT_SENT,
            where="cluster",
            summary="cluster {{ $labels.cluster }}: {{ $labels.flag }} is set",
            description="""
            The flag {{ $labels.flag }} is set on cluster {{ $labels.cluster }}. This alert is
            not sent: it silences the alerts that the flag causes.
            """,
        ),
        Alert(
            name="CephQosTestRun",
            expr=f"max by (cluster, run, scenario) ({RunSeries.INFO}) == 1",
            urgency=NOT_SENT,
            where="cluster",
            summary="test run {{ $labels.run }} ({{ $labels.scenario }}) is running",
            description="""
            The test run {{ $labels.run }} loads cluster {{ $labels.cluster }} on purpose. This
            alert is not sent. It silences the alerts that the run causes on purpose.
            """,
        ),
        Alert(
            name="CephQosWatchdog",
            expr="vector(1)",
            urgency=NOT_SENT,
            where="prometheus",
            labels={"cluster": ""},
            summary="alerting works, from rule to receiver",
            description="""
            This alert always fires. If a receiver stops getting it, Prometheus, its rules or
            Alertmanager no longer work.
            """,
        ),
    ),
)

# What must last for ten minutes is looked at once a minute.
SLOW_COVERAGE: Final = RuleGroup(
    name="cephqos-slow-coverage-alerts",
    slow=True,
    rules=(
        Alert(
            name="CephQosClusterExporterAbsent",
            expr=f"""
            count by (cluster) ({DaemonSeries.UP})
              unless on (cluster) count by (cluster) ({ClusterSeries.UP})
            """,
            urgency=MORNING,
            where="cluster",
            likely="the exporter of role cluster was not started, or is no target of Prometheus",
            first=FirstCommand(line="systemctl status --all '*cephqos-cluster*'", on="host"),
            hold=600,
            dashboard="exporter",
            summary="cluster {{ $labels.cluster }}: no exporter of role cluster",
            description="""
            OSDs are scraped, but no exporter runs with
            --role cluster. Scrub, recovery, and OSDs without an exporter are not monitored.
            """,
        ),
        Alert(
            name="CephQosClusterExporterDoubled",
            expr=f"""
            count by (cluster) (count by (cluster, instance) ({ClusterSeries.UP})) > 1
            """,
            urgency=SOME_DAY,
            where="cluster",
            likely="the role was enabled on two hosts",
            first=FirstCommand(line="systemctl status --all '*cephqos-cluster*'", on="host"),
            hold=600,
            dashboard="exporter",
            summary="cluster {{ $labels.cluster }}: {{ $value }} exporters of role cluster",
            description="""
            {{ $value }} exporters report cluster {{ $labels.cluster }} as a whole. Each of them
            loads the manager, and sums over both count twice.
            """,
        ),
        Alert(
            name="CephQosReplyNotUnderstood",
            expr=f"""
            sum by (cluster, instance, collector, what) (
              increase({ExporterSeries.COLLECTOR_NOT_UNDERSTOOD}[@hold@])
            ) > 0
            """,
            urgency=MORNING,
            where="exporter",
            likely="this Ceph is newer than this cephqos",
            first=FirstCommand(
                line="journalctl -u '*cephqos-*' | grep 'does not understand'", on="host"
            ),
            hold=600,
            summary="{{ $labels.instance }}: the collector {{ $labels.collector }} does not"
            " understand the replies of Ceph ({{ $labels.what }})",
            description="""
            Replies of Ceph hold something ({{ $labels.what }}) that the collector
            {{ $labels.collector }} at {{ $labels.instance }} does not understand. Metrics that need
            it are absent, and alerts that need those cannot fire.
            """,
        ),
        Alert(
            name="CephQosTooManySeries",
            expr=f"""
            (sum by (instance) (scrape_samples_post_metric_relabeling{{job=~"@job@"}})
              - @series_of_exporter@)
            / on (instance) (count by (instance) ({DaemonSeries.UP}{{ceph_daemon=~"osd.*"}}))
            > @series_per_osd@
            """,
            urgency=SOME_DAY,
            where="exporter",
            likely="more collectors or layers than by default",
            first=FirstCommand(
                line="curl -sS http://{{ $labels.instance }}/metrics | cut -d '{' -f 1"
                " | sort | uniq -c | sort -n | tail",
                on="prometheus",
            ),
            hold=900,
            summary='{{ $labels.instance }} gives {{ $value | printf "%.0f" }} series per OSD',
            description="""
            The exporter at {{ $labels.instance }} gives {{ $value | printf "%.0f" }} series per
            OSD, above the budget of @series_per_osd@. @series_of_exporter@ series of the host and
            the cluster are not counted.
            """,
        ),
    ),
)

_DOWN: Final = f"max by ({OSD}) ({ClusterSeries.OSD_UP}) == 0"
# The case of CephQosDaemonNotAnswering (above) that can wait until morning: Ceph recovers without
# an OSD that is down in the map, and clients of an OSD that is only not asked do not wait.
DOWN: Final = OsdFinding(
    name="CephQosDaemonNotAnswering",
    about=("absence",),
    expr=f"""
    (max by ({OSD}) ({DaemonSeries.UP}) == 0)
      and on ({OSD}) (
        {_DOWN} or max by ({OSD}) ({DaemonSeries.UP}{{reason=~"{_NO_FAULT}"}}) == 0
      )
    """,
    urgency=MORNING,
    likely="these OSDs are down in the map, or the exporter may not ask them",
    first=FirstCommand(line="ceph osd tree"),
    window="long_hold",
    summary="no answer from the admin socket",
    description="""
    These OSDs do not answer on their admin sockets. Either they are down in the map, and Ceph
    recovers without them. Or the reason is permission or costly, and their clients do not wait.
    """,
)
NOT_SCRAPED: Final = OsdFinding(
    name="CephQosOsdNotScraped",
    about=("absence",),
    expr=f"""
    max by ({OSD}) ({ClusterSeries.OSD_UP}) == 1
      unless on ({OSD}) max by ({OSD}) ({DaemonSeries.UP})
    """,
    urgency=MORNING,
    likely="a host has no exporter, or is no target of Prometheus",
    first=FirstCommand(line="ceph osd find {{ $labels.ceph_daemon }}"),
    window="long_hold",
    counted=False,
    summary="the OSD is up, but no exporter reports it,",
    description="""
    These OSDs are up in the map, but no scraped exporter reports them. Their QoS is not monitored.
    """,
)
COLLECTOR_FAILING: Final = OsdFinding(
    name="CephQosCollectorFailing",
    expr=f"""
    (max by (cluster, ceph_daemon, collector) ({ExporterSeries.COLLECTOR_SUCCESS}) == 0) + 1
      unless on ({OSD}) ({_DOWN} or max by ({OSD}) ({DaemonSeries.UP}) == 0)
    """,
    by=("collector",),
    urgency=MORNING,
    likely="a permission, or a reply of this Ceph release",
    first=FirstCommand(line="journalctl -u '*cephqos-exporter*' -n 50", on="host"),
    window="long_hold",
    summary="the collector {{ $labels.collector }} fails",
    description="""
    The collector {{ $labels.collector }} cannot produce its metrics for these OSDs. Alerts that
    need them cannot fire.
    """,
)
