"""What a run that goes on takes from the one that was interrupted, and what it refuses."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from cephqos_loadgen.archive.writer import ArchiveWriter
from cephqos_loadgen.cli import build_parser
from cephqos_loadgen.errors import UsageError
from cephqos_loadgen.run.cli import choices_from
from cephqos_loadgen.run.resume import take_along
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.model import Plan
from cephqos_loadgen.scenario.parse import Choices, parse
from cephqos_loadgen.scenario.source import variable_from_text


def of(name: str = "client-vs-scrub", choices: Choices | None = None) -> Plan:
    text, file = library.read(name)
    return parse(text, file, choices or Choices(scale="tiny"))


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    folder = tmp_path / "interrupted"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(asdict(of())))
    return folder


def chosen(*options: str) -> Choices:
    return choices_from(build_parser().parse_args(["run", *options]))


def test_scale_and_repeats_are_those_of_the_run_that_goes_on_unless_given(
    interrupted: Path,
) -> None:
    assert (chosen().scale, chosen().repeats) == ("lab", None)
    resumed = chosen("--resume", str(interrupted))
    assert (resumed.scale, resumed.repeats) == ("tiny", 1)
    other = chosen("--resume", str(interrupted), "--scale", "study", "--repeats", "2")
    assert (other.scale, other.repeats) == ("study", 2)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (of("baseline"), "the scenario is not the same"),
        (of(choices=Choices(scale="lab")), "it ran with client 20s, this would with 120s: give"),
        (
            of(choices=Choices("tiny", {"max_scrubs": variable_from_text("7")})),
            "it ran with max_scrubs 5, this would with 7: give its --var",
        ),
        (of(choices=Choices("tiny", only={"policy": ("wpq",)})), "give its --only again"),
    ],
)
def test_another_plan_is_refused_with_what_differs_and_what_to_give(
    plan: Plan, said: str, interrupted: Path, tmp_path: Path
) -> None:
    archive = ArchiveWriter(tmp_path / "out", "new")
    with pytest.raises(UsageError, match=said):
        take_along(interrupted, plan, archive)
    assert take_along(interrupted, of(), archive) == []
    archive.discard()


def test_what_is_no_run_is_told_from_one_that_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run of cephqos is there"):
        chosen("--resume", str(tmp_path))
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(UsageError, match=r"its plan\.json is damaged"):
        chosen("--resume", str(tmp_path))
