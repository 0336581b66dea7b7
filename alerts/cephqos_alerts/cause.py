"""Why a class of an OSD gets no more: the first of these that its own evidence supports.

Each condition gives a series per OSD and class with demand, whether its reservation is violated or
not; `or` keeps the first. README.md has the reasoning and the blind spots of each.
"""

from typing import Final

from cephqos_alerts.rules import Group, Recording

_OSD: Final = "cluster, ceph_daemon"
_CLASS: Final = "cluster, ceph_daemon, class"
SCHEDULED: Final = ("client", "background_recovery", "background_best_effort")

# In this order.
CAUSES: Final = (
    "immediate",
    "interference",
    "limit",
    "skew",
    "capacity",
    "device",
    "cpu",
    "unknown",
)


def _wanting(condition: str) -> str:
    """Those with demand for whose OSD the condition holds."""
    return f"""
    (osd_class:cephqos_demand:bool == 1)
      and on ({_OSD}) ({condition})
    """


# Replica work fills the OSD, and without it the class would have had what it is owed.
_IMMEDIATE: Final = f"""
(osd_class:cephqos_demand:bool == 1)
  and on ({_CLASS}) (
    (osd_class:cephqos_shortfall_ops:rate or osd_class:cephqos_demand:bool * 0)
    <= on ({_OSD}) group_left () sum by ({_OSD})
      (osd_class:cephqos_attained_ops:rate{{class="immediate"}})
  )
  and on ({_OSD}) (
    sum by ({_OSD}) (osd_class:cephqos_attained_ops:rate{{class="immediate"}})
    > @immediate_share@ * osd:cephqos_delivered_ops:rate
  )
  and on ({_OSD}) (osd:cephqos_delivered_ops:rate > @full@ * osd:cephqos_capacity_ops)
"""

_LIMIT: Final = f"""
(osd_class:cephqos_demand:bool == 1)
  and on ({_CLASS}) (
    osd_class:cephqos_attained_ops:rate > @at_limit@ * (osd_class:cephqos_limit_ops > 0)
    or on ({_CLASS})
    min_over_time(osd_class:cephqos_limit_hold_seconds:max[@sustained@]) > 0
  )
"""

_SKEW: Final = f"""
(osd_class:cephqos_demand:bool == 1)
  and on ({_CLASS}) (osd_class:cephqos_shards_wanting:ratio <= @skew@)
  and on ({_OSD}) (osd:cephqos_store_piling_up:bool == 0)
"""

# Ever delivered, that is in the last day, and only while demand was there to deliver it to.
_CAPACITY: Final = _wanting(
    "osd:cephqos_capacity_ops > @overstated@ * osd:cephqos_proven_ops:max1d"
)

# Slow by itself or by its own history; how busy it is says nothing of an SSD or an array.
_DEVICE: Final = _wanting(
    f"""
    osd:cephqos_store_stalled:bool == 1
    or (osd:cephqos_kv_commit_seconds:rate > @device_latency_ssd@
      or osd:cephqos_device_latency_seconds:rate > @device_latency_ssd@)
      and on ({_OSD}) osd:cephqos_media:info{{media="ssd"}}
    or osd:cephqos_kv_commit_seconds:rate > @device_latency_hdd@
    or osd:cephqos_device_latency_seconds:rate > @device_latency_hdd@
    or (osd:cephqos_kv_commit_seconds:rate > @device_floor@)
      > @device_history@ * osd:cephqos_kv_commit_seconds:median1d
    or (osd:cephqos_device_latency_seconds:rate > @device_floor@)
      > @device_history@ * osd:cephqos_device_latency_seconds:median1d
    """
)

_CPU: Final = _wanting(
    "osd:cephqos_thread_ceiling:max > @thread_ceiling@"
    " or osd:cephqos_cpu_waiting:rate > @cpu_waiting@"
)

_UNKNOWN: Final = "osd_class:cephqos_demand:bool == 1"


def _interference(victim: str, culprit: str) -> str:
    """`culprit` has more than its reservation, much of what is delivered, most of all others."""
    others = "|".join(cls for cls in SCHEDULED if cls not in (victim, culprit))
    excess = f'osd_class:cephqos_excess_ops:rate{{class="{culprit}"}}'
    other = f'osd_class:cephqos_excess_ops:rate{{class="{others}"}}'
    return f"""
    label_replace(
      (osd_class:cephqos_demand:bool{{class="{victim}"}} == 1)
        and on ({_OSD}) (
          {excess}
          > on ({_OSD}) @interference@ * osd:cephqos_delivered_ops:rate
        )
        and on ({_OSD}) ({excess} >= on ({_OSD}) ({other} or on ({_OSD}) {excess} * 0))
        {_SHORT[victim]},
      "by", "{culprit}", "", ""
    )
    """


# A class that has its reservation suffers no interference from one that takes what is left over.
_SHORT: Final = {
    "client": f"""and on ({_CLASS}) (
          osd_class:cephqos_shortfall_ops:rate > 0
          or osd_class:cephqos_attained_ops:rate < osd_class:cephqos_target_ops
          or on ({_CLASS}) osd_class:cephqos_demand:bool
            unless on ({_CLASS}) osd_class:cephqos_owed_ops
        )""",
    "background_recovery": f"and on ({_CLASS}) (osd_class:cephqos_shortfall_ops:rate > 0)",
    "background_best_effort": f"and on ({_CLASS}) (osd_class:cephqos_shortfall_ops:rate > 0)",
}


def _marked(cause: str, expr: str) -> str:
    return f'label_replace({expr}, "cause", "{cause}", "", "")'


def _candidates() -> list[str]:
    interference = [
        _marked("interference", _interference(victim, culprit))
        for victim in SCHEDULED
        for culprit in SCHEDULED
        if victim != culprit
    ]
    immediate = f'label_replace({_IMMEDIATE}, "by", "immediate", "", "")'
    return [
        _marked("immediate", immediate),
        *interference,
        _marked("limit", _LIMIT),
        _marked("skew", _SKEW),
        _marked("capacity", _CAPACITY),
        _marked("device", _DEVICE),
        _marked("cpu", _CPU),
        _marked("unknown", _UNKNOWN),
    ]


def _first_that_holds() -> str:
    return f"\nor on ({_CLASS}) ".join(candidate.strip() for candidate in _candidates())


CAUSE: Final = Group(
    name="cephqos-cause",
    rules=(
        # An OSD that cannot give more: its clients wait, and not for a limit or for one shard.
        Recording(
            record="osd:cephqos_saturated_ops:rate",
            expr=f"""
            osd:cephqos_delivered_ops:rate
              and on ({_OSD}) (osd_class:cephqos_demand:bool{{class="client"}} == 1)
              unless on ({_OSD}) (
                osd_class:cephqos_attained_ops:rate{{class="client"}}
                > @at_limit@ * (osd_class:cephqos_limit_ops{{class="client"}} > 0)
              )
              unless on ({_OSD}) (
                min_over_time(
                  osd_class:cephqos_limit_hold_seconds:max{{class="client"}}[@sustained@]
                ) > 0
              )
              unless on ({_OSD}) (
                osd_class:cephqos_shards_wanting:ratio{{class="client"}} <= @skew@
                  and on ({_OSD}) osd:cephqos_store_piling_up:bool == 0
              )
            """,
        ),
        Recording(record="osd_class:cephqos_cause", expr=_first_that_holds()),
        # The main one of the last minutes: it labels alerts, which must not flap with it.
        Recording(
            record="osd_class:cephqos_main_cause",
            expr=f"topk by ({_CLASS}) (1, sum_over_time(osd_class:cephqos_cause[@hold@])) * 0 + 1",
        ),
        Recording(
            record="cluster_class:cephqos_cause_osds:count",
            expr="count by (cluster, class, cause, by) (osd_class:cephqos_main_cause)",
        ),
        Recording(
            record="cluster_class:cephqos_main_cause",
            expr="topk by (cluster, class) (1, cluster_class:cephqos_cause_osds:count) * 0 + 1",
        ),
    ),
)
