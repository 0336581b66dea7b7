"""The sections of the main page, one function each: `classes`, `osds`, `alerts` and others.

A section says how many rows it wants, and is drawn with those that it gets (layout.share).
"""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from cephqos_base.judge import BOUNDS
from cephqos_base.tenant_shares import TenantShare
from cephqos_base.terminal import printable
from cephqos_loadgen.top.picture import (
    ClassTotal,
    FiringAlert,
    OsdClass,
    OsdState,
    Percentiles,
    Picture,
    RecoveryState,
    ScrubState,
    State,
)
from cephqos_loadgen.top.screen import text
from cephqos_loadgen.top.screen.layout import Line, Section, Span, Style, bar, fixed, line, titled
from cephqos_loadgen.top.screen.text import duration, fit, latency, number, percent
from cephqos_loadgen.top.screen.view import View, chosen_osds

_SHORT_NAMES = {"background_recovery": "recovery", "background_best_effort": "best-effort"}
_STATE_STYLES: dict[State, Style] = {
    "violated": "bad",
    "behind": "warn",
    "kept": "good",
    "idle": "dim",
    "unreserved": "dim",
    "unknown": "dim",
}

_SEVERITY_STYLES: dict[str, Style] = {"critical": "bad", "warning": "warn"}


@dataclass(frozen=True, slots=True)
class Canvas:
    """What every section draws with."""

    picture: Picture
    view: View
    columns: int
    ascii_only: bool = False


def short(name: str) -> str:
    """A class in fewer letters; any other name as it is."""
    return _SHORT_NAMES.get(name, name)


def headline(picture: Picture) -> Line:
    """Are the reservations violated? In one sentence."""
    down = sum(not osd.up for osd in picture.osds)
    not_answering = f"; {_osd_count(down)} not answering" if down else ""
    violated = [
        f"{total.name} on {_osd_count(total.violated_osds)}"
        for total in picture.classes
        if total.violated_osds
    ]
    behind = [
        f"{total.name} on {_osd_count(total.behind_osds)}"
        for total in picture.classes
        if total.behind_osds
    ]
    if violated:
        return line(Span("VIOLATED", "bad"), f": {', '.join(violated)}{not_answering}")
    if behind:
        return line(Span("BEHIND at this moment", "warn"), f": {', '.join(behind)}{not_answering}")
    return _none_violated(picture, not_answering)


def _none_violated(picture: Picture, not_answering: str) -> Line:
    """No class is known to be short. That is good news only if there is something to judge."""
    if not any(osd.up for osd in picture.osds):
        why = "no OSD answers" if picture.osds else "no OSD is known"
        return line(Span("NO DATA", "warn"), f": {why}")
    if not any(total.reserved for total in picture.classes):
        return line(Span("NO RESERVATIONS", "warn"), f": no OSD has a reservation{not_answering}")
    judged = sum(osd.judged for osd in picture.osds)
    if not judged and not picture.with_rates:
        return line("Measuring …")
    if not judged:
        unknown = ": the work of the classes is not known"
        return line(Span("NOT KNOWN", "warn"), f"{unknown}{not_answering}")
    kept = f": every class gets its reservation, or needs less ({_osd_count(judged)})"
    return line(Span("KEPT", "good"), f"{kept}{not_answering}")


def _osd_count(count: int) -> str:
    return f"{count} OSD{'' if count == 1 else 's'}"


def classes(canvas: Canvas) -> Section:
    totals = canvas.picture.classes
    largest = max((max(total.attained or 0, total.reserved or 0) for total in totals), default=0.0)
    lines = [line(Span("CLASSES", "title"), Span("  attained of reserved, ops/s", "dim"))]
    lines += [_class_row(total, largest, canvas) for total in totals]
    return fixed(lines, needs=len(lines))


def _class_row(total: ClassTotal, largest: float, canvas: Canvas) -> Line:
    bar_columns = max(8, canvas.columns - 12 - 44)  # beside the name and the figures
    style: Style = "bad" if total.violated_osds else "bar"
    reserved = f" of {number(total.reserved):<9}" if total.reserved else " " * 13
    share = "" if total.attainment is None else percent(total.attainment)
    return line(
        fit(short(total.name), 12),
        *bar(total.attained, total.reserved, largest, bar_columns, style, canvas.ascii_only),
        f" {number(total.attained):>9}{reserved}{share:>6}  ",
        *_class_state(total.violated_osds, total.behind_osds),
    )


def _class_state(violated: int, behind: int) -> Line:
    if violated:
        return line(Span(f"VIOLATED: {violated}", "bad"))
    return line(Span(f"behind: {behind}", "warn")) if behind else ()


def latencies(canvas: Canvas) -> Section:
    percentiles = canvas.picture.latency
    nothing = [line(Span("LATENCY", "title"), Span("  no client operations", "dim"))]
    lines = latency_table(percentiles) if percentiles else nothing
    return fixed(lines, needs=min(len(lines), 3))


def latency_table(percentiles: Iterable[Percentiles]) -> list[Line]:
    lines = [
        line(
            Span(fit("LATENCY", 14), "title"),
            Span("".join(f"{name:>10}" for name in ("ops/s", "p50", "p95", "p99", "p99.9")), "dim"),
        )
    ]
    for row in percentiles:
        values = (row.p50, row.p95, row.p99, row.p999)
        cells = "".join(f"{latency(value):>10}" for value in values)
        lines.append(
            line(fit(f"{row.who} {row.op}", 14), f"{number(row.ops_per_second):>10}{cells}")
        )
    return lines


def osds(canvas: Canvas) -> Section:
    chosen = chosen_osds(canvas.picture, canvas.view)

    def draw(rows: int) -> list[Line]:
        longest = max((len(osd.name) + 2 for osd in chosen), default=0)
        widths = OsdListWidths(name=max(_LEAST_NAME, longest), all=canvas.columns)
        lines = [_osds_heading(canvas, len(chosen), widths)]
        room = max(0, rows - 1)
        cursor = min(canvas.view.cursor, len(chosen) - 1)
        first = max(0, min(cursor - room // 2, len(chosen) - room))
        for position in range(first, min(first + room, len(chosen))):
            lines.append(osd_line(chosen[position], widths, under_cursor=position == cursor))
        return lines

    return Section(draw, wants=1 + max(1, len(chosen)), needs=5)


_LEAST_NAME = 9
# Columns of `class_cells` before the cause: name, state and figures; and the titles above them.
CELLS = 60
FIGURE_TITLES = f"{'attained':>9}{'reserved':>9}{'':>5}{'queue':>6}{'lag':>8}  cause"


@dataclass(frozen=True, slots=True)
class OsdListWidths:
    """Columns of the list of OSDs."""

    name: int
    all: int

    @property
    def cause(self) -> int:
        return self.all - self.name - CELLS


def _osds_heading(canvas: Canvas, chosen: int, widths: OsdListWidths) -> Line:
    """How many OSDs are chosen, in which order, by which filter; and the titles of the figures."""
    view = canvas.view
    count = f"{chosen} of {len(canvas.picture.osds)}" if view.filter else f"{chosen}"
    choice = f"  {count}, by {view.sort}{' reversed' if view.reverse else ''}"
    if view.filter:
        choice += f", /{printable(view.filter)}"
    choice = fit(choice, 17 + widths.name)
    return line(Span("OSDS", "title"), Span(choice, "dim"), Span(FIGURE_TITLES, "dim"))


def osd_line(osd: OsdState, widths: OsdListWidths, *, under_cursor: bool) -> Line:
    """An OSD with its worst class."""
    mark = ">" if under_cursor else " "
    name = Span(fit(f"{mark}{osd.name}", widths.name), "cursor" if under_cursor else "")
    worst = osd.worst
    if not osd.up:
        return line(name, Span(f"does not answer: {osd.reason or 'unknown reason'}", "bad"))
    if worst is None:
        return line(name, Span(f"{osd.scheduler or 'no scheduler known'}", "dim"))
    return line(name, *class_cells(worst, widths.cause))


def class_cells(osd_class: OsdClass, for_cause: int) -> Line:
    """The cells that a class has in the list of OSDs and on the page of one OSD."""
    cells = (
        f"{number(osd_class.attained):>8}{number(osd_class.reserved):>9}"
        f"{percent(osd_class.attainment):>5}"
        f"{number(osd_class.queued):>6}{latency(osd_class.lag):>8}  "
    )
    return line(
        fit(short(osd_class.name), 12),
        Span(fit(osd_class.state, 10), _STATE_STYLES[osd_class.state]),
        cells,
        _cause(osd_class, for_cause),
    )


def _cause(osd_class: OsdClass, columns: int) -> str:
    """The cause of a violation. Rules also know causes of unmet demand of classes whose reservation
    is kept; there they only distract."""
    if osd_class.state != "violated":
        return ""
    if not osd_class.by:
        return osd_class.cause
    by = f"by {short(osd_class.by)}"
    whole = f"{osd_class.cause} {by}"
    # If only one of them has room, `by` says more than the cause.
    return whole if text.width(whole) <= columns else by


def work(canvas: Canvas) -> Section:
    """Recovery and scrub, with what they have left to do."""
    picture = canvas.picture
    lines: list[Line] = []
    lines += [line("recovery    ", _recovery_words(recovery)) for recovery in picture.recovery]
    for scrub in picture.scrubs:
        level = "deep scrub" if scrub.level == "deep" else "scrub"
        lines.append(line(fit(level, 12), _scrub_words(scrub)))
    if picture.flags:
        lines.append(line(Span(f"flags       {', '.join(picture.flags)}", "warn")))
    missing = {missing.what for missing in picture.missing}
    unknown = missing & {"recovery and scrub", "everything"}
    empty = "not known" if unknown else "nothing recovers, no scrub runs or is overdue"
    about = _recovery_end(picture) if lines else empty
    title = line(Span("RECOVERY, SCRUB", "title"), Span(f"  {about}", "dim"))

    return Section(
        lambda rows: titled(title, lines, rows), wants=1 + len(lines), needs=1 + min(len(lines), 1)
    )


def _recovery_end(picture: Picture) -> str:
    end = picture.recovery_end
    if not picture.recovery:
        return ""
    if end is None:
        return "end of recovery: not known"
    return f"recovery ends in {end}"


def _recovery_words(recovery: RecoveryState) -> str:
    """The pool and when it is done come first: a narrow screen cuts the rest."""
    words = [
        _eta(recovery.eta),
        f"{number(recovery.degraded)} degraded",
        f"{number(recovery.misplaced)} misplaced",
        f"{number(recovery.unfound)} unfound" if recovery.unfound else "",
        f"{number(recovery.objects_per_second)} objects/s",
        text.data_rate(recovery.bytes_per_second),
    ]
    return f"{recovery.pool}: {', '.join(filter(None, words))}"


def _scrub_words(scrub: ScrubState) -> str:
    words = []
    if scrub.running_pgs:
        left = f"ETA {scrub.left}" if scrub.left else _eta(scrub.eta)
        words = [left, f"{number(scrub.running_pgs)} PGs"]
        if scrub.objects_left is not None:
            words.append(f"{number(scrub.objects_left)} objects left")
        words.append(f"{number(scrub.objects_per_second)} objects/s")
    if scrub.overdue_pgs:
        words.append(f"{number(scrub.overdue_pgs)} PGs overdue")
    return f"{scrub.pool}: {', '.join(words)}"


def _eta(seconds: float | None) -> str:
    return "no progress" if seconds is None else f"ETA {duration(seconds)}"


def threads(canvas: Canvas) -> Section:
    busiest = canvas.picture.threads
    rows = []
    for thread in busiest:
        style: Style = "warn" if thread.cpu >= BOUNDS.reached else ""
        share = Span(f"{thread.cpu:>6.0%}", style)
        rows.append(line(fit(f" {thread.osd}", 10), fit(thread.group, 16), share))
    words = [f"{thread.osd} {thread.group} {percent(thread.cpu)}" for thread in busiest[:4]]
    heading = "busiest thread of a group, share of one CPU"
    return _busiest("THREADS", heading, rows, ", ".join(words) or Span("not known", "dim"))


def devices(canvas: Canvas) -> Section:
    busiest = canvas.picture.devices
    rows = []
    for device in busiest:
        depth = text.UNKNOWN if device.depth is None else f"{device.depth:.1f}"
        cells = f"{device.busy:>6.0%}{latency(device.latency):>10}{depth:>8}"
        rows.append(line(fit(f" {device.osd}", 10), fit(device.device, 16), cells))
    words = [
        f"{device.osd} {device.device} {percent(device.busy)} {latency(device.latency)}"
        for device in busiest[:3]
    ]
    heading = f"{'':16}{'busy':>6}{'latency':>10}{'depth':>8}"
    return _busiest("DEVICES", heading, rows, ", ".join(words) or Span("none known", "dim"))


def _busiest(title: str, heading: str, lines: list[Line], in_short: str | Span) -> Section:
    """A line for each, or `in_short` if there is room for one line only."""
    name = Span(fit(title, 10), "title")

    def draw(rows: int) -> list[Line]:
        if rows == 1 or not lines:
            return [line(name, in_short)]
        return [line(name, Span(heading, "dim")), *lines][:rows]

    return Section(draw, wants=1 + min(len(lines), 8), needs=1)


def tenant_lines(picture: Picture, osd: str | None) -> list[Line]:
    """The largest tenants of each OSD, or of the opened one."""
    tenants = [tenant for tenant in picture.tenants or () if osd in (None, tenant.osd)]
    if not tenants:
        why = "asking …" if picture.tenants is None else _NO_TENANTS
        return [line(Span("TENANTS   ", "title"), why)]
    titles = f"{'  share, bursts not known, in 5 min':35}{'work':<21}waiting"
    lines = [line(Span("TENANTS", "title"), Span(titles, "dim"))]
    before = ""
    for tenant in tenants:
        name = fit(tenant.osd if tenant.osd != before else "", 9) + fit(tenant.name, 28)
        lines.append(line(f"{name}{_share(tenant.working)}{_share(tenant.waiting)}"))
        before = tenant.osd
    return lines


_NO_TENANTS = (
    "no operation was sampled in 5 min, the collector tenants is off, or there is no Prometheus"
)


def _share(share: TenantShare) -> str:
    bounds = f"({percent(share.low)}–{percent(share.high)})"
    return f"{percent(share.share):>7} {bounds:<13}"


def alerts(canvas: Canvas) -> Section:
    firing = canvas.picture.alerts
    known = not any("alerts" in missing.what for missing in canvas.picture.missing)
    empty = "none fires" if known else "not known without Prometheus"
    title = line(
        Span(fit("ALERTS", 10), "title"),
        Span(f"{len(firing)} firing" if firing else empty, "" if firing else "dim"),
    )

    def draw(rows: int) -> list[Line]:
        if rows == 1 and firing:
            return [line(title[0], *alert_line(firing[0], canvas.picture.time)[1:])]
        lines = [alert_line(alert, canvas.picture.time) for alert in firing]
        return titled(title, lines, rows)

    return Section(draw, wants=1 + len(firing), needs=1 + min(len(firing), 2))


def alert_line(alert: FiringAlert, now: float) -> Line:
    """As shown: critical CephQosReservationViolated  osd.3 client: device, 6 min"""
    style = _SEVERITY_STYLES.get(alert.severity, "")
    osds = ", ".join(alert.osds) if len(alert.osds) <= 3 else f"{len(alert.osds)} OSDs"
    subject = f"{osds} {short(alert.what)}".strip()
    cause = f"{alert.cause} by {short(alert.by)}" if alert.by else alert.cause
    if alert.name == "CephQosReplicaSlow":
        cause = "others wait for it"
    words = ": ".join(filter(None, (subject, cause)))
    since = "" if alert.since is None else duration(now - alert.since)
    words = ", ".join(filter(None, (words, since)))
    return line(Span(fit(alert.severity or "alert", 9), style), f"{alert.name}  {words}")


def runs(canvas: Canvas) -> Section:
    lines = []
    for run in canvas.picture.runs:
        words = [run.scenario, f"phase {run.phase}" if run.phase else ""]
        if run.repeats:
            words.append(f"{number(run.repeats_done)} of {number(run.repeats)} repeats done")
        if run.remaining is not None:
            words.append(f"{duration(run.remaining)} left")
        words += [run.point, f"repeat {run.repeat}" if run.repeat else ""]
        lines.append(line(Span(fit("RUN", 10), "title"), ", ".join(filter(None, words))))

    return fixed(lines, needs=min(len(lines), 1))


def notes(canvas: Canvas) -> Section:
    """What cannot be shown, and why."""
    missing = canvas.picture.missing
    lines = note_lines(canvas.picture, canvas.columns)

    def draw(rows: int) -> list[Line]:
        if len(lines) <= rows:
            return lines
        more = f" (+{len(missing) - 1} more)" if len(missing) > 1 else ""
        hint = line(
            Span("NOT SHOWN ", "title"), f"{missing[0].what}{more}: press n for the reasons"
        )
        return [hint] if rows == 1 else [*lines[: rows - 1], line(Span("  … press n", "dim"))]

    return Section(draw, wants=len(lines), needs=min(len(lines), 1))


def note_lines(picture: Picture, columns: int) -> list[Line]:
    lines: list[Line] = []
    for missing in picture.missing:
        folded = textwrap.wrap(f"{missing.what}: {missing.why}", max(20, columns - 10))
        for position, words in enumerate(folded):
            title = "NOT SHOWN" if not lines else ""
            indent = "  " if position else ""
            lines.append(line(Span(fit(title, 10), "title"), indent + words))
    return lines
