"""Alerts on scrub, recovery, saturation and on whether anybody looks at all."""

from typing import Final

from cephqos_alerts.rules import Alert, RuleGroup
from cephqos_base.recorded import PerOsd
from cephqos_base.series import (
    OSD,
    ClusterSeries,
    CrimsonSeries,
    DaemonSeries,
    ExporterSeries,
    PlacementSeries,
    RecoverySeries,
    RunSeries,
    ScrubSeries,
    ThreadsSeries,
)

SCRUB: Final = RuleGroup(
    name="cephqos-scrub-alerts",
    rules=(
        Alert(
            name="CephQosScrubStalled",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool, level) ({ScrubSeries.POOL_RUNNING_PGS}) > 0
              and on (cluster, pool) (
                max by (cluster, pool)
                  (increase({ScrubSeries.POOL_OBJECTS}[@long_hold@])) == 0
              )
            """,
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: scrubs are running but make no progress",
            description="""
            {{ $value }} {{ $labels.level }} scrubs of pool {{ $labels.pool }} in cluster
            {{ $labels.cluster }} are running, and no object was scrubbed in @long_hold@.
            """,
        ),
        Alert(
            name="CephQosDeepScrubCannotKeepUp",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool) ({ScrubSeries.POOL_BACKLOG_ETA_SECONDS}{{level="deep"}})
            > on (cluster, pool)
            max by (cluster, pool) ({ScrubSeries.POOL_INTERVAL_SECONDS}{{level="deep"}})
            """,
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: deep scrubs cannot keep up with their schedule",
            description="""
            At the rate of the last minutes, the deep scrubs that are due in pool
            {{ $labels.pool }} of cluster {{ $labels.cluster }} take
            {{ $value | humanizeDuration }}. That is longer than the deep scrub interval.
            """,
        ),
        Alert(
            name="CephQosScrubsOverdueGrowing",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool, level) ({ScrubSeries.POOL_SCHEDULE_PGS}{{state="overdue"}})
            - max by (cluster, pool, level)
              ({ScrubSeries.POOL_SCHEDULE_PGS}{{state="overdue"}} offset @day@)
            >= @scrub_growth@
            """,
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: {{ $value }} more placement groups overdue for a"
            " {{ $labels.level }} scrub than a day ago",
            description="""
            In pool {{ $labels.pool }} of cluster {{ $labels.cluster }} {{ $value }} more
            placement groups than @day@ ago are so late with their {{ $labels.level }} scrub that
            Ceph warns about them.
            """,
        ),
    ),
)

_LEFT: Final = f"""
max by (cluster, pool) ({RecoverySeries.POOL_DEGRADED_OBJECTS})
+ max by (cluster, pool) ({RecoverySeries.POOL_MISPLACED_OBJECTS})
"""

RECOVERY: Final = RuleGroup(
    name="cephqos-recovery-alerts",
    rules=(
        Alert(
            name="CephQosRecoveryStalled",
            about=("load", "recovery"),
            expr=f"""
            ({_LEFT.strip()}) > 0
              and on (cluster) (
                sum by (cluster) (
                  max by (cluster, pool) (increase({RecoverySeries.POOL_OBJECTS}[@hold@]))
                ) == 0
              )
            """,
            severity="ticket",
            hold=600,
            dashboard="background",
            summary="pool {{ $labels.pool }}: recovery has stopped with {{ $value }} object copies"
            " left",
            description="""
            {{ $value }} copies of objects of pool {{ $labels.pool }} in cluster
            {{ $labels.cluster }} are degraded or misplaced, and none was recovered in @hold@.
            """,
        ),
        Alert(
            name="CephQosRecoveryTooSlow",
            about=("load", "recovery"),
            expr=f"max by (cluster, pool) ({RecoverySeries.POOL_ETA_SECONDS}) > @recovery_eta@",
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: recovery will take another"
            " {{ $value | humanizeDuration }}",
            description="""
            At the rate of the last minutes, pool {{ $labels.pool }} of cluster
            {{ $labels.cluster }} needs another {{ $value | humanizeDuration }} to recover. Until
            then the pool tolerates fewer failures.
            """,
        ),
        Alert(
            name="CephQosObjectsUnfound",
            about=(),
            expr=f"max by (cluster, pool) ({RecoverySeries.POOL_UNFOUND_OBJECTS}) > 0",
            severity="page",
            hold=300,
            dashboard="background",
            summary="pool {{ $labels.pool }}: {{ $value }} objects unfound",
            description="""
            No OSD that is up has the newest version of {{ $value }} objects of pool
            {{ $labels.pool }} in cluster {{ $labels.cluster }}. Clients that access them wait.
            """,
        ),
    ),
)

SATURATION: Final = RuleGroup(
    name="cephqos-saturation-alerts",
    rules=(
        Alert(
            name="CephQosThreadAtCeiling",
            about=("osd", "load"),
            expr=f"""
            max by ({OSD}, group) (
              rate({ThreadsSeries.BUSIEST_CPU_SECONDS}{{group!~"other|reactor"}}[@rate@])
              > @thread_ceiling@
              or label_replace(
                avg_over_time({CrimsonSeries.REACTOR_UTILIZATION_RATIO}[@rate@]) > @thread_ceiling@,
                "group", "reactor", "", ""
              )
            )
            """,
            severity="ticket",
            hold=900,
            summary="{{ $labels.ceph_daemon }}: a {{ $labels.group }} thread uses a whole CPU",
            description="""
            The busiest {{ $labels.group }} thread of {{ $labels.ceph_daemon }} in cluster
            {{ $labels.cluster }} is busy {{ $value | humanizePercentage }} of the time. One thread
            cannot do more, so the OSD gets no faster even if its device could.
            """,
        ),
        Alert(
            name="CephQosDeviceSaturated",
            about=("osd", "load"),
            expr=f"""
            ({PerOsd.DEVICE_LATENCY_SECONDS_RATE} > @device_floor@)
              > @device_history@ * {PerOsd.DEVICE_LATENCY_SECONDS_MEDIAN1D}
              and on ({OSD}) ({PerOsd.DEVICE_DEPTH} > 1)
            """,
            severity="ticket",
            hold=900,
            summary="{{ $labels.ceph_daemon }}: its device is much slower than usual",
            description="""
            A request to the device of {{ $labels.ceph_daemon }} in cluster {{ $labels.cluster }}
            takes {{ $value | humanizeDuration }}, @device_history@ times its median of the last
            @day@, with requests queued.
            """,
        ),
        Alert(
            name="CephQosReactorShared",
            about=(),
            expr=f"max by ({OSD}, by) ({PlacementSeries.REACTORS_SHARED}) > 0",
            severity="ticket",
            hold=300,
            summary="{{ $labels.ceph_daemon }}: {{ $value }} reactors share their CPU"
            " ({{ $labels.by }})",
            description="""
            {{ $value }} reactors of {{ $labels.ceph_daemon }} in cluster {{ $labels.cluster }} do
            not have their CPU to themselves (shared with: {{ $labels.by }}). A reactor polls all
            the time, so whatever shares its CPU slows down every operation.
            """,
        ),
    ),
)

COVERAGE: Final = RuleGroup(
    name="cephqos-coverage-alerts",
    rules=(
        Alert(
            name="CephQosExporterDown",
            about=(),
            expr='up{job=~"@job@"} == 0',
            severity="ticket",
            hold=300,
            dashboard="exporter",
            summary="no answer from the exporter at {{ $labels.instance }}",
            description="""
            Prometheus gets no answer from {{ $labels.instance }} (job {{ $labels.job }}). The QoS
            of its OSDs is not monitored.
            """,
        ),
        Alert(
            name="CephQosDaemonNotAnswering",
            about=("absence",),
            expr=f"""
            max by ({OSD}, instance, reason) ({DaemonSeries.UP}) == 0
              unless on ({OSD}) max by ({OSD}) ({DaemonSeries.UP}) == 1
            """,
            severity="page",
            hold=120,
            summary="{{ $labels.ceph_daemon }} does not answer ({{ $labels.reason }})",
            description="""
            {{ $labels.ceph_daemon }} of cluster {{ $labels.cluster }} does not answer on its admin
            socket at {{ $labels.instance }}: {{ $labels.reason }}. Its clients are probably
            waiting too.
            """,
        ),
        # Ceph's own alerts tell of it; this one is there to silence.
        Alert(
            name="CephQosOsdDown",
            about=(),
            expr=f"max by ({OSD}) ({ClusterSeries.OSD_UP}) == 0",
            severity="none",
            summary="{{ $labels.ceph_daemon }} is down in the map",
            description="""
            {{ $labels.ceph_daemon }} is down in the map of cluster {{ $labels.cluster }}. This
            alert is sent to nobody. It silences the alerts about that OSD.
            """,
        ),
        Alert(
            name="CephQosOsdNotScraped",
            about=("absence",),
            expr=f"""
            max by ({OSD}) ({ClusterSeries.OSD_UP}) == 1
              unless on ({OSD}) max by ({OSD}) ({DaemonSeries.UP})
            """,
            severity="ticket",
            hold=600,
            dashboard="cluster",
            summary="{{ $labels.ceph_daemon }} is up, but no exporter reports it",
            description="""
            {{ $labels.ceph_daemon }} is up in the map of cluster {{ $labels.cluster }}, but no
            scraped exporter reports it. Its QoS is not monitored.
            """,
        ),
        Alert(
            name="CephQosClusterExporterAbsent",
            about=(),
            expr=f"""
            count by (cluster) ({DaemonSeries.UP})
              unless on (cluster) count by (cluster) ({ClusterSeries.UP})
            """,
            severity="ticket",
            hold=600,
            dashboard="exporter",
            summary="cluster {{ $labels.cluster }}: no exporter of role cluster",
            description="""
            OSDs of cluster {{ $labels.cluster }} are scraped, but no exporter runs with
            --role cluster. Scrub, recovery, and OSDs without an exporter are not monitored.
            """,
        ),
        Alert(
            name="CephQosClusterExporterDoubled",
            about=(),
            expr=f"""
            count by (cluster) (count by (cluster, instance) ({ClusterSeries.UP})) > 1
            """,
            severity="info",
            hold=600,
            dashboard="exporter",
            summary="cluster {{ $labels.cluster }}: {{ $value }} exporters of role cluster",
            description="""
            {{ $value }} exporters report cluster {{ $labels.cluster }} as a whole. Each of them
            loads the manager, and sums over both count twice.
            """,
        ),
        Alert(
            name="CephQosScrapeNearDeadline",
            about=(),
            expr='scrape_duration_seconds{job=~"@job@"} > @scrape_seconds@',
            severity="ticket",
            hold=300,
            dashboard="exporter",
            summary="scraping {{ $labels.instance }} takes {{ $value | humanizeDuration }}",
            description="""
            A scrape of {{ $labels.instance }} takes {{ $value | humanizeDuration }}. After 10 s
            it fails and all its samples are lost.
            """,
        ),
        Alert(
            name="CephQosCollectorFailing",
            about=("osd",),
            expr=f"""
            max by (cluster, ceph_daemon, collector) ({ExporterSeries.COLLECTOR_SUCCESS}) == 0
            """,
            severity="ticket",
            hold=600,
            dashboard="exporter",
            summary="{{ $labels.ceph_daemon }}: the collector {{ $labels.collector }} fails",
            description="""
            The collector {{ $labels.collector }} cannot produce its metrics for
            {{ $labels.ceph_daemon }} in cluster {{ $labels.cluster }}. Alerts that need them cannot
            fire.
            """,
        ),
        Alert(
            name="CephQosTooManySeries",
            about=(),
            expr=f"""
            (sum by (instance) (scrape_samples_post_metric_relabeling{{job=~"@job@"}})
              - @series_of_exporter@)
            / on (instance) (count by (instance) ({DaemonSeries.UP}{{ceph_daemon=~"osd.*"}}))
            > @series_per_osd@
            """,
            severity="info",
            hold=900,
            dashboard="exporter",
            summary='{{ $labels.instance }} gives {{ $value | printf "%.0f" }} series per OSD',
            description="""
            The exporter at {{ $labels.instance }} gives {{ $value | printf "%.0f" }} series per
            OSD, above the budget of @series_per_osd@. @series_of_exporter@ series of the host and
            the cluster are not counted.
            """,
        ),
        Alert(
            name="CephQosMaintenance",
            about=(),
            expr=f"max by (cluster, flag) ({ClusterSeries.FLAG}) == 1",
            severity="none",
            dashboard="cluster",
            summary="cluster {{ $labels.cluster }}: {{ $labels.flag }} is set",
            description="""
            The flag {{ $labels.flag }} is set on cluster {{ $labels.cluster }}. This alert goes to
            nobody: it silences the alerts that the flag causes.
            """,
        ),
        Alert(
            name="CephQosTestRun",
            about=(),
            expr=f"max by (cluster, run, scenario) ({RunSeries.INFO}) == 1",
            severity="none",
            dashboard="cluster",
            summary="test run {{ $labels.run }} ({{ $labels.scenario }}) is running",
            description="""
            The test run {{ $labels.run }} loads cluster {{ $labels.cluster }} on purpose. This
            alert is sent to nobody. It silences the alerts that the run causes on purpose.
            """,
        ),
        Alert(
            name="Watchdog",
            about=(),
            expr="vector(1)",
            severity="none",
            dashboard="exporter",
            labels={"cluster": ""},
            summary="alerting works, from rule to receiver",
            description="""
            This alert always fires. If a receiver stops getting it, Prometheus, its rules or
            Alertmanager no longer work.
            """,
        ),
    ),
)
