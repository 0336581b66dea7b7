"""Recording rules: which class of which OSD wants more than it gets."""

from typing import Final

from cephqos_alerts.recording import per_osd
from cephqos_alerts.rules import Group, Recording
from cephqos_base.recorded import PerClass, PerOsd, PerShard
from cephqos_base.series import OSD, OSD_CLASS, Op, Qos, total


def _zero(metric: str) -> str:
    """0 for every class of every OSD that shows the figure at all: every OSD has a first shard."""
    return f'max by ({OSD_CLASS}) ({metric}{{shard="0"}}) * 0'


def _worst(record: str, metric: str) -> Recording:
    """The highest of all shards. Shards at 0 are left out first: they are nearly all of them."""
    return Recording(
        record=record,
        expr=f"max by ({OSD_CLASS}) ({metric} > 0) or {_zero(metric)}",
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
        per_osd(PerOsd.STORE_IN_PROGRESS, f"rate({Qos.STORE_SECONDS}[@rate@])"),
        per_osd(PerOsd.STORE_USED, f'{Qos.THROTTLE_USED_RATIO}{{throttle="bluestore"}}'),
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
