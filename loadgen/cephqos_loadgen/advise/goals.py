"""`--for`: what is asked of a candidate, and the first candidate that gives it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from cephqos_base.errors import UsageError
from cephqos_base.series import CLIENT, RECOVERY
from cephqos_base.units import parse_seconds, time_span
from cephqos_loadgen.advise.candidates import Candidate, candidates, capacity_right, custom
from cephqos_loadgen.advise.facts import MCLOCK, AdvisedOsd, Facts, clients_of
from cephqos_loadgen.advise.model_error import why_unknown
from cephqos_loadgen.advise.outcome import needed, reservation

HELP: Final = '"client at least 4000 ops/s", "recovery within 6h" or "client p99 < 20ms"'
_LATENCY: Final = re.compile(r"client p(50|95|99) *(?:<|below) *(\S+ ?\S*)")
_OPS: Final = re.compile(r"client at least ([0-9]{1,12}(?:\.[0-9]+)?) ?(?:ops/s)?")
_RECOVERY: Final = re.compile(r"recovery within (\S+ ?\S*)")
_STEP: Final = 0.05  # of the shares that are tried

Met = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Goal:
    """`figure`: p50, p95, p99, ops or recovery; `value`: seconds, or normalised ops/s."""

    text: str
    figure: str
    value: float


def parse_goal(text: str) -> Goal:
    """Raises UsageError."""
    words = " ".join(text.split())
    if match := _LATENCY.fullmatch(words):
        goal = Goal(words, f"p{match[1]}", parse_seconds(match[2]))
    elif match := _RECOVERY.fullmatch(words):
        goal = Goal(words, "recovery", parse_seconds(match[1]))
    elif match := _OPS.fullmatch(words):
        goal = Goal(words, "ops", float(match[1]))
    else:
        raise UsageError(f"--for {text!r}: expected {HELP}")
    if not goal.value:
        raise UsageError(f"--for {text!r}: expected more than 0")
    return goal


@dataclass(frozen=True, slots=True)
class GoalAnswer:
    """The candidate that gives all of it, or why there is none; `unknown`: there might be one."""

    candidate: Candidate | None
    unknown: bool
    why: str


def answer(goals: Sequence[Goal], facts: Facts) -> GoalAnswer:
    """What is set now if it will do, else a built-in profile, else reservations of its own."""
    doubts, refused = [], []
    for candidate in _tried(goals, facts):
        met = [check(goal, candidate, facts) for goal in goals]
        if all(it == "yes" for it, _ in met):
            return GoalAnswer(candidate, False, "")
        refused += [why for it, why in met if it == "no"]
        if not any(it == "no" for it, _ in met):
            doubts += [why for it, why in met if it == "unknown"]
    if doubts:
        return GoalAnswer(None, True, doubts[-1])
    return GoalAnswer(None, False, refused[-1] if refused else "no reservation can be set")


def _tried(goals: Sequence[Goal], facts: Facts) -> Iterator[Candidate]:
    """The custom ones leave the most to the class that no goal is about."""
    those = [it for it in candidates(facts) if it.scheduler == MCLOCK]
    if facts.osds[0].model == "bandwidth":
        shares = [round(_STEP * step, 2) for step in range(1, round(1 / _STEP))]
        clients = any(goal.figure != "recovery" for goal in goals)
        those += map(custom, shares if clients else shares[::-1])
    yield from those
    yield from capacity_right(facts, *(it for it in those if not it.now and not it.capacities))


def check(goal: Goal, candidate: Candidate, facts: Facts) -> tuple[Met, str]:
    """Whether the candidate gives it, and if not why."""
    if goal.figure == "ops":
        return _client_ops(goal, candidate, facts)
    if goal.figure == "recovery":
        return _recovery(goal, candidate, facts)
    return "unknown", (
        f"{goal.text}: latencies are not predicted: {why_unknown(f'client {goal.figure}')}. Try a"
        ' candidate and measure, or use --for "client at least N ops/s"'
    )


def _client_ops(goal: Goal, candidate: Candidate, facts: Facts) -> tuple[Met, str]:
    """Each OSD reserves its part of it, if clients spread over the OSDs as they did."""
    whole = sum(clients_of(osd) for osd in facts.osds)
    if not whole:
        return "unknown", f"{goal.text}: clients did nothing, so it is not known on which OSDs"
    parts = {osd.osd: goal.value * clients_of(osd) / whole for osd in facts.osds}
    return _all_osds(goal, candidate, facts, CLIENT, parts, max(1.0, goal.value / whole))


def _recovery(goal: Goal, candidate: Candidate, facts: Facts) -> tuple[Met, str]:
    """Each OSD reserves its part of the backlog, if it has the part of recovery that it had."""
    backlog = facts.backlog
    if backlog.copies is None:
        return "unknown", f"{goal.text}: no exporter with the role cluster shows the backlog"
    if not backlog.copies:
        return "unknown", f"{goal.text}: nothing is to recover now"
    whole = sum(backlog.work.get(osd.osd, 0.0) for osd in facts.osds)
    if not whole or backlog.cls != RECOVERY:
        return "unknown", (
            f"{goal.text}: recovery did nothing in this time, or only as best effort, so its work"
            " on each OSD is not known"
        )
    rate = backlog.copies * backlog.ops_per_copy / goal.value
    parts = {osd.osd: rate * backlog.work.get(osd.osd, 0.0) / whole for osd in facts.osds}
    return _all_osds(goal, candidate, facts, RECOVERY, parts)


def _all_osds(
    goal: Goal,
    candidate: Candidate,
    facts: Facts,
    cls: str,
    parts: Mapping[str, float],
    more_writes: float = 1.0,
) -> tuple[Met, str]:
    """`more_writes`: by which factor replica writes grow with the clients."""
    doubt = ""
    for osd in facts.osds:
        met, why = _on_osd(candidate, osd, cls, parts[osd.osd], more_writes)
        if met == "no":
            return met, f"{goal.text}: {why}"
        doubt = doubt or (why if met == "unknown" else "")
    return ("unknown", f"{goal.text}: {doubt}") if doubt else ("yes", "")


def _on_osd(
    candidate: Candidate, osd: AdvisedOsd, cls: str, ops: float, more_writes: float
) -> tuple[Met, str]:
    """Whether that much is reserved for the class on the OSD, and can be given."""
    reserved = reservation(candidate, osd, cls)
    if reserved is None:
        return "unknown", f"the reservation of {cls} on {osd.osd} is not known"
    if reserved < ops:
        return "no", f"{osd.osd} would need a reservation of {ops:,.0f}, above {reserved:,.0f}"
    waited = [it.attained.get(cls, 0.0) for it in osd.pieces if cls in it.demand]
    if candidate.now and waited and fmean(waited) < ops:
        return "no", f"{osd.osd} gave it {fmean(waited):,.0f} while it waited for more"
    low, high = osd.can_do or (osd.most, None)
    for piece in osd.pieces:
        others = needed(candidate, osd, piece)
        if others is None:
            return "unknown", f"a reservation of another class on {osd.osd} is not known"
        # Of the class itself what it asks for, not all that is reserved for it.
        own = reserved if cls in piece.wanted else min(reserved, piece.attained.get(cls, 0.0))
        whole = others - own + ops + piece.immediate * (more_writes - 1)
        if high is not None and whole > high:
            return "no", f"{osd.osd} would have to do {whole:,.0f} ops/s and can do {high:,.0f}"
        if whole > low or osd.not_all_counted:
            known = (
                f"it delivered {low:,.0f} at most and was not seen saturated"
                if high is None
                else f"it did {low:,.0f} to {high:,.0f} when it was saturated"
            )
            return "unknown", (
                f"{osd.osd} would have to do {whole:,.0f} ops/s; {known}, so more is not known. See"
                " cephqos capacity"
            )
    return "yes", ""


def met_how(goals: Sequence[Goal], answered: GoalAnswer) -> str:
    """One line for the user."""
    asked = " and ".join(goal.text for goal in goals)
    if answered.candidate is None:
        return f"{'Not known' if answered.unknown else 'Nothing reserves this'}: {answered.why}."
    name = f"{answered.candidate.name}{' (now)' if answered.candidate.now else ''}"
    said = f"{asked}: {name} reserves it, and no OSD has to do more than it was seen to do."
    for goal in goals:
        if goal.figure == "recovery":
            said += (
                f" It is a rate that ends the backlog in {time_span(goal.value)}; whether recovery"
                " uses it depends on its slots, too."
            )
    return said
