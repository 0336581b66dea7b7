"""The command under a report repeats the run that it is about."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.command import repeat_command
from cephqos_loadgen.report.figures.analysis import ReportRun, analyse
from cephqos_loadgen.scenario.library import shipped
from cephqos_loadgen.scenario.parse import Choices, parse


@pytest.fixture
def run(tmp_path: Path) -> ReportRun:
    points = {"a": [SyntheticRepeat(1000.0)]}
    return analyse(open_archive(Builder(points=points).write(tmp_path / "archive")))


def of(run: ReportRun, **plan: object) -> list[str]:
    return shlex.split(repeat_command(replace(run, plan={**run.plan, **plan})))


def test_values_of_an_axis_that_did_not_run_are_left_out(run: ReportRun) -> None:
    text = shipped()["client-vs-scrub"]
    points = [
        {"axes": [["experiment", "scrub"], ["policy", policy]]} for policy in ("wpq", "balanced")
    ]
    words = of(run, text=text, points=points, variables=[["objects", "20 K"]], order="grouped")
    assert words[:3] == ["cephqos", "run", "client-vs-scrub"]
    assert words[words.index("--var") + 1] == "objects=20 K"
    assert words[words.index("--order") + 1] == "grouped" and "--seed" not in words
    only = [words[n + 1] for n, word in enumerate(words) if word == "--only"]
    assert only == ["experiment=scrub", "policy=wpq,balanced"]
    chosen = dict(each.split("=") for each in only)
    plan = parse(text, "x", Choices(only={a: tuple(v.split(",")) for a, v in chosen.items()}))
    assert [dict(point.axes) for point in plan.points] == [dict(p["axes"]) for p in points]


def test_a_scenario_that_is_not_shipped_is_the_one_in_the_archive(run: ReportRun) -> None:
    assert of(run, text="scenario: client-vs-scrub")[2] == "archive/scenario.yaml"


def test_the_order_of_a_random_run_has_its_seed(run: ReportRun) -> None:
    words = of(run, order="random", seed=7)
    assert words[words.index("--seed") + 1] == "7"


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: 2026-99-99", "[" * 5000, "a: &a [x]\na: *a", "[]", "matrix: 3", "\0", "!!x y"],
)
def test_a_scenario_that_is_no_yaml_still_gives_a_command(run: ReportRun, text: str) -> None:
    assert of(run, text=text)[:2] == ["cephqos", "run"]
