"""Alerts on scrub, recovery, saturation and on whether anybody looks at all."""

from typing import Final

from cephqos_alerts.rules import Alert, Group
from cephqos_base.recorded import PerOsd
from cephqos_base.series import (
    OSD,
    Cluster,
    Crimson,
    Daemon,
    Exporter,
    Placement,
    Recovery,
    Run,
    Scrub,
    Threads,
)

SCRUB: Final = Group(
    name="cephqos-scrub-alerts",
    rules=(
        Alert(
            name="CephQosScrubStalled",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool, level) ({Scrub.POOL_RUNNING_PGS}) > 0
              and on (cluster, pool) (
                max by (cluster, pool)
                  (increase({Scrub.POOL_OBJECTS}[@long_hold@])) == 0
              )
            """,
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: scrubs are under way but nothing is scrubbed",
            description="""
            {{ $value }} {{ $labels.level }} scrubs of pool {{ $labels.pool }} in cluster
            {{ $labels.cluster }} are under way, and not one object was scrubbed in @long_hold@.
            """,
        ),
        Alert(
            name="CephQosDeepScrubCannotKeepUp",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool) ({Scrub.POOL_BACKLOG_ETA_SECONDS}{{level="deep"}})
            > on (cluster, pool)
            max by (cluster, pool) ({Scrub.POOL_INTERVAL_SECONDS}{{level="deep"}})
            """,
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: deep scrubs cannot keep their schedule",
            description="""
            At the rate of the last minutes the deep scrubs that are due in pool
            {{ $labels.pool }} of cluster {{ $labels.cluster }} take
            {{ $value | humanizeDuration }}, longer than the interval in which each placement group
            should have one.
            """,
        ),
        Alert(
            name="CephQosScrubsOverdueGrowing",
            about=("load", "scrub"),
            expr=f"""
            max by (cluster, pool, level) ({Scrub.POOL_SCHEDULE_PGS}{{state="overdue"}})
            - max by (cluster, pool, level)
              ({Scrub.POOL_SCHEDULE_PGS}{{state="overdue"}} offset @day@)
            >= @scrub_growth@
            """,
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: {{ $value }} more placement groups overdue for a"
            " {{ $labels.level }} scrub than a day ago",
            description="""
            In pool {{ $labels.pool }} of cluster {{ $labels.cluster }} {{ $value }} placement
            groups more than @day@ ago are so late with their {{ $labels.level }} scrub that Ceph
            warns of it.
            """,
        ),
    ),
)

_LEFT: Final = f"""
max by (cluster, pool) ({Recovery.POOL_DEGRADED_OBJECTS})
+ max by (cluster, pool) ({Recovery.POOL_MISPLACED_OBJECTS})
"""

RECOVERY: Final = Group(
    name="cephqos-recovery-alerts",
    rules=(
        Alert(
            name="CephQosRecoveryStalled",
            about=("load", "recovery"),
            expr=f"""
            ({_LEFT.strip()}) > 0
              and on (cluster, pool) (
                max by (cluster, pool) (increase({Recovery.POOL_OBJECTS}[@hold@])) == 0
              )
            """,
            severity="ticket",
            hold=600,
            dashboard="background",
            summary="pool {{ $labels.pool }}: recovery has stopped with {{ $value }} copies to go",
            description="""
            {{ $value }} copies of objects of pool {{ $labels.pool }} in cluster
            {{ $labels.cluster }} are degraded or misplaced, and none has been recovered in @hold@.
            """,
        ),
        Alert(
            name="CephQosRecoveryTooSlow",
            about=("load", "recovery"),
            expr=f"max by (cluster, pool) ({Recovery.POOL_ETA_SECONDS}) > @recovery_eta@",
            severity="ticket",
            hold=900,
            dashboard="background",
            summary="pool {{ $labels.pool }}: recovery takes another"
            " {{ $value | humanizeDuration }}",
            description="""
            At the rate of the last minutes, pool {{ $labels.pool }} of cluster
            {{ $labels.cluster }} is whole again in {{ $value | humanizeDuration }}; until then a
            further failure costs more than it should.
            """,
        ),
        Alert(
            name="CephQosObjectsUnfound",
            about=(),
            expr=f"max by (cluster, pool) ({Recovery.POOL_UNFOUND_OBJECTS}) > 0",
            severity="page",
            hold=300,
            dashboard="background",
            summary="pool {{ $labels.pool }}: {{ $value }} objects unfound",
            description="""
            No OSD that is up has the newest version of {{ $value }} objects of pool
            {{ $labels.pool }} in cluster {{ $labels.cluster }}: clients that ask for them wait.
            """,
        ),
    ),
)

SATURATION: Final = Group(
    name="cephqos-saturation-alerts",
    rules=(
        Alert(
            name="CephQosThreadAtCeiling",
            about=("osd", "load"),
            expr=f"""
            max by ({OSD}, group) (
              rate({Threads.BUSIEST_CPU_SECONDS}{{group!~"other|reactor"}}[@rate@])
              or label_replace(
                avg_over_time({Crimson.REACTOR_UTILIZATION_RATIO}[@rate@]),
                "group", "reactor", "", ""
              )
            ) > @thread_ceiling@
            """,
            severity="ticket",
            hold=900,
            summary="{{ $labels.ceph_daemon }}: a {{ $labels.group }} thread is at its ceiling",
            description="""
            The busiest {{ $labels.group }} thread of {{ $labels.ceph_daemon }} in cluster
            {{ $labels.cluster }} is busy {{ $value | humanizePercentage }} of the time, which is
            all that one thread can: the OSD gives no more whatever its device could.
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
            summary="{{ $labels.ceph_daemon }}: its device answers much later than it used to",
            description="""
            A request to the device of {{ $labels.ceph_daemon }} in cluster {{ $labels.cluster }}
            takes {{ $value | humanizeDuration }}, @device_history@ times its median of the last
            @day@, with requests queued.
            """,
        ),
        Alert(
            name="CephQosReactorShared",
            about=(),
            expr=f"max by ({OSD}, by) ({Placement.REACTORS_SHARED}) > 0",
            severity="ticket",
            hold=300,
            summary="{{ $labels.ceph_daemon }}: {{ $value }} reactors share their CPU"
            " ({{ $labels.by }})",
            description="""
            {{ $value }} reactors of {{ $labels.ceph_daemon }} in cluster {{ $labels.cluster }} do
            not have their CPU to themselves (shared with: {{ $labels.by }}); a reactor polls, and
            what shares its CPU slows every operation.
            """,
        ),
    ),
)

COVERAGE: Final = Group(
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
            Prometheus has had no answer from {{ $labels.instance }} (job {{ $labels.job }}): the
            QoS of its OSDs is not watched.
            """,
        ),
        Alert(
            name="CephQosDaemonNotAnswering",
            about=("absence",),
            expr=f"""
            max by ({OSD}, instance, reason) ({Daemon.UP}) == 0
              unless on ({OSD}) max by ({OSD}) ({Daemon.UP}) == 1
            """,
            severity="page",
            hold=120,
            summary="{{ $labels.ceph_daemon }} does not answer ({{ $labels.reason }})",
            description="""
            {{ $labels.ceph_daemon }} of cluster {{ $labels.cluster }} does not answer on its admin
            socket at {{ $labels.instance }}: {{ $labels.reason }}. Its clients most likely wait
            too.
            """,
        ),
        # Ceph's own alerts tell of it; this one is there to silence.
        Alert(
            name="CephQosOsdDown",
            about=(),
            expr=f"max by ({OSD}) ({Cluster.OSD_UP}) == 0",
            severity="none",
            summary="{{ $labels.ceph_daemon }} is down in the map",
            description="""
            {{ $labels.ceph_daemon }} is down in the map of cluster {{ $labels.cluster }}. This
            alert goes to nobody: it silences those about what that OSD promised.
            """,
        ),
        Alert(
            name="CephQosOsdNotScraped",
            about=("absence",),
            expr=f"""
            max by ({OSD}) ({Cluster.OSD_UP}) == 1
              unless on ({OSD}) max by ({OSD}) ({Daemon.UP})
            """,
            severity="ticket",
            hold=600,
            dashboard="cluster",
            summary="{{ $labels.ceph_daemon }} is up and no exporter reports it",
            description="""
            {{ $labels.ceph_daemon }} is up in the map of cluster {{ $labels.cluster }}, and no
            exporter that is scraped sees it.
            """,
        ),
        Alert(
            name="CephQosClusterExporterAbsent",
            about=(),
            expr=f"""
            count by (cluster) ({Daemon.UP})
              unless on (cluster) count by (cluster) ({Cluster.UP})
            """,
            severity="ticket",
            hold=600,
            dashboard="exporter",
            summary="cluster {{ $labels.cluster }}: no exporter of role cluster",
            description="""
            OSDs of cluster {{ $labels.cluster }} are scraped, but no exporter runs with
            --role cluster: scrub and recovery are not watched, nor OSDs that nobody scrapes.
            """,
        ),
        Alert(
            name="CephQosClusterExporterDoubled",
            about=(),
            expr=f"""
            count by (cluster) (count by (cluster, instance) ({Cluster.UP})) > 1
            """,
            severity="info",
            hold=600,
            dashboard="exporter",
            summary="cluster {{ $labels.cluster }}: {{ $value }} exporters of role cluster",
            description="""
            {{ $value }} exporters report cluster {{ $labels.cluster }} as a whole: each asks the
            manager for everything, and sums over both are double.
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
            A scrape of {{ $labels.instance }} takes {{ $value | humanizeDuration }}; past its
            deadline of 10 s nothing of it is kept.
            """,
        ),
        Alert(
            name="CephQosCollectorFailing",
            about=("osd",),
            expr=f"""
            max by (cluster, ceph_daemon, collector) ({Exporter.COLLECTOR_SUCCESS}) == 0
            """,
            severity="ticket",
            hold=600,
            dashboard="exporter",
            summary="{{ $labels.ceph_daemon }}: the collector {{ $labels.collector }} fails",
            description="""
            The collector {{ $labels.collector }} cannot make its metrics of
            {{ $labels.ceph_daemon }} in cluster {{ $labels.cluster }}: what is derived from them is
            absent, and alerts on it stay silent.
            """,
        ),
        Alert(
            name="CephQosTooManySeries",
            about=(),
            expr=f"""
            sum by (instance) (scrape_samples_post_metric_relabeling{{job=~"@job@"}})
            / on (instance) (count by (instance) ({Daemon.UP}{{ceph_daemon=~"osd.*"}}))
            > @series_per_osd@
            """,
            severity="info",
            hold=900,
            dashboard="exporter",
            summary='{{ $labels.instance }} gives {{ $value | printf "%.0f" }} series per OSD',
            description="""
            The exporter at {{ $labels.instance }} gives {{ $value | printf "%.0f" }} series per
            OSD, above the budget of @series_per_osd@.
            """,
        ),
        Alert(
            name="CephQosMaintenance",
            about=(),
            expr=f"max by (cluster, flag) ({Cluster.FLAG}) == 1",
            severity="none",
            dashboard="cluster",
            summary="cluster {{ $labels.cluster }}: {{ $labels.flag }} is set",
            description="""
            The flag {{ $labels.flag }} is set on cluster {{ $labels.cluster }}. This alert goes to
            nobody: it silences those that the flag provokes.
            """,
        ),
        Alert(
            name="CephQosTestRun",
            about=(),
            expr=f"max by (cluster, run, scenario) ({Run.INFO}) == 1",
            severity="none",
            dashboard="cluster",
            summary="test run {{ $labels.run }} ({{ $labels.scenario }}) is under way",
            description="""
            The test run {{ $labels.run }} loads cluster {{ $labels.cluster }} on purpose. This
            alert goes to nobody: it silences those that the run is meant to provoke.
            """,
        ),
        Alert(
            name="Watchdog",
            about=(),
            expr="vector(1)",
            severity="none",
            dashboard="exporter",
            labels={"cluster": ""},
            summary="the way from rule to receiver works",
            description="""
            Always firing. A receiver that stops hearing it knows that Prometheus, its rules or
            Alertmanager no longer work.
            """,
        ),
    ),
)
