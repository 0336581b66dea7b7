"""Recording rules: what holds of classes with demand, for the causes to read. Few classes have it.

Their group is in failing.py, which adds what has failed on OSDs.
"""

from typing import Final

from cephqos_alerts.recording.reservations import LIMIT_OPS, TARGET_OPS, most
from cephqos_alerts.rules.rule import RecordedSeries
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS

WANTING: Final = (
    RecordedSeries(
        record=PerClass.AT_LIMIT,
        comment="The class is at its limit: what it gets shows that, or dmClock's own tags.",
        expr=f"""
        {PerClass.HAS_DEMAND}
          and on ({OSD_CLASS}) (
            {PerClass.ATTAINED_OPS} > @reached@ * ({LIMIT_OPS} > 0)
            or on ({OSD_CLASS})
            min_over_time({PerClass.LIMIT_WAIT_SECONDS}[@sustained@]) > 0
          )
        """,
    ),
    RecordedSeries(
        record=PerClass.UNMET_OPS,
        comment="""
        How much a class with demand is short of. A class that has its reservation is short of
        nothing, even if another class takes all that is left. Clients without a reservation have no
        such figure: for them it is 0.
        """,
        expr=f"""
        {PerClass.SHORTFALL_OPS} > 0 and on ({OSD_CLASS}) {PerClass.HAS_DEMAND}
        or on ({OSD_CLASS}) 0 * (
          {PerClass.HAS_DEMAND}{{class="client"}}
            and on ({OSD_CLASS}) ({PerClass.ATTAINED_OPS}{{class="client"}} < {TARGET_OPS})
        )
        or on ({OSD_CLASS}) 0 * (
          {PerClass.HAS_DEMAND}{{class="client"}}
            unless on ({OSD_CLASS}) {PerClass.EFFECTIVE_RESERVATION_OPS}
        )
        """,
    ),
    RecordedSeries(
        record=PerClass.AWAY,
        comment="Its clients' writes spend their time neither in the queue nor in the OSD's own"
        " store.",
        expr=f"""
        {PerClass.HAS_DEMAND}{{class="client"}}
          and on ({OSD}) ({PerOsd.OWN_STORE} < @part@)
        """,
    ),
    RecordedSeries(
        record=PerOsd.OVERSTATED,
        comment="""
        The capacity, in multiples of the most that was delivered while the OSD was saturated. It is
        not overstated if the OSD delivered about as much in the last day, saturated or not.
        """,
        expr=f"""
        {PerOsd.CAPACITY_OPS} / on ({OSD}) {most("saturated")} > @more@
          unless on ({OSD}) (
            {PerOsd.CAPACITY_OPS} <= on ({OSD}) (@more@ * {most("ever")})
          )
        """,
    ),
    RecordedSeries(
        record=PerOsd.SATURATED_OPS,
        comment="""
        What a saturated OSD does. Its clients wait, but not for a limit, for one shard or for
        another OSD. If they were at a limit at any time of the hold, it does not count.
        """,
        expr=f"""
        {PerOsd.DELIVERED_OPS}
          and on ({OSD}) {PerClass.HAS_DEMAND}{{class="client"}}
          unless on ({OSD}) {PerClass.AT_LIMIT}{{class="client"}}
          unless on ({OSD}) (
            max_over_time({PerClass.LIMIT_WAIT_SECONDS}{{class="client"}}[@hold@]) > 0
          )
          unless on ({OSD}) (
            {PerClass.SHARDS_WITH_DEMAND}{{class="client"}} <= @part@
              and on ({OSD}) {PerOsd.STORE_PILING_UP} == 0
          )
          unless on ({OSD}) {PerClass.AWAY}
        """,
    ),
)
