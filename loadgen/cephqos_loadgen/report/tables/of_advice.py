"""What another profile would have given while a load ran, as `cephqos advise` says it."""

from collections.abc import Iterator
from contextlib import suppress

from cephqos_base.profiles import PROFILES
from cephqos_base.units import time_span
from cephqos_loadgen.advise.candidates import candidates
from cephqos_loadgen.advise.facts import WPQ, Facts, NoAdvice, checked
from cephqos_loadgen.advise.outcome import Outcome, outcome
from cephqos_loadgen.advise.text import ops_text, violated_text
from cephqos_loadgen.report.figures.advice_facts import advice_facts
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_reservations import LoadStep, load_steps
from cephqos_loadgen.report.tables.table import Cell, Table, text, text_columns

_COLUMNS = tuple(text_columns("Point", "Load", *PROFILES, WPQ))
_NOTE = (
    "Arithmetic with what the first repeat shows: what is reserved for clients on all OSDs, in"
    " normalised ops/s; OSDs that could not give each class with demand its reservation; and the"
    " least time of recovery while clients go on as they did. A range, or no time: it is not known."
    " Latencies and throughput are not predicted. cephqos advise --archive has the commands."
)


def advice_table(subject: Subject) -> Table:
    """A row for each load of the first repeat of a point."""
    lines: list[tuple[Cell, ...]] = []
    for run in subject.runs:
        for load, facts in _loads(run):
            outcomes = {
                candidate.name: outcome(candidate, facts) for candidate in candidates(facts)
            }
            label = subject.point_label(run, load.point)
            cells = [
                _cell(outcomes[name], facts) if name in outcomes else "–"
                for name in (*PROFILES, WPQ)
            ]
            lines.append(tuple(map(text, (label, load.phase, *cells))))
    return Table("advice", "What another profile would have given", _COLUMNS, tuple(lines), _NOTE)


def _loads(run: ReportRun) -> Iterator[tuple[LoadStep, Facts]]:
    """Loads of first repeats, with what advice needs: of one depth, and long enough."""
    for observed in run.first_repeats.values():
        for load in load_steps(observed):
            if load.depth is None:
                with suppress(NoAdvice):
                    yield load, checked(advice_facts(observed.samples, load.start, load.end))


def _cell(result: Outcome, facts: Facts) -> str:
    """`now, client 1,200, violated 0 of 3, recovery at least 2 min`, as far as it is known."""
    parts = ["now"] if result.candidate.now else []
    if result.reserved:
        parts += [f"client {ops_text(result.reserved['client'])}"]
        parts += [f"violated {violated_text(result)} of {len(facts.osds)}"]
    if result.backlog_seconds is not None:
        parts += [f"recovery at least {time_span(result.backlog_seconds)}"]
    return ", ".join(parts) or "–"
