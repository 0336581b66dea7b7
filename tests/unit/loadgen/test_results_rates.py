"""Rates of several jobs are taken over the time in which all of them ran."""

import pytest

from cephqos_loadgen.results.rates import DoneSoFar, over_common_time


def job(start: float, *counts: int) -> list[DoneSoFar]:
    """A point per second, from zero."""
    return [
        DoneSoFar(start + n, {"write": ios}, {"write": ios * 4096})
        for n, ios in enumerate((0, *counts))
    ]


def test_one_job_alone_has_its_own_rate() -> None:
    rates = over_common_time([job(5.0, 90, 210, 300)])
    assert rates is not None
    assert (rates.seconds, rates.ios["write"], rates.bytes["write"]) == (3.0, 100.0, 409600.0)


def test_what_a_job_did_alone_before_the_others_came_does_not_count() -> None:
    early, late = job(0.0, 1000, 1100, 1200, 1300), job(1.5, 100, 200, 300)
    rates = over_common_time([early, late])
    assert rates is not None
    assert rates.seconds == 2.5
    assert rates.ios["write"] == pytest.approx(200.0), "both did 100 a second then"


def test_jobs_that_never_ran_together_have_no_common_rate() -> None:
    assert over_common_time([job(0.0, 10), job(5.0, 10)]) is None
    assert over_common_time([]) is None
    assert over_common_time([[]]) is None
