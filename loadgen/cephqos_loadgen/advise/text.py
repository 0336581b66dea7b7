"""What `cephqos advise` prints: a row per candidate, what is not known, commands, and JSON."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, SCHEDULED
from cephqos_base.terminal import printable
from cephqos_base.units import time_span
from cephqos_base.version import __version__
from cephqos_loadgen.advise.candidates import Candidate, commands
from cephqos_loadgen.advise.facts import WPQ, Facts
from cephqos_loadgen.advise.goals import GoalAnswer
from cephqos_loadgen.advise.model_error import MODEL_ERRORS, why_unknown
from cephqos_loadgen.advise.outcome import Outcome

_HEAD: Final = (
    *("reserved, ops/s", CLIENT, RECOVERY, BEST_EFFORT, "its limit"),
    *("OSDs violated", "backlog done in"),
)


def text(facts: Facts, outcomes: Sequence[Outcome], asked: str = "") -> str:
    """The text for a terminal. `asked`: the answer to a goal that the user gave."""
    rows = [_HEAD, *(_row(it, facts) for it in outcomes)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    table = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines = [_about(facts), "", *table, "", *notes(facts, outcomes)]
    if asked:
        lines += ["", asked]
    for it in outcomes:
        lines += _command_lines(it.candidate, facts)
    return "\n".join(map(printable, lines))


def _about(facts: Facts) -> str:
    return f"Cluster {facts.cluster}, {len(facts.osds)} OSDs, {time_span(facts.seconds)}."


def name_of(candidate: Candidate) -> str:
    return f"{candidate.name} (now)" if candidate.now else candidate.name


def _row(it: Outcome, facts: Facts) -> tuple[str, ...]:
    if it.candidate.scheduler == WPQ:
        return (name_of(it.candidate), *("none",) * 3, "none", "–", _backlog(it, facts))
    limit = it.limits.get(BEST_EFFORT, 0.0)
    return (
        name_of(it.candidate),
        *(ops_text(it.reserved[cls]) for cls in SCHEDULED),
        "none" if limit == 0 else ops_text(limit),
        violated_text(it),
        _backlog(it, facts),
    )


def ops_text(ops: float | None) -> str:
    if ops is None:
        return "unknown"
    return f"{ops:,.0f}" if ops >= 10 or not ops else f"{ops:.1f}"


def violated_text(it: Outcome) -> str:
    """How many OSDs; a range where that is not known of all."""
    low, high = it.violated, it.violated + it.undecided
    return f"{low}" if low == high else f"{low} to {high}"


def _backlog(it: Outcome, facts: Facts) -> str:
    if facts.backlog.copies == 0:
        return "no backlog"
    known = it.backlog_seconds
    return "unknown" if known is None else f"at least {time_span(known)}"


def notes(facts: Facts, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """What stands behind the figures, and what is not known."""
    shown = list(outcomes)
    lost = sum(piece.violated for osd in facts.osds for piece in osd.pieces)
    yield f"Measured with the present setting: violated for {time_span(lost)}, summed over OSDs."
    if facts.left_out:
        yield (
            f"{facts.left_out} of {facts.left_out + len(facts.osds)} OSDs are left out: their"
            " scheduler is not known at present, as while an OSD restarts."
        )
    least = sum(osd.can_do is None for osd in facts.osds)
    if least and any(it.undecided for it in shown):
        yield (
            f"{least} of {len(facts.osds)} OSDs were not seen saturated: whether they can do more"
            " than they did is unknown. See cephqos capacity."
        )
    if any(it.reserved.get(cls, 0) is None for it in shown for cls in SCHEDULED):
        yield _why_reserved(facts)
    if facts.backlog.copies is None:
        yield "No exporter with the role cluster shows what is to be recovered."
    errors = ", ".join(f"{it.figure} {it.model:.0%}" for it in MODEL_ERRORS)
    yield (
        f"Not predicted (how far off the model of the scheduler is in a lab): {errors}. It was not"
        " tried with other devices."
    )


def _why_reserved(facts: Facts) -> str:
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
    facts: Facts, outcomes: Sequence[Outcome], answered: GoalAnswer | None = None
) -> dict[str, Any]:
    """The document that `--json` writes."""
    asked = answered and {
        "candidate": answered.candidate and answered.candidate.name,
        "unknown": answered.unknown,
        "why": answered.why,
    }
    return {
        "version": __version__,
        "cluster": facts.cluster,
        "seconds": facts.seconds,
        "osds": len(facts.osds),
        "osds_left_out": facts.left_out,
        "answer": asked,
        "unknown": {it.figure: why_unknown(it.figure) for it in MODEL_ERRORS},
        "candidates": [_candidate(it, facts) for it in outcomes],
    }


def _candidate(it: Outcome, facts: Facts) -> dict[str, Any]:
    change = commands(it.candidate, facts)
    return {
        "name": it.candidate.name,
        "now": it.candidate.now,
        "scheduler": it.candidate.scheduler,
        "reserved": dict(it.reserved),
        "limits": dict(it.limits),
        "osds": dict(it.verdicts),
        "backlog_at_least_seconds": it.backlog_seconds,
        "commands": list(change.apply),
        "back": list(change.back),
        "after": change.after,
    }
