"""What clients can have beside replica writes, in the text of ReservationViolatedWidely.

Two shares of the capacity, of OSDs that replica writes fill. What these OSDs deliver: below 100 %
they cannot do what they are configured for. And what clients can have if nothing is done but their
writes: each brings its replica writes with it, so work of other classes, which may give way, is
divided between both. At size 3 that is a third of what the OSD delivers.

A reservation is for each OSD, so the smallest share counts. It is of OSDs that are full now: the
cause lasts for some minutes after the load.
"""

from typing import Final

from cephqos_alerts.rules.template import only_if
from cephqos_alerts.texts.known import if_found
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import CLIENT, IMMEDIATE, OSD

_CAUSE: Final = ',cause="replica_writes"'
# As in sources/causes/replica_writes.yml.
_OSD_IS_FULL: Final = f"@more@ * {PerOsd.DELIVERED_OPS} > {PerOsd.CAPACITY_OPS}"
_FULL_OF_REPLICA_WRITES: Final = f"and on ({OSD}) {PerClass.MAIN_CAUSE}SELECTOR"
_DELIVERED: Final = (
    f"sum({PerOsd.DELIVERED_OPS} {_FULL_OF_REPLICA_WRITES})"
    f" / sum({PerOsd.CAPACITY_OPS} {_FULL_OF_REPLICA_WRITES})"
)


def _attained(classes: str) -> str:
    return f'sum by ({OSD}) ({PerClass.ATTAINED_OPS}{{class=~"{classes}"}})'


def _smallest_share(of_delivered: str) -> str:
    """Of the capacity, on the OSD that has the smallest."""
    return (
        f"min({of_delivered} / on ({OSD}) {PerOsd.CAPACITY_OPS} {_FULL_OF_REPLICA_WRITES}"
        f" and on ({OSD}) {_OSD_IS_FULL})"
    )


_FOR_CLIENTS: Final = _smallest_share(
    f"{PerOsd.DELIVERED_OPS} * on ({OSD}) {_attained(CLIENT)}"
    f" / on ({OSD}) {_attained(f'{CLIENT}|{IMMEDIATE}')}"
)
_LEFT: Final = _smallest_share(f"({PerOsd.DELIVERED_OPS} - on ({OSD}) {_attained(IMMEDIATE)})")
_SHARE: Final = "{{ . | first | value | humanizePercentage }}"


def _share_told(expr: str, text: str) -> str:
    return if_found(expr, ("cluster", "class"), text, also=_CAUSE)


_NOT_KEPT: Final = "cannot be kept on all of them under this load."
WHAT_CAN_BE_KEPT: Final = (
    " Replica writes have no class and go first."
    + _share_told(_DELIVERED, f" These OSDs deliver {_SHARE} of their capacity.")
    + only_if(
        f'eq $labels.class "{CLIENT}"',
        _share_told(
            _FOR_CLIENTS,
            f" Clients can have {_SHARE} of it beside their replica writes: a larger reservation"
            f" {_NOT_KEPT}",
        ),
        _share_told(
            _LEFT,
            f" Replica writes leave {_SHARE} of it to all classes: reservations of more together"
            f" {_NOT_KEPT}",
        ),
    )
)
