"""A report as Markdown, and its tables as CSV."""

import csv
import io
from collections.abc import Iterator

from cephqos_base.terminal import printable
from cephqos_loadgen.archive.export import as_cell
from cephqos_loadgen.report.document import Document
from cephqos_loadgen.report.tables.table import Table, TableColumn
from cephqos_loadgen.report.words import in_markdown

_MARKS = {"best": " ▲", "worst": " ▼", "caveat": ""}


def heading(column: TableColumn) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def table_lines(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(in_markdown(heading(column)) for column in table.columns) + " |"
    yield "|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|"
    for row in table.rows:
        cells = (in_markdown(cell.text) + _MARKS.get(cell.mark, "") for cell in row)
        yield f"| {' | '.join(cells)} |"


def to_markdown(document: Document) -> str:
    lines = [f"# {in_markdown(document.title)}", ""]
    lines += [in_markdown(document.question), ""] if document.question else []
    for sentence in document.summary:
        lines.append(f"- {in_markdown(sentence)}")
    lines.append("")
    lines += _caveats(document)
    for table in document.tables:
        lines += [f"## {in_markdown(table.title)}", "", *table_lines(table), ""]
        lines += [in_markdown(table.note), ""] if table.note else []
    if document.charts:
        lines += ["## Charts", ""]
        lines += [f"![{in_markdown(c.title)}](charts/{c.name}.svg)" for c in document.charts]
        lines.append("")
    if document.commands:
        # One line each: a name with three backticks on a line of its own would end the block.
        commands = (printable(command) for command in document.commands)
        lines += ["## To repeat it", "", "```", *commands, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _caveats(document: Document) -> list[str]:
    lines = ["## Caveats", ""]
    if not document.caveats:
        return [*lines, "None of the checks found anything.", ""]
    for number, caveat in enumerate(document.caveats, start=1):
        evidence = f" {in_markdown(caveat.evidence)}" if caveat.evidence else ""
        grave = f"{caveat.severity.capitalize()}: "
        lines.append(f"{number}. {grave}**{in_markdown(caveat.text)}**{evidence}")
    return [*lines, ""]


def to_csv(table: Table) -> str:
    """Numbers as they are, not rounded for people; absent ones empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_safe(heading(column)) for column in table.columns])
    for row in table.rows:
        writer.writerow(["" if cell.value is None else _safe(cell.value) for cell in row])
    return out.getvalue()


def _safe(value: float | str) -> float | str:
    """Printable, as on the page."""
    return as_cell(printable(value)) if isinstance(value, str) else value
