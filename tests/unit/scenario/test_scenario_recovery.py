"""What is said of recovery is what happened: counts that never fall, times, what was cut off."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.load import start_and_end
from cephqos_loadgen.load.context import Marks, Sightings
from cephqos_loadgen.load.phase_runner import ended_by
from cephqos_loadgen.load.recovery_watch import ClusterLook, RecoveryFollower
from cephqos_loadgen.phase_kinds.change import ChangeSettings
from cephqos_loadgen.phase_kinds.fio import Fio, FioResult
from cephqos_loadgen.phase_kinds.flags import Flags
from cephqos_loadgen.phase_kinds.osd_out_in import OsdIn
from cephqos_loadgen.phase_kinds.wait import Wait, WaitResult
from cephqos_loadgen.plan.action import Action
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.planned import Phase, Start, Until
from cephqos_loadgen.results.phase import EndedBy, PhaseRecord, PhaseResult

CLEAN = {"active+clean": 8}
MOVING = {"active+clean": 6, "active+remapped+backfilling": 2}


def look(time: float, states: dict[str, int], objects: Mapping[int, int]) -> ClusterLook:
    sizes = {pool: count * 4096 for pool, count in objects.items()}
    return ClusterLook(1000 + time, states, objects, sizes)


def followed(*looks: ClusterLook) -> tuple[RecoveryFollower, list[str]]:
    """All looks; data is moved after the first."""
    follower = RecoveryFollower()
    follower.take(looks[0])
    follower.expect()
    events = [follower.take(each) for each in looks[1:]]
    return follower, [event for event in events if event]


def test_a_sum_that_falls_when_a_primary_changes_takes_nothing_away() -> None:
    follower, _ = followed(
        look(0, CLEAN, {1: 40, 2: 10}),
        look(1, MOVING, {1: 100, 2: 10}),
        look(2, MOVING, {1: 65, 2: 20}),  # a placement group of pool 1 has a new primary
        look(3, MOVING, {1: 117, 2: 30}),
        look(4, CLEAN, {1: 117, 2: 30}),
        look(5, CLEAN, {1: 117, 2: 30}),
    )
    recovery = follower.recovery()
    assert recovery.objects == 60 + 52 + 20, "the difference of the sums is 97"
    assert recovery.bytes == recovery.objects * 4096


UNKNOWN = {"unknown": 8}
SOME_KNOWN = {"unknown": 3, "active+clean": 5}


def test_another_manager_neither_ends_a_recovery_nor_counts_all_of_it_again() -> None:
    """It hears of placement groups one by one: until then their sums are 0, and nothing is said to
    be misplaced."""
    follower, events = followed(
        look(0, CLEAN, {1: 1000}),
        look(1, MOVING, {1: 1010}),
        look(2, UNKNOWN, {}),
        look(3, UNKNOWN, {1: 0}),
        look(4, SOME_KNOWN, {1: 600}),
        look(5, MOVING, {1: 1030}),
        look(6, CLEAN, {1: 1040}),
        look(7, CLEAN, {1: 1040}),
    )
    recovery = follower.recovery()
    assert (recovery.objects, recovery.bytes) == (40, 40 * 4096)
    assert (recovery.seconds, recovery.finished) == (5.0, True)
    assert events == ["recovery_started", "recovery_done"]


@pytest.mark.parametrize("state", ["unknown", "down", "stale+active+clean", "peered", "incomplete"])
def test_a_placement_group_of_which_nothing_is_known_is_not_calm(state: str) -> None:
    assert not look(0, {"active+clean": 7, state: 1}, {}).calm
    assert look(0, {"active+clean": 7, "active+clean+scrubbing+deep": 1}, {}).calm


def test_recovery_lasts_to_the_first_calm_look_and_is_done_with_the_second() -> None:
    follower, events = followed(
        look(0, CLEAN, {1: 0}),
        look(1, MOVING, {1: 5}),
        look(2, MOVING, {1: 10}),
        look(3, CLEAN, {1: 10}),
        look(4, CLEAN, {1: 10}),
    )
    assert events == ["recovery_started", "recovery_done"]
    assert follower.recovery().seconds == 2.0
    assert follower.recovery().finished


def test_recovery_between_two_looks_took_as_long_as_they_are_apart_and_not_nothing() -> None:
    follower, events = followed(
        look(0, CLEAN, {1: 0}), look(1, CLEAN, {1: 9}), look(2, CLEAN, {1: 9})
    )
    assert events == ["recovery_started", "recovery_done"]
    recovery = follower.recovery()
    assert (recovery.objects, recovery.seconds, recovery.finished) == (9, 1.0, True)


def test_recovery_that_is_still_under_way_says_how_long_so_far_and_that_it_is_not_finished() -> (
    None
):
    follower, _ = followed(
        look(0, CLEAN, {1: 0}), look(1, MOVING, {1: 5}), look(3.5, MOVING, {1: 8})
    )
    recovery = follower.recovery()
    assert (recovery.objects, recovery.seconds, recovery.finished) == (8, 2.5, False)
    record = PhaseRecord("fio", 0.0, 4.0, "cut_off", recovery=recovery)
    assert "recovery_seconds" not in record.headline(), "no mean over repeats is made of it"


def test_what_recovered_before_data_was_moved_does_not_count() -> None:
    follower, _ = followed(look(0, MOVING, {1: 50}), look(1, CLEAN, {1: 50}))
    assert follower.recovery().objects == 0
    assert not follower.recovery().finished


def test_settings_that_are_changed_under_a_recovery_do_not_begin_another_one() -> None:
    """A profile that is switched in the middle: all that is recovered counts."""
    follower, events = followed(look(0, CLEAN, {1: 0}), look(1, MOVING, {1: 100}))
    follower.expect(go_on=True)
    for each in (look(2, MOVING, {1: 150}), look(3, CLEAN, {1: 160}), look(4, CLEAN, {1: 160})):
        follower.take(each)
    recovery = follower.recovery()
    assert (recovery.objects, recovery.seconds, recovery.finished) == (160, 2.0, True)
    follower.expect(go_on=True)
    assert follower.recovery().objects == 0, "that one is over"
    assert events == ["recovery_started"]


@pytest.mark.parametrize(
    ("action", "moves"),
    [
        (Flags(clear=("norecover",)), True),
        (Flags(clear=("noscrub",)), False),
        (Flags(set=("noout",)), False),
        (OsdIn(), True),
        (ChangeSettings(), True),
        (Wait(), False),
    ],
)
def test_what_holds_no_data_back_does_not_begin_a_recovery(action: Action, moves: bool) -> None:
    assert action.moves_data is moves


@pytest.mark.parametrize("kind", ["with", "after"])
async def test_recovery_that_was_over_before_an_osd_came_back_ends_no_load_beside_it(
    kind: str,
) -> None:
    """The load waits for the OSD's recovery, and not for that of the time when it went away."""
    mark = Marks()
    context: Any = SimpleNamespace(marks={"in": mark}, data_moved=7.0)
    load = Phase("load", LOAD, Start(kind, "in"), Until("recovery_done", 9.0, 9.0))  # type: ignore[arg-type]
    task = asyncio.create_task(start_and_end.wait_for_start(context, load))
    await asyncio.sleep(0)
    context.data_moved = 50.0  # the OSD comes back
    mark.started.set()
    mark.ended.set()
    assert await task == 50.0


async def test_a_scrub_that_is_over_does_not_start_what_waits_for_the_next_one() -> None:
    scrubs = Sightings()
    await scrubs.seen()
    now = time.time()
    coming = asyncio.create_task(scrubs.after(now))
    await asyncio.sleep(0.05)
    assert not coming.done()
    await scrubs.seen()
    async with asyncio.timeout(1):
        await coming


STEADY = FioResult("rbd", "load", (), steady=True)
UNSTEADY = FioResult("rbd", "load", (), steady=False)
LOAD = Fio(engine="rbd", rw="read", block_size=4096, depth=1, pool="p")


@pytest.mark.parametrize(
    ("until", "came", "result", "how"),
    [
        ("recovery_done", False, FioResult("rbd", "load", ()), "cut_off"),
        ("recovery_done", True, FioResult("rbd", "load", ()), "condition"),
        ("phase", True, FioResult("rbd", "load", ()), "other_phase"),
        ("duration", False, FioResult("rbd", "load", ()), "duration"),
        ("done", False, STEADY, "done"),
        ("done", False, UNSTEADY, "cut_off"),
    ],
)
def test_what_ended_a_load_is_recorded(
    until: str, came: bool, result: PhaseResult, how: EndedBy
) -> None:
    phase = Phase("load", LOAD, Start("at"), Until(until, 2.0, 2.0))  # type: ignore[arg-type]
    assert ended_by(phase, came, result) == how


def test_work_that_is_done_before_its_end_comes_is_done() -> None:
    phase = Phase("w", Wait(), Start("at"), Until("scrub_done", 2.0, 2.0))
    assert ended_by(phase, False, WaitResult(0.0)) == "done"


@pytest.mark.parametrize("event", ["recovery_started", "scrub_started"])
@pytest.mark.parametrize("comes", [True, False])
async def test_an_event_that_does_not_come_ends_the_wait_for_it(
    event: str, comes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool without objects recovers nothing: the run would wait for ever."""
    monkeypatch.setattr(start_and_end, "_EVENT_SECONDS", 0.1)
    seen, scrubs = asyncio.Event(), Sightings()

    async def recovery_started(since: float) -> None:
        assert since == 7.0
        await seen.wait()

    before = Phase("before", Wait(), Start("at"), Until("duration", 1.0, 1.0))
    waiting = replace(before, name="w", start=Start("when", event=event))  # type: ignore[arg-type]
    mark = Marks(start_time=7.0)
    context: Any = SimpleNamespace(
        marks={"before": mark},
        watcher=SimpleNamespace(recovery_started=recovery_started),
        scrubs=scrubs,
        phase_before=lambda phase: before,
        data_moved=0.0,
    )
    task = asyncio.create_task(start_and_end.wait_for_start(context, waiting))
    mark.started.set()
    await asyncio.sleep(0.3)
    assert not task.done(), "the phase before goes on"
    mark.ended.set()
    if comes:
        seen.set()
        await scrubs.seen()
        assert await task == 7.0
        return
    with pytest.raises(RunError, match=rf"phase w: {event} was not seen within 0\.1 s of the end"):
        await task
