"""Recording rules: what each class of each OSD was promised, gets and wants.

All of them take the maximum over scrape targets first, so that two exporters that see one OSD count
once. A series that a release cannot give stays absent through all of them.
"""

from typing import Final

from cephqos_alerts.rules import Group, Recording

_OSD: Final = "cluster, ceph_daemon"
_CLASS: Final = "cluster, ceph_daemon, class"


def _per_class(record: str, metric: str) -> Recording:
    return Recording(record=f"osd_class:cephqos_{record}", expr=f"max by ({_CLASS}) ({metric})")


def _per_osd(record: str, metric: str) -> Recording:
    return Recording(record=f"osd:cephqos_{record}", expr=f"max by ({_OSD}) ({metric})")


def _zero(metric: str) -> str:
    """0 for every class of every OSD that shows the figure at all: every OSD has a first shard."""
    return f'max by ({_CLASS}) ({metric}{{shard="0"}}) * 0'


def _worst(record: str, metric: str) -> Recording:
    """The highest of all shards. Shards at 0 are left out first: they are nearly all of them."""
    return Recording(
        record=f"osd_class:cephqos_{record}",
        expr=f"max by ({_CLASS}) ({metric} > 0) or {_zero(metric)}",
    )


def _mean_seconds(seconds: str, count: str) -> str:
    """Mean time of what was counted in the rate window; absent when nothing was."""
    return f"""
    max by ({_OSD}) (rate({seconds}[@rate@]))
    / (max by ({_OSD}) (rate({count}[@rate@])) > 0)
    """


_OPS = "normalised_ops_per_second"

PROMISES: Final = Group(
    name="cephqos-promises",
    rules=(
        _per_class("reserved_ops", f"cephqos_qos_reservation_{_OPS}"),
        _per_class("limit_ops", f"cephqos_qos_limit_{_OPS}"),
        _per_class("target_ops", f"cephqos_qos_target_reservation_{_OPS}"),
        _per_osd("capacity_ops", f"cephqos_qos_capacity_{_OPS}"),
        Recording(
            record="osd:cephqos_media:info",
            expr="max by (cluster, ceph_daemon, media) (cephqos_qos_scheduler_info)",
        ),
        # Which target speaks for an OSD, so that sums per host count it once.
        Recording(
            record="osd:cephqos_instance:info",
            expr="topk by (cluster, ceph_daemon) (1, max by (cluster, ceph_daemon, instance)"
            " (cephqos_daemon_up))",
        ),
    ),
)

WORK: Final = Group(
    name="cephqos-work",
    rules=(
        _per_class("attained_ops:rate", "rate(cephqos_qos_normalised_ops_total[@rate@])"),
        _per_osd("delivered_ops:rate", "rate(cephqos_qos_delivered_normalised_ops_total[@rate@])"),
        Recording(
            record="osd_class:cephqos_attainment:ratio",
            expr="osd_class:cephqos_attained_ops:rate / (osd_class:cephqos_reserved_ops > 0)",
        ),
        # What a class gets above its reservation: what another one could have had.
        Recording(
            record="osd_class:cephqos_excess_ops:rate",
            expr="""
            clamp_min(
              osd_class:cephqos_attained_ops:rate{class!="immediate"}
              - (osd_class:cephqos_reserved_ops
                 or osd_class:cephqos_attained_ops:rate{class!="immediate"} * 0),
              0
            )
            """,
        ),
        Recording(
            record="osd:cephqos_device_latency_seconds:rate",
            expr=f"""
            max by ({_OSD}) (
              sum by ({_OSD}, instance, device)
                (rate(cephqos_disks_time_seconds_total{{layer="osd"}}[@rate@]))
              / (sum by ({_OSD}, instance, device)
                (rate(cephqos_disks_ops_total{{layer="osd"}}[@rate@])) > 0)
            )
            """,
        ),
        _per_osd(
            "device_depth:rate", 'rate(cephqos_disks_weighted_seconds_total{layer="osd"}[@rate@])'
        ),
        Recording(
            record="osd:cephqos_store_latency_seconds:rate",
            expr=_mean_seconds(
                "cephqos_qos_store_seconds_total", "cephqos_qos_store_transactions_total"
            ),
        ),
        Recording(
            record="osd:cephqos_kv_commit_seconds:rate",
            expr=_mean_seconds(
                "cephqos_qos_store_kv_commit_seconds_total", "cephqos_qos_store_kv_commits_total"
            ),
        ),
        # A reactor polls: the CPU that it takes says nothing, its own account of being busy does.
        Recording(
            record="osd:cephqos_thread_ceiling:max",
            expr=f"""
            max by ({_OSD}) (
              rate(cephqos_threads_busiest_cpu_seconds_total{{group!~"other|reactor"}}[@rate@])
              or avg_over_time(cephqos_crimson_reactor_utilization_ratio[@rate@])
            )
            """,
        ),
        _per_osd(
            "cpu_waiting:rate",
            f"sum by ({_OSD}, instance)"
            ' (rate(cephqos_threads_wait_seconds_total{group=~"tp_osd_tp|bstore_kv.*|msgr.*"}'
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
            record="osd_class_shard:cephqos_queue_length:max",
            expr=f"max by ({_CLASS}, shard) (cephqos_qos_queue_length > 0)",
        ),
        Recording(
            record="osd_class:cephqos_queue_length:sum",
            expr=f"""
            sum by ({_CLASS}) (osd_class_shard:cephqos_queue_length:max)
            or {_zero("cephqos_qos_queue_length")}
            """,
        ),
        _worst("reservation_lag_seconds:max", "cephqos_qos_reservation_lag_seconds"),
        _worst("limit_hold_seconds:max", "cephqos_qos_limit_hold_seconds"),
        Recording(
            record="osd_class:cephqos_shards_wanting:ratio",
            expr=f"""
            count by ({_CLASS}) (
              max_over_time(osd_class_shard:cephqos_queue_length:max[@sustained@])
            )
            / on ({_OSD}) group_left () max by ({_OSD}) (cephqos_qos_shards)
            """,
        ),
        Recording(
            record="osd:cephqos_client_waiting:rate",
            expr=f"""
            max by ({_OSD}) (rate(cephqos_qos_client_wait_seconds_total[@rate@]))
            + sum by ({_OSD}) (
              max by ({_OSD}, throttle) (rate(cephqos_qos_throttle_wait_seconds_total[@rate@]))
            )
            """,
        ),
        _per_osd("store_in_progress:rate", "rate(cephqos_qos_store_seconds_total[@rate@])"),
        _per_osd("store_used:ratio", 'cephqos_qos_throttle_used_ratio{throttle="bluestore"}'),
        # It holds transactions and ends none: what is measured at their end says nothing now.
        Recording(
            record="osd:cephqos_store_stalled:bool",
            expr=f"""
            (min_over_time(osd:cephqos_store_used:ratio[@sustained@]) > bool 0)
            * on ({_OSD}) (
              max by ({_OSD}) (rate(cephqos_qos_store_transactions_total[@rate@])) == bool 0
            )
            """,
        ),
        # Stalled goes first: latency, of another group, may still be that of the evaluation before.
        Recording(
            record="osd:cephqos_store_piling_up:bool",
            expr=f"""
            (osd:cephqos_store_stalled:bool == 1)
            or on ({_OSD}) (osd:cephqos_store_in_progress:rate >= bool @store_in_progress@)
            * on ({_OSD}) (
              (osd:cephqos_store_latency_seconds:rate >= bool @store_latency_hdd@)
                and on ({_OSD}) osd:cephqos_media:info{{media="hdd"}}
              or on ({_OSD}) (osd:cephqos_store_latency_seconds:rate >= bool @store_latency_ssd@)
            )
            or on ({_OSD}) osd:cephqos_store_stalled:bool
            """,
        ),
        # Operations that wait in the scheduler's queue are not yet in progress for the OSD.
        Recording(
            record="osd:cephqos_client_present:sum",
            expr=f"""
            max by ({_OSD}) (cephqos_qos_client_ops_in_progress)
            + on ({_OSD}) (
              sum by ({_OSD}) (osd_class:cephqos_queue_length:sum{{class="client"}})
              or max by ({_OSD}) (cephqos_qos_client_ops_in_progress) * 0
            )
            """,
        ),
        # In every sample, not on average: a burst of a second leaves samples without work.
        Recording(
            record="osd:cephqos_client_present:min",
            expr="min_over_time(osd:cephqos_client_present:sum[@sustained@])",
        ),
        # On average, too (Little's law): bursts in step with the scrapes are in every sample.
        Recording(
            record="osd:cephqos_client_present:rate",
            expr=f"""
            sum by ({_OSD}) (
              max by ({_OSD}, op) (rate(cephqos_osd_op_latency_seconds_sum[@rate@]))
            )
            """,
        ),
        # A slow device ends many at once and then none for a while, so the best of some averages.
        Recording(
            record="osd:cephqos_client_steady:bool",
            expr=f"""
            (osd:cephqos_store_stalled:bool == 1)
            or on ({_OSD}) (
              max_over_time(osd:cephqos_client_present:rate[@sustained@])
              >= bool on ({_OSD}) (@steady@ * osd:cephqos_client_present:min)
            )
            or on ({_OSD}) (osd:cephqos_client_present:min >= bool 0)
            """,
        ),
        Recording(
            record="osd_class:cephqos_demand:bool",
            labels={"class": "client"},
            expr=f"""
            (osd:cephqos_client_present:min >= bool @in_progress@)
            * on ({_OSD}) osd:cephqos_client_steady:bool
            * on ({_OSD}) clamp_max(
              (osd:cephqos_client_waiting:rate >= bool @waiting@)
              + on ({_OSD}) (
                osd:cephqos_store_piling_up:bool or osd:cephqos_client_waiting:rate * 0
              ),
              1
            )
            """,
        ),
        Recording(
            record="osd_class:cephqos_demand:bool",
            expr="""
            min_over_time(
              osd_class:cephqos_queue_length:sum{class=~"background_.*"}[@sustained@]
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
        Recording(
            record="osd_class:cephqos_owed_ops",
            expr=f"""
            (osd_class:cephqos_reserved_ops{{class="client"}} > 0)
              and on ({_OSD}) osd:cephqos_store_piling_up:bool == 1
            or (osd_class:cephqos_reserved_ops > 0) * osd_class:cephqos_shards_wanting:ratio
            or osd_class:cephqos_reserved_ops > 0
            """,
        ),
        Recording(
            record="osd_class:cephqos_shortfall_ops:rate",
            expr="clamp_min(osd_class:cephqos_owed_ops - osd_class:cephqos_attained_ops:rate, 0)",
        ),
        Recording(
            record="osd_class:cephqos_violated:bool",
            expr=f"""
            (osd_class:cephqos_demand:bool and osd_class:cephqos_owed_ops)
            * on ({_CLASS}) clamp_max(
              (
                (min_over_time(osd_class:cephqos_reservation_lag_seconds:max[@sustained@])
                  > bool @reservation_lag@)
                or osd_class:cephqos_owed_ops * 0
              )
              + on ({_CLASS}) (
                (osd_class:cephqos_attained_ops:rate
                  < bool on ({_CLASS}) (@shortfall@ * osd_class:cephqos_owed_ops))
                or osd_class:cephqos_owed_ops * 0
              ),
              1
            )
            """,
        ),
        Recording(
            record="osd_class:cephqos_violated_seconds:sum1h",
            expr="""
            sum_over_time(osd_class:cephqos_violated:bool[@hour@]) * @interval_seconds@ > 0
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
            expr=f"sum by ({labels}, class) (osd_class:cephqos_demand:bool{join})",
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
    return f" * on ({_OSD}) group_left ({label}) {info}"


ROLLUPS: Final = Group(
    name="cephqos-rollups",
    rules=(
        *_sums(
            "media_class",
            "cluster, media",
            _joined("media", "osd:cephqos_media:info"),
        ),
        *_sums(
            "instance_class",
            "cluster, instance",
            _joined("instance", "(osd:cephqos_instance:info == 1)"),
        ),
        *_sums_of_hosts(),
        Recording(
            record="cluster:cephqos_delivered_ops:sum",
            expr="sum by (cluster) (osd:cephqos_delivered_ops:rate)",
        ),
        Recording(
            record="cluster:cephqos_capacity_ops:sum",
            expr="sum by (cluster) (osd:cephqos_capacity_ops)",
        ),
        Recording(
            record="cluster:cephqos_osds:count",
            expr=f"count by (cluster) (max by ({_OSD}) (cephqos_daemon_up))",
        ),
    ),
)


def _usual(series: str) -> str:
    """The median of a day, of the times only at which the device had something to do."""
    return f"""
    quantile_over_time(
      0.5, ({series} and on ({_OSD}) osd:cephqos_device_depth:rate > 0.5)[@day@:@history_step@]
    )
    """


# What needs a long look back is looked at once a minute.
HISTORY: Final = Group(
    name="cephqos-history",
    slow=True,
    rules=(
        Recording(
            record="osd:cephqos_proven_ops:max1d",
            expr="max_over_time(osd:cephqos_saturated_ops:rate[@day@:@rate@])",
        ),
        Recording(
            record="osd:cephqos_device_latency_seconds:median1d",
            expr=_usual("osd:cephqos_device_latency_seconds:rate"),
        ),
        Recording(
            record="osd:cephqos_kv_commit_seconds:median1d",
            expr=_usual("osd:cephqos_kv_commit_seconds:rate"),
        ),
    ),
)
