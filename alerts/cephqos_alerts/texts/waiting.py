"""Parts of alert texts: how long clients wait, how much longer than a day ago, and who waits.

As rendered, CLIENTS_WAIT is " In each second its client operations wait 12s, longest in state
store_device. That is 9s more than as many operations waited a day ago."

Prometheus looks these figures up only while an alert fires, so none of them is recorded.
"""

from typing import Final

from cephqos_alerts.rules.settings import LEAST_OPS
from cephqos_alerts.rules.template import only_if, query, show, when
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import AccountSeries, OpSeries, QosSeries, count

# Of all queries here, %[1]q and %[2]q are these of the alert.
_OSD: Final = ("$labels.cluster", "$labels.ceph_daemon")
_OF_OSD: Final = "{cluster=%[1]q,ceph_daemon=%[2]q}"
_FOR_OSD: Final = '{cluster=%[1]q,state="replica",by=%[2]q}'
_VALUE: Final = ". | first | value"
_SECONDS: Final = show(f"{_VALUE} | humanizeDuration")


def _more_than_before(waited: str, pieces: str, as_many: str) -> str:
    """How much longer operations wait in each second than as many `pieces` of work a day ago.

    Both are rates. The value of the template is what they wait now. The hour a day ago is looked
    at, as a minute of it may have few operations.
    """
    waited_before, pieces_before = (
        it.replace("rate(", "increase(").replace("[@rate@]", "[@hour@] offset @day@")
        for it in (waited, pieces)
    )
    each_before = f"{waited_before} / ({pieces_before} > {LEAST_OPS})"
    return when(
        query(f"round(%[3]v - {pieces} * {each_before}, 0.01)", *_OSD, f"({_VALUE})"),
        only_if(
            f"gt ({_VALUE}) 0.0",
            f" That is {_SECONDS} more than {as_many} @day in words@ ago.",
            f" That is no more than {as_many} @day in words@ ago.",
        ),
    )


# An OSD that two exporters read has each series twice: the maximum counts it once.
_BY_STATE: Final = f"max by (state, by) (rate({AccountSeries.SECONDS}{_OF_OSD}[@rate@]))"
_WAITED: Final = f"sum({_BY_STATE})"
_OPS: Final = f"sum(max by (op) (rate({count(OpSeries.LATENCY_SECONDS)}{_OF_OSD}[@rate@])))"
_LONGEST: Final = when(
    query(f"topk(1, sum by (state) ({_BY_STATE}))", *_OSD),
    f", longest in state {show('(. | first).Labels.state')}",
)
_CLIENTS_WAIT: Final = when(
    query(f"{_WAITED} > 0", *_OSD),
    f" In each second its client operations wait {_SECONDS}{_LONGEST}."
    + _more_than_before(_WAITED, _OPS, "as many operations waited"),
)

# Client operations of other OSDs that wait for this one.
_BY_WAITER: Final = f"max by (ceph_daemon) (rate({AccountSeries.SECONDS}{_FOR_OSD}[@rate@]))"
_OTHERS_WAITED: Final = f"sum({_BY_WAITER})"
_REPLICA_WRITES: Final = f"max(rate({QosSeries.REPLICA_WRITES}{_OF_OSD}[@rate@]))"
_OTHERS: Final = query(f"{_OTHERS_WAITED} > 0", *_OSD)
OTHERS_WAIT: Final = when(
    _OTHERS,
    f" In each second client operations wait {_SECONDS} for it."
    + _more_than_before(_OTHERS_WAITED, _REPLICA_WRITES, "for as many replica writes"),
)

_MOST_NAMED: Final = 5
# The OSDs that WAITED_FOR counts, those first whose clients wait longest. If an OSD completes
# nothing, the account does not know how long others wait for it.
_SEEN_WAITING: Final = (
    f'max by (ceph_daemon) (max_over_time({PerClass.EVIDENCE}{{cluster=%[1]q,class="client"'
    f',cause="other_osd",by=%[2]q}}[@hold@])) > @other_osd_rank_partly@'
)
_WAITERS: Final = (
    f"{_BY_WAITER} and on (ceph_daemon) ({_SEEN_WAITING}) or on (ceph_daemon) 0 * ({_SEEN_WAITING})"
)


def _waiters(number: str) -> str:
    """As rendered: " (osd.5, osd.1)". `number`: how many wait, as a value of the template. At most
    five are named: " (osd.5, osd.1, osd.7, osd.2, osd.9 and 3 more)". Nothing if none is known."""
    # Others may have waited at another time of the hold: no more are named than are counted.
    listed = query(f"sort_desc(topk({_MOST_NAMED}, topk(%[3]v, {_WAITERS})))", *_OSD, f"({number})")
    more = when(
        query(f"vector(%v - {_MOST_NAMED}) > 0", f"({number})"), f" and {show(_VALUE)} more"
    )
    one = only_if("$i", ", ") + show("$osd.Labels.ceph_daemon")
    names = f"{show('range $i, $osd := .')}{one}{show('end')}"
    return when(listed, f" ({names}{more})")


WAITERS: Final = _waiters("$value")

# The alert of the waiters is not sent while the reservation of this OSD is violated.
_COUNT: Final = "$others | first | value"
_IN_EACH_SECOND: Final = when(_OTHERS, f": {_SECONDS} in each second")
_WAITERS_TOO: Final = when(
    "$others := " + query(f"max_over_time({PerOsd.WAITED_FOR}{_OF_OSD}[@hold@])", *_OSD),
    f" Writes of {show(_COUNT)} other OSD{only_if(f'ne ({_COUNT}) 1.0', 's')}{_waiters(_COUNT)}"
    f" wait for {show('$labels.ceph_daemon')}, too{_IN_EACH_SECOND}.",
)
CLIENTS_WAIT: Final = only_if('eq $labels.class "client"', _CLIENTS_WAIT + _WAITERS_TOO)
