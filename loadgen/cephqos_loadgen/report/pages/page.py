"""A report as one HTML page that needs nothing else: no request leaves it."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from cephqos_loadgen.report.caveats.caveat import Caveat
from cephqos_loadgen.report.charts import svg
from cephqos_loadgen.report.document import Chart, Document
from cephqos_loadgen.report.tables.table import Cell, Table
from cephqos_loadgen.report.words import escaped

_SCRIPT: Final = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
_STYLE: Final = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_MARKS: Final = {"best": "▲ ", "worst": "▼ "}
_SEVERITY: Final = {"serious": "Serious", "caution": "Caution", "note": "Note"}

# `default-src 'none'` refuses every request, whatever an archive's text may try.
_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';
 script-src 'unsafe-inline'; img-src data:">
"""


def to_html(document: Document) -> str:
    return "".join(_page(document))


def _page(document: Document) -> Iterator[str]:
    yield _HEAD
    yield f"<title>{escaped(document.title)}</title><style>{_STYLE}{svg.STYLE}</style></head><body>"
    yield f"<h1>{escaped(document.title)}</h1>"
    yield f'<p class="question">{escaped(document.question)}</p>' if document.question else ""
    items = "".join(f"<li>{escaped(sentence)}</li>" for sentence in document.summary)
    yield f'<ul class="summary">{items}</ul>'
    if document.caveats:
        more = len(document.caveats) - 1
        yield _caveat(1, document.caveats[0])
        yield f'<p><a href="#caveats">{more} more</a></p>' if more else ""
    main = 2 if document.charts and document.charts[0].beside else 1
    yield from _figures(document.charts[:main])
    yield _all_caveats(document)
    yield from (_table(table) for table in document.tables[:3])
    if document.charts[main:]:
        yield '<h2>Charts</h2><p class="note">Point at a line for its values. Drag to zoom, double'
        yield "-click to see all again. Click a name of a legend to hide it.</p>"
        yield from _figures(document.charts[main:])
    yield from (_table(table) for table in document.tables[3:])
    if document.commands:
        commands = "\n".join(escaped(command) for command in document.commands)
        yield f"<h2>To repeat it</h2><pre>{commands}</pre>"
    yield f"<script>{_SCRIPT}</script></body></html>\n"


def _caveat(number: int, caveat: Caveat) -> str:
    return (
        f'<div class="caveat {caveat.severity}"><b>{number}. {_SEVERITY[caveat.severity]}:</b>'
        f" {escaped(caveat.text)}"
        f' <span class="evidence">{escaped(caveat.evidence)}</span></div>'
    )


def _all_caveats(document: Document) -> str:
    if not document.caveats:
        return '<h2 id="caveats">Caveats</h2><p>None of the checks found anything.</p>'
    listed = "".join(_caveat(n, caveat) for n, caveat in enumerate(document.caveats, start=1))
    return f'<h2 id="caveats">Caveats</h2>{listed}'


def _figures(charts: Sequence[Chart]) -> Iterator[str]:
    """Narrow charts in rows of as many as fit."""
    for beside, group in groupby(charts, key=lambda chart: chart.beside):
        inside = "".join(f"<figure>{chart.svg}</figure>" for chart in group)
        yield f'<div class="row">{inside}</div>' if beside else inside


def _table(table: Table) -> str:
    heads = "".join(
        f'<th class="{"n" if column.numeric else ""}"><button>{escaped(column.title)}'
        f"{f'<small>{escaped(column.unit)}</small>' if column.unit else ''}</button></th>"
        for column in table.columns
    )
    rows = "".join(
        "<tr>" + "".join(map(_cell, row, (column.numeric for column in table.columns))) + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{escaped(table.note)}</p>' if table.note else ""
    return (
        f'<h2>{escaped(table.title)}</h2><div class="wide"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}"
    )


def _cell(cell: Cell, numeric: bool) -> str:
    kinds = " ".join(filter(None, ("n" if numeric else "", cell.mark)))
    value = "" if cell.value is None else escaped(str(cell.value))
    shade = f' style="--shade:{cell.shade:.0%}"' if cell.shade else ""
    shown = f"{_MARKS.get(cell.mark, '')}{escaped(cell.text)}"
    return f'<td class="{kinds}" data-v="{value}"{shade}>{shown}</td>'
