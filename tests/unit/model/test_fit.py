"""What `make model` calls known: better than two simple predictors, with intervals that hold."""

from dataclasses import replace

import pytest
from tests.model.fit import (
    Predicted,
    Recorded,
    by_reservation,
    errors,
    nothing_changes,
    pairs_of,
)

from cephqos_base.series import BEST_EFFORT, RECOVERY

FIGURES = {"iops": 100.0, "p50": 0.1, "p95": 0.2, "p99": 0.4}
RUN = Recorded(
    policy="high_client_ops",
    release=18,
    capacity=100,
    bandwidth=6_553_600,
    osds=4,
    copies=2,
    shards=1,
    threads=4,
    throttle_bytes=32768,
    device_iops=300,
    depth=8,
    objects=1000,
    object_size=65536,
    groups=16,
    work=RECOVERY,
    primaries=(0.25, 0.25, 0.25, 0.25),
    replicas=(0.25, 0.25, 0.25, 0.25),
    sources=(0.4, 0.3, 0.3, 0.0),
    alone=FIGURES,
    during={**FIGURES, "recovery_seconds": 30.0},
)


def predicted(model: float | None, simple: float, factor: float = 1.2) -> Predicted:
    return Predicted(
        run=RUN,
        figure="iops",
        measured=100.0,
        model=model,
        nothing_changes=simple,
        by_reservation=simple,
        factor=factor,
    )


@pytest.mark.parametrize(
    ("models", "simple", "known"),
    [
        ((95, 108, 90), 150, True),
        ((95, 108, 90), 91, False),  # a simple predictor is as good
        ((95, 180, 190), 500, False),  # two intervals of three miss
        ((None, None, 100), 150, False),  # mostly not predicted
    ],
)
def test_a_figure_is_known_where_the_model_beats_what_is_simple(
    models: tuple[float | None, ...], simple: float, known: bool
) -> None:
    (judged,) = errors([predicted(model, simple) for model in models])
    assert judged.known is known


def test_by_reservation_gives_each_class_its_share_of_what_clients_have_alone() -> None:
    got = by_reservation(RUN, [RUN])
    assert got["iops"] == pytest.approx(60)
    assert got["p99"] == pytest.approx(0.4 / 0.6)
    assert got["recovery_seconds"] == pytest.approx(1000 / (50 * 0.4))
    best_effort = replace(RUN, work=BEST_EFFORT)
    assert by_reservation(best_effort, [RUN])["iops"] == pytest.approx(100 * 2 / 3), "by weight"
    wpq = replace(RUN, policy="wpq")
    assert by_reservation(wpq, [RUN])["iops"] == pytest.approx(100 * 63 / 68), "by priority"


def test_nothing_changes_takes_runs_of_the_same_depth() -> None:
    other = replace(RUN, depth=32, during={**RUN.during, "iops": 500.0})
    assert nothing_changes(RUN, [RUN, other])["iops"] == 100


def test_pairs_of_osds_are_primaries_and_replicas_as_often_as_was_recorded() -> None:
    pairs = pairs_of((0.5, 0.3, 0.2), (0.2, 0.5, 0.3))
    for osd, (primary, replica) in enumerate(((0.5, 0.2), (0.3, 0.5), (0.2, 0.3))):
        assert sum(v for p, v in pairs.items() if p[0] == osd) == pytest.approx(primary, abs=0.01)
        assert sum(v for p, v in pairs.items() if p[1] == osd) == pytest.approx(replica, abs=0.01)
