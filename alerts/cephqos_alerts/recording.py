"""Recording rules: what each class of each OSD was promised and gets.

All of them take the maximum over scrape targets first, so that two exporters that see one OSD count
once. A series that a release cannot give stays absent through all of them.
"""

from typing import Final

from cephqos_alerts.rules import Group, Recording
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, Crimson, Daemon, Disks, Qos, Threads


def _per_class(record: str, metric: str) -> Recording:
    return Recording(record=record, expr=f"max by ({OSD_CLASS}) ({metric})")


def per_osd(record: str, metric: str) -> Recording:
    return Recording(record=record, expr=f"max by ({OSD}) ({metric})")


def _mean_seconds(seconds: str, count: str) -> str:
    """Mean time of what was counted in the rate window; absent when nothing was."""
    return f"""
    max by ({OSD}) (rate({seconds}[@rate@]))
    / (max by ({OSD}) (rate({count}[@rate@])) > 0)
    """


PROMISES: Final = Group(
    name="cephqos-promises",
    rules=(
        _per_class(PerClass.RESERVED_OPS, Qos.RESERVATION_OPS),
        _per_class(PerClass.LIMIT_OPS, Qos.LIMIT_OPS),
        _per_class(PerClass.TARGET_OPS, Qos.TARGET_RESERVATION_OPS),
        per_osd(PerOsd.CAPACITY_OPS, Qos.CAPACITY_OPS),
        Recording(
            record=PerOsd.MEDIA,
            # Two exporters that do not agree on the media must not stop every rule.
            expr=f"topk by ({OSD}) (1, max by ({OSD}, media) ({Qos.SCHEDULER_INFO}))",
        ),
        # Which target speaks for an OSD, so that sums per host count it once.
        Recording(
            record=PerOsd.INSTANCE,
            expr="topk by (cluster, ceph_daemon) (1, max by (cluster, ceph_daemon, instance)"
            f" ({Daemon.UP}))",
        ),
    ),
)

WORK: Final = Group(
    name="cephqos-work",
    rules=(
        _per_class(PerClass.ATTAINED_OPS, f"rate({Qos.OPS}[@rate@])"),
        per_osd(PerOsd.DELIVERED_OPS, f"rate({Qos.DELIVERED_OPS}[@rate@])"),
        Recording(
            record=PerClass.ATTAINMENT,
            expr=f"{PerClass.ATTAINED_OPS} / ({PerClass.RESERVED_OPS} > 0)",
        ),
        # What a class gets above its reservation, where another one could have used it: a tenth of
        # the OSD's work or more. Only those are recorded, and most rules on causes end here.
        Recording(
            record=PerClass.EXCESS_OPS,
            expr=f"""
            (
              ({PerClass.ATTAINED_OPS}{{class!="immediate"}} > 0)
              - ({PerClass.RESERVED_OPS}
                 or {PerClass.ATTAINED_OPS}{{class!="immediate"}} * 0)
            )
            > on ({OSD}) group_left () (@interference@ * {PerOsd.DELIVERED_OPS})
            """,
        ),
        Recording(
            record=PerOsd.DEVICE_LATENCY_SECONDS_RATE,
            expr=f"""
            max by ({OSD}) (
              sum by ({OSD}, instance, device)
                (rate({Disks.TIME_SECONDS}{{layer="osd"}}[@rate@]))
              / (sum by ({OSD}, instance, device)
                (rate({Disks.OPS}{{layer="osd"}}[@rate@])) > 0)
            )
            """,
        ),
        per_osd(PerOsd.DEVICE_DEPTH, f'rate({Disks.WEIGHTED_SECONDS}{{layer="osd"}}[@rate@])'),
        Recording(
            record=PerOsd.STORE_LATENCY_SECONDS,
            expr=_mean_seconds(Qos.STORE_SECONDS, Qos.STORE_TRANSACTIONS),
        ),
        Recording(
            record=PerOsd.KV_COMMIT_SECONDS_RATE,
            expr=_mean_seconds(Qos.STORE_KV_COMMIT_SECONDS, Qos.STORE_KV_COMMITS),
        ),
        Recording(
            record=PerOsd.READ_WAIT_SECONDS_RATE,
            expr=_mean_seconds(Qos.STORE_READ_WAIT_SECONDS, Qos.STORE_READ_WAITS),
        ),
        Recording(
            record=PerOsd.DEVICE_BYTES_RATE,
            expr=f"""
            max by ({OSD}) (
              sum by ({OSD}, instance, device) (rate({Disks.BYTES}{{layer="osd"}}[@rate@]))
            )
            """,
        ),
        # A reactor polls: the CPU that it takes says nothing, its own account of being busy does.
        Recording(
            record=PerOsd.THREAD_CEILING,
            expr=f"""
            max by ({OSD}) (
              rate({Threads.BUSIEST_CPU_SECONDS}{{group!~"other|reactor"}}[@rate@])
              or avg_over_time({Crimson.REACTOR_UTILIZATION_RATIO}[@rate@])
            )
            """,
        ),
        per_osd(
            PerOsd.CPU_WAITING,
            f"sum by ({OSD}, instance)"
            f' (rate({Threads.WAIT_SECONDS}{{group=~"tp_osd_tp|bstore_kv.*|msgr.*"}}'
            "[@rate@]))",
        ),
    ),
)

# A reservation is promised per shard: a class that wants work done in one shard of eight is owed an
# eighth of it. Where work piles up behind the scheduler all shards share that fate.
VIOLATION: Final = Group(
    name="cephqos-violation",
    rules=(
        Recording(
            record=PerClass.OWED_OPS,
            expr=f"""
            ({PerClass.RESERVED_OPS}{{class="client"}} > 0)
              and on ({OSD}) {PerOsd.STORE_PILING_UP} == 1
            or ({PerClass.RESERVED_OPS} > 0) * {PerClass.SHARDS_WANTING}
            or {PerClass.RESERVED_OPS} > 0
            """,
        ),
        Recording(
            record=PerClass.SHORTFALL_OPS,
            expr=f"clamp_min({PerClass.OWED_OPS} - {PerClass.ATTAINED_OPS}, 0)",
        ),
        # Demand, and not what is recorded only where there is some: that would last on for five
        # minutes after Prometheus was restarted.
        # Work done between a restart and the next scrape is in no counter: a rate is too low.
        Recording(
            record=PerClass.VIOLATED,
            expr=f"""
            (
              0 * ({PerClass.DEMAND} == 1 and on ({OSD_CLASS}) (
                @shortfall@ * ({PerClass.OWED_OPS} and on ({OSD_CLASS}) {PerClass.WANTS})
                > on ({OSD_CLASS}) {PerClass.ATTAINED_OPS}
                or on ({OSD_CLASS})
                min_over_time({PerClass.RESERVATION_LAG_SECONDS}[@sustained@])
                > @reservation_lag@
                and on ({OSD_CLASS}) {PerClass.OWED_OPS}
              )) + 1
              or on ({OSD_CLASS}) 0 * ({PerClass.DEMAND} and on ({OSD_CLASS}) {PerClass.OWED_OPS})
            )
            unless on ({OSD}) (resets({Qos.DELIVERED_OPS}[@rate@]) > 0)
            """,
        ),
        Recording(
            record=PerClass.VIOLATED_SECONDS,
            expr=f"""
            sum_over_time({PerClass.VIOLATED}[@hour@]) * @interval_seconds@ > 0
            """,
        ),
    ),
)


def _usual(series: str) -> str:
    """The median of a day, of the times only at which the device had something to do."""
    return f"""
    quantile_over_time(
      0.5, ({series} and on ({OSD}) {PerOsd.DEVICE_DEPTH} > 0.5)[@day@:@history_step@]
    )
    """


# What needs a long look back is looked at once a minute.
HISTORY: Final = Group(
    name="cephqos-history",
    slow=True,
    rules=(
        Recording(
            record=PerOsd.PROVEN_OPS,
            expr=f"max_over_time({PerOsd.SATURATED_OPS}[@day@:@rate@])",
        ),
        Recording(
            record=PerOsd.DELIVERED_OPS_MAX1D,
            expr=f"max_over_time({PerOsd.DELIVERED_OPS}[@day@:@rate@])",
        ),
        Recording(
            record=PerOsd.DEVICE_BYTES_MAX1D,
            expr=f"max_over_time({PerOsd.DEVICE_BYTES_RATE}[@day@:@rate@])",
        ),
        Recording(
            record=PerOsd.READ_WAIT_SECONDS_MEDIAN1D,
            expr=_usual(PerOsd.READ_WAIT_SECONDS_RATE),
        ),
        Recording(
            record=PerOsd.DEVICE_LATENCY_SECONDS_MEDIAN1D,
            expr=_usual(PerOsd.DEVICE_LATENCY_SECONDS_RATE),
        ),
        Recording(
            record=PerOsd.KV_COMMIT_SECONDS_MEDIAN1D,
            expr=_usual(PerOsd.KV_COMMIT_SECONDS_RATE),
        ),
    ),
)
