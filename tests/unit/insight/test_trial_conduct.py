"""Trials on simulated clusters: right answers, guard rails, blocks that are thrown away."""

import math
import random
import re
from dataclasses import replace
from functools import partial

import pytest
from tests.trial.simulated import Load, SimulatedWorld, run

from cephqos_insight.trial import report
from cephqos_insight.trial.guard import Harm
from cephqos_insight.trial.live import NowLine, live_line
from cephqos_insight.trial.plan import REFERENCE, parse_candidate

HARM = Harm(1.5, 20.0)
QUIET = Load(noise=0.01, wander=0.01)


def test_of_100_trials_of_the_same_at_least_95_say_no_difference() -> None:
    """The load wanders, drifts, and has outliers."""
    load = Load(drift=0.2, wild=0.05)
    trials = [run(SimulatedWorld({"c": 1.0}, seed, load))[0] for seed in range(100)]
    assert sum(trial.verdicts["c"] != "clear" for trial in trials) >= 95


@pytest.mark.parametrize(("effect", "by"), [(0.7, "mean"), (1.25, "p99")])
def test_the_true_effect_is_in_the_interval_of_nine_in_ten(effect: float, by: str) -> None:
    found = []
    for seed in range(60):
        trial, _ = run(SimulatedWorld({"c": effect}, seed), by=by)
        change = trial.change("c", by)
        assert change is not None
        found.append(change.low <= effect <= change.high)
    assert sum(found) >= 54


def test_a_large_effect_is_clear_after_the_least_rounds_and_a_small_one_takes_longer() -> None:
    large, _ = run(SimulatedWorld({"c": 0.5}, 1))
    assert (large.rounds, large.verdicts["c"]) == (6, "clear")
    noisy, _ = run(SimulatedWorld({"c": 1.15}, 4, Load(noise=0.3)))
    assert noisy.rounds > 6 or noisy.verdicts["c"] == "cannot become clear"


def test_what_is_decided_is_not_tried_any_more() -> None:
    world = SimulatedWorld({"far": 0.4, "near": 1.12}, 2)
    trial, _ = run(world)
    blocks = {arm: sum(b.arm == arm for b in trial.blocks) for arm in ("far", "near")}
    assert blocks["far"] == 6 < blocks["near"]


# -- guard rails ---------------------------------------------------------------------------------


def test_a_harmful_block_is_taken_back_in_less_than_30_s_and_its_setting_is_not_tried_again() -> (
    None
):
    for seed in range(10):
        world = SimulatedWorld({"bad": 3.0}, seed, QUIET)
        trial, _ = run(world, every=3.0, harm=HARM)
        (tried, _), (back, what), (once_more, _), (again, _) = world.log
        assert what == "back" and 20 < back - tried < 30 and 20 < again - once_more < 30
        assert trial.harmed["bad"].startswith("clients' p99 was above 1.5 × ")
        assert trial.harmed["bad"].endswith(", in 2 of 2 blocks")
        (line, *_) = report.lines(trial, [parse_candidate("slots=2")], {})
        assert trial.open_candidates() == [] and "no answer" in line
        bad = [block for block in trial.blocks if block.arm == "bad"]
        assert [block.stretch for block in bad] == [None, None]


def test_few_operations_are_judged_together() -> None:
    world = SimulatedWorld({"bad": 3.0}, 2, QUIET)
    world.ops = lambda at: 15.0
    trial, _ = run(world, every=3.0, harm=HARM)
    assert "p99 was above" in trial.harmed["bad"]
    assert world.log[1][0] - world.log[0][0] < 40


def test_clients_that_stand_still_have_no_latency_and_are_harm_all_the_same() -> None:
    world = SimulatedWorld({"bad": 1.0}, 3, QUIET)
    world.ops = lambda at: 5.0 if world.arm else 2000.0
    trial, _ = run(world, every=3.0, harm=HARM)
    assert "less than a third of 2,000 ops/s" in trial.harmed["bad"]
    assert world.log[1][0] - world.log[0][0] < 30


def test_a_short_peak_is_no_harm() -> None:
    world = SimulatedWorld({"c": 1.0}, 3, QUIET)
    world.ops = lambda at: 5.0 if at % 100 < 15 else 2000.0
    trial, _ = run(world, every=3.0, harm=HARM, rounds=(3, 3))
    assert not trial.harmed and trial.rounds == 3


def test_an_osd_that_does_not_answer_ends_the_block() -> None:
    world = SimulatedWorld({"c": 1.0}, 5, QUIET)
    world.missing = lambda at: bool(world.arm)
    trial, _ = run(world, every=3.0, harm=HARM)
    assert "an OSD did not answer" in trial.harmed["c"]
    assert world.arm == ""


def test_an_osd_that_is_found_to_be_down_after_the_block_is_why_the_trial_ended() -> None:
    world = SimulatedWorld({"c": 1.0}, 6, QUIET)
    world.missing = lambda at: at > 1000
    world.says = lambda at: "down: osd.1" if at > 1040 else ""
    trial, _ = run(world, every=3.0, harm=HARM)
    assert trial.ended == "down: osd.1" and not trial.harmed


def test_trouble_ends_the_trial_and_the_setting_is_taken_back() -> None:
    world = SimulatedWorld({"c": 1.0}, 6, QUIET)
    world.says = lambda at: "down: osd.1" if at > 1000 and world.arm else ""
    trial, heard = run(world, every=3.0, harm=HARM)
    assert trial.ended == "down: osd.1" and world.arm == ""
    assert heard[-1][1]["lost"] == "down: osd.1"
    (line, *_) = report.lines(trial, [], {})
    assert line == ""


def test_without_clients_nothing_is_tried() -> None:
    world = SimulatedWorld({"c": 1.0}, 7)
    world.ops = lambda at: 0.0
    trial, _ = run(world)
    assert "no guard rail would hold" in trial.ended and world.log == []


def test_a_trial_ends_when_clients_do_too_little_for_a_guard_rail() -> None:
    """A p99 of three times as long, of clients who then do a third, must still be known."""
    world = SimulatedWorld({"c": 2.8}, 7, QUIET)
    world.ops = lambda at: 12 / 2.8 if world.arm else 12.0
    trial, _ = run(world, every=3.0, harm=HARM)
    assert "no guard rail would hold" in trial.ended and world.log == []
    fading = SimulatedWorld({"c": 1.0}, 7, QUIET)
    fading.ops = lambda at: 2000.0 if at < 1000 else 2.0
    trial, _ = run(fading, every=3.0, harm=HARM)
    assert "no guard rail would hold" in trial.ended and trial.rounds < 6


# -- blocks that say nothing ---------------------------------------------------------------------


def test_a_block_in_which_the_load_changed_is_thrown_away() -> None:
    world = SimulatedWorld({"c": 1.0}, 8, QUIET)
    world.ops = lambda at: 2000.0 if at < 1000 else 6000.0
    trial, heard = run(world, rounds=(6, 6))
    lost = next(block.lost for block in trial.blocks if "the load changed" in block.lost)
    assert any(details.get("lost") == lost for _, details in heard)
    assert len(trial.differences("c", "mean")) >= 4


def test_what_was_measured_around_a_lasting_disturbance_is_thrown_away() -> None:
    """A device stays slow. With the setting, latencies are 30 % lower before and after."""
    narrow = 0
    for seed in range(20):
        world = SimulatedWorld({"c": 0.7}, seed, QUIET)
        world.slower = lambda at: 4.0 if at > 1700 else 1.0
        trial, _ = run(world, every=30.0, rounds=(6, 6))
        change = trial.change("c", "mean")
        assert change is not None and change.low <= 0.7 <= change.high
        assert any(block.lost for block in trial.blocks)
        narrow += change.high < 0.8
        shown = [trial.mean(arm, "mean") or 0.0 for arm in ("c", REFERENCE)]
        assert shown[0] / shown[1] == pytest.approx(change.ratio), "of the same rounds"
    assert narrow >= 15


def test_a_setting_is_not_blamed_for_a_device_that_became_slow_under_it() -> None:
    world = SimulatedWorld({"c": 1.0}, 3, QUIET)
    began: list[float] = []

    def slower(at: float) -> float:
        if world.arm and at > 1500 and not began:
            began.append(at)
        return 4.0 if began else 1.0

    world.slower = slower
    trial, _ = run(world, every=3.0, harm=HARM, rounds=(6, 6))
    assert not trial.harmed and trial.rounds == 6
    lost = [block for block in trial.blocks if "was no better" in block.lost]
    assert len(lost) == 2, "then the middle of the last three blocks is a slow one"
    assert {block.arm for block in lost} == {"c"}
    assert lost[0].lost.startswith("clients' p99 was above 1.5 × ")


def test_nor_for_a_disturbance_that_ends_soon_after_the_setting_was_taken_back() -> None:
    world = SimulatedWorld({"c": 1.0}, 3, QUIET)
    began: list[float] = []

    def slower(at: float) -> float:
        if world.arm and at > 1500 and not began:
            began.append(at)
        return 4.0 if began and at < began[0] + 60 else 1.0

    world.slower = slower
    trial, _ = run(world, every=3.0, harm=HARM, rounds=(6, 6))
    assert not trial.harmed and trial.rounds == 6


@pytest.mark.parametrize("seconds", [30, 60])
def test_a_setting_is_not_blamed_for_a_short_disturbance(seconds: int) -> None:
    """It ends while the setting is taken back. Put in force once more, the setting does no harm."""
    blamed = 0
    for seed in range(10):
        at = random.Random(seed).uniform(600, 3300)  # noqa: S311 - no secret
        world = SimulatedWorld({"c": 1.0}, seed, QUIET)
        world.slower = partial(_during, at, at + seconds)
        trial, _ = run(world, every=3.0, harm=HARM, rounds=(6, 6))
        blamed += bool(trial.harmed)
    assert not blamed


def _during(start: float, end: float, now: float) -> float:
    return 4.0 if start < now < end else 1.0


def test_harm_that_lasts_on_after_the_setting_was_taken_back_is_the_settings() -> None:
    world = SimulatedWorld({"bad": 1.0}, 3, QUIET)
    last = [-math.inf]

    def slower(at: float) -> float:
        if world.arm:
            last[0] = at
        return 4.0 if at - last[0] < 40 else 1.0

    world.slower = slower
    trial, _ = run(world, every=3.0, harm=HARM)
    assert "p99 was above" in trial.harmed["bad"]


def test_disturbances_favour_no_side() -> None:
    """A minute of three times the latency, again and again: blocks of the setting and of the
    reference are thrown away alike."""
    ratios, covered = [], 0
    for seed in range(12):
        world = SimulatedWorld({"c": 1.0}, seed, QUIET)
        world.slower = lambda at: 3.0 if (at + 97) % 900 < 60 else 1.0
        trial, _ = run(world, every=3.0, harm=HARM, rounds=(12, 12))
        change = trial.change("c", "mean")
        if change:
            ratios.append(change.ratio)
            covered += change.low <= 1 <= change.high
    assert covered >= 10
    assert 3 <= sum(ratio < 1 for ratio in ratios) <= 9


def test_a_disturbed_reference_does_not_switch_the_guard_rails_off() -> None:
    """Of the last three blocks of the reference, the middle one counts."""
    world = SimulatedWorld({"bad": 5.0}, 3, QUIET)
    world.slower = lambda at: 6.0 if at < 290 and at > 200 else 1.0
    trial, _ = run(world, every=3.0, harm=HARM)
    assert "p99 was above" in trial.harmed["bad"]
    assert world.log[1][0] - world.log[0][0] < 30


def test_a_first_block_that_was_disturbed_is_made_again() -> None:
    world = SimulatedWorld({"c": 1.0}, 3, QUIET)
    world.missing = lambda at: at < 100
    trial, _ = run(world, every=3.0, harm=HARM, rounds=(3, 3))
    assert not trial.ended and trial.rounds == 3
    world = SimulatedWorld({"c": 1.0}, 3, QUIET)
    world.missing = lambda at: True
    trial, _ = run(world, every=3.0, harm=HARM)
    assert trial.ended.startswith("what is set now could not be measured: an OSD did not answer")
    assert world.log == []


def test_clients_that_do_too_little_for_a_guard_rail_are_named() -> None:
    world = SimulatedWorld({"c": 8.0}, 3, QUIET)
    world.ops = lambda at: 2.0
    trial, _ = run(world, every=3.0, harm=HARM)
    assert trial.ended == "clients did 1.99 ops/s, and with less than 15 no guard rail would hold"
    world = SimulatedWorld({"c": 8.0}, 3, QUIET)
    world.ops = lambda at: 16.0
    trial, _ = run(world, every=3.0, harm=HARM)
    assert "p99 was above" in trial.harmed["c"]


def test_a_trial_whose_clients_come_and_go_ends() -> None:
    world = SimulatedWorld({"c": 1.0}, 3, QUIET)
    world.ops = lambda at: 2000.0 if at < 300 or at % 400 < 200 else 100.0
    trial, _ = run(world, every=3.0, harm=HARM)
    assert trial.ended.startswith("4 rounds in a row could not be compared, the last as ")
    assert trial.rounds == 4


def test_what_stands_still_under_a_setting_is_said_first() -> None:
    world = SimulatedWorld({"slots=2": 1.0}, 1, QUIET)
    world.recovery = lambda: 0.0 if world.arm else 100.0
    trial, _ = run(world, rounds=(6, 6))
    (line, *_) = report.lines(trial, [parse_candidate("slots=2")], {})
    assert line.startswith("slots=2: recovery/s stood still, no difference found, up to ")
    assert "recovery/s: none in 6 of 6 blocks (100 as it is)" in line


@pytest.mark.parametrize("seed", range(6))
def test_a_recovery_that_ends_by_itself_is_not_the_setting(seed: int) -> None:
    world = SimulatedWorld({"same": 1.0}, seed, QUIET)
    world.recovery = lambda: 100.0 if world.time < 1800 else 0.0
    trial, _ = run(world, rounds=(6, 6))
    (line, *_) = report.lines(trial, [parse_candidate("same")], {})
    assert "stood still" not in line


def test_clients_that_do_less_are_said_before_a_latency_that_is_the_same() -> None:
    world = SimulatedWorld({"slots=2": 1.0}, 1, QUIET)
    world.ops = lambda at: 1000.0 if world.arm else 2000.0
    trial, _ = run(world, rounds=(6, 6))
    (line, *_) = report.lines(trial, [parse_candidate("slots=2")], {})
    assert line.startswith("slots=2: ops/s -50 % (-50 … -50), no difference found, up to ")


def test_what_recovers_per_second_may_decide() -> None:
    world = SimulatedWorld({"slots=2": 1.0}, 1, QUIET)
    world.recovery = lambda: 50.0 if world.arm else 100.0
    trial, heard = run(world, by="recovery/s")
    (line, *_) = report.lines(trial, [parse_candidate("slots=2")], {})
    assert line.startswith("slots=2: recovery/s -50 % (-50 … -50), recovery 2 × as long")
    assert trial.rounds == 6
    shown = [live_line(trial, *it) for it in heard if it[0] == "block_ended"]
    assert "round 1 of 12, slots=2: recovery/s 50" in shown
    assert "round 1 of 12, as it is: recovery/s 100" in shown


def test_a_terminal_shows_the_block_that_goes_on_and_how_long_all_may_take() -> None:
    trial, heard = run(SimulatedWorld({"slots=2": 1.0}, 1, QUIET))
    now = NowLine(trial)
    shown = [line for it in heard if (line := now.after(*it))]
    assert shown[0] == "for the guard rails, as it is"
    assert any(
        re.fullmatch(
            r"round 1 of 12, slots=2: 0 s of 5 min, mean \S+ ms now, 2 h 5 min left at most", line
        )
        for line in shown
    ), shown[:40]


def test_too_few_blocks_are_no_answer() -> None:
    trial, _ = run(SimulatedWorld({"c": 0.7}, 1, QUIET), rounds=(6, 6))
    assert report.is_answered(trial)
    trial.rounds = 2
    assert not report.is_answered(trial)


def test_recovery_is_said_as_the_time_that_it_takes_and_violated_seconds_as_their_difference() -> (
    None
):
    world = SimulatedWorld({"slots=2": 0.7}, 1, QUIET)
    world.recovery = lambda: 50.0 if world.arm else 100.0
    world.violated = lambda: 0.3 if world.arm else 0.0
    trial, _ = run(world)
    lines = list(report.lines(trial, [parse_candidate("slots=2")], {}))
    assert lines[0].startswith("slots=2: mean -3")
    assert ", recovery 2 × as long (2 … 2), ops/s " in lines[0]
    assert lines[0].endswith(", violated +18.0 s/min (+18.0 … +18.0)")


def test_the_first_fifth_of_a_block_does_not_count() -> None:
    world = SimulatedWorld({"c": 1.0}, 9, QUIET)
    trial, _ = run(world, rounds=(6, 6), every=30.0)
    seconds = {round(b.stretch.seconds) for b in trial.blocks if b.stretch}
    assert seconds == {240}


# -- the report ----------------------------------------------------------------------------------


def test_the_first_line_is_the_answer_and_commands_follow() -> None:
    candidate = parse_candidate("profile=high_client_ops")
    trial, _ = run(SimulatedWorld({candidate.name: 0.7}, 1))
    lines = list(report.lines(trial, [candidate], {candidate.name: ["ceph config rm osd x"]}))
    change = trial.change(candidate.name, "mean")
    assert change is not None
    assert lines[0] == (
        f"profile=high_client_ops: mean {report.percent(change)}, ops/s +0.0 % (+0.0 … +0.0)"
    )
    assert lines[2:7] == [
        "The settings are as they were before the trial.",
        "to keep profile=high_client_ops:",
        "    ceph config set osd osd_mclock_profile high_client_ops",
        "and to go back:",
        "    ceph config rm osd x",
    ]


def test_a_difference_that_is_not_clear_is_said_to_be_none() -> None:
    trial, _ = run(SimulatedWorld({"same": 1.0}, 1))
    (line, *_) = report.lines(trial, [parse_candidate("same")], {})
    assert line.startswith("same: no difference found, up to 16 % is possible: mean +1.5 % (")


def test_the_interval_does_not_depend_on_which_side_is_the_reference() -> None:
    trial, _ = run(SimulatedWorld({"c": 0.7}, 1))
    change = trial.change("c", "mean")
    assert change is not None
    assert math.isclose(change.high / change.ratio, change.ratio / change.low)
    arms = [block.arm for block in trial.blocks]
    assert arms.count(REFERENCE) == arms.count("c") + 1


def test_what_is_not_as_before_is_said_instead_of_that_all_is() -> None:
    trial, _ = run(SimulatedWorld({"same": 1.0}, 1))
    shown = list(report.lines(trial, [parse_candidate("same")], {}, ["osd x was set to 9"]))
    assert "After the trial: osd x was set to 9." in shown
    assert "The settings are as they were before the trial." not in shown


def test_what_was_seen_before_an_early_end_is_no_answer() -> None:
    world = SimulatedWorld({"same": 0.5}, 6, QUIET)
    world.says = lambda at: "down: osd.1" if at > 3000 else ""
    trial, _ = run(world)
    named = replace(parse_candidate("slots=2"), name="same")
    line, *more = report.lines(trial, [named], {"same": ["ceph config rm osd x"]})
    assert not any("to keep" in one for one in more)
    assert line.startswith("same: no answer yet, as it ended early: down: osd.1. So far mean -50 %")


def test_a_reference_without_clients_is_no_measure_for_the_guard_rails() -> None:
    world = SimulatedWorld({"c": 1.0}, 8, QUIET)
    world.ops = lambda at: 0.0 if 300 <= at < 900 and not world.arm else 2000.0
    trial, _ = run(world, every=3.0, harm=HARM, rounds=(3, 3))
    assert not trial.harmed and trial.rounds == 3
