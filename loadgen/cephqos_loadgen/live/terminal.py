"""The live state as rows: run, repeat, pools being filled, phases with clients, recovery."""

from collections.abc import Iterator

from cephqos_base.units import time_span
from cephqos_loadgen.engines.fio_output import IoTotals, add
from cephqos_loadgen.live.state import Fill, Live, LiveScrub
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.words import size
from cephqos_loadgen.progress import Bar, Frame
from cephqos_loadgen.results.figures import LAST_BIN_NS

_NEARLY = 0.99  # the most that is shown of what is not over yet
_ENGINE_NAMES = {"rados_bench": "rados bench", "rbd": "librbd", "nbd": "QEMU", "guest": "QEMU"}


def frame(live: Live, now: float) -> Frame:
    """All rows at this moment, and the same as one line."""
    where = live.where
    heading = where.scenario
    if where.point:
        heading += f": {where.point}"
    if where.repeat:
        heading += f", repeat {where.repeat}"
    doing = [Bar("now", None, live.doing)] if live.doing and not live.running else []
    bars = (*_run(live, now), *doing, *_fills(live, now), *_phases(live, now), *_recovery(live))
    # The line leaves out the bar of the run, of which it has the time left.
    words = []
    for bar in bars[1:]:
        percent = "" if bar.done is None else f"{int(bar.done * 100)}%, "
        words.append(f"{bar.title.strip()} {percent}{bar.text}")
    if live.eta is not None:
        words.append(f"{time_span(live.eta)} left")
    filled = (pool for pool, _ in live.fills)
    return Frame(heading, bars, "; ".join(words), " ".join((*where.phases, *filled)))


def _run(live: Live, now: float) -> Iterator[Bar]:
    done, total = live.repeats
    share = 0.0
    if live.repeat_started and live.repeat_expected > 0:
        share = min(_NEARLY, (now - live.repeat_started) / live.repeat_expected)
    left = f", {time_span(live.eta)} left" if live.eta is not None else ""
    yield Bar("run", (done + share) / max(1, total), f"{done} of {total} repeats{left}")
    if live.repeat_started:
        seconds = max(0.0, live.repeat_started + live.repeat_expected - now)
        text = f"{time_span(seconds)} left" if seconds else "longer than expected"
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
    for name, phase in live.running.items():
        if not (phase.action.writes() and live.fills):  # its pool has a row
            yield _phase(live, phase, now)
        yield from _clients(live, name, now)


def _phase(live: Live, phase: Phase, now: float) -> Bar:
    name, until = phase.name, phase.until
    elapsed = now - live.where.phases[name]
    if live.scrub and live.scrub.phase == name:
        return _scrub(live.scrub, name, now)
    if until.kind == "duration":
        share = min(_NEARLY, elapsed / max(0.001, until.at_most))
        text = f"{time_span(min(elapsed, until.at_most))} of {time_span(until.at_most)}"
        return Bar(name, share, text)
    if until.kind == "done":
        share = min(_NEARLY, elapsed / max(1.0, until.expected))
        return Bar(name, share, f"{time_span(elapsed)} of about {time_span(until.expected)}")
    end = until.phase or until.kind.replace("_", " ")
    return Bar(name, None, f"{time_span(elapsed)} so far, until {end}")


def _scrub(scrub: LiveScrub, phase: str, now: float) -> Bar:
    seconds = scrub.seconds_left(now)
    left = "" if seconds is None else f", {time_span(seconds)} left"
    whole = scrub.done + scrub.left
    return Bar(phase, scrub.done / max(1, whole), f"{scrub.done:,} of {whole:,} objects{left}")


def _clients(live: Live, phase: str, now: float) -> Iterator[Bar]:
    """The clients of a phase together: one row per engine."""
    of_phase = [client for (name, _), client in live.clients.items() if name == phase]
    for engine in dict.fromkeys(client.engine for client in of_phase):
        clients = [client for client in of_phase if client.engine == engine and client.seconds]
        if not clients:
            continue
        title = f"  {_ENGINE_NAMES.get(engine, engine)}"
        silent = min(client.silent_seconds(now) for client in clients)
        if silent:  # all of them are
            yield Bar(title, None, f"no figures for {time_span(silent)}")
            continue
        clients = [client for client in clients if not client.silent_seconds(now)]
        iops = sum(client.iops() for client in clients)
        bandwidth = size(sum(client.bytes_per_second() for client in clients))
        last_interval = add(client.together for client in clients)
        yield Bar(title, None, f"{iops:,.0f} IOPS  {bandwidth}/s  {latency(last_interval)}")


def latency(figures: IoTotals) -> str:
    """The 99th percentile if there is a histogram (fio has one), else the mean."""
    if not figures.latency_count:
        return ""
    if figures.bins_ns:
        seconds = figures.percentile(99)
        kind = "p99" if seconds < LAST_BIN_NS * 1e-9 else "p99 at least"
    else:
        kind, seconds = "mean", figures.mean
    return f"{kind} {seconds * 1e3:.3g} ms" if seconds < 10 else f"{kind} {seconds:.0f} s"


def _recovery(live: Live) -> Iterator[Bar]:
    recovery = live.recovery
    if not recovery or not recovery.left:
        return
    seconds = recovery.seconds_left
    left = "" if seconds is None else f", {time_span(seconds)} left"
    rate = f"{recovery.rate:,.0f}" if recovery.rate >= 10 else f"{recovery.rate:.1f}"
    text = f"{recovery.left:,} copies to move, {rate}/s{left}"
    yield Bar("recovery", recovery.done / max(1, recovery.done + recovery.left), text)
