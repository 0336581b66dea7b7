"""`--for`: what is asked of a candidate, and the first candidate that gives it.

parse_goal("recovery within 6h") -> Goal("recovery within 6h", "recovery", 21600.0)
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal, NamedTuple

from cephqos_base.errors import UsageError
from cephqos_base.series import CLIENT, RECOVERY
from cephqos_base.units import parse_seconds, time_span
from cephqos_loadgen.advise.candidates import (
    Candidate,
    ProposedTrial,
    candidates,
    custom,
    trial,
    with_right_capacities,
)
from cephqos_loadgen.advise.facts import MCLOCK, AdvisedOsd, Facts, mean_client_ops
from cephqos_loadgen.advise.outcome import needed_ops, reservation

HELP: Final = '"client at least 4000 ops/s", "recovery within 6h" or "client p99 < 20ms"'
_LATENCY: Final = re.compile(r"client p(50|95|99) *(?:<|below) *(\S+ ?\S*)")
_OPS: Final = re.compile(r"client at least ([0-9]{1,12}(?:\.[0-9]+)?) ?(?:ops/s)?")
_RECOVERY: Final = re.compile(r"recovery within (\S+ ?\S*)")
_STEP: Final = 0.05  # between the client shares of the custom candidates that are tried


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
    """The first candidate that meets all goals, or why there is none."""

    candidate: Candidate | None
    unknown: bool  # without a candidate: one may meet them, but too little is known
    why: str


class _Check(NamedTuple):
    """Whether a candidate meets a goal, and if not, why."""

    met: Literal["yes", "no", "unknown"]
    why: str = ""


_MET: Final = _Check("yes")


def answer(goals: Sequence[Goal], facts: Facts) -> GoalAnswer:
    """What is set now if it meets the goals, else a built-in profile, else a custom one."""
    doubts: list[str] = []  # of candidates that fail no goal
    failures: list[str] = []
    for candidate in _candidates_to_try(goals, facts):
        checks = [_check(goal, candidate, facts) for goal in goals]
        if all(check.met == "yes" for check in checks):
            return GoalAnswer(candidate, False, "")
        failed = [check.why for check in checks if check.met == "no"]
        failures += failed
        if not failed:
            doubts += [check.why for check in checks if check.met == "unknown"]
    if doubts:
        return GoalAnswer(None, True, doubts[-1])
    return GoalAnswer(None, False, failures[-1] if failures else "no reservation can be set")


def _candidates_to_try(goals: Sequence[Goal], facts: Facts) -> Iterator[Candidate]:
    """In the order in which they are preferred.

    The first custom candidates reserve little for the class that a goal is about, so as much as
    possible is left to the other class.
    """
    tried = [candidate for candidate in candidates(facts) if candidate.scheduler == MCLOCK]
    client_shares = [round(_STEP * step, 2) for step in range(1, round(1 / _STEP))]
    if all(goal.figure == "recovery" for goal in goals):
        client_shares.reverse()
    tried += map(custom, client_shares)
    yield from tried
    unchanged = [it for it in tried if not it.now and not it.capacities]
    yield from with_right_capacities(facts, unchanged)


def _check(goal: Goal, candidate: Candidate, facts: Facts) -> _Check:
    if goal.figure == "ops":
        check = _check_client_ops(goal, candidate, facts)
    elif goal.figure == "recovery":
        check = _check_recovery(goal, candidate, facts)
    else:
        check = _Check(
            "unknown",
            "latencies are not predicted",
        )
    return check if check.met == "yes" else check._replace(why=f"{goal.text}: {check.why}")


def _check_client_ops(goal: Goal, candidate: Candidate, facts: Facts) -> _Check:
    """Each OSD must reserve its part, if clients spread over the OSDs as they did."""
    recorded = {osd.osd: mean_client_ops(osd) for osd in facts.osds}
    all_recorded = sum(recorded.values())
    if not all_recorded:
        return _Check("unknown", "clients did nothing, so it is not known on which OSDs")
    growth = goal.value / all_recorded
    parts = {osd: goal.value * ops / all_recorded for osd, ops in recorded.items()}
    return _check_osds(candidate, facts, CLIENT, parts, replica_growth=max(1.0, growth))


def _check_recovery(goal: Goal, candidate: Candidate, facts: Facts) -> _Check:
    """Each OSD must reserve its part of the backlog, as large as its part of recovery so far."""
    backlog = facts.backlog
    if backlog.copies is None:
        return _Check("unknown", "no exporter with the role cluster shows the backlog")
    if not backlog.copies:
        return _Check("unknown", "nothing is to recover now")
    recorded = {osd.osd: backlog.work.get(osd.osd, 0.0) for osd in facts.osds}
    all_recorded = sum(recorded.values())
    if not all_recorded or backlog.work_class != RECOVERY:
        return _Check(
            "unknown",
            "recovery did nothing in this time, or only as best effort, so its work on each OSD is"
            " not known",
        )
    rate = backlog.copies * backlog.ops_per_copy / goal.value
    parts = {osd: rate * ops / all_recorded for osd, ops in recorded.items()}
    return _check_osds(candidate, facts, RECOVERY, parts)


def _check_osds(
    candidate: Candidate,
    facts: Facts,
    cls: str,
    parts: Mapping[str, float],
    *,
    replica_growth: float = 1.0,
) -> _Check:
    """Whether each OSD can give the class its part (by OSD, in normalised operations/s).

    `replica_growth`: the factor by which replica writes grow with the clients.
    """
    doubt = _MET
    for osd in facts.osds:
        check = _check_osd(candidate, osd, cls, parts[osd.osd], replica_growth)
        if check.met == "no":
            return check
        if doubt == _MET:
            doubt = check
    return doubt


def _check_osd(
    candidate: Candidate, osd: AdvisedOsd, cls: str, ops: float, replica_growth: float
) -> _Check:
    """Whether that much is reserved for the class on the OSD, and can be given."""
    reserved = reservation(candidate, osd, cls)
    if reserved is None:
        return _Check("unknown", f"the reservation of {cls} on {osd.osd} is not known")
    if reserved < ops:
        why = f"{osd.osd} would need a reservation of {ops:,.0f}, above {reserved:,.0f}"
        return _Check("no", why)
    got_in_demand = [piece.attained.get(cls, 0.0) for piece in osd.pieces if cls in piece.demand]
    if candidate.now and got_in_demand and fmean(got_in_demand) < ops:
        return _Check(
            "no", f"{osd.osd} gave it {fmean(got_in_demand):,.0f} while it waited for more"
        )
    for piece in osd.pieces:
        needed = needed_ops(candidate, osd, piece)
        if needed is None:
            return _Check("unknown", f"a reservation of another class on {osd.osd} is not known")
        # Of the class itself what the goal asks for, not all that is reserved for it.
        in_demand = cls in piece.demand_anywhere
        counted = reserved if in_demand else min(reserved, piece.attained.get(cls, 0.0))
        more_replica_writes = piece.replica_writes * (replica_growth - 1)
        check = _can_do(osd, needed - counted + ops + more_replica_writes)
        if check != _MET:
            return check
    return _MET


def _can_do(osd: AdvisedOsd, ops: float) -> _Check:
    ceiling = osd.ceiling_ops
    if ceiling is not None and ops > ceiling:
        return _Check(
            "no", f"{osd.osd} would have to do {ops:,.0f} ops/s and can do {ceiling:,.0f}"
        )
    if ops <= osd.proven_ops and not osd.delivered_is_lower_bound:
        return _MET
    if ceiling is None:
        seen = f"it delivered {osd.proven_ops:,.0f} at most and was not seen saturated"
    else:
        seen = f"it did {osd.proven_ops:,.0f} to {ceiling:,.0f} when it was saturated"
    return _Check(
        "unknown",
        f"{osd.osd} would have to do {ops:,.0f} ops/s; {seen}, so more is not known. See cephqos"
        " capacity",
    )


def trial_for(goals: Sequence[Goal], facts: Facts) -> ProposedTrial | None:
    """The trial that answers what is not known of the goals; the best guess is tried first."""
    figures = [goal.figure for goal in goals]
    recovers = all(figure == "recovery" for figure in figures)
    latency = next((figure for figure in figures if figure.startswith("p")), "")
    if recovers and not facts.backlog.copies:
        return None  # without recovery it has no length
    decides = latency or ("recovery/s" if recovers else "ops/s")
    return trial(facts, RECOVERY if recovers else CLIENT, decides)


def met_how(goals: Sequence[Goal], answered: GoalAnswer) -> str:
    """One line for the user."""
    if answered.candidate is None:
        return f"{'Not known' if answered.unknown else 'Nothing reserves this'}: {answered.why}."
    asked = " and ".join(goal.text for goal in goals)
    name = f"{answered.candidate.name}{' (now)' if answered.candidate.now else ''}"
    line = f"{asked}: {name} reserves it, and no OSD has to do more than it was seen to do."
    for goal in goals:
        if goal.figure == "recovery":
            line += (
                f" It is a rate that ends the backlog in {time_span(goal.value)}; whether recovery"
                " uses it depends on its slots, too."
            )
    return line
