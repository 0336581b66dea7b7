"""What `cephqos advise` prints: a row per candidate, what is not known, commands, and JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, SCHEDULED
from cephqos_base.terminal import aligned, printable
from cephqos_base.units import time_span
from cephqos_base.version import __version__
from cephqos_loadgen.advise.candidates import Candidate, ProposedTrial, commands
from cephqos_loadgen.advise.facts import WPQ, Facts
from cephqos_loadgen.advise.goals import GoalAnswer
from cephqos_loadgen.advise.outcome import Outcome

_HEAD: Final = (
    *("reserved, ops/s", CLIENT, RECOVERY, BEST_EFFORT, "its limit"),
    *("OSDs violated", "backlog done in"),
)
_NOT_PREDICTED: Final = (
    "client throughput",
    "client p50",
    "client p95",
    "client p99",
    "recovery time",
)


def text(
    facts: Facts,
    outcomes: Sequence[Outcome],
    asked: str = "",
    proposed: ProposedTrial | None = None,
) -> str:
    """The text for a terminal. `asked`: the answer to a goal that the user gave; `proposed`: the
    trial that answers what is not known."""
    about = f"Cluster {facts.cluster}, {len(facts.osds)} OSDs, {time_span(facts.seconds)}."
    table = aligned([_HEAD, *(_row(outcome, facts) for outcome in outcomes)])
    lines = [about, "", *table, "", *notes(facts, outcomes)]
    if asked:
        lines += ["", asked]
    lines += _trial_lines(proposed)
    for outcome in outcomes:
        lines += _command_lines(outcome.candidate, facts)
    return "\n".join(map(printable, lines))


def name_of(candidate: Candidate) -> str:
    return f"{candidate.name} (now)" if candidate.now else candidate.name


def _row(outcome: Outcome, facts: Facts) -> tuple[str, ...]:
    """The cells of _HEAD."""
    name, backlog = name_of(outcome.candidate), _backlog(outcome, facts)
    if outcome.candidate.scheduler == WPQ:
        reserved = ("none",) * len(SCHEDULED)
        return (name, *reserved, "none", "–", backlog)
    limit = outcome.limits.get(BEST_EFFORT, 0.0)
    return (
        name,
        *(ops_text(outcome.reserved[cls]) for cls in SCHEDULED),
        "none" if limit == 0 else ops_text(limit),
        violated_text(outcome),
        backlog,
    )


def ops_text(ops: float | None) -> str:
    if ops is None:
        return "unknown"
    return f"{ops:,.0f}" if ops >= 10 or not ops else f"{ops:.1f}"


def violated_text(outcome: Outcome) -> str:
    """How many OSDs; a range where that is not known of all."""
    low, high = outcome.violated, outcome.violated + outcome.undecided
    return f"{low}" if low == high else f"{low} to {high}"


def _backlog(outcome: Outcome, facts: Facts) -> str:
    if facts.backlog.copies == 0:
        return "no backlog"
    seconds = outcome.backlog_seconds
    return "unknown" if seconds is None else f"at least {time_span(seconds)}"


def notes(facts: Facts, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Sentences below the table: what the figures rest on, and what is not known."""
    shown = list(outcomes)
    violated = sum(piece.violated_seconds for osd in facts.osds for piece in osd.pieces)
    yield (
        f"Measured with the present setting: violated for {time_span(violated)}, summed over OSDs."
    )
    if facts.left_out:
        yield (
            f"{facts.left_out} of {facts.left_out + len(facts.osds)} OSDs are left out: their"
            " scheduler is not known at present, as while an OSD restarts."
        )
    not_saturated = sum(osd.saturated_ops is None for osd in facts.osds)
    if not_saturated and any(outcome.undecided for outcome in shown):
        yield (
            f"{not_saturated} of {len(facts.osds)} OSDs were not seen saturated: whether they can"
            " do more than they did is unknown. See cephqos capacity."
        )
    if any(outcome.reserved.get(cls, 0) is None for outcome in shown for cls in SCHEDULED):
        yield _why_reservations_are_unknown(facts)
    if facts.backlog.copies is None:
        yield "No exporter with the role cluster shows what is to be recovered."
    if facts.backlog.copies:
        yield (
            f"With the present setting recovery ends in {facts.recovery_end}."
            if facts.recovery_end
            else "When recovery ends with the present setting is not known."
        )
    if facts.scrub_end and facts.scrub_end.likely:
        yield f"With the present setting the scrubs that are due are done in {facts.scrub_end}."
    yield "Not predicted: client throughput, latencies, and recovery time of another setting."


def _trial_lines(proposed: ProposedTrial | None) -> Iterator[str]:
    if proposed:
        least, most = map(time_span, proposed.seconds)
        takes = f"{least} to {most}"
        if proposed.on_host:
            takes = f"{least}, restarts the OSDs of one host twice"
        yield (
            "A trial measures what is not known, on the cluster itself: p50, p95, p99, throughput"
            f" and how long recovery takes. It takes {takes}, and goes back:"
        )
        yield f"    {proposed.command}"
        if proposed.on_host:
            yield "HOST is one whose OSDs have the device class and weight of others."


def _why_reservations_are_unknown(facts: Facts) -> str:
    if any(osd.capacity is None for osd in facts.osds):
        return "Unknown reservations: the capacity is not shown, as under WPQ."
    return (
        "Unknown reservations: the profile in force gives the values of no release that is known."
    )


def _command_lines(candidate: Candidate, facts: Facts) -> Iterator[str]:
    change = commands(candidate, facts)
    if change.apply:
        yield from ("", f"{candidate.name}:", *(f"    {line}" for line in change.apply))
        yield "  back:"
        yield from (f"    {line}" for line in change.back)
        if change.after:
            yield f"  {change.after}"


def document(
    facts: Facts,
    outcomes: Sequence[Outcome],
    answered: GoalAnswer | None = None,
    proposed: ProposedTrial | None = None,
) -> dict[str, Any]:
    """The document that `--json` writes."""
    return {
        "version": __version__,
        "cluster": facts.cluster,
        "seconds": facts.seconds,
        "osds": len(facts.osds),
        "osds_left_out": facts.left_out,
        "answer": None if answered is None else _answer(answered),
        "recovery_ends_in_seconds": facts.recovery_end and asdict(facts.recovery_end),
        "due_scrubs_end_in_seconds": facts.scrub_end and asdict(facts.scrub_end),
        "unknown": dict.fromkeys(_NOT_PREDICTED, "not predicted"),
        "trial": proposed and proposed.command,
        "trial_seconds": proposed and proposed.seconds,
        "candidates": [_candidate(outcome, facts) for outcome in outcomes],
    }


def _answer(answered: GoalAnswer) -> dict[str, Any]:
    candidate = answered.candidate
    return {
        "candidate": None if candidate is None else candidate.name,
        "unknown": answered.unknown,
        "why": answered.why,
    }


def _candidate(outcome: Outcome, facts: Facts) -> dict[str, Any]:
    change = commands(outcome.candidate, facts)
    return {
        "name": outcome.candidate.name,
        "now": outcome.candidate.now,
        "scheduler": outcome.candidate.scheduler,
        "reserved": dict(outcome.reserved),
        "limits": dict(outcome.limits),
        "osds": dict(outcome.verdicts),
        "backlog_at_least_seconds": outcome.backlog_seconds,
        "commands": list(change.apply),
        "back": list(change.back),
        "after": change.after,
    }
