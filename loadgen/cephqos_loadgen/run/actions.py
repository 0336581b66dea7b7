"""What the phases do, besides client load."""

import asyncio
import json
import time
from typing import Any

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.phase_kinds.change import ChangeResult
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.flags import FlagsResult
from cephqos_loadgen.phase_kinds.osd_bench import OsdBenchFigures, OsdBenchResult
from cephqos_loadgen.phase_kinds.osd_in import OsdInResult
from cephqos_loadgen.phase_kinds.osd_out import OsdOutResult
from cephqos_loadgen.phase_kinds.prefill import PrefillResult
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.phase_kinds.settle import SettleResult
from cephqos_loadgen.phase_kinds.wait import WaitResult
from cephqos_loadgen.results.phase import PhaseResult, Step
from cephqos_loadgen.run import curves, undo
from cephqos_loadgen.run.clients import End, run_fio, run_rados_bench
from cephqos_loadgen.run.context import Context
from cephqos_loadgen.run.errors import RunError
from cephqos_loadgen.run.placement import pin_osds
from cephqos_loadgen.scenario.model import (
    Change,
    Fio,
    Flags,
    OsdBench,
    OsdIn,
    OsdOut,
    Phase,
    Pin,
    Prefill,
    RadosBench,
    Scrub,
    Settle,
)

_BENCH_SECONDS = 120.0
_LOOK_SECONDS = 1.0
# A request to scrub can be lost (a PG that is not active just then); it is repeated after this.
_ASK_AGAIN_SECONDS = 30.0


async def perform(context: Context, phase: Phase, end: End | None) -> PhaseResult:
    """Do what the phase is for. `end` returns when the phase is to end; None: with its work."""
    action = phase.action
    match action:
        case Fio():
            return await _fio(context, phase, action, end)
        case RadosBench():
            return await run_rados_bench(context, phase, action, phase.until.at_most)
        case Scrub():
            return await _scrub(context, action)
        case Prefill():
            return await _prefill(context, action, phase.until.at_most)
        case OsdBench():
            return await osd_bench(context, action)
        case Pin():
            return await pin_osds(context, action)
        case _:
            result = await _change_cluster(context, phase)
    if end is not None:
        await end()
    return result


async def _fio(context: Context, phase: Phase, action: Fio, end: End | None) -> FioResult:
    async def run(depth: int, seconds: float) -> Step:
        return (await run_fio(context, phase, action, seconds, None, depth))[0]

    if action.sweep:
        steps, stopped = await curves.sweep(action.sweep, run, context.recorder.event)
        return FioResult(action.engine, "sweep", steps, stopped_because=stopped)
    if action.search:
        steps = await curves.search(action.search, run, context.recorder.event)
        return FioResult(
            action.engine,
            "search",
            steps,
            target_seconds=action.search.target,
            target_percentile=action.search.percentile,
            reached=any(step.within_target for step in steps),
        )
    # fio keeps the time of a phase of a given length itself.
    until = None if phase.until.kind == "duration" else end
    seconds = phase.until.at_most
    step, steady = await run_fio(context, phase, action, seconds, until, action.depth)
    return FioResult(action.engine, "load", (step,), steady=steady)


async def _prefill(context: Context, action: Prefill, within: float) -> PrefillResult:
    started = time.time()
    await context.pools.fill_objects(action.pool, action.objects, within)
    return PrefillResult(action.objects.count, time.time() - started)


async def osd_bench(context: Context, action: OsdBench) -> OsdBenchResult:
    """What each OSD's store takes, one OSD after the other; it writes and removes its own data."""
    found = {}
    for osd in await context.cluster.up_osds():
        reply = await context.cluster.command(
            "bench",
            target=f"osd.{osd}",
            within=_BENCH_SECONDS,
            count=action.total,
            size=action.block_size,
            object_size=4 << 20,
            object_num=100,
        )
        data = json.loads(reply) if isinstance(reply, str) else reply
        found[f"osd.{osd}"] = OsdBenchFigures(data["iops"], data["bytes_per_sec"])
    return OsdBenchResult(found)


# -- scrub ---------------------------------------------------------------------------------------


async def _scrub(context: Context, action: Scrub) -> ScrubResult:
    """Ask for it, and follow it until every PG has a new stamp."""
    stamp = "last_deep_scrub_stamp" if action.deep else "last_scrub_stamp"
    before = {pg["pgid"]: pg[stamp] for pg in await _pgs(context, action.pool)}
    started = asked = time.time()
    await _ask_for_scrub(context, action)
    context.scrubs += 1
    seen_scrubbing = 0
    while True:
        pgs = await _pgs(context, action.pool)
        done = [pg for pg in pgs if pg[stamp] != before.get(pg["pgid"])]
        under_way = [pg for pg in pgs if "scrubbing" in pg["state"]]
        seen_scrubbing = max(seen_scrubbing, len(under_way))
        if done or under_way:
            context.scrub_started.set()
        objects = sum(_objects(pg) for pg in done)
        partly = sum(int(pg.get("objects_scrubbed", 0)) for pg in under_way if pg not in done)
        total = sum(_objects(pg) for pg in pgs)
        context.live.scrub = (objects + partly, total - objects - partly, started)
        if len(done) == len(pgs):
            break
        if time.time() - asked > _ASK_AGAIN_SECONDS and not under_way:
            context.recorder.event("scrub_asked_again", left=len(pgs) - len(done))
            await _ask_for_scrub(context, action)
            asked = time.time()
        await asyncio.sleep(_LOOK_SECONDS)
    seconds = time.time() - started
    stored = sum(int(pg["stat_sum"]["num_bytes"]) for pg in pgs)
    return ScrubResult(
        placement_groups=len(pgs),
        objects=objects,
        bytes=stored,
        seconds=seconds,
        scrubbing_at_once=seen_scrubbing,
    )


def _objects(pg: dict[str, Any]) -> int:
    return int(pg["stat_sum"]["num_objects"])


async def _pgs(context: Context, pool: str) -> list[dict[str, Any]]:
    reply = await context.cluster.command("pg ls-by-pool", target="mgr", poolstr=pool)
    found: list[dict[str, Any]] = reply["pg_stats"]
    return found


async def _ask_for_scrub(context: Context, action: Scrub) -> None:
    prefix = "osd pool deep-scrub" if action.deep else "osd pool scrub"
    await context.cluster.command(prefix, target="mgr", who=[action.pool])


# -- changes to the cluster ----------------------------------------------------------------------


async def _change_cluster(context: Context, phase: Phase) -> PhaseResult:
    action = phase.action
    started = time.time()
    match action:
        case OsdOut():
            osd = await _osd(context, action.osd)
            await _osd_out(context, osd)
            return OsdOutResult(osd)
        case OsdIn():
            osd = await _osd(context, action.osd)
            await _osd_in(context, osd)
            return OsdInResult(osd)
        case Flags():
            for flag in action.set:
                await set_flag(context.cluster, context.journal, flag)
            for flag in action.clear:
                await context.cluster.command("osd unset", key=flag)
            return FlagsResult(action.set, action.clear)
        case Change():
            return ChangeResult(await context.settings.apply(action.settings))
        case Settle():
            # Of its own pools only: with an OSD out, others may have too few OSDs left to be clean.
            pools = [pool.name for pool in context.point.pools]
            within = phase.until.at_most
            await context.cluster.wait_for_pgs(clean=action.clean, within=within, pools=pools)
            return SettleResult(time.time() - started)
        case _:
            return WaitResult(0.0)


async def _osd(context: Context, which: str) -> int:
    known = await context.cluster.osds()
    osd = max(known) if which == "last" else int(which)
    if osd not in known:
        raise RunError(f"osd.{osd} is not in the cluster, which has {known}")
    return osd


async def set_flag(cluster: Any, journal: undo.Journal, flag: str) -> None:
    """Set a cluster flag, unless it is set: then it stays when we go."""
    flags = (await cluster.command("osd dump"))["flags"].split(",")
    if flag not in flags:
        await journal.push(undo.command(f"ceph osd unset {flag}", "osd unset", key=flag))
    await cluster.command("osd set", key=flag)


async def _osd_out(context: Context, osd: int) -> None:
    """Down and out, while its process lives: it is told to stay away with its own noup flag."""
    name = f"osd.{osd}"
    push = context.journal.push
    await push(undo.command(f"ceph osd in {osd}", "osd in", ids=[str(osd)]))
    await push(
        undo.command(
            f"ceph osd unset-group noup {name}", "osd unset-group", flags="noup", who=[name]
        )
    )
    command = context.cluster.command
    await command("osd set-group", flags="noup", who=[name])
    await command("osd down", ids=[str(osd)])
    await command("osd out", ids=[str(osd)])
    await context.cluster.wait_for_osd(osd, up=False)


async def _osd_in(context: Context, osd: int) -> None:
    command = context.cluster.command
    await command("osd unset-group", flags="noup", who=[f"osd.{osd}"])
    await command("osd in", ids=[str(osd)])
    await context.cluster.wait_for_osd(osd, up=True)


async def recovered(context: Context) -> dict[str, int]:
    """Objects and bytes recovered, of all pools, since they were made; empty if not to be had."""
    try:
        dump = await context.cluster.command("pg dump", target="mgr", dumpcontents=["pools"])
    except (CommandFailed, ClusterUnreachable, RunError):
        return {}
    sums = [pool["stat_sum"] for pool in dump["pool_stats"]]
    return {
        "objects": sum(int(entry["num_objects_recovered"]) for entry in sums),
        "bytes": sum(int(entry["num_bytes_recovered"]) for entry in sums),
    }
