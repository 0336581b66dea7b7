"""What a recovery slot of an OSD is for, by its priority.

Recovery, backfill and the deletion of placement groups take slots from the same reservers
(`dump_recovery_reservations`: Ceph calls a slot a reservation).
"""

from collections.abc import Mapping
from typing import Any, Final

BACKFILL: Final = "backfill"
DELETE: Final = "delete"

# Priorities of deletion (OSD_DELETE_PRIORITY_* in osd_types.h). On a full OSD it has 255, as forced
# recovery may have too: 255 counts as recovery.
_DELETIONS: Final = frozenset({179, 219})

# The lowest priority of each kind. The pool's own priority is added, and stays within these bounds.
_KINDS: Final = (
    (254, "forced"),
    (220, "inactive"),
    (180, "recovery"),
    (140, "degraded_backfill"),
    (0, BACKFILL),
)

SIDES: Final = ("local", "remote")


def reservation_kind(priority: int) -> str:
    """What a reservation of that priority is for.

    >>> reservation_kind(190), reservation_kind(151), reservation_kind(110), reservation_kind(179)
    ('recovery', 'degraded_backfill', 'backfill', 'delete')
    """
    if priority in _DELETIONS:
        return DELETE
    return next(kind for least, kind in _KINDS if priority >= least or least == 0)


def degraded_share(reply: Mapping[str, Any]) -> float | None:
    """The share of degraded ones among the placement groups that recover on this OSD.

    Recovery of degraded data is background_recovery, that of misplaced data is
    background_best_effort. Deletions are no recovery. None if nothing recovers.
    """
    kinds = [
        kind
        for side in SIDES
        for entry in reply[f"{side}_reservations"]["in_progress"]
        if (kind := reservation_kind(int(entry["prio"]))) != DELETE
    ]
    if not kinds:
        return None
    return sum(kind != BACKFILL for kind in kinds) / len(kinds)
