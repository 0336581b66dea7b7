"""Recording rules: what is seen of the classes with demand. They are few; causes join them."""

from typing import Final

from cephqos_alerts.rules.rule import RecordedSeries, previously
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS

WANTING: Final = (
    RecordedSeries(
        record=PerClass.AT_LIMIT,
        comment="Its limit holds it: by what it gets, or by dmClock's own tags.",
        expr=f"""
        {PerClass.HAS_DEMAND}
          and on ({OSD_CLASS}) (
            {PerClass.ATTAINED_OPS} > @at_limit@ * ({PerClass.LIMIT_OPS} > 0)
            or on ({OSD_CLASS})
            min_over_time({PerClass.LIMIT_WAIT_SECONDS}[@sustained@]) > 0
          )
        """,
    ),
    RecordedSeries(
        record=PerClass.UNMET_OPS,
        comment="""
        A class that has its reservation suffers nothing from one that takes what is left over.
        Clients without a reservation lack nothing that can be counted, and are short all the
        same.
        """,
        expr=f"""
        {PerClass.SHORTFALL_OPS} > 0 and on ({OSD_CLASS}) {PerClass.HAS_DEMAND}
        or on ({OSD_CLASS}) 0 * (
          {PerClass.HAS_DEMAND}{{class="client"}}
            and on ({OSD_CLASS}) ({PerClass.ATTAINED_OPS} < {PerClass.TARGET_OPS})
        )
        or on ({OSD_CLASS}) 0 * (
          {PerClass.HAS_DEMAND}{{class="client"}}
            unless on ({OSD_CLASS}) {PerClass.EFFECTIVE_RESERVATION_OPS}
        )
        """,
    ),
    RecordedSeries(
        record=PerClass.AWAY,
        comment="Its clients' writes spend their time neither in the queue nor in its own store.",
        expr=f"""
        {PerClass.HAS_DEMAND}{{class="client"}}
          and on ({OSD}) ({PerOsd.OWN_STORE} < @own_store@)
        """,
    ),
    RecordedSeries(
        record=PerOsd.OVERSTATED,
        comment="""
        The capacity, in multiples of the most that was delivered while clients had unmet demand.
        What an OSD did in the last day, saturated or not, it can do.
        """,
        expr=f"""
        {PerOsd.CAPACITY_OPS} / {previously(PerOsd.PROVEN_OPS)} > @overstated@
          unless on ({OSD}) (
            {PerOsd.CAPACITY_OPS} <= @overstated@ * {previously(PerOsd.DELIVERED_OPS_MAX1D)}
          )
        """,
    ),
    RecordedSeries(
        record=PerOsd.SATURATED_OPS,
        comment="""
        What an OSD does that cannot give more: its clients wait, and not for a limit, for one shard
        or for another OSD. A limit that held at any time of the hold may have held all of it.
        """,
        expr=f"""
        {PerOsd.DELIVERED_OPS}
          and on ({OSD}) {PerClass.HAS_DEMAND}{{class="client"}}
          unless on ({OSD}) {PerClass.AT_LIMIT}{{class="client"}}
          unless on ({OSD}) (
            max_over_time({PerClass.LIMIT_WAIT_SECONDS}{{class="client"}}[@hold@]) > 0
          )
          unless on ({OSD}) (
            {PerClass.SHARDS_WITH_DEMAND}{{class="client"}} <= @few_shards@
              and on ({OSD}) {PerOsd.STORE_PILING_UP} == 0
          )
          unless on ({OSD}) {PerClass.AWAY}
        """,
    ),
)
