"""A whole screen: header, sections in one or two columns, footer; or the page of one OSD."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

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

TWO_COLUMNS_FROM: Final = 150
RIGHT_COLUMNS: Final = 66  # at least
LEFT_COLUMNS: Final = 96  # show every cause whole
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
    """How the source is doing. `age`: seconds since the values were fetched."""

    source: str
    clock: str
    interval: float
    age: float | None = None
    trouble: str = ""
    awaited: str = "answer"

    @property
    def slow(self) -> bool:
        """No answer for a while, and no failure either: it is paused, or the server is slow."""
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
        return [cut(one, columns) for one in lines]
    # Before it is cut, as what takes no column or two becomes one; and the ellipsis after.
    return [in_ascii(cut(in_ascii(one), columns)) for one in lines]


def _body(
    picture: Picture | None, status: Status, view: View, columns: int, rows: int, ascii_only: bool
) -> list[Line]:
    if view.page == "help":
        return _within(_help(), rows)
    if picture is None:
        return _before_the_first(status)
    canvas = Canvas(picture, view, columns, ascii_only)
    if view.page == "notes":
        return _within(note_lines(picture, columns) or [line("Everything is shown.")], rows)
    if view.page == "tenants":
        return _within(tenant_lines(picture, view.opened), rows)
    if view.opened is not None:
        return _within(_osd_page(canvas, view.opened), rows)
    return _main(canvas, rows)


def _before_the_first(status: Status) -> list[Line]:
    """There is nothing to show yet; or never, if the address is wrong."""
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
    """A page that is too long says so: it does not scroll."""
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
    return [in_ascii(one) for one in lines] if ascii_only else lines


def _header(picture: Picture | None, status: Status, view: View) -> list[Line]:
    cluster = picture.cluster[:8] if picture else ""
    several = f", {len(picture.clusters)} clusters" if picture and len(picture.clusters) > 1 else ""
    state = ["PAUSED"] if view.paused else []
    state += [f"{duration(status.age)} old"] if status.slow else []
    first = line(
        Span("cephqos top", "title"),
        Span(f"  {', '.join(state)}" if state else "", "bad"),
        f"  {status.source}",
        f"  cluster {cluster}{several}" if cluster else "",
        f"  {status.clock}",
    )
    if status.trouble:
        age = f" Values are {duration(status.age)} old." if status.age is not None else ""
        told = f"NO ANSWER.{age} Asking every {status.interval:g} s: {status.trouble}"
        return [first, line(Span(told, "bad"))]
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
    for key, what in keys:
        spans += [Span(key, "title"), Span(f" {what}   ", "dim")]
    return line(*spans)


def _main(canvas: Canvas, rows: int) -> list[Line]:
    if canvas.columns < TWO_COLUMNS_FROM:
        return _stacked(canvas, rows, _ONE_COLUMN)
    most = canvas.columns - RIGHT_COLUMNS - 2
    left_columns = min(most, max(LEFT_COLUMNS, canvas.columns // 2))
    left = replace(canvas, columns=left_columns)
    right = replace(canvas, columns=canvas.columns - left_columns - 2)
    return beside(
        _stacked(left, rows, _LEFT, gap=True),
        _stacked(right, rows, _RIGHT, gap=True),
        left_columns,
        canvas.columns,
    )


@dataclass(frozen=True, slots=True)
class _Stack:
    """Sections in their order on the screen. Those that are named first get their rows first."""

    importance: Sequence[Callable[[Canvas], Section]]
    order: Sequence[Callable[[Canvas], Section]]


_ONE_COLUMN: Final = _Stack(
    importance=(
        *(sections.classes, sections.alerts, sections.osds, sections.latencies, sections.work),
        *(sections.runs, sections.notes, sections.threads, sections.devices),
    ),
    order=(
        *(sections.classes, sections.latencies, sections.osds, sections.alerts, sections.work),
        *(sections.threads, sections.devices, sections.runs, sections.notes),
    ),
)
_LEFT: Final = _Stack(
    importance=(sections.classes, sections.osds, sections.runs),
    order=(sections.classes, sections.runs, sections.osds),
)
_RIGHT: Final = _Stack(
    importance=(
        *(sections.alerts, sections.latencies, sections.work),
        *(sections.notes, sections.threads, sections.devices),
    ),
    order=(
        *(sections.latencies, sections.alerts, sections.work),
        *(sections.threads, sections.devices, sections.notes),
    ),
)


def _stacked(canvas: Canvas, rows: int, stack: _Stack, gap: bool = False) -> list[Line]:
    """Sections below one another, with an empty line between them where there is a gap."""
    parts = [section(canvas) for section in stack.importance]
    given = share(parts, rows - (len(parts) - 1 if gap else 0))
    lines: list[Line] = []
    for position in map(stack.importance.index, stack.order):
        if drawn := parts[position].draw(given[position]) if given[position] else []:
            lines += [()] if gap and lines else []
            lines += drawn
    return lines


def _help() -> list[Line]:
    lines = [line(Span("KEYS", "title"))]
    lines += [line(f"  {fit(key, 22)}{what}") for key, what in KEYS]
    lines += [line(Span("STATES", "title"))]
    lines += [line(f"  {fit(state, 12)}{what}") for state, what in _STATES]
    lines += [line("  Figures are normalised ops/s: one is the work of a small operation.")]
    return lines


def _osd_page(canvas: Canvas, name: str) -> list[Line]:
    picture = canvas.picture
    osd = next((it for it in picture.osds if it.name == name), None)
    if osd is None:
        return [(), line(Span(f"  {printable(name)} is not among the OSDs any more", "warn"))]
    detail = picture.detail if picture.detail and picture.detail.name == name else OsdDetail(name)
    lines = [_osd_title(osd), *_osd_capacity(canvas, osd), *_osd_classes(canvas, osd)]
    mine = [alert for alert in picture.alerts if name in alert.osds]
    lines += [line(Span("ALERTS", "title"), Span("" if mine else "      none fires", "dim"))]
    lines += [sections.alert_line(alert, picture.time) for alert in mine]
    lines += latency_table(detail.latency)
    lines += [_operations(osd, detail)]
    for who, lost in detail.violated_seconds.items():
        words = f"{short(who)} for {duration(lost)} of the last hour"
        lines += [line(Span(fit("VIOLATED", 12), "title"), words)]
    if detail.throttles:
        used = ", ".join(f"{it} {percent(ratio)}" for it, ratio in detail.throttles.items())
        lines += [line(Span(fit("THROTTLES", 12), "title"), used)]
    for thread in [it for it in picture.threads if it.osd == name][:6]:
        title = Span(fit("THREADS" if lines[-1][0].text[:7] != "THREADS" else "", 12), "title")
        lines += [line(title, fit(thread.group, 18), f"{thread.cpu:>6.0%} of a CPU")]
    for device in [it for it in picture.devices if it.osd == name]:
        depth = number(device.depth)
        cells = f"{device.busy:.0%} busy, {latency(device.latency)} per request, depth {depth}"
        lines += [line(Span(fit("DEVICE", 12), "title"), fit(device.device, 18), cells)]
    return lines


def _osd_title(osd: OsdState) -> Line:
    state = Span("up", "good") if osd.up else Span(f"does not answer: {osd.reason}", "bad")
    scheduler = f"  {osd.scheduler or 'scheduler unknown'}"
    profile = f", profile {osd.profile}" if osd.profile else ""
    return line(Span(f"{osd.name}  ", "title"), state, scheduler, profile)


def _osd_capacity(canvas: Canvas, osd: OsdState) -> list[Line]:
    largest = max(osd.capacity or 0.0, osd.delivered or 0.0)
    drawn = bar(
        osd.delivered,
        osd.capacity,
        largest,
        max(8, canvas.columns - 56),
        ascii_only=canvas.ascii_only,
    )
    figures = f" delivers {number(osd.delivered)} of {number(osd.capacity)} ops/s (capacity)"
    return [line(fit("all work", 12), *drawn, figures)]


def _osd_classes(canvas: Canvas, osd: OsdState) -> list[Line]:
    titles = f"{'attained':>31}{'reserved':>9}{'':5}{'queue':>6}{'lag':>8}  cause"
    lines = [line(Span("CLASSES", "title"), Span(titles[7:], "dim"))]
    for part in osd.classes:
        limit = f"  limit {number(part.limit)}" if part.limit else ""
        room = canvas.columns - sections.CELLS - len(limit) - 1
        lines.append(line(" ", *class_cells(part, room), limit))
    return lines


def _operations(osd: OsdState, detail: OsdDetail) -> Line:
    return line(
        Span(fit("OPERATIONS", 12), "title"),
        f"{number(detail.in_progress)} in progress, {number(osd.blocked)} blocked,"
        f" oldest {duration(detail.oldest)}",
    )
