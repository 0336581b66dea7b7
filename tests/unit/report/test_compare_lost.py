"""`cephqos compare` where a run has no figure of what the reference has one of."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_base.command import main
from cephqos_loadgen.results.phase import RecoveryFigures


def run(*arguments: str) -> int:
    return main(["compare", *arguments])


def edited(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def sides(tmp_path: Path, *repeats: SyntheticRepeat) -> tuple[str, str]:
    """Two runs of two points; of the second run's second point these are the repeats."""
    usual = [
        SyntheticRepeat(1000.0, recovery=RecoveryFigures(1000, 1 << 30, seconds, finished=True))
        for seconds in (10.0, 10.5, 11.0)
    ]
    found = []
    for name, last in (("before", usual), ("after", list(repeats))):
        folder = Builder(run=name, points={"a": usual, "b": last}).write(tmp_path / name)

        def recovers(plan: dict[str, Any]) -> None:
            for point in plan["points"]:
                point["phases"].append({"name": "osd_in", "action": {"kind": "osd_in"}})

        edited(folder / "plan.json", recovers)
        found.append(str(folder))
    return found[0], found[1]


def recovering(seconds: float, *, finished: bool) -> SyntheticRepeat:
    return SyntheticRepeat(
        1000.0, recovery=RecoveryFigures(1000, 1 << 30, seconds, finished=finished)
    )


@pytest.mark.parametrize("unfinished", [1, 3])
def test_a_recovery_that_did_not_end_is_no_recovery_without_a_difference(
    tmp_path: Path, unfinished: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no duration: those of the repeats that did end say nothing of it."""
    repeats = [recovering(10.5, finished=number >= unfinished) for number in range(3)]
    both = sides(tmp_path, *repeats)
    assert run(*both, "--fail-if", "recovery_seconds > 1.1 * ref") == 2
    out = capsys.readouterr().out
    assert "Recovery time of policy=b: osd_in" in out and "No difference found." not in out
    assert run(*both) == 2
    assert run(*both, "--fail-if", "clat_p99 > 1.1 * ref") == 0
    assert run(*both, "--json") == 2


def test_a_load_that_stood_still_does_not_pass_a_gate_of_latency(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = recovering(10.5, finished=True)
    both = sides(tmp_path, *[replace(usual, iops=0.0)] * 3)
    assert run(*both, "--fail-if", "clat_p99 > 1.10 * ref") == 2
    assert "after has no p99 of policy=b: client, all of it" in capsys.readouterr().out
    assert run(*both) == 1  # its throughput is worse for certain


@pytest.mark.parametrize("planned", [True, False])
def test_a_point_whose_repeats_failed_passes_no_gate_and_one_that_was_not_planned_does(
    tmp_path: Path, planned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = sides(tmp_path, *[recovering(10.5, finished=True)] * 3)
    for path in Path(after).glob("repeats/*policy=b*/repeat.json"):
        edited(path, lambda data: data.update(status="failed"))
    if not planned:
        edited(Path(after) / "plan.json", lambda plan: plan["points"].pop())
    assert run(before, after) == (2 if planned else 0)
    out = capsys.readouterr().out
    assert "not compared: after lacks policy=b: client" in out
    assert ("No difference found." in out) is not planned
    assert run(before, after, "--fail-if", "iops < 0.9 * ref") == (2 if planned else 0)


def test_a_curve_that_ended_earlier_lacks_no_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sweeps end where an OSD can do no more, and searches choose their depths."""
    both = []
    for name, depths in (("before", (1, 4, 16)), ("after", (1, 4))):
        repeats = [SyntheticRepeat(1000.0, depths=depths)] * 3
        both.append(str(Builder(run=name, points={"a": repeats}).write(tmp_path / name)))
    run(*both, "--fail-if", "clat_p99 > 1.1 * ref")
    out = capsys.readouterr().out
    assert "not compared: after lacks policy=a: client depth 16" in out
    assert "not known" not in out
