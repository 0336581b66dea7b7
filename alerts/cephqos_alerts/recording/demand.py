"""Recording rules: which class of which OSD has unmet demand.

Background classes have demand if a request of theirs is in the scheduler's queue in every sample of
a minute. For clients it is harder: most of their operations wait in BlueStore, behind the
scheduler, or for another OSD, and both are in no queue. The comment of PerClass.DEMAND says how it
is decided; the constants before DEMAND are its parts.
"""

from typing import Final

from cephqos_alerts.recording.conditions import DELAYED_OTHERS, STORE_STALLED, condition_rule
from cephqos_alerts.recording.reservations import CLUSTER_TARGET_OPS, OF_REPLICA_WRITE, OF_STORE
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, previously
from cephqos_base.recorded import PerClass, PerHostClass, PerOsd, PerShard
from cephqos_base.series import OSD, OSD_CLASS, NetworkSeries, OpSeries, QosSeries, total


def _zero(metric: str) -> str:
    """0 for each class of each OSD with this metric. Shard 0 stands for all: every OSD has one."""
    return f'max by ({OSD_CLASS}) ({metric}{{shard="0"}}) * 0'


def _highest_of_shards(record: str, metric: str) -> RecordedSeries:
    """The highest of a class's shards. Nearly all are 0, and are left out before the maximum."""
    return RecordedSeries(
        record=record, expr=f"max by ({OSD_CLASS}) ({metric} > 0) or {_zero(metric)}"
    )


# The share of a client write's time outside the scheduler that the OSD's own store takes, where it
# is little. It stands for these OSDs, too: `{_LITTLE_OWN_STORE} and on (cluster) …`.
_LITTLE_OWN_STORE: Final = f"({previously(PerOsd.OWN_STORE)} < @part@)"
# OSDs of clusters whose clients get less than the cluster's target of a policy file.
_CLUSTER_BELOW_TARGET: Final = f"""
                    {_LITTLE_OWN_STORE} and on (cluster) (
                      sum by (cluster, class) ({previously(PerHostClass.OPS)}{{figure="attained"}})
                      < on (cluster, class) (@reached@ * {CLUSTER_TARGET_OPS})
                    )
"""
# Another OSD of the cluster delays replica writes, or heartbeats of this OSD are slow.
_OSD_OR_NETWORK_SLOW: Final = f"""
                      {_LITTLE_OWN_STORE} and on (cluster) {DELAYED_OTHERS}
                      or on ({OSD}) {NetworkSeries.SLOW_PEERS} > 0
""".strip()
# Clients get less than the reservation of this OSD, or than the target of their cluster.
_CLIENTS_SHORT: Final = f"""
                      {PerClass.ATTAINED_OPS}{{class="client"}}
                      < on ({OSD}) (@reached@ * {PerClass.RESERVED_OPS}{{class="client"}})
                      or on ({OSD})
                      {_CLUSTER_BELOW_TARGET.strip()}
""".strip()
# Clients have no reservation on this OSD, their cluster is below its target, and replica writes are
# slow on some OSD, even if only because it recovers.
_SLOW_WITHOUT_RESERVATION: Final = f"""
                    {_CLUSTER_BELOW_TARGET.strip()}
                      and on (cluster) (
                        {previously(PerOsd.REPLICA_SLOWNESS)} > @slower@
                        and on ({OSD}) ({OF_REPLICA_WRITE} > @device_floor@)
                      )
                      unless on ({OSD}) {PerClass.RESERVED_OPS}{{class="client"}} > 0
""".strip()
# OSDs whose clients wait for another OSD. The own store takes little of a write's time, many
# operations are in progress, and a write takes as long as on a slow device: the store's time,
# divided by its share of the write, is that of a write.
_WAIT_FOR_ANOTHER_OSD: Final = f"""
                  {_LITTLE_OWN_STORE}
                  and on ({OSD}) ({PerOsd.CLIENT_PRESENT_LOW} >= @store_in_progress@)
                  and on ({OSD}) (
                    {OF_STORE}
                    > on ({OSD}) (@device_floor@ * {_LITTLE_OWN_STORE})
                  )
                  and on ({OSD}) (
                    (
                      {_OSD_OR_NETWORK_SLOW}
                    )
                    and on ({OSD}) (
                      {_CLIENTS_SHORT}
                    )
                    or on ({OSD})
                    {_SLOW_WITHOUT_RESERVATION}
                  )
"""

# Client operations in the scheduler's queue or at a throttle, on average: seconds of waiting per
# second (Little's law). The length of the queue at a scrape says less: it is often empty by chance.
_WAITING: Final = f"""
                sum by ({OSD}) (
                  max by ({OSD}, throttle) (
                    rate({QosSeries.CLIENT_WAIT_SECONDS}[@rate@])
                    or rate({QosSeries.THROTTLE_WAIT_SECONDS}[@rate@])
                  )
                )
"""
DEMAND: Final = RuleGroup(
    name="cephqos-demand",
    rules=(
        RecordedSeries(
            record=PerShard.QUEUE_LENGTH,
            comment="""
            Queues that are not empty. Most are empty, so the next rules read few series.
            """,
            expr=f"max by ({OSD_CLASS}, shard) ({QosSeries.QUEUE_LENGTH} > 0)",
        ),
        RecordedSeries(
            record=PerClass.QUEUE_LENGTH,
            expr=f"""
            sum by ({OSD_CLASS}) ({PerShard.QUEUE_LENGTH})
            or {_zero(QosSeries.QUEUE_LENGTH)}
            """,
        ),
        _highest_of_shards(PerClass.RESERVATION_LAG_SECONDS, QosSeries.RESERVATION_LAG_SECONDS),
        _highest_of_shards(PerClass.LIMIT_WAIT_SECONDS, QosSeries.LIMIT_WAIT_SECONDS),
        RecordedSeries(
            record=PerClass.SHARDS_WITH_DEMAND,
            expr=f"""
            count by ({OSD_CLASS}) (
              max_over_time({PerShard.QUEUE_LENGTH}[@hold@])
            )
            / on ({OSD}) group_left () max by ({OSD}) ({QosSeries.SHARDS})
            """,
        ),
        condition_rule(
            "store_stalled",
            comment="""
            1 if the store has transactions and completes none. Figures that are measured at their
            end say nothing then. Absent otherwise.
            """,
            expr=f"""
            0 * (
              max by ({OSD}) (rate({QosSeries.STORE_TRANSACTIONS}[@rate@])) == 0
              and on ({OSD}) (
                min_over_time(
                  {QosSeries.THROTTLE_USED_RATIO}{{throttle="bluestore"}}[@sustained@]
                ) > 0
              )
            ) + 1
            """,
        ),
        RecordedSeries(
            record=PerOsd.STORE_PILING_UP,
            comment="""
            A stalled store comes first: its latency, from another group of rules, may still be the
            one before it stalled.
            """,
            expr=f"""
            {STORE_STALLED}
            or on ({OSD})
            (max by ({OSD}) (rate({QosSeries.STORE_SECONDS}[@rate@])) >= bool @store_in_progress@)
            * on ({OSD}) (
              ({OF_STORE} >= bool @store_latency_hdd@)
                and on ({OSD}) {PerOsd.MEDIA}{{media="hdd"}}
              or on ({OSD}) ({OF_STORE} >= bool @store_latency_ssd@)
            )
            or on ({OSD})
            0 * max by ({OSD}) ({QosSeries.THROTTLE_USED_RATIO}{{throttle="bluestore"}})
            """,
        ),
        RecordedSeries(
            record=PerOsd.CLIENT_PRESENT_SUM,
            comment="""
            Operations in progress and in the scheduler's queue. The OSD does not count the second
            as in progress.
            """,
            expr=f"""
            max by ({OSD}) ({QosSeries.CLIENT_OPS_IN_PROGRESS})
            + on ({OSD}) (
              sum by ({OSD}) ({PerClass.QUEUE_LENGTH}{{class="client"}})
              or max by ({OSD}) ({QosSeries.CLIENT_OPS_IN_PROGRESS}) * 0
            )
            """,
        ),
        RecordedSeries(
            record=PerOsd.CLIENT_PRESENT_LOW,
            comment="""
            Low quartile of the samples, not the average: a burst of a second leaves samples without
            work, and is not demand. Some samples may be without work: while clients wait for a slow
            OSD, the others are idle.
            """,
            expr=f"quantile_over_time(0.25, {PerOsd.CLIENT_PRESENT_SUM}[@sustained@])",
        ),
        RecordedSeries(
            record=PerOsd.CLIENT_PRESENT_RATE,
            comment="""
            The average (Little's law) must be high, too: bursts that come just when Prometheus
            scrapes are in every sample.
            """,
            expr=f"""
            sum by ({OSD}) (
              max by ({OSD}, op) (rate({total(OpSeries.LATENCY_SECONDS)}[@rate@]))
            )
            """,
        ),
        RecordedSeries(
            record=PerClass.DEMAND,
            labels={"class": "client"},
            comment="""
            A client operation waits in the scheduler's queue, at a throttle, or, most often, in
            BlueStore, which takes work without bound until its throttles fill. Operations that wait
            for another OSD are in no queue here. They are demand if all of this holds: many are in
            progress, their writes take as long as on a slow device, an OSD or the network is seen
            to be slow, and the OSD or the cluster is below its reservation. Otherwise an OSD with
            little to do, or with a fast store, would always have demand. Without a reservation, and
            below the cluster's target, they may also wait for an OSD that is slow because it
            recovers. Bursts in step with the scrapes are no demand. A slow device completes many
            operations at once and then none for a while. So the best of some averages counts, and a
            store that piled up for a part of the time.
            """,
            expr=f"""
            0 * (
              {PerOsd.CLIENT_PRESENT_LOW} >= @in_progress@
              and on ({OSD}) (
                {_WAITING.strip()} >= @waiting@
                or max_over_time({PerOsd.STORE_PILING_UP}[@sustained@]) == 1
                or on ({OSD}) ({_WAIT_FOR_ANOTHER_OSD.strip()})
              )
              unless on ({OSD}) (
                @part@ * {PerOsd.CLIENT_PRESENT_LOW}
                > on ({OSD}) max_over_time({PerOsd.CLIENT_PRESENT_RATE}[@sustained@])
                unless on ({OSD}) {STORE_STALLED}
              )
            ) + 1
            or on ({OSD}) 0 * (
              {PerOsd.CLIENT_PRESENT_LOW}
              and on ({OSD}) ({QosSeries.CLIENT_WAIT_SECONDS} or {PerOsd.STORE_PILING_UP})
            )
            """,
        ),
        RecordedSeries(
            record=PerClass.DEMAND,
            expr=f"""
            min_over_time(
              {PerClass.QUEUE_LENGTH}{{class=~"background_.*"}}[@sustained@]
            ) >= bool 1
            """,
        ),
        # Only classes with demand, so the next rules read few series.
        RecordedSeries(record=PerClass.HAS_DEMAND, expr=f"{PerClass.DEMAND} == 1"),
    ),
)
