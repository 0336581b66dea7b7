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

_STYLE: Final = """
:root{--paper:#fff;--ink:#1c2128;--soft:#5b6570;--line:#d5dae0;--best:#1b7a43;--worst:#b3261e;
--panel:#f4f6f8}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e6e9ec;--soft:#a3adb8;
--line:#3a424b;--best:#7ee2a0;--worst:#ff9c93;--panel:#1d232a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:1.2rem;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem}
a{color:inherit}.question,p.note{color:var(--soft);max-width:75ch}p.note{font-size:.87rem}
.summary{max-width:80ch;padding-left:1.2rem}.summary li{margin:.3rem 0}
div.caveat{border-left:4px solid var(--soft);background:var(--panel);padding:.5rem .8rem;
margin:.6rem 0;max-width:95ch;overflow-wrap:anywhere}
div.caveat.serious{border-color:var(--worst)}.evidence{color:var(--soft)}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}
th,td{padding:.22rem .6rem;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}
th{position:relative;vertical-align:bottom;font-weight:600}
th small{display:block;font-weight:400;color:var(--soft)}
.n{text-align:right}.best{color:var(--best);font-weight:600}.worst{color:var(--worst);
font-weight:600}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid}
th[aria-sort=ascending] button::after{content:" ↑"}
th[aria-sort=descending] button::after{content:" ↓"}
figure{margin:1rem 0;overflow-x:auto}.chart{max-width:100%;min-width:600px;height:auto}
.row{display:flex;flex-wrap:wrap;gap:0 1rem}.row figure{flex:0 1 540px;margin:.5rem 0}
.row .chart{min-width:480px}
#values{position:fixed;display:none;pointer-events:none;background:var(--panel);padding:.3rem .6rem;
border:1px solid var(--line);font-size:.8rem;white-space:pre;font-variant-numeric:tabular-nums}
pre{background:var(--panel);padding:.7rem;overflow-x:auto}
details summary{cursor:pointer;color:var(--soft)}
@media print{body{max-width:none;font-size:11px}figure,tr{break-inside:avoid}.wide{overflow:visible}
.chart{width:100%;height:auto}}
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
    listed = "".join(_caveat(n, found) for n, found in enumerate(document.caveats, start=1))
    return f'<h2 id="caveats">Caveats</h2>{listed}'


def _figure(chart: Chart) -> str:
    return f"<figure>{chart.svg}</figure>"


def _figures(charts: Sequence[Chart]) -> Iterator[str]:
    """Narrow charts in rows of as many as fit."""
    for beside, group in groupby(charts, key=lambda chart: chart.beside):
        inside = "".join(_figure(chart) for chart in group)
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
    return (
        f'<td class="{kinds}" data-v="{value}">{_MARKS.get(cell.mark, "")}{escaped(cell.text)}</td>'
    )
