"""Why a class of an OSD gets no more: every cause that its own evidence supports, the first leads.

Each condition gives a series per OSD and class with demand, whether its reservation is violated or
not. Several can hold at once; all are recorded, and the most urgent is called the cause. DESIGN.md
has the reasoning and the blind spots of each.
"""

from typing import Final

from cephqos_alerts.recording.failing import FAILING
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup
from cephqos_base.recorded import PerClass, PerClusterClass, PerOsd, PerOsdPeer
from cephqos_base.series import OSD, OSD_CLASS, SCHEDULED, NetworkSeries, QosSeries, RecoverySeries

# The higher leads where several hold. A failure that somebody can mend now goes before a state
# that needs a decision; evidence of its own goes before the absence of other evidence.
RANKS: Final = {
    "device": 90,
    "cpu": 85,
    "limit": 80,
    "skew": 75,
    "interference": 70,
    # Who waits for another OSD is not held up by the replica work that fills its own.
    "replica": 65,
    "network": 62,
    "immediate": 60,
    "capacity": 40,
    "unknown": 1,
}
# What another OSD did is told there.
ELSEWHERE: Final = "replica"
# An OSD whose threads are busy, and that still does its usual work.
_BUSY_CPU_RANK: Final = 35
# Slow heartbeats to an OSD that is well: replica writes wait for the link. This leads over waiting
# for an OSD that is well, not over waiting for one whose device or CPU has failed.
_ONLY_NETWORK_RANK: Final = 67
_SICK_RANK: Final = 68
# Nothing that runs on the OSD itself slows it as much as a device that has failed elsewhere. A CPU
# that others lack is what a flood of work takes.
_FAILED_RANK: Final = 72
# Time spent elsewhere, by an OSD that cannot be told.
_AWAY_RANK: Final = 45
# More time spent elsewhere than where all are well, while an OSD holds up others.
_PARTLY_AWAY_RANK: Final = 61


def _wanting(condition: str) -> str:
    """Those with demand for whose OSD the condition holds."""
    return f"{PerClass.WANTS} and on ({OSD}) ({condition.strip()})"


# What is delivered is all that there is: pools that no counter shows leave it a lower bound.
COUNTED: Final = f"""
  unless on ({OSD}) (max by ({OSD}) ({QosSeries.DELIVERED_IS_LOWER_BOUND}) == 1)
"""

# Replica work fills the OSD, and without it the class would have had what it is owed. Whoever waits
# elsewhere would still wait there.
_IMMEDIATE: Final = f"""
{PerClass.WANTS}
  and on ({OSD_CLASS}) (
    (
      {PerClass.SHORTFALL_OPS} and on ({OSD_CLASS}) {PerClass.WANTS}
      or {PerClass.WANTS} * 0
    )
    <= on ({OSD}) group_left () sum by ({OSD})
      ({PerClass.ATTAINED_OPS}{{class="immediate"}})
  )
  and on ({OSD}) (
    sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class="immediate"}})
    > @immediate_share@ * {PerOsd.DELIVERED_OPS}
  )
  and on ({OSD}) ({PerOsd.DELIVERED_OPS} > @full@ * {PerOsd.CAPACITY_OPS})
  unless on ({OSD_CLASS}) {PerClass.AWAY}
"""

_AT_LIMIT: Final = f"""
{PerClass.WANTS}
  and on ({OSD_CLASS}) (
    {PerClass.ATTAINED_OPS} > @at_limit@ * ({PerClass.LIMIT_OPS} > 0)
    or on ({OSD_CLASS})
    min_over_time({PerClass.LIMIT_HOLD_SECONDS}[@sustained@]) > 0
  )
"""

_SKEW: Final = f"""
{PerClass.WANTS}
  and on ({OSD_CLASS}) ({PerClass.SHARDS_WANTING} <= @skew@)
  and on ({OSD}) ({PerOsd.STORE_PILING_UP} == 0)
  unless on ({OSD_CLASS}) {PerClass.AWAY}
"""

# More than was ever delivered while clients wanted more. What an OSD did in the last day, saturated
# or not, it can do.
_TOO_MUCH: Final = f"""
{PerOsd.CAPACITY_OPS} / {PerOsd.PROVEN_OPS} > @overstated@
  unless on ({OSD}) ({PerOsd.CAPACITY_OPS} <= @overstated@ * {PerOsd.DELIVERED_OPS_MAX1D})
"""
_OVERSTATED: Final = _wanting(f"{PerOsd.OVERSTATED} {COUNTED.strip()}")
# Where operations are large, bytes are what ran out, and the capacity in IOPS proves nothing.
_CAPACITY: Final = f"""
label_replace(
  ({_OVERSTATED}) and on ({OSD}) {PerOsd.LARGE_OPS},
  "by", "bandwidth", "", ""
)
or on ({OSD_CLASS}) ({_OVERSTATED})
"""

# A device is a cause where it is slow and its OSD does far less than it used to, or is far slower
# than the others. Slow alone is what a disk is.
_DEVICE: Final = _wanting(PerOsd.DEVICE_FAILING)

# Whose time is spent on another OSD, whose device or CPU has failed, is not held up by its own CPU.
_BUT_FOR_OTHERS: Final = (
    f'unless on ({OSD_CLASS}) ({PerClass.EVIDENCE}{{cause="{ELSEWHERE}", by!=""}} >= {_SICK_RANK})'
)
# Too little CPU hurts where the OSD does far less than it used to, or where others wait for it, and
# not only while a placement group moves to it.
_CPU: Final = _wanting(
    f"{PerOsd.CPU_SHORT} and on ({OSD}) ({PerOsd.COLLAPSED} or on ({OSD})"
    f" ({PerOsd.WAITED_FOR} unless on ({OSD}) {PerOsd.SLOW_FOR_RECOVERY}))"
)
# A busy CPU explains too little work only where all work is counted.
_CPU_BUSY: Final = f"{_wanting(PerOsd.CPU_SHORT)} {COUNTED.strip()}"

# One that ends nothing any more shows no ratio. One that does not answer may be dead, and then
# nobody waits for it: it comes last. Of several that are about as slow, the one named stays.
_WORST: Final = f"""
2 * {PerOsd.REPLICA_SLOWNESS}
  and on ({OSD}) {PerOsd.HOLDS_REPLICA_WRITES}
  and on ({OSD}) {PerOsd.WAITED_FOR}
or on ({OSD}) ({PerOsd.REPLICA_SLOWNESS} and on ({OSD}) {PerOsd.HOLDS_REPLICA_WRITES})
or on (cluster) {PerOsd.DEVICE_FAILING}
or on (cluster) {PerOsd.HOLDS_REPLICA_WRITES}
"""


def _as_by(series: str) -> str:
    """OSDs, named as the one that others wait for."""
    return f'label_replace({series}, "by", "$1", "ceph_daemon", "(.+)")'


_BY_THE_WORST: Final = f"topk by (cluster) (1, {_as_by(_WORST)}) * 0 + 1"

# Those that wait for others, with `by`: the one they were seen to wait for, or the worst. Recovery
# and scrub need other OSDs too, and what they get there is measured nowhere.
_AWAY_BECAUSE_OF: Final = f"""
    (
      {PerClass.AWAY} * on ({OSD}) group_left (by) (
        ({PerOsdPeer.WAITS_FOR} * 0 + 1)
          and on (cluster, by)
          {_as_by(PerOsd.HOLDS_UP_OTHERS)}
      )
      or on ({OSD_CLASS})
      ({PerClass.AWAY} or {PerClass.WANTS}{{class=~"background_.*"}})
      * on (cluster) group_left (by) ({_BY_THE_WORST})
    )
    unless on ({OSD}) {PerOsd.HOLDS_UP_OTHERS}
"""


_PARTLY_AWAY: Final = f"""
    {PerClass.WANTS}{{class="client"}}
      and on ({OSD}) ({PerOsd.OWN_STORE} < @partly_own_store@)
      unless on ({OSD}) {PerClass.AWAY}
      unless on ({OSD}) {PerOsd.HOLDS_UP_OTHERS}
"""
_PARTLY_AWAY_BECAUSE_OF: Final = f"""
    ({_PARTLY_AWAY.strip()})
    * on (cluster) group_left (by) ({_BY_THE_WORST})
"""

# The worst peer of each OSD on a network that is slow for it.
_SLOW_PEER: Final = f"""
topk by ({OSD}) (1,
  max by ({OSD}, peer) (
    {NetworkSeries.WORST_PEER_INFO} and on ({OSD}, interface) {NetworkSeries.SLOW_PEERS} > 0
  )
)
"""
_SLOW_PEERS: Final = f"max by ({OSD}) ({NetworkSeries.SLOW_PEERS})"
# Whose own link is slow, sees more slow peers than any of them does.
_OWN_LINK: Final = f"""
label_replace(
  {_SLOW_PEERS} > on ({OSD}) (
    {_SLOW_PEER.strip()} * 0 + on (cluster, peer) group_left ()
    label_replace({_SLOW_PEERS}, "peer", "$1", "ceph_daemon", "(.+)")
  ),
  "peer", "$1", "ceph_daemon", "(.+)"
)
"""

_NETWORK: Final = f"""
label_replace(
  {PerClass.AWAY} * on ({OSD}) group_left (peer) (
    ({_OWN_LINK.strip()} or on ({OSD}) {_SLOW_PEER.strip()}) * 0 + 1
  ),
  "by", "$1", "peer", "(.+)"
)
"""

_SICK: Final = f"({PerOsd.DEVICE_FAILING} or {PerOsd.CPU_SHORT})"
# Every OSD that holds up others, with the rank of those that wait for it.
_WAITED_FOR_RANKED: Final = _as_by(
    f"({PerOsd.HOLDS_UP_OTHERS} and on ({OSD}) {PerOsd.DEVICE_FAILING}) * 0 + {_FAILED_RANK}"
    f" or ({PerOsd.HOLDS_UP_OTHERS} and on ({OSD}) {PerOsd.CPU_SHORT}) * 0 + {_SICK_RANK}"
    f" or {PerOsd.HOLDS_UP_OTHERS} * 0 + {RANKS['replica']}"
)

# It holds up others with what it recovers.
_RECOVERS: Final = f"""
{PerOsd.HOLDS_UP_OTHERS} and on ({OSD}) (
  {PerClass.ATTAINED_OPS}{{class="background_recovery"}}
  > on ({OSD}) (@flood@ * {PerOsd.DELIVERED_OPS})
)
"""

# Where placement groups move, few operations of recovery are enough to take the CPU: an OSD that
# takes one over lists its objects again and again. What is far slower than that, a slow device and
# a reservation without progress have another reason.
_SLOW_FOR_RECOVERY: Final = f"""
({PerOsd.HOLDS_REPLICA_WRITES} and on ({OSD}) {PerOsd.CPU_SHORT})
  and on ({OSD}) ({PerOsd.REPLICA_SLOWNESS} < @recovery_slow@)
  and on ({OSD}) (
    sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class=~"background_.*"}}) > @recovers@
  )
  and on ({OSD}) {RecoverySeries.RESERVATIONS}{{state="in_progress", kind!="delete"}} > 0
  unless on ({OSD}) {PerOsd.DEVICE_FAILING}
"""

_NAMED: Final = (
    f'({PerClass.EVIDENCE}{{class="client", cause="{ELSEWHERE}", by!=""}} > {_PARTLY_AWAY_RANK})'
)

# Where what is delivered is not known, nothing is left that could be unknown.
_UNKNOWN: Final = f"""
{PerClass.WANTS}
  {COUNTED.strip()}
"""


def _interference(victim: str, culprit: str) -> str:
    """`culprit` has more than its reservation, most of all others, and enough to explain it."""
    others = "|".join(cls for cls in SCHEDULED if cls not in (victim, culprit))
    excess = f'{PerClass.EXCESS_OPS}{{class="{culprit}"}}'
    other = f'{PerClass.EXCESS_OPS}{{class="{others}"}}'
    lacks = f'{PerClass.LACKS_OPS}{{class="{victim}"}}'
    return f"""
    label_replace(
      {lacks}
        and on ({OSD}) ({excess} >= on ({OSD}) ({other} or on ({OSD}) {excess} * 0))
        and on ({OSD}) ({excess} >= on ({OSD}) (@interference_size@ * {lacks})),
      "by", "{culprit}", "", ""
    )
    """


# A class that has its reservation suffers no interference from one that takes what is left over.
# Clients to whom nothing was promised lack nothing that can be counted, and are short all the same.
_LACKS: Final = f"""
{PerClass.SHORTFALL_OPS} > 0 and on ({OSD_CLASS}) {PerClass.WANTS}
or on ({OSD_CLASS}) 0 * (
  {PerClass.WANTS}{{class="client"}}
    and on ({OSD_CLASS}) ({PerClass.ATTAINED_OPS} < {PerClass.TARGET_OPS})
)
or on ({OSD_CLASS}) 0 * (
  {PerClass.WANTS}{{class="client"}} unless on ({OSD_CLASS}) {PerClass.OWED_OPS}
)
"""


def _ranked(cause: str, expr: str, rank: int | None = None) -> str:
    value = RANKS[cause] if rank is None else rank
    return _with_cause(cause, f"({expr.strip()}) * 0 + {value}")


def _with_cause(cause: str, ranked: str) -> str:
    return f'label_replace({ranked}, "cause", "{cause}", "", "")'


def _evidence() -> str:
    """All causes that hold. The labels `cause` and `by` keep them apart."""
    interference = f"\nor on ({OSD_CLASS}) ".join(
        _interference(victim, culprit).strip()
        for victim in SCHEDULED
        for culprit in SCHEDULED
        if victim != culprit
    )
    immediate = f'label_replace({_IMMEDIATE}, "by", "immediate", "", "")'
    named = (
        f"group by ({OSD_CLASS}, by) ({_AWAY_BECAUSE_OF})"
        f" * on (cluster, by) group_left () ({_WAITED_FOR_RANKED})"
    )
    network = f"group by ({OSD_CLASS}, by) ({_NETWORK})"
    only = f"{network} unless on (cluster, by) {_as_by(_SICK)}"
    # An erasure-coded write takes most of its time on other OSDs where all of them are well.
    away = _ranked("replica", f"{PerClass.AWAY} {COUNTED.strip()}", _AWAY_RANK)
    partly = _ranked("replica", _PARTLY_AWAY_BECAUSE_OF, _PARTLY_AWAY_RANK)
    parts = [
        _ranked("device", _DEVICE),
        f"(({_ranked('cpu', _CPU)} or {_ranked('cpu', _CPU_BUSY, _BUSY_CPU_RANK)})"
        f" {_BUT_FOR_OTHERS})",
        _ranked("limit", PerClass.AT_LIMIT),
        _ranked("skew", _SKEW),
        _ranked("interference", interference),
        f"({_with_cause(ELSEWHERE, named)} or on ({OSD_CLASS}) {partly}"
        f" or on ({OSD_CLASS}) {away})",
        f"({_ranked('network', only, _ONLY_NETWORK_RANK)} or {_ranked('network', network)})",
        _ranked("immediate", immediate),
        _ranked("capacity", _CAPACITY),
        _ranked("unknown", _UNKNOWN),
    ]
    return "\nor ".join(parts)


_CPU_SEEN: Final = f'{PerClass.EVIDENCE}{{cause="cpu"}}'
_SEEN: Final = f"count_over_time({PerClass.EVIDENCE}[@hold@])"
_LASTED: Final = PerClass.LASTING_EVIDENCE
_SEEN_LONG: Final = f"sum by ({OSD_CLASS}, cause) ({_SEEN}) >= @lasting@ * @hold_evaluations@"
_RANKED: Final = f"quantile_over_time(0.5, {PerClass.EVIDENCE}[@hold@])"

# Too little CPU hurt for half of a hold, of a time that is three holds long.
_SHORT_OF_CPU: Final = f"""
  max_over_time({_CPU_SEEN}[@long_hold@]) and (
    sum_over_time({_CPU_SEEN}[@long_hold@])
    - {_BUSY_CPU_RANK} * count_over_time({_CPU_SEEN}[@long_hold@])
    >= {RANKS["cpu"] - _BUSY_CPU_RANK} * @lasting@ * @hold_evaluations@
  )
"""

CAUSE: Final = RuleGroup(
    name="cephqos-cause",
    rules=(
        # Those that want more, and what is seen of them: few series, which the rules below join.
        RecordedSeries(record=PerClass.AT_LIMIT, expr=_AT_LIMIT),
        RecordedSeries(record=PerClass.LACKS_OPS, expr=_LACKS),
        # Its clients' writes spend their time neither in the queue nor in its own store.
        RecordedSeries(
            record=PerClass.AWAY,
            expr=f"""
            {PerClass.WANTS}{{class="client"}}
              and on ({OSD}) ({PerOsd.OWN_STORE} < @own_store@)
            """,
        ),
        RecordedSeries(record=PerOsd.OVERSTATED, expr=_TOO_MUCH),
        # An OSD that cannot give more: its clients wait, and not for a limit, for one shard or for
        # another OSD. A limit that held at any time of the hold may have held all of it.
        RecordedSeries(
            record=PerOsd.SATURATED_OPS,
            expr=f"""
            {PerOsd.DELIVERED_OPS}
              and on ({OSD}) {PerClass.WANTS}{{class="client"}}
              unless on ({OSD}) {PerClass.AT_LIMIT}{{class="client"}}
              unless on ({OSD}) (
                max_over_time({PerClass.LIMIT_HOLD_SECONDS}{{class="client"}}[@hold@]) > 0
              )
              unless on ({OSD}) (
                {PerClass.SHARDS_WANTING}{{class="client"}} <= @skew@
                  and on ({OSD}) {PerOsd.STORE_PILING_UP} == 0
              )
              unless on ({OSD}) {PerClass.AWAY}
            """,
        ),
        *FAILING,
        RecordedSeries(
            record=PerOsd.HOLDS_UP_OTHERS,
            expr=f"{PerOsd.HOLDS_REPLICA_WRITES} or {PerOsd.DEVICE_FAILING}",
        ),
        RecordedSeries(record=PerOsd.SLOW_FOR_RECOVERY, expr=_SLOW_FOR_RECOVERY),
        RecordedSeries(record=PerClass.EVIDENCE, expr=_evidence()),
        RecordedSeries(
            record=PerClass.CAUSE,
            expr=f"topk by ({OSD_CLASS}) (1, {PerClass.EVIDENCE}) * 0 + 1",
        ),
        # What lasts leads: it labels alerts, which must not flap with it. What has lasted stays
        # until a hold has gone by without it: a fault that was mended would end as an unknown one,
        # with a ticket after the page. Where a host or its network has failed, who is to blame
        # changes all the time: the cause lasts all the same, and the one named stays until it was
        # another one for half of the time, and more often. (Some engines show for a while what is
        # recorded no more: there the new one wins by its count.) It ranks as it did for most of a
        # hold, and once it is seen for less than half of one, as before: a moment in which an OSD
        # seems to have failed changes nothing. But without CPU an OSD delivers now a third of its
        # best, now half: it ranks as one that has collapsed for as long as a fault may take to
        # show.
        RecordedSeries(
            record=PerClass.LASTING_EVIDENCE,
            expr=f"""
            (
              {_SHORT_OF_CPU.strip()} and {_LASTED}
              or ({_RANKED} and on ({OSD_CLASS}, cause) ({_SEEN_LONG})) or {_LASTED}
            )
              and topk by ({OSD_CLASS}, cause) (1,
                {_SEEN} > @lasting@ * @hold_evaluations@
                or {_LASTED} * 0 + @lasting@ * @hold_evaluations@ or {_SEEN}
              )
              and on ({OSD_CLASS}, cause) (
                {_LASTED} and on ({OSD_CLASS}, cause) {_SEEN} or {_SEEN_LONG}
              )
            """,
        ),
        RecordedSeries(
            record=PerClass.MAIN_CAUSE,
            expr=f"topk by ({OSD_CLASS}) (1, {PerClass.LASTING_EVIDENCE}) * 0 + 1",
        ),
        # How many OSDs wait for this one. A flood of recovery slows replica writes, and takes the
        # CPU: then only one whose device has failed is waited for, or whose CPU, if it recovers
        # nothing itself.
        RecordedSeries(
            record=PerOsd.WAITED_FOR,
            expr=f"""
            label_replace(
              count by (cluster, by) (
                (
                  {_NAMED} unless on ({OSD_CLASS}) {PerClass.EVIDENCE}{{cause="interference"}}
                  or {_NAMED} >= {_SICK_RANK}
                )
                unless on (cluster, by) ({_as_by(_RECOVERS.strip())})
                or {_NAMED} and on (cluster, by) ({_as_by(PerOsd.DEVICE_FAILING)})
              ),
              "ceph_daemon", "$1", "by", "(.+)"
            )
            """,
        ),
        RecordedSeries(
            record=PerClusterClass.CAUSE_OSDS,
            expr=f"count by (cluster, class, cause, by) ({PerClass.MAIN_CAUSE})",
        ),
        RecordedSeries(
            record=PerClusterClass.MAIN_CAUSE,
            expr=f"topk by (cluster, class) (1, {PerClusterClass.CAUSE_OSDS}) * 0 + 1",
        ),
    ),
)
