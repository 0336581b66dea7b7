"""Recording rules: reservation and attained work of each class of each OSD.

All of them take the maximum over scrape targets first, so that two exporters that see one OSD count
once. A series that a release cannot give stays absent through all of them.
"""

from typing import Final

from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, previously
from cephqos_base.recorded import PerClass, PerOsd, PerOsdPlace
from cephqos_base.series import (
    OSD,
    OSD_CLASS,
    CrimsonSeries,
    DaemonSeries,
    DisksSeries,
    QosSeries,
    ThreadsSeries,
)

# Expressions that other modules read, too. They are not recorded, since few clusters have targets
# of a policy file, and few rules read limits.
LIMIT_OPS: Final = f"max by ({OSD_CLASS}) ({QosSeries.LIMIT_OPS})"
TARGET_OPS: Final = f"max by ({OSD_CLASS}) ({QosSeries.TARGET_RESERVATION_OPS})"
CLUSTER_TARGET_OPS: Final = f"max by (cluster, class) ({QosSeries.CLUSTER_TARGET_RESERVATION_OPS})"

# Places at which a slow device shows. One that a cgroup throttles shows in commits and reads only:
# its requests are held back before the kernel counts them.
DEVICE_PLACES: Final = ("commit", "read", "device")
OF_DEVICE: Final = f'{PerOsdPlace.SECONDS}{{at=~"{"|".join(DEVICE_PLACES)}"}}'
OF_STORE: Final = f'{PerOsdPlace.SECONDS}{{at="store"}}'
OF_REPLICA_WRITE: Final = f'{PerOsdPlace.SECONDS}{{at="replica_write"}}'
CPU_WAITING: Final = f'{PerOsd.CPUS}{{state="waiting"}}'
BUSIEST_THREAD: Final = f'{PerOsd.CPUS}{{state="busiest_thread"}}'
CPU_USED: Final = f'{PerOsd.CPUS}{{state="used"}}'
BYTES: Final = f'{PerOsd.DEVICE_WORK}{{unit="bytes"}}'
REQUESTS: Final = f'{PerOsd.DEVICE_WORK}{{unit="requests"}}'


def most(when: str) -> str:
    """The most that the OSD delivered in the last day: "ever", "saturated", or "sustained" for a
    hold. As of the evaluation before.
    """
    return f'{previously(PerOsd.DELIVERED_OPS_MAX1D)}{{when="{when}"}}'


def _per_class(record: str, metric: str) -> RecordedSeries:
    return RecordedSeries(record=record, expr=f"max by ({OSD_CLASS}) ({metric})")


def per_osd(record: str, metric: str) -> RecordedSeries:
    return RecordedSeries(record=record, expr=f"max by ({OSD}) ({metric})")


def _mean_seconds(at: str, seconds: str, count: str) -> RecordedSeries:
    """The mean time of one commit, read, … in the window of a rate; absent if there was none."""
    return RecordedSeries(
        record=PerOsdPlace.SECONDS,
        labels={"at": at},
        expr=f"""
        max by ({OSD}) (rate({seconds}[@rate@]))
        / (max by ({OSD}) (rate({count}[@rate@])) > 0)
        """,
    )


RESERVATIONS: Final = RuleGroup(
    name="cephqos-reservations",
    rules=(
        _per_class(PerClass.RESERVED_OPS, QosSeries.RESERVATION_OPS),
        per_osd(PerOsd.CAPACITY_OPS, QosSeries.CAPACITY_OPS),
        RecordedSeries(
            record=PerOsd.MEDIA,
            comment="One value, even if two exporters report different media: two would break every"
            " rule that joins it.",
            expr=f"topk by ({OSD}) (1, max by ({OSD}, media) ({QosSeries.SCHEDULER_INFO}))",
        ),
        RecordedSeries(
            record=PerOsd.INSTANCE,
            comment="One target per OSD, so that sums per host count it once.",
            expr="topk by (cluster, ceph_daemon) (1, max by (cluster, ceph_daemon, instance)"
            f" ({DaemonSeries.UP}))",
        ),
    ),
)

WORK: Final = RuleGroup(
    name="cephqos-work",
    rules=(
        _per_class(PerClass.ATTAINED_OPS, f"rate({QosSeries.OPS}[@rate@])"),
        per_osd(PerOsd.DELIVERED_OPS, f"rate({QosSeries.DELIVERED_OPS}[@rate@])"),
        RecordedSeries(
            record=PerClass.EXCESS_OPS,
            comment="""
            What a class gets above its reservation, if it is a tenth of the OSD's work or more:
            less would not explain another class's shortfall. Few series, so the rules that read
            them are cheap.
            """,
            expr=f"""
            (
              ({PerClass.ATTAINED_OPS}{{class!="immediate"}} > 0) - {PerClass.RESERVED_OPS}
              or {PerClass.ATTAINED_OPS}{{class!="immediate"}} > 0
            )
            > on ({OSD}) group_left () (@little@ * {PerOsd.DELIVERED_OPS})
            """,
        ),
        _mean_seconds("commit", QosSeries.STORE_KV_COMMIT_SECONDS, QosSeries.STORE_KV_COMMITS),
        _mean_seconds("read", QosSeries.STORE_READ_WAIT_SECONDS, QosSeries.STORE_READ_WAITS),
        RecordedSeries(
            record=PerOsdPlace.SECONDS,
            labels={"at": "device"},
            expr=f"""
            max by ({OSD}) (
              sum by ({OSD}, instance, device)
                (rate({DisksSeries.TIME_SECONDS}{{layer="osd"}}[@rate@]))
              / (sum by ({OSD}, instance, device)
                (rate({DisksSeries.OPS}{{layer="osd"}}[@rate@])) > 0)
            )
            """,
        ),
        _mean_seconds("store", QosSeries.STORE_SECONDS, QosSeries.STORE_TRANSACTIONS),
        _mean_seconds("replica_write", QosSeries.REPLICA_WRITE_SECONDS, QosSeries.REPLICA_WRITES),
        per_osd(
            PerOsd.DEVICE_DEPTH, f'rate({DisksSeries.WEIGHTED_SECONDS}{{layer="osd"}}[@rate@])'
        ),
        *(
            RecordedSeries(
                record=PerOsd.DEVICE_WORK,
                labels={"unit": unit},
                expr=f"""
                max by ({OSD}) (
                  sum by ({OSD}, instance, device) (rate({metric}{{layer="osd"}}[@rate@]))
                )
                """,
            )
            for unit, metric in (("bytes", DisksSeries.BYTES), ("requests", DisksSeries.OPS))
        ),
        RecordedSeries(
            record=PerOsd.CPUS,
            labels={"state": "busiest_thread"},
            comment="""
            A reactor polls and always takes its whole CPU. Its own figure says how busy it is.
            """,
            expr=f"""
            max by ({OSD}) (
              rate({ThreadsSeries.BUSIEST_CPU_SECONDS}{{group!~"other|reactor"}}[@rate@])
              or avg_over_time({CrimsonSeries.REACTOR_UTILIZATION_RATIO}[@rate@])
            )
            """,
        ),
        *(
            RecordedSeries(
                record=PerOsd.CPUS,
                labels={"state": state},
                expr=f"""
                max by ({OSD}) (sum by ({OSD}, instance) (rate({metric}[@rate@])))
                """,
            )
            for state, metric in (
                (
                    "waiting",
                    f'{ThreadsSeries.WAIT_SECONDS}{{group=~"tp_osd_tp|bstore_kv.*|msgr.*"}}',
                ),
                ("used", f'{DaemonSeries.CPU_SECONDS}{{ceph_daemon=~"osd.*"}}'),
            )
        ),
    ),
)

VIOLATION: Final = RuleGroup(
    name="cephqos-violation",
    rules=(
        RecordedSeries(
            record=PerClass.EFFECTIVE_RESERVATION_OPS,
            comment="""
            A reservation is divided between shards: a class with work in one shard of eight has an
            eighth of it as its effective reservation. The whole reservation counts if work piles up
            behind the scheduler, which delays all shards, or waits for another OSD, which no queue
            shows.
            """,
            expr=f"""
            ({PerClass.RESERVED_OPS} > 0) * (
              {PerClass.SHARDS_WITH_DEMAND}
                unless on ({OSD_CLASS}) {previously(PerClass.AWAY)}
                unless on ({OSD_CLASS}) (
                  {PerClass.SHARDS_WITH_DEMAND}{{class="client"}}
                    and on ({OSD}) {PerOsd.STORE_PILING_UP} == 1
                )
            )
            or {PerClass.RESERVED_OPS} > 0
            """,
        ),
        RecordedSeries(
            record=PerClass.SHORTFALL_OPS,
            expr=f"clamp_min({PerClass.EFFECTIVE_RESERVATION_OPS} - {PerClass.ATTAINED_OPS}, 0)",
        ),
        RecordedSeries(
            record=PerClass.EFFECTIVE_ATTAINMENT,
            comment="""
            What classes with demand get of their effective reservation. Best effort is left out:
            trimming and the removal of pools are in no counter, so only dmClock's tags say whether
            it has its reservation. The figure of recovery is an estimate. Recovery that waits for
            its limit is left out: it has had its reservation.
            """,
            expr=f"""
            {PerClass.ATTAINED_OPS}
            / on ({OSD_CLASS}) (
              {PerClass.EFFECTIVE_RESERVATION_OPS}{{class!="background_best_effort"}}
                and on ({OSD_CLASS}) {PerClass.HAS_DEMAND}
            )
            unless on ({OSD_CLASS}) {previously(PerClass.AT_LIMIT)}{{class=~"background_.*"}}
            """,
        ),
        # cephqos_base/judge.py decides the same without rules; tests/rules/judged.py compares them.
        RecordedSeries(
            record=PerClass.VIOLATED,
            comment="""
            Built on demand, which is 0 or 1, not on a series that exists only with demand: after a
            restart of Prometheus such a series would last for five minutes. After a counter has
            restarted, its rate is too low: work before the next scrape is in no counter. If another
            exporter reads the same OSD and its counter did not restart, that rate is right.
            """,
            expr=f"""
            (
              0 * ({PerClass.DEMAND} == 1 and on ({OSD_CLASS}) (
                {PerClass.EFFECTIVE_ATTAINMENT} < @reached@
                or on ({OSD_CLASS})
                min_over_time({PerClass.RESERVATION_LAG_SECONDS}[@sustained@])
                > @reservation_lag@
                and on ({OSD_CLASS}) {PerClass.EFFECTIVE_RESERVATION_OPS}
              )) + 1
              or on ({OSD_CLASS})
                0 * ({PerClass.DEMAND} and on ({OSD_CLASS}) {PerClass.EFFECTIVE_RESERVATION_OPS})
            )
            unless on ({OSD}) (min by ({OSD}) (resets({QosSeries.DELIVERED_OPS}[@rate@])) > 0)
            """,
        ),
        RecordedSeries(
            record=PerClass.VIOLATED_SECONDS,
            expr=f"""
            sum_over_time({PerClass.VIOLATED}[@hour@]) * @interval_seconds@ > 0
            """,
        ),
    ),
)


def _most_in_a_day(when: str, series: str) -> RecordedSeries:
    return RecordedSeries(
        record=PerOsd.DELIVERED_OPS_MAX1D,
        labels={"when": when},
        expr=f"max_over_time({series}[@day@:@rate@])",
    )


# Rules that look back a whole day are evaluated once a minute.
HISTORY: Final = RuleGroup(
    name="cephqos-history",
    slow=True,
    rules=(
        _most_in_a_day("saturated", PerOsd.SATURATED_OPS),
        _most_in_a_day("sustained", PerOsd.SUSTAINED_OPS),
        _most_in_a_day("ever", PerOsd.DELIVERED_OPS),
        RecordedSeries(
            record=PerOsd.DEVICE_WORK_MAX1D,
            expr=f"max_over_time({PerOsd.DEVICE_WORK}[@day@:@rate@])",
        ),
        RecordedSeries(
            record=PerOsdPlace.SECONDS_MEDIAN1D,
            comment="Only of times at which the device had work.",
            expr=f"""
            quantile_over_time(
              0.5,
              (
                {OF_DEVICE} and on ({OSD}) {PerOsd.DEVICE_DEPTH} > 0.5
              )[@day@:@history_step@]
            )
            """,
        ),
    ),
)
