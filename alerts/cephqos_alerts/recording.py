"""Recording rules: what each class of each OSD was promised, gets and wants.

All of them take the maximum over scrape targets first, so that two exporters that see one OSD count
once. A series that a release cannot give stays absent through all of them.
"""

from typing import Final

from cephqos_alerts.rules import Group, Recording
from cephqos_base.recorded import PerClass, PerCluster, PerOsd, PerShard
from cephqos_base.series import OSD, OSD_CLASS, Crimson, Daemon, Disks, Op, Qos, Threads, total


def _per_class(record: str, metric: str) -> Recording:
    return Recording(record=record, expr=f"max by ({OSD_CLASS}) ({metric})")


def _per_osd(record: str, metric: str) -> Recording:
    return Recording(record=record, expr=f"max by ({OSD}) ({metric})")


def _zero(metric: str) -> str:
    """0 for every class of every OSD that shows the figure at all: every OSD has a first shard."""
    return f'max by ({OSD_CLASS}) ({metric}{{shard="0"}}) * 0'


def _worst(record: str, metric: str) -> Recording:
    """The highest of all shards. Shards at 0 are left out first: they are nearly all of them."""
    return Recording(
        record=record,
        expr=f"max by ({OSD_CLASS}) ({metric} > 0) or {_zero(metric)}",
    )


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
        _per_osd(PerOsd.CAPACITY_OPS, Qos.CAPACITY_OPS),
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
        _per_osd(PerOsd.DELIVERED_OPS, f"rate({Qos.DELIVERED_OPS}[@rate@])"),
        Recording(
            record=PerClass.ATTAINMENT,
            expr=f"{PerClass.ATTAINED_OPS} / ({PerClass.RESERVED_OPS} > 0)",
        ),
        # What a class gets above its reservation: what another one could have had.
        Recording(
            record=PerClass.EXCESS_OPS,
            expr=f"""
            clamp_min(
              {PerClass.ATTAINED_OPS}{{class!="immediate"}}
              - ({PerClass.RESERVED_OPS}
                 or {PerClass.ATTAINED_OPS}{{class!="immediate"}} * 0),
              0
            )
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
        _per_osd(PerOsd.DEVICE_DEPTH, f'rate({Disks.WEIGHTED_SECONDS}{{layer="osd"}}[@rate@])'),
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
        _per_osd(
            PerOsd.CPU_WAITING,
            f"sum by ({OSD}, instance)"
            f' (rate({Threads.WAIT_SECONDS}{{group=~"tp_osd_tp|bstore_kv.*|msgr.*"}}'
            "[@rate@]))",
        ),
    ),
)

# Demand. A client operation that waits does so in a scheduler queue (counted by Little's law, since
# a look at the queue finds it empty as often as full), at a throttle, or, most often, inside
# BlueStore, which takes work without bound until its throttles fill.
DEMAND: Final = Group(
    name="cephqos-demand",
    rules=(
        # Most queues of most shards are empty: from here on only the others are looked at.
        Recording(
            record=PerShard.QUEUE_LENGTH,
            expr=f"max by ({OSD_CLASS}, shard) ({Qos.QUEUE_LENGTH} > 0)",
        ),
        Recording(
            record=PerClass.QUEUE_LENGTH,
            expr=f"""
            sum by ({OSD_CLASS}) ({PerShard.QUEUE_LENGTH})
            or {_zero(Qos.QUEUE_LENGTH)}
            """,
        ),
        _worst(PerClass.RESERVATION_LAG_SECONDS, Qos.RESERVATION_LAG_SECONDS),
        _worst(PerClass.LIMIT_HOLD_SECONDS, Qos.LIMIT_HOLD_SECONDS),
        Recording(
            record=PerClass.SHARDS_WANTING,
            expr=f"""
            count by ({OSD_CLASS}) (
              max_over_time({PerShard.QUEUE_LENGTH}[@hold@])
            )
            / on ({OSD}) group_left () max by ({OSD}) ({Qos.SHARDS})
            """,
        ),
        Recording(
            record=PerOsd.CLIENT_WAITING,
            expr=f"""
            max by ({OSD}) (rate({Qos.CLIENT_WAIT_SECONDS}[@rate@]))
            + sum by ({OSD}) (
              max by ({OSD}, throttle) (rate({Qos.THROTTLE_WAIT_SECONDS}[@rate@]))
            )
            """,
        ),
        _per_osd(PerOsd.STORE_IN_PROGRESS, f"rate({Qos.STORE_SECONDS}[@rate@])"),
        _per_osd(PerOsd.STORE_USED, f'{Qos.THROTTLE_USED_RATIO}{{throttle="bluestore"}}'),
        # It holds transactions and ends none: what is measured at their end says nothing now.
        Recording(
            record=PerOsd.STORE_STALLED,
            expr=f"""
            (min_over_time({PerOsd.STORE_USED}[@sustained@]) > bool 0)
            * on ({OSD}) (
              max by ({OSD}) (rate({Qos.STORE_TRANSACTIONS}[@rate@])) == bool 0
            )
            """,
        ),
        # Stalled goes first: latency, of another group, may still be that of the evaluation before.
        Recording(
            record=PerOsd.STORE_PILING_UP,
            expr=f"""
            ({PerOsd.STORE_STALLED} == 1)
            or on ({OSD}) ({PerOsd.STORE_IN_PROGRESS} >= bool @store_in_progress@)
            * on ({OSD}) (
              ({PerOsd.STORE_LATENCY_SECONDS} >= bool @store_latency_hdd@)
                and on ({OSD}) {PerOsd.MEDIA}{{media="hdd"}}
              or on ({OSD}) ({PerOsd.STORE_LATENCY_SECONDS} >= bool @store_latency_ssd@)
            )
            or on ({OSD}) {PerOsd.STORE_STALLED}
            """,
        ),
        # Operations that wait in the scheduler's queue are not yet in progress for the OSD.
        Recording(
            record=PerOsd.CLIENT_PRESENT_SUM,
            expr=f"""
            max by ({OSD}) ({Qos.CLIENT_OPS_IN_PROGRESS})
            + on ({OSD}) (
              sum by ({OSD}) ({PerClass.QUEUE_LENGTH}{{class="client"}})
              or max by ({OSD}) ({Qos.CLIENT_OPS_IN_PROGRESS}) * 0
            )
            """,
        ),
        # In every sample, not on average: a burst of a second leaves samples without work.
        Recording(
            record=PerOsd.CLIENT_PRESENT_MIN,
            expr=f"min_over_time({PerOsd.CLIENT_PRESENT_SUM}[@sustained@])",
        ),
        # On average, too (Little's law): bursts in step with the scrapes are in every sample.
        Recording(
            record=PerOsd.CLIENT_PRESENT_RATE,
            expr=f"""
            sum by ({OSD}) (
              max by ({OSD}, op) (rate({total(Op.LATENCY_SECONDS)}[@rate@]))
            )
            """,
        ),
        # A slow device ends many at once and then none for a while, so the best of some averages.
        Recording(
            record=PerOsd.CLIENT_STEADY,
            expr=f"""
            ({PerOsd.STORE_STALLED} == 1)
            or on ({OSD}) (
              max_over_time({PerOsd.CLIENT_PRESENT_RATE}[@sustained@])
              >= bool on ({OSD}) (@steady@ * {PerOsd.CLIENT_PRESENT_MIN})
            )
            or on ({OSD}) ({PerOsd.CLIENT_PRESENT_MIN} >= bool 0)
            """,
        ),
        Recording(
            record=PerClass.DEMAND,
            labels={"class": "client"},
            expr=f"""
            ({PerOsd.CLIENT_PRESENT_MIN} >= bool @in_progress@)
            * on ({OSD}) {PerOsd.CLIENT_STEADY}
            * on ({OSD}) clamp_max(
              ({PerOsd.CLIENT_WAITING} >= bool @waiting@)
              + on ({OSD}) (
                {PerOsd.STORE_PILING_UP} or {PerOsd.CLIENT_WAITING} * 0
              ),
              1
            )
            """,
        ),
        Recording(
            record=PerClass.DEMAND,
            expr=f"""
            min_over_time(
              {PerClass.QUEUE_LENGTH}{{class=~"background_.*"}}[@sustained@]
            ) >= bool 1
            """,
        ),
    ),
)

# A reservation is promised per shard: a class that wants work done in one shard of eight is owed an
# eighth of it. Where work piles up behind the scheduler all shards share that fate.
VIOLATION: Final = Group(
    name="cephqos-violation",
    rules=(
        # Work done between a restart and the next scrape is in no counter: a rate is too low.
        _per_osd(PerOsd.COUNTER_RESETS, f"resets({Qos.DELIVERED_OPS}[@rate@])"),
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
        Recording(
            record=PerClass.VIOLATED,
            expr=f"""
            ({PerClass.DEMAND} and {PerClass.OWED_OPS})
            * on ({OSD_CLASS}) clamp_max(
              (
                (min_over_time({PerClass.RESERVATION_LAG_SECONDS}[@sustained@])
                  > bool @reservation_lag@)
                or {PerClass.OWED_OPS} * 0
              )
              + on ({OSD_CLASS}) (
                ({PerClass.ATTAINED_OPS}
                  < bool on ({OSD_CLASS}) (@shortfall@ * {PerClass.OWED_OPS}))
                or {PerClass.OWED_OPS} * 0
              ),
              1
            )
            unless on ({OSD}) ({PerOsd.COUNTER_RESETS} > 0)
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


def _sums(level: str, labels: str, join: str = "") -> list[Recording]:
    """The figures of OSDs summed to a level above."""
    found = []
    for figure in ("attained_ops:rate", "reserved_ops", "shortfall_ops:rate", "violated:bool"):
        name = figure.replace(":rate", "").replace(":bool", "_osds")
        found.append(
            Recording(
                record=f"{level}:cephqos_{name}:sum",
                expr=f"sum by ({labels}, class) (osd_class:cephqos_{figure}{join})",
            )
        )
    found.append(
        Recording(
            record=f"{level}:cephqos_demand_osds:sum",
            expr=f"sum by ({labels}, class) ({PerClass.DEMAND}{join})",
        )
    )
    return found


def _sums_of_hosts() -> list[Recording]:
    """A cluster's figures from those of its hosts: no third pass over all OSDs."""
    return [
        Recording(
            record=found.record,
            expr=f"sum by (cluster, class) ({found.record.replace('cluster_', 'instance_', 1)})",
        )
        for found in _sums("cluster_class", "cluster")
    ]


def _joined(label: str, info: str) -> str:
    return f" * on ({OSD}) group_left ({label}) {info}"


ROLLUPS: Final = Group(
    name="cephqos-rollups",
    rules=(
        *_sums(
            "media_class",
            "cluster, media",
            _joined("media", PerOsd.MEDIA),
        ),
        *_sums(
            "instance_class",
            "cluster, instance",
            _joined("instance", f"({PerOsd.INSTANCE} == 1)"),
        ),
        *_sums_of_hosts(),
        Recording(
            record=PerCluster.DELIVERED_OPS,
            expr=f"sum by (cluster) ({PerOsd.DELIVERED_OPS})",
        ),
        Recording(
            record=PerCluster.CAPACITY_OPS,
            expr=f"sum by (cluster) ({PerOsd.CAPACITY_OPS})",
        ),
        Recording(
            record=PerCluster.OSDS,
            expr=f"count by (cluster) (max by ({OSD}) ({Daemon.UP}))",
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
