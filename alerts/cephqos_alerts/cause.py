"""Why a class of an OSD gets no more: the first of these that its own evidence supports.

Each condition gives a series per OSD and class with demand, whether its reservation is violated or
not; `or` keeps the first. DESIGN.md has the reasoning and the blind spots of each.
"""

from typing import Final

from cephqos_alerts.rules import Group, Recording
from cephqos_base.recorded import PerClass, PerClusterClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, SCHEDULED


def _wanting(condition: str) -> str:
    """Those with demand for whose OSD the condition holds."""
    return f"""
    ({PerClass.DEMAND} == 1)
      and on ({OSD}) ({condition})
    """


# Replica work fills the OSD, and without it the class would have had what it is owed.
_IMMEDIATE: Final = f"""
({PerClass.DEMAND} == 1)
  and on ({OSD_CLASS}) (
    ({PerClass.SHORTFALL_OPS} or {PerClass.DEMAND} * 0)
    <= on ({OSD}) group_left () sum by ({OSD})
      ({PerClass.ATTAINED_OPS}{{class="immediate"}})
  )
  and on ({OSD}) (
    sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class="immediate"}})
    > @immediate_share@ * {PerOsd.DELIVERED_OPS}
  )
  and on ({OSD}) ({PerOsd.DELIVERED_OPS} > @full@ * {PerOsd.CAPACITY_OPS})
"""

_LIMIT: Final = f"""
({PerClass.DEMAND} == 1)
  and on ({OSD_CLASS}) (
    {PerClass.ATTAINED_OPS} > @at_limit@ * ({PerClass.LIMIT_OPS} > 0)
    or on ({OSD_CLASS})
    min_over_time({PerClass.LIMIT_HOLD_SECONDS}[@sustained@]) > 0
  )
"""

_SKEW: Final = f"""
({PerClass.DEMAND} == 1)
  and on ({OSD_CLASS}) ({PerClass.SHARDS_WANTING} <= @skew@)
  and on ({OSD}) ({PerOsd.STORE_PILING_UP} == 0)
"""

# Ever delivered, that is in the last day, and only while demand was there to deliver it to.
_CAPACITY: Final = _wanting(f"{PerOsd.CAPACITY_OPS} > @overstated@ * {PerOsd.PROVEN_OPS}")

# Slow by itself or by its own history; how busy it is says nothing of an SSD or an array.
_DEVICE: Final = _wanting(
    f"""
    {PerOsd.STORE_STALLED} == 1
    or ({PerOsd.KV_COMMIT_SECONDS_RATE} > @device_latency_ssd@
      or {PerOsd.DEVICE_LATENCY_SECONDS_RATE} > @device_latency_ssd@)
      and on ({OSD}) {PerOsd.MEDIA}{{media="ssd"}}
    or {PerOsd.KV_COMMIT_SECONDS_RATE} > @device_latency_hdd@
    or {PerOsd.DEVICE_LATENCY_SECONDS_RATE} > @device_latency_hdd@
    or ({PerOsd.KV_COMMIT_SECONDS_RATE} > @device_floor@)
      > @device_history@ * {PerOsd.KV_COMMIT_SECONDS_MEDIAN1D}
    or ({PerOsd.DEVICE_LATENCY_SECONDS_RATE} > @device_floor@)
      > @device_history@ * {PerOsd.DEVICE_LATENCY_SECONDS_MEDIAN1D}
    """
)

_CPU: Final = _wanting(
    f"{PerOsd.THREAD_CEILING} > @thread_ceiling@ or {PerOsd.CPU_WAITING} > @cpu_waiting@"
)

_UNKNOWN: Final = f"{PerClass.DEMAND} == 1"


def _interference(victim: str, culprit: str) -> str:
    """`culprit` has more than its reservation, much of what is delivered, most of all others."""
    others = "|".join(cls for cls in SCHEDULED if cls not in (victim, culprit))
    excess = f'{PerClass.EXCESS_OPS}{{class="{culprit}"}}'
    other = f'{PerClass.EXCESS_OPS}{{class="{others}"}}'
    return f"""
    label_replace(
      ({PerClass.DEMAND}{{class="{victim}"}} == 1)
        and on ({OSD}) (
          {excess}
          > on ({OSD}) @interference@ * {PerOsd.DELIVERED_OPS}
        )
        and on ({OSD}) ({excess} >= on ({OSD}) ({other} or on ({OSD}) {excess} * 0))
        {_SHORT[victim]},
      "by", "{culprit}", "", ""
    )
    """


# A class that has its reservation suffers no interference from one that takes what is left over.
_SHORT: Final = {
    "client": f"""and on ({OSD_CLASS}) (
          {PerClass.SHORTFALL_OPS} > 0
          or {PerClass.ATTAINED_OPS} < {PerClass.TARGET_OPS}
          or on ({OSD_CLASS}) {PerClass.DEMAND}
            unless on ({OSD_CLASS}) {PerClass.OWED_OPS}
        )""",
    "background_recovery": f"and on ({OSD_CLASS}) ({PerClass.SHORTFALL_OPS} > 0)",
    "background_best_effort": f"and on ({OSD_CLASS}) ({PerClass.SHORTFALL_OPS} > 0)",
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
    return f"\nor on ({OSD_CLASS}) ".join(candidate.strip() for candidate in _candidates())


CAUSE: Final = Group(
    name="cephqos-cause",
    rules=(
        # An OSD that cannot give more: its clients wait, and not for a limit or for one shard.
        Recording(
            record=PerOsd.SATURATED_OPS,
            expr=f"""
            {PerOsd.DELIVERED_OPS}
              and on ({OSD}) ({PerClass.DEMAND}{{class="client"}} == 1)
              unless on ({OSD}) (
                {PerClass.ATTAINED_OPS}{{class="client"}}
                > @at_limit@ * ({PerClass.LIMIT_OPS}{{class="client"}} > 0)
              )
              unless on ({OSD}) (
                min_over_time(
                  {PerClass.LIMIT_HOLD_SECONDS}{{class="client"}}[@sustained@]
                ) > 0
              )
              unless on ({OSD}) (
                {PerClass.SHARDS_WANTING}{{class="client"}} <= @skew@
                  and on ({OSD}) {PerOsd.STORE_PILING_UP} == 0
              )
            """,
        ),
        Recording(record=PerClass.CAUSE, expr=_first_that_holds()),
        # The main one of the last minutes: it labels alerts, which must not flap with it.
        Recording(
            record=PerClass.MAIN_CAUSE,
            expr=f"topk by ({OSD_CLASS}) (1, sum_over_time({PerClass.CAUSE}[@hold@])) * 0 + 1",
        ),
        Recording(
            record=PerClusterClass.CAUSE_OSDS,
            expr=f"count by (cluster, class, cause, by) ({PerClass.MAIN_CAUSE})",
        ),
        Recording(
            record=PerClusterClass.MAIN_CAUSE,
            expr=f"topk by (cluster, class) (1, {PerClusterClass.CAUSE_OSDS}) * 0 + 1",
        ),
    ),
)
