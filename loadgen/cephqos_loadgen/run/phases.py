"""Runs the phases of one repeat beside each other, each from its start to its end."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.errors import CephqosError
from cephqos_loadgen.record.host import HostState, difference, read_host
from cephqos_loadgen.run.actions import perform, recovered
from cephqos_loadgen.run.context import Context, beside
from cephqos_loadgen.run.endings import moves_data, wait_for_end, wait_for_start
from cephqos_loadgen.run.errors import RunError
from cephqos_loadgen.scenario.model import Fio, Phase, RadosBench

_CLIENT_LOOK_SECONDS = 1.0


async def run_phases(context: Context, results: dict[str, Any]) -> None:
    """All phases, their results by name into `results`, also of those that came before a failure.

    The first that fails ends the others and is raised.
    """
    tasks = [
        asyncio.create_task(_run_phase(context, phase, results), name=phase.name)
        for phase in context.point.phases
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_phase(context: Context, phase: Phase, results: dict[str, Any]) -> None:
    marks = context.marks[phase.name]
    since = await wait_for_start(context, phase)
    marks.start_time = time.time()
    if moves_data(phase):
        context.moved = marks.start_time
        context.recovered_before = await recovered(context)
        context.watcher.expect_recovery()
    context.live.begin(phase)
    context.recorder.event("phase_started", phase=phase.name, action=phase.action.kind)
    marks.started.set()
    outcome: dict[str, Any] = {"kind": phase.action.kind, "started": marks.start_time}
    try:
        outcome |= await _with_host_figures(context, phase, since)
        outcome["ok"] = True
    except (CephqosError, CommandFailed) as error:
        outcome |= {"ok": False, "error": str(error)}
        if not phase.may_fail:
            raise RunError(f"phase {phase.name}: {error}") from error
    finally:
        marks.end_time = outcome["ended"] = time.time()
        results[phase.name] = outcome
        with suppress(OSError):  # a full disk is reported by whoever met it first
            context.recorder.event(
                "phase_ended",
                phase=phase.name,
                ok=outcome.get("ok", False),
                error=outcome.get("error", ""),
            )
        context.live.end(phase)
        marks.ended.set()


async def _with_host_figures(context: Context, phase: Phase, since: float) -> dict[str, Any]:
    pids = await context.cluster.access.pids()
    daemons = {name: pid for name, pid in pids.items() if name.startswith("osd.")}
    before = read_host(daemons)
    started = time.monotonic()
    clients: dict[str, HostState] = {}
    look = asyncio.create_task(_look_at_clients(context, phase, clients))
    async with beside(look):
        result = await _within_limit(context, phase, since)
    after = read_host(daemons)
    figures = difference(before, after, time.monotonic() - started)
    for name, state in clients.items():
        empty = HostState({}, {}, {})
        figures["processes"] |= difference(empty, state, 0.0)["processes"]
        figures["processes"].setdefault(name, {})
    return {**result, "host": figures}


async def _look_at_clients(context: Context, phase: Phase, found: dict[str, HostState]) -> None:
    """The threads of client processes as of the last second of each: at the end they are gone."""
    if not isinstance(phase.action, Fio | RadosBench):
        return
    while True:
        await asyncio.sleep(_CLIENT_LOOK_SECONDS)
        for child in context.recorder.children:
            name = child.launch.name
            if name.startswith(f"{phase.name}.") and child.running:
                found[name] = read_host({name: child.pid})


async def _within_limit(context: Context, phase: Phase, since: float) -> dict[str, Any]:
    """The phase's work, to its own end or to the end that the scenario sets."""
    until = phase.until

    async def end() -> None:
        await wait_for_end(context, phase, since)

    own_end = until.kind == "done"
    # What is asked to end gets a little time for it beyond the limit.
    limit = until.at_most + (60.0 if until.kind == "duration" else 30.0)
    try:
        async with asyncio.timeout(limit):
            result = await perform(context, phase, None if own_end else end)
            if until.kind == "recovery_done":
                result["recovery"] = await _recovery(context)
            return result
    except TimeoutError:
        raise RunError(f"did not end within {until.at_most:g} s (until: {until.kind})") from None


async def _recovery(context: Context) -> dict[str, float]:
    """What was recovered since the phase that caused it."""
    after, before = await recovered(context), context.recovered_before
    seconds = context.watcher.recovery_seconds
    found = {key: float(after[key] - before[key]) for key in after if key in before}
    if seconds:
        found |= {f"{key}_per_second": value / seconds for key, value in found.items()}
    return {**found, "seconds": seconds}


def figures_of(results: Mapping[str, Any]) -> dict[str, Any]:
    """The few figures of each phase that a list shows."""
    found = {}
    for name, result in results.items():
        keys = ("objects_scrubbed", "objects", "seconds", "depth")
        row = {key: result[key] for key in keys if key in result}
        total = result.get("total")
        if total:
            row |= {key: total[key] for key in ("iops", "latency_mean") if key in total}
        if "recovery" in result:
            row |= {
                "objects_recovered": result["recovery"].get("objects"),
                "recovery_seconds": result["recovery"]["seconds"],
            }
        found[name] = row
    return found
