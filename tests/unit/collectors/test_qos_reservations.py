"""What the priority of a reservation says."""

from collections.abc import Sequence

import pytest

from cephqos_exporter.qos.reservations import degraded_share, reservation_kind


@pytest.mark.parametrize(
    ("priority", "kind"),
    [
        (100, "backfill"),
        (120, "backfill"),
        (140, "degraded_backfill"),
        (151, "degraded_backfill"),
        (180, "recovery"),
        (190, "recovery"),
        (200, "recovery"),
        (221, "inactive"),
        (253, "inactive"),
        (254, "forced"),
        (255, "forced"),
        (179, "delete"),
        (219, "delete"),
    ],
)
def test_the_priority_of_a_reservation_tells_what_it_is_for(priority: int, kind: str) -> None:
    assert reservation_kind(priority) == kind


def reservations(*local: int, remote: Sequence[int] = ()) -> dict[str, object]:
    def side(priorities: Sequence[int]) -> dict[str, object]:
        return {"in_progress": [{"item": "1.0", "prio": p} for p in priorities]}

    return {"local_reservations": side(local), "remote_reservations": side(remote)}


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        (reservations(), None),
        (reservations(190), 1.0),
        (reservations(110, 101), 0.0),
        (reservations(140), 1.0),
        (reservations(139), 0.0),
        (reservations(190, 110, remote=[110, 255]), 0.5),
        # The deletion of a placement group is no recovery.
        (reservations(179, 110), 0.0),
        (reservations(219, 190), 1.0),
        (reservations(179), None),
    ],
)
def test_priorities_tell_degraded_from_misplaced(
    reply: dict[str, object], share: float | None
) -> None:
    assert degraded_share(reply) == share
