"""A comparison for the terminal, as Markdown, HTML and JSON."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from cephqos_base.terminal import aligned, printable
from cephqos_loadgen.report.caveats.caveat import Caveat
from cephqos_loadgen.report.caveats.every import caveats
from cephqos_loadgen.report.compare.comparison import Comparison, Difference, row_name
from cephqos_loadgen.report.compare.fail_rules import Verdict
from cephqos_loadgen.report.document import Document
from cephqos_loadgen.report.tables.table import (
    Cell,
    ColumnOf,
    Table,
    TableColumn,
    figure,
    percent_cell,
    table_of,
    text,
)
from cephqos_loadgen.report.words import NONE_FOUND, interval, listed, verdict

_MOST_CAVEATS: Final = 3  # of a run, on the terminal
_MAYBE_CHANCE: Final = "may be chance"


def caveats_of(comparison: Comparison) -> dict[str, list[Caveat]]:
    """What speaks against the figures of each run: a difference may come from there."""
    runs = {run.name: run for run in (comparison.reference, *comparison.others)}
    return {name: caveats(run) for name, run in runs.items()}


def _serious_caveats(comparison: Comparison) -> Iterator[str]:
    """One line each for the serious caveats of each run, and how many more there are."""
    for name, of_run in caveats_of(comparison).items():
        serious = [caveat for caveat in of_run if caveat.severity == "serious"][:_MOST_CAVEATS]
        for caveat in serious:
            yield f"caveat about {name}: {caveat.text} {caveat.evidence}".rstrip()
        more = len(of_run) - len(serious)
        if serious and more:
            yield f"caveat about {name}: {more} more (cephqos report shows them)"


def to_table(comparison: Comparison) -> Table:
    columns: list[ColumnOf[Difference]] = [
        (TableColumn("Row", numeric=False), lambda d: text(row_name(d.row))),
        (TableColumn("Figure", numeric=False), lambda d: text(d.metric.named)),
        (TableColumn("Reference"), lambda d: figure(d.metric, d.reference)),
        (TableColumn("Value"), lambda d: figure(d.metric, d.value)),
        (TableColumn("Change", "%"), lambda d: percent_cell(d.change.ratio)),
        (TableColumn("95 % interval", "%", numeric=False), lambda d: text(interval(d.change))),
        (TableColumn("Result", numeric=False), _result),
    ]
    if len(comparison.others) > 1:
        columns.insert(0, (TableColumn("Run", numeric=False), lambda d: text(d.row.key.run)))
    note = (
        "The interval is of one figure, over repeats."
        f' "{NONE_FOUND}": it contains zero. "{_MAYBE_CHANCE}": it does not, but among'
        f" {len(comparison.differences)} figures one like it is no surprise (Holm, 5 %)."
    )
    return table_of("comparison", "Comparison", comparison.differences, columns, note)


def _result(d: Difference) -> Cell:
    mark = ""
    if d.beyond_chance and d.metric.better:
        mark = "worst" if d.regression else "best"
    return Cell(_words(d), _words(d), mark)


def _words(d: Difference) -> str:
    found = verdict(d.change)
    by_chance = d.change.beyond_noise and not d.beyond_chance
    return f"{found}, {_MAYBE_CHANCE}" if by_chance else found


def to_document(comparison: Comparison, outcome: Verdict, warnings: list[str]) -> Document:
    """For the writers of reports. `warnings` are the differences between the environments."""
    names = [run.name for run in comparison.others]
    shown = [Caveat("caution", "The environments differ.", line) for line in warnings]
    shown += [Caveat("caution", "A row has no counterpart.", row) for row in comparison.unmatched]
    for name, of_run in caveats_of(comparison).items():
        shown += [replace(caveat, text=f"{name}: {caveat.text}", rows=()) for caveat in of_run]
    return Document(
        title=f"{listed(names)} against {comparison.reference.name}",
        question="",
        summary=tuple(summary(comparison, outcome)),
        caveats=tuple(shown),
        tables=(to_table(comparison),),
        charts=(),
        commands=(),
    )


def summary(comparison: Comparison, outcome: Verdict) -> list[str]:
    """How many figures are worse or differ otherwise, then what fails."""
    differences = comparison.differences
    worse = sum(d.regression for d in differences)
    better = sum(d.beyond_chance and not d.regression for d in differences)
    unknown = sum(not d.change.known for d in differences)
    chance = sum(d.change.beyond_noise and not d.beyond_chance for d in differences)
    same = len(differences) - worse - better - unknown - chance
    lines = [
        f"{len(differences)} figures compared: {worse} worse, {better} other differences,"
        f" {same} with {NONE_FOUND}"
        + (f", {chance} {_MAYBE_CHANCE}" if chance else "")
        + (f", {unknown} not known" if unknown else "")
        + "."
    ]
    if not differences:
        lines = ["No rows match, so nothing is compared."]
    elif not worse and not better and not unknown and not chance and not comparison.lost:
        lines.append(f"{NONE_FOUND.capitalize()}.")
    return [*lines, *outcome.failures, *outcome.unjudged]


def to_terminal(comparison: Comparison, outcome: Verdict) -> str:
    """Columns under each other; nothing of an archive reaches the terminal as it is."""
    table = to_table(comparison)
    heads = [column.title for column in table.columns]
    right = [number for number, column in enumerate(table.columns) if column.numeric]
    rows = [[cell.text for cell in row] for row in table.rows]
    lines = [f"reference: {printable(comparison.reference.name)}"] if rows else []
    lines += aligned([heads, *rows], right) if rows else []
    lines += [f"not compared: {printable(name)}" for name in comparison.unmatched]
    lines += map(printable, _serious_caveats(comparison))
    return "\n".join([*lines, *map(printable, summary(comparison, outcome))])


def to_json(comparison: Comparison, outcome: Verdict, warnings: list[str]) -> dict[str, Any]:
    return {
        "reference": comparison.reference.name,
        "runs": [run.name for run in comparison.others],
        "environments_differ": warnings,
        "caveats": {
            name: [
                {"severity": it.severity, "text": it.text, "evidence": it.evidence} for it in of_run
            ]
            for name, of_run in caveats_of(comparison).items()
        },
        "differences": [_json(d) for d in comparison.differences],
        "unmatched": list(comparison.unmatched),
        "failures": list(outcome.failures),
        "cannot_be_judged": list(outcome.unjudged),
    }


def _json(d: Difference) -> dict[str, Any]:
    key = d.row.key
    return {
        "run": key.run,
        "point": key.point,
        "phase": key.phase,
        "depth": key.depth,
        "op": key.op,
        "window": key.window,
        "figure": d.metric.key,
        "unit": d.metric.unit,
        "reference": d.reference * d.metric.scale,
        "value": d.value * d.metric.scale,
        "change_ratio": d.change.ratio,
        "change_ratio_low": d.change.low,
        "change_ratio_high": d.change.high,
        "result": _words(d),
        "regression": d.regression,
    }
