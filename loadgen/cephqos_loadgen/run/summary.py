"""What a run found, in short: figures per point over its repeats, and what was looked for."""

import statistics
from collections.abc import Sequence
from typing import Any

from cephqos_loadgen.scenario.model import Find, Plan

_KEYS = (
    "iops",
    "latency_mean",
    "objects_scrubbed",
    "objects_recovered",
    "recovery_seconds",
    "seconds",
    "depth",
)


def summarise(plan: Plan, outcomes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Per point and phase: mean and standard deviation over the finished repeats."""
    finished = [outcome for outcome in outcomes if outcome.get("status") == "finished"]
    points = {}
    for point in plan.points:
        repeats = [outcome for outcome in finished if outcome["point"] == point.name]
        if repeats:
            points[point.name] = {
                phase.name: _over_repeats([r["figures"].get(phase.name, {}) for r in repeats])
                for phase in point.phases
            }
    found: dict[str, Any] = {"points": points}
    if plan.find:
        found["found"] = find(plan.find, plan, points)
    return found


def _over_repeats(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for key in _KEYS:
        values = [float(row[key]) for row in rows if row.get(key) is not None]
        if values:
            found[key] = {
                "mean": statistics.fmean(values),
                "deviation": statistics.stdev(values) if len(values) > 1 else None,
                "repeats": len(values),
            }
    return found


def find(wanted: Find, plan: Plan, points: dict[str, Any]) -> dict[str, Any] | None:
    """The first value of the axis (in the order of the scenario, smallest first) that keeps the
    share of the best throughput; None while not all points have run."""
    rates: dict[str, float] = {}
    for point in plan.points:
        figures = points.get(point.name, {}).get(wanted.phase, {})
        if "iops" not in figures:
            return None
        label = dict(point.axes)[wanted.axis]
        rates[label] = max(rates.get(label, 0.0), figures["iops"]["mean"])
    best = max(rates.values())
    kept = next(label for label, rate in rates.items() if rate >= wanted.keeping * best)
    return {"axis": wanted.axis, "value": kept, "iops": rates, "keeping": wanted.keeping}
