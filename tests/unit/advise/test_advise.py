"""Arithmetic of advice: what candidates reserve, who would be violated, and what is refused."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cephqos_base.errors import UsageError
from cephqos_base.profiles import PROFILES, Share, release_independent_shares, shares_of
from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY
from cephqos_base.time_left import TimeLeft
from cephqos_insight.trial.plan import parse_candidate
from cephqos_loadgen.advise import text
from cephqos_loadgen.advise.candidates import candidates, commands, custom, trial
from cephqos_loadgen.advise.facts import (
    AdvicePiece,
    AdvisedOsd,
    Facts,
    NoAdvice,
    RecoveryBacklog,
    SaturatedOps,
    checked,
    saturated_range,
)
from cephqos_loadgen.advise.goals import answer, met_how, parse_goal, trial_for
from cephqos_loadgen.advise.outcome import Outcome, outcome


def piece(
    client: float = 40, recovery: float = 0, immediate: float = 20, demand: str = "cr"
) -> AdvicePiece:
    classes = {"c": CLIENT, "r": RECOVERY, "b": BEST_EFFORT}
    return AdvicePiece(
        attained={CLIENT: client, RECOVERY: recovery},
        demand=frozenset(classes[it] for it in demand),
        delivered=client + recovery + immediate,
    )


def osd(number: int = 0, *pieces: AdvicePiece, **about: object) -> AdvisedOsd:
    made = AdvisedOsd(
        osd=f"osd.{number}",
        in_force="mclock_scheduler",
        profile="balanced",
        media="ssd",
        capacity_origin="mon",
        capacity=100.0,
        shares=shares_of(18, "balanced") or {},
        most_delivered=70.0,
        pieces=pieces or (piece(demand=""),) * 3,
    )
    return replace(made, **about)  # type: ignore[arg-type]


def cluster(*osds: AdvisedOsd, backlog: RecoveryBacklog | None = None) -> Facts:
    return Facts(cluster="c", seconds=3600, osds=osds, backlog=backlog or RecoveryBacklog())


def rows(facts: Facts) -> dict[str, Outcome]:
    return {it.name: outcome(it, facts) for it in candidates(facts)}


def test_the_rows_are_what_is_now_the_other_profiles_a_right_capacity_and_wpq() -> None:
    found = rows(cluster(osd(), osd(1, suggested_capacity=80.0)))
    assert list(found) == [
        *("balanced", "high_client_ops", "high_recovery_ops", "balanced, capacity right", "wpq")
    ]
    assert [it.candidate.now for it in found.values()] == [True, *[False] * 4]
    assert found["high_client_ops"].reserved == {CLIENT: 120, RECOVERY: 80, BEST_EFFORT: 0}
    assert found["high_client_ops"].limits == {BEST_EFFORT: 140}
    assert found["balanced, capacity right"].reserved[CLIENT] == 90
    assert not found["wpq"].reserved and found["wpq"].verdicts == {"osd.0": "none", "osd.1": "none"}


def test_best_effort_is_unknown_where_no_known_release_gives_what_is_in_force() -> None:
    odd = {**(shares_of(18, "balanced") or {}), BEST_EFFORT: Share(0.2, None, 0.9)}
    found = rows(cluster(osd(shares=odd)))["high_client_ops"]
    assert found.reserved == {CLIENT: 60, RECOVERY: 40, BEST_EFFORT: None}
    assert found.limits == {BEST_EFFORT: None}
    # Nobody scrubs or wants to: that its reservation is not known keeps no verdict from the OSD.
    assert found.verdicts == {"osd.0": "kept"}
    scrubs = replace(piece(demand="c"), attained={CLIENT: 40, BEST_EFFORT: 3})
    busy = rows(cluster(osd(0, *(scrubs,) * 3, shares=odd)))["high_client_ops"]
    assert busy.verdicts == {"osd.0": "unknown"}
    newer = rows(cluster(osd(shares=shares_of(20, "balanced"))))["high_client_ops"]
    assert newer.reserved[BEST_EFFORT] == 5


def test_an_osd_keeps_what_it_was_seen_to_do_and_violates_what_it_cannot() -> None:
    wants = (piece(demand="c"),) * 3  # 20 for replicas, 50 or 60 reserved for clients
    assert rows(cluster(osd(0, *wants)))["balanced"].verdicts == {"osd.0": "kept"}
    # 80 were never delivered: that it cannot do them is known only if it was seen saturated.
    assert rows(cluster(osd(0, *wants)))["high_client_ops"].verdicts == {"osd.0": "unknown"}
    full = osd(0, *wants, saturated_ops=SaturatedOps(68.0, 70.0))
    assert rows(cluster(full))["high_client_ops"].verdicts == {"osd.0": "violated"}
    # A class gets nine tenths of its reservation before it counts as violated.
    near = osd(0, *wants, saturated_ops=SaturatedOps(68.0, 74.5))
    assert rows(cluster(near))["high_client_ops"].verdicts == {"osd.0": "unknown"}
    idle = osd(0, *(piece(demand=""),) * 3, saturated_ops=SaturatedOps(10.0, 20.0))
    assert rows(cluster(idle))["high_client_ops"].verdicts == {"osd.0": "kept"}
    ec = osd(0, *wants, delivered_is_lower_bound=True)
    assert rows(cluster(ec))["high_recovery_ops"].verdicts == {"osd.0": "unknown"}


def test_a_class_that_waits_elsewhere_may_take_its_whole_reservation_here() -> None:
    """Clients that wait for one OSD ask more of all if it does more: 60 with 30 for replicas."""
    calm = piece(client=40, demand="")
    beside = replace(calm, demand_elsewhere=frozenset({CLIENT}))
    found = rows(
        cluster(
            osd(0, *(beside,) * 3, most_delivered=85.0), osd(1, *(calm,) * 3, most_delivered=85.0)
        )
    )
    assert found["high_client_ops"].verdicts == {"osd.0": "unknown", "osd.1": "kept"}
    assert found["high_recovery_ops"].verdicts == {"osd.0": "kept", "osd.1": "kept"}


def test_work_of_another_class_is_no_proof_that_clients_can_have_as_much() -> None:
    """Recovery reads, and has most of it in the cache; clients write."""
    wants = (piece(client=40, recovery=100, demand="c"),) * 3
    found = rows(cluster(osd(0, *wants, most_delivered=160.0)))
    assert found["high_client_ops"].verdicts == {"osd.0": "unknown"}  # 60 were never seen
    assert found["high_recovery_ops"].verdicts == {"osd.0": "kept"}


def test_what_was_violated_although_it_fits_is_no_proof_for_another_setting() -> None:
    lost = replace(piece(demand="c"), violated_seconds=5.0)
    found = rows(cluster(osd(0, lost, *(piece(demand="c"),) * 2)))
    assert found["balanced"].verdicts == {"osd.0": "violated"}
    assert found["high_recovery_ops"].verdicts == {"osd.0": "unknown"}


BUSY = osd(
    0,
    *(piece(client=30, recovery=20, immediate=0, demand="c"),) * 3,
    saturated_ops=SaturatedOps(100.0, 100.0),
)
RECOVERING = RecoveryBacklog(degraded=1000.0, misplaced=0.0, recovered=100.0, work={"osd.0": 200.0})


def test_the_backlog_takes_as_long_as_what_clients_leave_allows() -> None:
    found = rows(cluster(BUSY, backlog=RECOVERING))
    # Two operations for each copy, as measured; 100 less what is reserved for clients.
    assert found["balanced"].backlog_seconds == pytest.approx(2000 / 50)
    assert found["high_client_ops"].backlog_seconds == pytest.approx(2000 / 40)
    assert found["wpq"].backlog_seconds == pytest.approx(2000 / 100)
    unknown = rows(cluster(replace(BUSY, saturated_ops=None), backlog=RECOVERING))
    assert unknown["balanced"].backlog_seconds is None
    # Misplaced data may be backfilled as best effort, or recovered by the log: all that is left.
    misplaced = rows(cluster(BUSY, backlog=RecoveryBacklog(misplaced=1000.0)))
    assert misplaced["high_client_ops"].backlog_seconds == pytest.approx(1000 / 100)
    assert rows(cluster(BUSY, backlog=RecoveryBacklog(degraded=0.0)))["wpq"].backlog_seconds is None


def test_commands_set_a_candidate_and_take_it_back() -> None:
    facts = cluster(
        osd(suggested_capacity=80.0), osd(1, suggested_capacity=90.0, capacity_origin="default")
    )
    its = {it.name: commands(it, facts) for it in candidates(facts)}
    assert its["balanced"].apply == ()
    assert its["high_client_ops"].apply == (
        "ceph config set osd osd_mclock_profile high_client_ops",
    )
    assert its["high_client_ops"].back == ("ceph config set osd osd_mclock_profile balanced",)
    right = its["balanced, capacity right"]
    assert right.apply[0] == "ceph config set osd.0 osd_mclock_max_capacity_iops_ssd 80"
    assert right.back == (
        "ceph config set osd.0 osd_mclock_max_capacity_iops_ssd 100",
        "ceph config rm osd.1 osd_mclock_max_capacity_iops_ssd",
    )
    assert its["wpq"].back == ("ceph config set osd osd_op_queue mclock_scheduler",)
    assert "Restart" in its["wpq"].after
    assert "one host after the other" in its["wpq"].after and "ok-to-stop" in its["wpq"].after


def test_what_will_do_now_is_preferred_then_a_profile_then_reservations_of_its_own() -> None:
    facts = cluster(*(osd(n, saturated_ops=SaturatedOps(97.0, 100.0)) for n in range(2)))

    def found(*goals: str) -> tuple[str, str]:
        asked = [parse_goal(it) for it in goals]
        answered = answer(asked, facts)
        name = answered.candidate.name if answered.candidate else ""
        return name, met_how(asked, answered)

    assert found("client at least 90 ops/s")[0] == "balanced"
    assert found("client at least 115 ops/s")[0] == "high_client_ops"
    # Clients of 80 write 40 for replicas: 128 write 64, and each OSD has to do 64 and 32.
    assert found("client at least 128 ops/s")[0] == "custom, client 65%"
    name, why = found("client at least 160 ops/s")
    assert not name and why.startswith("Nothing reserves this")
    name, why = found("client p99 < 20ms")
    assert not name and why == "Not known: client p99 < 20ms: latencies are not predicted."
    assert (
        "nothing is to recover" in found("recovery within 1h")[1]
        or "no exporter" in (found("recovery within 1h")[1])
    )


def test_more_than_was_delivered_is_refused_where_no_osd_was_seen_saturated() -> None:
    facts = cluster(osd())
    answered = answer([parse_goal("client at least 60 ops/s")], facts)
    assert answered.candidate is None and answered.unknown
    assert "delivered 70 at most" in answered.why
    full = cluster(osd(saturated_ops=SaturatedOps(55.0, 90.0)))
    assert (
        "did 55 to 90 when it was saturated"
        in answer([parse_goal("client at least 55 ops/s")], full).why
    )


def test_what_a_class_did_not_get_now_while_it_waited_is_not_given_by_what_is_set_now() -> None:
    waits = osd(0, *(piece(client=30, recovery=30, demand="cr"),) * 3, most_delivered=130.0)
    asks = [parse_goal("client at least 40 ops/s")]
    found = answer(asks, cluster(waits)).candidate
    assert found is not None and found.name == "high_client_ops"
    idle = osd(
        0, *(piece(client=30, demand=""),) * 3, most_delivered=130.0
    )  # it did not ask for more
    found = answer(asks, cluster(idle)).candidate
    assert found is not None and found.now


def test_reservations_of_a_capacity_that_is_too_high_are_sought_with_a_right_one() -> None:
    high = {
        "capacity": 1000.0,
        "suggested_capacity": 100.0,
        "saturated_ops": SaturatedOps(98.0, 102.0),
    }
    facts = cluster(osd(0, *(piece(client=30, recovery=30, immediate=0),) * 3, **high))
    chosen = answer([parse_goal("client at least 55 ops/s")], facts).candidate
    assert chosen is not None and chosen.name == "high_client_ops, capacity right"
    its = commands(chosen, facts)
    assert its.apply == (
        "ceph config set osd.0 osd_mclock_max_capacity_iops_ssd 100",
        "ceph config set osd osd_mclock_profile high_client_ops",
    )
    assert its.back == (
        "ceph config set osd.0 osd_mclock_max_capacity_iops_ssd 1000",
        "ceph config set osd osd_mclock_profile balanced",
    )


def test_recovery_in_a_time_needs_its_reservation_on_each_osd() -> None:
    facts = cluster(BUSY, backlog=RECOVERING)
    soon = answer([parse_goal("recovery within 45s")], facts)  # 44 a second beside 50 for clients
    assert soon.candidate is not None and soon.candidate.name == "balanced"
    sooner = answer([parse_goal("recovery within 36s")], facts)  # 56 a second
    assert sooner.candidate is not None and sooner.candidate.name == "high_recovery_ops"
    assert "slots" in met_how([parse_goal("recovery within 36s")], sooner)
    never = answer([parse_goal("recovery within 10s")], facts)
    assert never.candidate is None and not never.unknown
    both = [parse_goal("recovery within 36s"), parse_goal("client at least 40 ops/s")]
    chosen = answer(both, facts).candidate
    assert chosen is not None and chosen.name == "custom, client 40%"
    more = [parse_goal("recovery within 36s"), parse_goal("client at least 60 ops/s")]
    assert answer(more, facts).candidate is None


def test_custom_reservations_come_with_their_way_back() -> None:
    facts = cluster(*(osd(n, saturated_ops=SaturatedOps(97.0, 100.0)) for n in range(2)))
    chosen = answer([parse_goal("client at least 128 ops/s")], facts).candidate
    assert chosen is not None
    its = commands(chosen, facts)
    assert its.apply[:2] == (
        "ceph config set osd osd_mclock_profile custom",
        "ceph config set osd osd_mclock_scheduler_client_res 0.65",
    )
    # Removed after the profile, they would stay in force up to 20.2.
    assert its.back[-1] == "ceph config set osd osd_mclock_profile balanced"
    assert "ceph config rm osd osd_mclock_scheduler_client_res" in its.back[:-1]
    assert len(its.back) == len(its.apply)


def test_from_a_custom_profile_its_shares_go_first_or_are_replaced_in_a_trial() -> None:
    own = {CLIENT: Share(0.1, None, 0), RECOVERY: Share(0.05, None, 0.5)}
    facts = cluster(*(osd(n, profile="custom", shares=own) for n in range(2)))
    built_in = next(it for it in candidates(facts) if it.name == "high_client_ops")
    its = commands(built_in, facts)
    *removed, last = its.apply
    assert last == "ceph config set osd osd_mclock_profile high_client_ops"
    assert len(removed) == 9 and all(line.startswith("ceph config rm osd osd") for line in removed)
    assert its.back[0] == "ceph config set osd osd_mclock_profile custom"
    assert "ceph config set osd osd_mclock_scheduler_client_res 0.1" in its.back
    proposed = [word for word in shlex.split(trial(facts).command) if word.startswith("--try=")]
    tried = [parse_candidate(word.removeprefix("--try=")) for word in proposed]
    for profile, it in zip(("balanced", "high_client_ops"), tried, strict=True):
        set_to = {option.name: option.value for option in it.options}
        assert set_to["osd_mclock_profile"] == "custom"
        for cls, share in release_independent_shares(profile).items():
            assert float(set_to[f"osd_mclock_scheduler_{cls}_res"]) == share.reservation


def test_the_way_back_to_reservations_of_ones_own_sets_them_again() -> None:
    own = {CLIENT: Share(0.1, None, 0), RECOVERY: Share(0.05, None, 0.5)}
    facts = cluster(*(osd(n, profile="custom", shares=own) for n in range(2)))
    its = commands(custom(0.65), facts)
    assert "ceph config set osd osd_mclock_scheduler_client_res 0.65" in its.apply
    assert its.back == (
        "ceph config set osd osd_mclock_profile custom",
        "ceph config set osd osd_mclock_scheduler_client_res 0.1",
        "ceph config set osd osd_mclock_scheduler_client_lim 0",
        "ceph config set osd osd_mclock_scheduler_background_recovery_res 0.05",
        "ceph config set osd osd_mclock_scheduler_background_recovery_lim 0.5",
    )
    assert "weights" in its.after


@pytest.mark.parametrize(
    "wrong", ["fast", "client p98 < 1s", "client p99 < soon", "recovery within 0s"]
)
def test_a_goal_that_is_not_understood_is_a_mistake(wrong: str) -> None:
    with pytest.raises(UsageError):
        parse_goal(wrong)


def refusals() -> Iterator[tuple[Facts, str]]:
    few = (piece(),) * 2
    yield cluster(), "found no OSD"
    yield cluster(osd(0, *few)), "found figures of 2 pieces"
    yield cluster(osd(), osd(1, profile="high_client_ops")), "found several profiles: balanced 1"
    yield cluster(osd(), osd(1, in_force="wpq")), "found several schedulers"
    yield cluster(osd(), osd(1, model="")), "found no cost model of 1 OSDs, as under the mClock of"
    yield cluster(osd(in_force="")), "found scheduler 'unknown'"


@pytest.mark.parametrize(("facts", "why"), list(refusals()))
def test_what_does_not_allow_advice_is_refused(facts: Facts, why: str) -> None:
    with pytest.raises(NoAdvice, match=why):
        checked([facts])


def test_an_osd_that_restarts_is_left_out_and_counted() -> None:
    restarting = osd(1, in_force="", profile="", model="", capacity=None, shares={})
    facts = checked([cluster(osd(), restarting, backlog=RECOVERING)])
    assert [it.osd for it in facts.osds] == ["osd.0"] and facts.left_out == 1
    assert rows(facts)["high_client_ops"].reserved[CLIENT] == 60
    shown = text.text(facts, [outcome(it, facts) for it in candidates(facts)])
    assert "1 of 2 OSDs are left out" in shown
    assert text.document(facts, [])["osds_left_out"] == 1


def test_of_several_clusters_one_must_be_named() -> None:
    two = [cluster(osd()), replace(cluster(osd()), cluster="d")]
    with pytest.raises(NoAdvice, match="found 2 clusters: c, d"):
        checked(two)
    assert checked(two, "d").cluster == "d"


def test_under_wpq_reservations_of_mclock_are_unknown_without_a_capacity() -> None:
    facts = cluster(osd(in_force="wpq", profile="", shares={}, capacity=None))
    found = rows(facts)
    assert list(found) == ["wpq", "balanced", "high_client_ops", "high_recovery_ops"]
    assert found["balanced"].reserved[CLIENT] is None
    shown = text.text(facts, list(found.values()))
    assert "the capacity is not shown, as under WPQ" in shown
    its = commands(found["balanced"].candidate, facts)
    assert its.apply[0] == "ceph config set osd osd_op_queue mclock_scheduler"


def test_the_table_says_what_is_not_known() -> None:
    facts = cluster(osd(0, *(piece(demand="c"),) * 3), backlog=RECOVERING)
    shown = text.text(facts, [outcome(it, facts) for it in candidates(facts)])
    lines = shown.splitlines()
    assert lines[0] == "Cluster c, 1 OSDs, 1 h."
    assert lines[3].split() == ["balanced", "(now)", "50", "50", "0", "90", "0", "unknown"]
    assert lines[4].split()[5:8] == ["0", "to", "1"]
    assert "1 of 1 OSDs were not seen saturated" in shown
    assert "Not predicted" in shown
    assert "scrubs" not in shown
    due = replace(facts, scrub_end=TimeLeft(60.0, 180.0, 600.0))
    assert "the scrubs that are due are done in 3 min (1 min to 10 min)." in text.text(due, [])
    command = "cephqos trial --conf /etc/ceph/ceph.conf --i-know-this-cluster c"
    tried = " ".join(f"--try=profile={name}" for name in PROFILES if name != "balanced")
    proposed = trial(facts)
    assert proposed is not None
    assert (proposed.command, proposed.seconds) == (f"{command} {tried}", (5700, 11100))
    with_trial = text.text(facts, [], "", proposed)
    assert "It takes 1 h 35 min to 3 h 5 min, and goes back:" in with_trial
    assert f"    {command} {tried}" in with_trial.splitlines()
    found = text.document(facts, [outcome(it, facts) for it in candidates(facts)])
    assert found["candidates"][1]["osds"] == {"osd.0": "unknown"}
    assert found["candidates"][1]["back"] == ["ceph config set osd osd_mclock_profile balanced"]


def test_a_trial_for_a_goal_begins_with_the_best_guess() -> None:
    def tries(goal: str, **of_osd: Any) -> str:
        proposed = trial_for([parse_goal(goal)], cluster(osd(**of_osd), backlog=RECOVERING))
        return proposed.command.partition(" c ")[2] if proposed else ""

    assert tries("client p99 < 20ms", suggested_capacity=80.0) == (
        "--try=profile=high_client_ops '--try=profile=custom client_res=0.8 recovery_res=0.2'"
        " --try=osd.0/capacity=80 --by=p99"
    )
    assert tries("recovery within 1h") == (
        "--try=profile=high_recovery_ops '--try=profile=custom client_res=0.1 recovery_res=0.9'"
        " --by=recovery/s"
    )
    assert tries("client at least 100 ops/s").endswith(" --by=ops/s")
    idle = cluster(osd())
    assert trial_for([parse_goal("recovery within 1h")], idle) is None


def test_under_wpq_a_trial_of_mclock_is_on_one_host() -> None:
    """OSDs read the scheduler when they start."""
    facts = cluster(osd(in_force="wpq", profile="", shares={}), backlog=RECOVERING)
    proposed = trial(facts)
    assert proposed is not None
    words = shlex.split(proposed.command)
    assert words[-3:] == ["--host", "HOST", "--try=scheduler=mclock_scheduler"]
    assert proposed.seconds == (5400, 5400)
    shown = text.text(facts, [], "", proposed)
    assert "It takes 1 h 30 min, restarts the OSDs of one host twice, and goes back:" in shown
    assert "HOST is one whose OSDs have the device class and weight of others." in shown
    of_goal = trial_for([parse_goal("recovery within 1h")], facts)
    assert of_goal is not None
    assert shlex.split(of_goal.command)[-2:] == [
        "--try=scheduler=mclock_scheduler profile=high_recovery_ops", "--by=recovery/s",
    ]  # fmt: skip


@pytest.mark.parametrize("in_force", ["mclock_scheduler", "wpq"])
def test_each_setting_of_a_proposed_trial_is_one_that_trial_reads(in_force: str) -> None:
    facts = cluster(osd(in_force=in_force, suggested_capacity=80.0))
    proposed = trial_for([parse_goal("client p99 < 20ms")], facts)
    assert proposed is not None
    words = shlex.split(proposed.command)
    tries = [word.removeprefix("--try=") for word in words if word.startswith("--try=")]
    assert len(tries) == (1 if in_force == "wpq" else 3)
    assert all(parse_candidate(one).commands for one in tries)


def test_the_least_of_a_saturated_osd_is_certain_and_so_is_all_that_it_ever_did() -> None:
    assert saturated_range([90.0, 55.0, 70.0], 80.0) == (55.0, 90.0)
    assert saturated_range([90.0, 55.0, 70.0], 120.0) == (55.0, 120.0)
    assert saturated_range([90.0, 55.0], 120.0) is None
