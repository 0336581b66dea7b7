"""The live state as rows: run, repeat, pools being filled, phases with clients, recovery."""

from collections.abc import Iterator

from cephqos_base.units import time_span
from cephqos_loadgen.engines.fio_output import IoTotals, add
from cephqos_loadgen.live.state import Fill, Live, RunningPhase
from cephqos_loadgen.plan.words import size
from cephqos_loadgen.progress import Bar, Frame
from cephqos_loadgen.results.figures import LAST_BIN_NS

# What is not over is not shown as if it were.
_NEARLY = 0.99
_NAMES = {"rados_bench": "rados bench", "rbd": "librbd", "nbd": "QEMU", "guest": "QEMU"}


def frame(live: Live, now: float) -> Frame:
    """All rows at this moment, and the same as one line."""
    where = live.where
    heading = where.scenario
    if where.point:
        heading += f": {where.point}"
    if where.repeat:
        heading += f", repeat {where.repeat}"
    doing = [Bar("now", None, live.doing)] if live.doing and not live.going else []
    bars = (*_run(live, now), *doing, *_fills(live, now), *_phases(live, now), *_recovery(live))
    words = [f"{bar.title.strip()} {_percent(bar)}{bar.text}" for bar in bars[1:]]
    left = f"{time_span(live.eta)} left" if live.eta is not None else ""
    line = "; ".join(word for word in [*words, left] if word)
    filled = (pool for pool, _ in live.fills)
    return Frame(heading, bars, line, " ".join((*where.phases, *filled)))


def _percent(bar: Bar) -> str:
    return "" if bar.done is None else f"{int(bar.done * 100)}%, "


def _run(live: Live, now: float) -> Iterator[Bar]:
    done, total = live.repeats
    share = 0.0
    if live.repeat_started and live.repeat_expected > 0:
        share = min(_NEARLY, (now - live.repeat_started) / live.repeat_expected)
    left = f", {time_span(live.eta)} left" if live.eta is not None else ""
    yield Bar("run", (done + share) / max(1, total), f"{done} of {total} repeats{left}")
    if live.repeat_started:
        rest = max(0.0, live.repeat_started + live.repeat_expected - now)
        text = f"{time_span(rest)} left" if rest else "longer than expected"
        yield Bar("repeat", share, text)


def _fills(live: Live, now: float) -> Iterator[Bar]:
    for (pool, unit), fill in live.fills.items():
        yield Bar(f"fill {pool}", fill.done / max(1.0, fill.total), fill_text(fill, unit, now))


def fill_text(fill: Fill, unit: str, now: float) -> str:
    if unit == "bytes":
        text = f"{size(fill.done)} of {size(fill.total)}"
    else:
        text = f"{fill.done:,.0f} of {fill.total:,.0f} {unit}"
    left = fill.left(now)
    return text if left is None else f"{text}, {time_span(left)} left"


def _phases(live: Live, now: float) -> Iterator[Bar]:
    for name, going in live.going.items():
        if not (going.phase.action.writes() and live.fills):  # its pool has a row
            yield _phase(live, name, going, now)
        yield from _clients(live, name, now)


def _phase(live: Live, name: str, going: RunningPhase, now: float) -> Bar:
    elapsed, until = now - going.started, going.phase.until
    scrub = live.scrub
    if scrub and scrub.phase == name:
        seconds = scrub.seconds_left(now)
        rest = "" if seconds is None else f", {time_span(seconds)} left"
        text = f"{scrub.done:,} of {scrub.done + scrub.left:,} objects{rest}"
        return Bar(name, scrub.done / max(1, scrub.done + scrub.left), text)
    if until.kind == "duration":
        share = min(_NEARLY, elapsed / max(0.001, until.at_most))
        text = f"{time_span(min(elapsed, until.at_most))} of {time_span(until.at_most)}"
        return Bar(name, share, text)
    if until.kind == "done":
        share = min(_NEARLY, elapsed / max(1.0, until.expected))
        return Bar(name, share, f"{time_span(elapsed)} of about {time_span(until.expected)}")
    what = f"until {until.phase or until.kind.replace('_', ' ')}"
    return Bar(name, None, f"{time_span(elapsed)} so far, {what}")


def _clients(live: Live, phase: str, now: float) -> Iterator[Bar]:
    """The clients of a phase together: one row per engine."""
    rows = [figures for (name, _), figures in live.clients.items() if name == phase]
    for engine in dict.fromkeys(figures.engine for figures in rows):
        own = [figures for figures in rows if figures.engine == engine and figures.seconds]
        if not own:
            continue
        title = f"  {_NAMES.get(engine, engine)}"
        silent = min(figures.silent_seconds(now) for figures in own)
        if silent:
            yield Bar(title, None, f"no figures for {time_span(silent)}")
            continue
        own = [figures for figures in own if not figures.silent_seconds(now)]
        together = add(figures.together for figures in own)
        iops = sum(figures.iops() for figures in own)
        moved = size(sum(figures.bytes_per_second() for figures in own))
        text = f"{iops:,.0f} IOPS  {moved}/s  {latency(together)}"
        yield Bar(title, None, text)


def latency(figures: IoTotals) -> str:
    """The 99th percentile where there are bins, else the mean."""
    if not figures.latency_count:
        return ""
    kind, seconds = ("p99", figures.percentile(99)) if figures.bins_ns else ("mean", figures.mean)
    if figures.bins_ns and seconds >= LAST_BIN_NS * 1e-9:
        kind = "p99 at least"
    return f"{kind} {seconds * 1e3:.3g} ms" if seconds < 10 else f"{kind} {seconds:.0f} s"


def _recovery(live: Live) -> Iterator[Bar]:
    recovery = live.recovery
    if not recovery or not recovery.left:
        return
    seconds = recovery.seconds_left
    rest = "" if seconds is None else f", {time_span(seconds)} left"
    text = f"{recovery.left:,} copies to move, {recovery.rate:,.0f}/s{rest}"
    yield Bar("recovery", recovery.done / max(1, recovery.done + recovery.left), text)
