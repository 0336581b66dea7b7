"""The judge in Python, on the series on which tests/stack puts the rules to the test."""

import numpy as np
import pytest
from tests.rules.intervals import samples
from tests.rules.judged import MINUTES, TABLE, Judged
from tests.rules.series import STEP

from cephqos_base.judge import Hold
from cephqos_base.series import QosSeries
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.arrays.windows import window_rates
from cephqos_loadgen.report.figures.attained import hold_of
from cephqos_loadgen.run_recording.columns import parse

MINUTE = 60.0


def hold(row: Judged) -> Hold:
    """What reports see of the last minute of a row."""
    families: dict[str, list[Series]] = {}
    for name, text in row.series("c1").items():
        family, labels = parse(name)
        values = np.array([v for v in samples(text) if v is not None])
        times = np.arange(len(values), dtype=np.float64) * STEP
        families.setdefault(family, []).append(Series(family, labels, times, values))
    found = Samples(families)
    own = {"ceph_daemon": row.osd.name, "class": row.work}
    (done,) = found.of(QosSeries.OPS, **own)
    times, rates = window_rates(done, 0, MINUTES * MINUTE, MINUTE)
    return hold_of(found, row.osd.name, row.work, times[-1:], rates[-1:], MINUTE)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_the_judge_says_what_the_rules_say(row: Judged) -> None:
    found = hold(row)
    assert (bool(found.has_demand[0]), bool(found.violated[0])) == (
        row.wants,
        bool(row.violated),
    )


def test_every_bound_of_the_table_is_met_from_both_sides() -> None:
    verdicts = {(row.work, row.wants, row.violated) for row in TABLE}
    for work in {row.work for row in TABLE}:
        assert (work, True, True) in verdicts
        assert (work, True, False) in verdicts


def test_one_moment_is_judged_as_many_are() -> None:
    """`top` has numbers, reports have arrays."""
    one = Hold(work="client", attained=800.0, reserved=1000.0, in_progress=3.0, waiting=2.0)
    assert (one.has_demand, one.violated) == (True, True)
    assert not Hold(work="client").violated
