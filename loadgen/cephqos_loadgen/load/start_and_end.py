"""When phases start and when they end."""

import asyncio
import statistics
import time
from collections.abc import Sequence

from cephqos_loadgen.load.context import Context, Marks
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.planned import Phase

_LOOK_SECONDS = 0.25
_COVERED_SHARE = 0.8  # of the window of a steady state, that samples must cover
# A phase brings about an event (recovery, a scrub). Later than this after its end, none comes.
_EVENT_SECONDS = 600.0


async def wait_for_start(context: Context, phase: Phase) -> float:
    """Wait until the phase is to start. Returns the time from which on events such as recovery
    count for it."""
    start = phase.start
    if start.kind == "at":
        await asyncio.sleep(max(0.0, context.started + start.delay - time.time()))
        return context.data_moved
    if start.kind == "when":
        since = await _wait_for_event(context, phase)
    else:
        mark = context.marks[start.phase]
        await (mark.ended if start.kind == "after" else mark.started).wait()
        since = context.data_moved
    await asyncio.sleep(start.delay)
    return since


async def _wait_for_event(context: Context, phase: Phase) -> float:
    """Wait for the event that the phase before this one brings about; RunError if it does not come.
    Returns when that phase started: events count from then on."""
    before, event = context.phase_before(phase), phase.start.event
    mark = context.marks[before.name]
    await mark.started.wait()
    since = mark.start_time
    if event == "scrub_started":
        seen = asyncio.create_task(context.scrubs.after(since))
    else:
        seen = asyncio.create_task(context.watcher.recovery_started(since))
    too_late = asyncio.create_task(_long_after(mark.ended))
    try:
        await asyncio.wait({seen, too_late}, return_when=asyncio.FIRST_COMPLETED)
        if not seen.done():
            raise RunError(
                f"phase {phase.name}: {event} was not seen within {_EVENT_SECONDS:g} s of the end"
                f" of {before.name}"
            )
        seen.result()
    finally:
        seen.cancel()
        too_late.cancel()
    return since


async def _long_after(ended: asyncio.Event) -> None:
    await ended.wait()
    await asyncio.sleep(_EVENT_SECONDS)


async def wait_for_end(context: Context, phase: Phase, since: float) -> None:
    """Wait until the phase's own condition says that it is to end."""
    until = phase.until
    if until.kind == "duration":
        await asyncio.sleep(until.at_most)
    elif until.kind == "scrub_done":
        for mark in scrub_marks(context):
            await mark.ended.wait()
    elif until.kind == "recovery_done":
        await context.watcher.recovery_done(since)
    elif until.kind == "phase":
        await context.marks[until.phase].ended.wait()
    elif until.kind == "steady_state":
        assert until.steady  # noqa: S101 - the parser sets it
        steady = False
        while not steady:
            await asyncio.sleep(_LOOK_SECONDS)
            rates = context.rates.get(phase.name, [])
            steady = is_steady(rates, until.steady.window, until.steady.dispersion)
    else:
        await asyncio.Event().wait()  # its own work ends it


def scrub_marks(context: Context) -> list[Marks]:
    """The marks of all phases that scrub."""
    return [context.marks[p.name] for p in context.point.phases if p.action.scrubs]


def is_steady(rates: Sequence[tuple[float, float]], window: float, dispersion: float) -> bool:
    """Whether the last `window` seconds spread, and drift, by no more than `dispersion`.

    As the storage industry's steady-state test has it: the slope over the window counts as well as
    the spread, or a slow steady fall would pass.
    """
    if not rates or rates[-1][0] - rates[0][0] < window:
        return False
    end = rates[-1][0]
    recent = [(t, rate) for t, rate in rates if t >= end - window]
    # A clock that was set, or a client that hung, leaves only a few samples in the window.
    if len(recent) < 3 or recent[-1][0] - recent[0][0] < _COVERED_SHARE * window:
        return False
    mean = statistics.fmean(rate for _, rate in recent)
    if mean <= 0:
        return False
    spread = statistics.pstdev(rate for _, rate in recent) / mean
    slope = statistics.linear_regression(*zip(*recent, strict=True)).slope
    return spread <= dispersion and abs(slope) * window / mean <= dispersion
