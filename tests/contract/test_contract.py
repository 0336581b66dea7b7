"""Every release keeps the contract, or says why not; README.md in this folder says how."""

import pytest
from tests.contract.fields import needed_series
from tests.contract.releases import HERE, Release, releases
from tests.contract.verdict import all_fields, all_shown, judge

RELEASES = {release.name: release for release in releases()}


@pytest.mark.parametrize("name", RELEASES)
def test_what_is_read_is_shown_or_absent_by_design(name: str) -> None:
    assert judge(RELEASES[name], all_shown()[name]).faults == []


@pytest.mark.parametrize("name", RELEASES)
def test_every_command_that_is_asked_is_answered_or_declared_unknown(name: str) -> None:
    release = RELEASES[name]
    answered = {reply for moment in release.moments for reply in release.osd_replies(moment)}
    unanswered = all_shown()[name].asked - answered
    assert unanswered <= set(release.unknown_commands)
    assert answered.isdisjoint(release.unknown_commands)


def test_every_series_that_something_reads_is_shown_on_some_release() -> None:
    shown = {field.partition("{")[0] for field in all_fields()}
    assert needed_series() - shown == set()


@pytest.mark.parametrize("name", RELEASES)
def test_a_folder_says_how_it_was_made(name: str) -> None:
    origin = (HERE / name / "ORIGIN.md").read_text(encoding="utf-8")
    assert {"recorded": "Recorded", "sources": "Not recorded"}[RELEASES[name].made] in origin


def test_a_difference_that_meets_nothing_is_out_of_date() -> None:
    with pytest.raises(ValueError, match="no 'class_id: 3'"):
        changed = RELEASES["17.2"].differences[0]
        stale = type(changed)(reply="dump_op_pq_state", text={"class_id: 3": "class_id: 3client"})
        Release("x", "sources", "pacific", differences=[stale]).osd_replies("idle")
