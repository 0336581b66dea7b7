"""A whole screen: header, body, footer.

The body is the main page (sections of sections.py, in one or two columns), the page of one OSD, or
a page of text such as the help.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from cephqos_base.terminal import printable
from cephqos_loadgen.top.picture import OsdDetail, OsdState, Picture
from cephqos_loadgen.top.screen import sections
from cephqos_loadgen.top.screen.layout import (
    Line,
    Section,
    Span,
    bar,
    beside,
    cut,
    in_ascii,
    line,
    share,
)
from cephqos_loadgen.top.screen.sections import (
    Canvas,
    class_cells,
    headline,
    latency_table,
    note_lines,
    short,
    tenant_lines,
)
from cephqos_loadgen.top.screen.text import duration, fit, latency, number, percent
from cephqos_loadgen.top.screen.view import View

# Columns and rows of characters.
TWO_COLUMNS_FROM: Final = 150
RIGHT_COLUMNS: Final = 66  # of the right one, at least
LEFT_COLUMNS: Final = 96  # of the left one: enough to show every cause whole
MIN_COLUMNS: Final = 60
MIN_ROWS: Final = 12

KEYS: Final = (
    ("q", "quit"),
    ("arrows, page up/down", "move in the list of OSDs"),
    ("enter", "open the OSD under the cursor"),
    ("escape", "back: close a page, the OSD, the filter"),
    ("s", "sort by worst, lag, queue, attainment, delivered, name"),
    ("r", "reverse the order"),
    ("/", "filter by OSD (12), class, state, cause: client device"),
    ("c", "show the next cluster"),
    ("p or space", "pause and go on"),
    ("t", "tenants that work and wait on each OSD"),
    ("n", "what cannot be shown, and why"),
    ("? or h", "this help"),
)
_STATES: Final = (
    ("violated", "the rules say: it has demand, and gets less than its reservation"),
    ("behind", "the same, judged from this moment only (no rules)"),
    ("kept", "it gets its reservation, or needs less"),
    ("idle", "it does nothing"),
    ("unreserved", "it works, and has no reservation"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the source is doing, for the header."""

    source: str  # its name
    clock: str  # the time of day, as shown
    interval: float  # seconds between refreshes
    age: float | None = None  # seconds since the values were fetched; None: there are none
    trouble: str = ""  # why the last fetch failed
    awaited: str = "answer"  # for what the user waits while there is no picture

    @property
    def slow(self) -> bool:
        """The values are old, but no fetch failed: the view is paused, or the server is slow."""
        late = max(5.0, 3 * self.interval)
        return not self.trouble and self.age is not None and self.age > late


def draw(
    picture: Picture | None,
    status: Status,
    view: View,
    size: tuple[int, int],
    ascii_only: bool = False,
) -> list[Line]:
    """Exactly as many lines as the screen has rows, each as wide as the screen."""
    columns, rows = size
    top = _header(picture, status, view)
    bottom = [] if rows < MIN_ROWS else [_footer(view, picture)]
    room = max(0, rows - len(top) - len(bottom))
    if columns < MIN_COLUMNS or rows < MIN_ROWS:
        top += [line(Span(f"too small: {MIN_COLUMNS}x{MIN_ROWS} or more is needed", "warn"))]
        room = max(0, room - 1)
    body = _body(picture, status, view, columns, room, ascii_only)[:room]
    body += [()] * (room - len(body))
    lines = [*top, *body, *bottom][:rows]
    if not ascii_only:
        return [cut(each, columns) for each in lines]
    # First before the cut, since a wide character becomes one of one column. Then the ellipsis,
    # too.
    return [in_ascii(cut(in_ascii(each), columns)) for each in lines]


def _body(
    picture: Picture | None, status: Status, view: View, columns: int, rows: int, ascii_only: bool
) -> list[Line]:
    if view.page == "help":
        return _within(_help(), rows)
    if picture is None:
        return _without_picture(status)
    canvas = Canvas(picture, view, columns, ascii_only)
    if view.page == "notes":
        return _within(note_lines(picture, columns) or [line("Everything is shown.")], rows)
    if view.page == "tenants":
        return _within(tenant_lines(picture, view.opened), rows)
    if view.opened is not None:
        return _within(_osd_page(canvas, view.opened), rows)
    return _main(canvas, rows)


def _without_picture(status: Status) -> list[Line]:
    """There is nothing to show yet, or the address is wrong."""
    if not status.trouble:
        return [(), line(f"  waiting for the first {status.awaited}")]
    return [
        (),
        line(f"  {status.trouble}"),
        (),
        line("  Is this the right address? Prometheus: cephqos top --url URL"),
        line("  Without Prometheus:        cephqos top --exporter http://HOST:10130"),
    ]


def _within(lines: list[Line], rows: int) -> list[Line]:
    """A page does not scroll: if it has more lines than rows, the last one says so."""
    if len(lines) <= rows or rows < 1:
        return lines
    left = len(lines) - rows + 1
    return [
        *lines[: rows - 1],
        line(Span(f"… {left} more lines: make the terminal taller", "warn")),
    ]


def whole(
    picture: Picture, status: Status, view: View, columns: int, ascii_only: bool = False
) -> list[Line]:
    """Everything, one section below the other, for a printout: no keys, no limit of rows."""
    lists = (picture.osds, picture.alerts, picture.recovery, picture.scrubs)
    rows = 100 + sum(map(len, lists))
    columns = min(columns, TWO_COLUMNS_FROM - 1)
    lines = _header(picture, status, view)
    lines += _body(picture, status, view, columns, rows, ascii_only)
    return [in_ascii(each) for each in lines] if ascii_only else lines


def _header(picture: Picture | None, status: Status, view: View) -> list[Line]:
    cluster = ""
    if picture and picture.cluster:
        cluster = f"  cluster {picture.cluster[:8]}"
        if len(picture.clusters) > 1:
            cluster += f", {len(picture.clusters)} clusters"
    warnings = ["PAUSED"] if view.paused else []
    if status.slow:
        warnings.append(f"{duration(status.age)} old")
    first = line(
        Span("cephqos top", "title"),
        Span(f"  {', '.join(warnings)}" if warnings else "", "bad"),
        f"  {status.source}",
        cluster,
        f"  {status.clock}",
    )
    if status.trouble:
        age = f" Values are {duration(status.age)} old." if status.age is not None else ""
        failure = f"NO ANSWER.{age} Asking every {status.interval:g} s: {status.trouble}"
        return [first, line(Span(failure, "bad"))]
    return [first, headline(picture)] if picture else [first]


def _footer(view: View, picture: Picture | None) -> Line:
    if view.typing:
        return line(
            Span("filter: ", "title"),
            f"{printable(view.filter)}_   ",
            Span("enter keeps it, escape ends it", "dim"),
        )
    if view.page != "main" or view.opened is not None:
        keys = [("esc", "back"), ("p", "pause"), ("?", "help"), ("q", "quit")]
    else:
        # How to leave and where to read more come first: a narrow terminal cuts the rest.
        keys = [("q", "quit"), ("?", "help"), ("enter", "open"), ("s", "sort"), ("/", "filter")]
        if picture and picture.missing:
            keys.append(("n", f"not shown ({len(picture.missing)})"))
        if picture and len(picture.clusters) > 1:
            keys.append(("c", "cluster"))
        keys += [("p", "pause"), ("t", "tenants")]
    spans: list[str | Span] = []
    for key, effect in keys:
        spans += [Span(key, "title"), Span(f" {effect}   ", "dim")]
    return line(*spans)


class _Placed(NamedTuple):
    """A section, when it gets its rows (1: first), and the column in which a wide screen has it."""

    section: Callable[[Canvas], Section]
    rank: int
    column: Literal["left", "right"]


# From top to bottom.
_SECTIONS: Final = (
    _Placed(sections.classes, 1, "left"),
    _Placed(sections.latencies, 4, "right"),
    _Placed(sections.runs, 6, "left"),
    _Placed(sections.osds, 3, "left"),
    _Placed(sections.alerts, 2, "right"),
    _Placed(sections.work, 5, "right"),
    _Placed(sections.threads, 8, "right"),
    _Placed(sections.devices, 9, "right"),
    _Placed(sections.notes, 7, "right"),
)


def _main(canvas: Canvas, rows: int) -> list[Line]:
    if canvas.columns < TWO_COLUMNS_FROM:
        return _stacked(canvas, rows, _SECTIONS)
    widest = canvas.columns - RIGHT_COLUMNS - 2  # with a gap of two
    left_columns = min(widest, max(LEFT_COLUMNS, canvas.columns // 2))
    left = replace(canvas, columns=left_columns)
    right = replace(canvas, columns=canvas.columns - left_columns - 2)
    return beside(
        _stacked(left, rows, [each for each in _SECTIONS if each.column == "left"], gap=True),
        _stacked(right, rows, [each for each in _SECTIONS if each.column == "right"], gap=True),
        left_columns,
        canvas.columns,
    )


def _stacked(canvas: Canvas, rows: int, placed: Sequence[_Placed], gap: bool = False) -> list[Line]:
    """Sections below one another, with an empty line between them where there is a gap."""
    by_rank = {each: each.section(canvas) for each in sorted(placed, key=lambda each: each.rank)}
    gaps = len(by_rank) - 1 if gap else 0
    rows_of = dict(zip(by_rank, share([*by_rank.values()], rows - gaps), strict=True))
    lines: list[Line] = []
    for each in placed:
        if rows_of[each] and (drawn := by_rank[each].draw(rows_of[each])):
            if gap and lines:
                lines.append(())
            lines += drawn
    return lines


def _help() -> list[Line]:
    lines = [line(Span("KEYS", "title"))]
    lines += [line(f"  {fit(key, 22)}{effect}") for key, effect in KEYS]
    lines += [line(Span("STATES", "title"))]
    lines += [line(f"  {fit(state, 12)}{meaning}") for state, meaning in _STATES]
    lines += [line("  Figures are normalised ops/s: one is the work of a small operation.")]
    return lines


def _osd_page(canvas: Canvas, name: str) -> list[Line]:
    picture = canvas.picture
    osd = next((osd for osd in picture.osds if osd.name == name), None)
    if osd is None:
        return [(), line(Span(f"  {printable(name)} is not among the OSDs any more", "warn"))]
    detail = picture.detail if picture.detail and picture.detail.name == name else OsdDetail(name)
    alerts = [alert for alert in picture.alerts if name in alert.osds]
    return [
        _osd_title(osd),
        _osd_capacity(canvas, osd),
        *_osd_classes(canvas, osd),
        line(Span("ALERTS", "title"), Span("" if alerts else "      none fires", "dim")),
        *(sections.alert_line(alert, picture.time) for alert in alerts),
        *latency_table(detail.latency),
        _osd_operations(osd, detail),
        *(
            _titled("VIOLATED", f"{short(cls)} for {duration(seconds)} of the last hour")
            for cls, seconds in detail.violated_seconds.items()
        ),
        *_osd_throttles(detail),
        *_osd_threads(picture, name),
        *_osd_devices(picture, name),
    ]


def _osd_title(osd: OsdState) -> Line:
    state = Span("up", "good") if osd.up else Span(f"does not answer: {osd.reason}", "bad")
    scheduler = f"  {osd.scheduler or 'scheduler unknown'}"
    profile = f", profile {osd.profile}" if osd.profile else ""
    return line(Span(f"{osd.name}  ", "title"), state, scheduler, profile)


def _osd_capacity(canvas: Canvas, osd: OsdState) -> Line:
    largest = max(osd.capacity or 0.0, osd.delivered or 0.0)
    drawn = bar(
        osd.delivered,
        osd.capacity,
        largest,
        max(8, canvas.columns - 56),
        ascii_only=canvas.ascii_only,
    )
    figures = f" delivers {number(osd.delivered)} of {number(osd.capacity)} ops/s (capacity)"
    return line(fit("all work", 12), *drawn, figures)


def _osd_classes(canvas: Canvas, osd: OsdState) -> list[Line]:
    lines = [line(Span(fit("CLASSES", 22), "title"), Span(sections.FIGURE_TITLES, "dim"))]
    for osd_class in osd.classes:
        limit = f"  limit {number(osd_class.limit)}" if osd_class.limit else ""
        room = canvas.columns - sections.CELLS - len(limit) - 1
        lines.append(line(" ", *class_cells(osd_class, room), limit))
    return lines


def _titled(title: str, *cells: str) -> Line:
    """A line that begins with a title, or with as many spaces."""
    return line(Span(fit(title, 12), "title"), *cells)


def _osd_operations(osd: OsdState, detail: OsdDetail) -> Line:
    return _titled(
        "OPERATIONS",
        f"{number(detail.in_progress)} in progress, {number(osd.blocked)} blocked,"
        f" oldest {duration(detail.oldest)}",
    )


def _osd_throttles(detail: OsdDetail) -> Iterator[Line]:
    if detail.throttles:
        used = (f"{name} {percent(ratio)}" for name, ratio in detail.throttles.items())
        yield _titled("THROTTLES", ", ".join(used))


def _osd_threads(picture: Picture, osd: str) -> Iterator[Line]:
    """The busiest thread groups. The first line has the title."""
    busiest = [thread for thread in picture.threads if thread.osd == osd]
    for position, thread in enumerate(busiest[:6]):
        title = "" if position else "THREADS"
        yield _titled(title, fit(thread.group, 18), f"{thread.cpu:>6.0%} of a CPU")


def _osd_devices(picture: Picture, osd: str) -> Iterator[Line]:
    for device in picture.devices:
        if device.osd == osd:
            depth = number(device.depth)
            cells = f"{device.busy:.0%} busy, {latency(device.latency)} per request, depth {depth}"
            yield _titled("DEVICE", fit(device.device, 18), cells)
