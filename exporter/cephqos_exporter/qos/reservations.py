"""What a recovery slot of an OSD is for, known by its priority.

Recovery, backfill and the deletion of placement groups all take reservations from the same
reservers (`dump_recovery_reservations`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

BACKFILL: Final = "backfill"
DELETE: Final = "delete"

# Deletion uses these two (OSD_DELETE_PRIORITY_* in osd_types.h). On an OSD that is full it has 255,
# as forced recovery may have: that is taken for recovery.
_DELETIONS: Final = frozenset({179, 219})

# Lowest priority of each kind. What a pool's own priority adds stays within these bounds.
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
    """Of the placement groups recovering on this OSD, the share that lacks redundancy.

    Recovery of degraded data belongs to background_recovery, of merely misplaced data to
    background_best_effort. Deletions are no recovery. None when nothing recovers.
    """
    kinds = [kind for kind in _in_progress(reply) if kind != DELETE]
    if not kinds:
        return None
    return sum(kind != BACKFILL for kind in kinds) / len(kinds)


def _in_progress(reply: Mapping[str, Any]) -> Iterator[str]:
    for side in SIDES:
        for entry in reply[f"{side}_reservations"]["in_progress"]:
            yield reservation_kind(int(entry["prio"]))
