"""The bench's verdicts: a bar is not called missed because the machine was busy."""

import pytest
from tests.bench.exporter.verdicts import Verdict, Verdicts, judge


@pytest.mark.parametrize(
    ("batches", "verdict"),
    [
        ([1.9], Verdict.KEPT),
        ([1.8, 1.9, 3.0], Verdict.KEPT),
        ([1.9, 2.1, 3.0], Verdict.NOISY),
        ([2.1, 2.2, 3.0], Verdict.MISSED),
    ],
)
def test_a_bar_is_judged_by_the_median_and_excused_by_the_best_batch(
    batches: list[float], verdict: Verdict
) -> None:
    assert judge(batches, 2.0) is verdict


def test_the_exit_status_is_that_of_the_worst_bar(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = Verdicts()
    found = [int(verdicts.worst)]
    verdicts.say("a", 1.0, "ms", most=2)
    found.append(int(verdicts.worst))
    verdicts.say("b", [1.0, 3.0, 3.0], "ms", most=2)
    found.append(int(verdicts.worst))
    verdicts.failed("a part", "it ended")
    found.append(int(verdicts.worst))
    verdicts.say("c", 1.0, "ms", most=2)
    found.append(int(verdicts.worst))
    assert found == [0, 0, 3, 1, 1]
    shown = capsys.readouterr().out
    assert "TOO NOISY TO JUDGE, 1.50 x the bar" in shown
    assert "a part FAILED: it ended" in shown


def test_what_is_missed_while_other_work_has_the_cpus_is_too_noisy() -> None:
    assert judge([4.0, 5.0], 3.5) is Verdict.MISSED
    assert judge([4.0, 5.0], 3.5, noisy=True) is Verdict.NOISY
    assert judge([3.0, 3.1], 3.5, noisy=True) is Verdict.KEPT
