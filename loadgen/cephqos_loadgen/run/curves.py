"""Several steps of one load: a sweep over depths, a search for a latency target."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from cephqos_loadgen.scenario.model import Search, Sweep

# One step at a depth: its result as `run_fio` gives it.
Step = Callable[[int, float], Awaitable[dict[str, Any]]]


async def sweep(spec: Sweep, step: Step, note: Callable[..., None]) -> dict[str, Any]:
    """Depth after depth; a step past the limits is kept, and is the last."""
    steps = []
    stopped = ""
    for depth in spec.depths:
        result = await _timed(step, depth, spec.dwell)
        steps.append(result)
        stopped = too_much(spec, result["total"])
        note("sweep_step", depth=depth, iops=result["total"]["iops"], stopped=stopped)
        if stopped:
            break
    return {"steps": steps, "stopped": stopped, "total": steps[-1]["total"]}


async def _timed(step: Step, depth: int, dwell: float) -> dict[str, Any]:
    started = time.time()
    result = await step(depth, dwell)
    return {**result, "depth": depth, "started": started, "ended": time.time()}


def too_much(spec: Sweep, total: dict[str, Any]) -> str:
    """Why a curve need not be followed further, or nothing."""
    mean, deviation = total["latency_mean"], total["latency_deviation"]
    if spec.dispersion is not None and mean and deviation / mean >= spec.dispersion:
        return f"dispersion {deviation / mean:.2f} of latency at or above {spec.dispersion:g}"
    if spec.latency is not None and mean > spec.latency:
        return f"mean latency {mean * 1e3:.3g} ms above {spec.latency * 1e3:g} ms"
    return ""


async def search(spec: Search, step: Step, note: Callable[..., None]) -> dict[str, Any]:
    """The greatest depth within the target, by halving; throughput is the best of those within.

    Latency grows with depth on a queue, so halving is sound; a step that was lucky or unlucky costs
    precision, not the bound: every figure reported was measured at the depth it is reported for.
    """
    steps: dict[int, dict[str, Any]] = {}
    low, high = spec.least, spec.most

    async def measure(depth: int) -> bool:
        result = await _timed(step, depth, spec.dwell)
        latency = result["total"][_key(spec)]
        within = latency <= spec.target
        steps[depth] = {**result, "latency": latency, "within": within}
        note("search_step", depth=depth, latency=latency, within=within)
        return bool(within)

    if await measure(low):
        while high > low:
            middle = (low + high + 1) // 2
            if await measure(middle):
                low = middle
            else:
                high = middle - 1
    kept = [result for result in steps.values() if result["within"]]
    best = max(kept, key=lambda result: result["total"]["iops"], default=None)
    return {
        "steps": [steps[depth] for depth in sorted(steps)],
        "target": spec.target,
        "reached": best is not None,
        "depth": best["depth"] if best else None,
        "total": (best or steps[spec.least])["total"],
    }


def _key(spec: Search) -> str:
    return "latency_mean" if spec.percentile is None else f"latency_p{spec.percentile:g}"
