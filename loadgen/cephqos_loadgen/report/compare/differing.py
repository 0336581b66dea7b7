"""Whether two runs did the same on the same machine and cluster: what differs, one line each."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cephqos_base.terminal import printable
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.environment import environment_differences

# Of a planned pool, what its figures depend on.
_OF_POOLS: Final = ("pg_num", "size", "images", "objects")

_Parts = Mapping[str, Mapping[str, Any]]  # of a point: phases, pools, ...


def run_differences(reference: ReportRun, run: ReportRun) -> Iterator[str]:
    """What differs between the machines and clusters of two runs, and between what they do."""
    yield from environment_differences(reference, run)
    old, new = _points(reference), _points(run)
    sides = [(old[name], new[name]) for name in old if name in new]
    # Without a point that both have, the first ones.
    sides = sides or [(next(iter(old.values()), {}), next(iter(new.values()), {}))]
    lines = (line for side in sides for line in _differing(reference.name, run.name, *side))
    yield from map(printable, dict.fromkeys(lines))


def _differing(reference: str, run: str, old: _Parts, new: _Parts) -> Iterator[str]:
    for name in {**old, **new}:
        if name not in old or name not in new:
            yield f"{name}: only in {reference if name in old else run}"
            continue
        for key in {**old[name], **new[name]}:
            was, is_now = old[name].get(key, "absent"), new[name].get(key, "absent")
            if was != is_now:
                yield f"{name}, {key}: {was} ({reference}), {is_now} ({run})"


def _points(run: ReportRun) -> Mapping[str, _Parts]:
    """By point: what each phase does, what each pool is, and how all is configured."""
    return {str(point["name"]): _parts(point) for point in run.plan.get("points", [])}


def _parts(point: Mapping[str, Any]) -> _Parts:
    return {
        **{f"phase {it['name']}": it["action"] | _times(it) for it in point.get("phases", [])},
        **{
            f"pool {it['name']}": {key: it[key] for key in _OF_POOLS if key in it}
            for it in point.get("pools", [])
        },
        "clients' configuration": dict(point.get("client") or []),
        "settings": {
            f"{it['section']} {it['name']}": it["value"] for it in point.get("settings", [])
        },
        "devices": dict(point.get("devices") or {}),
    }


def _times(phase: Mapping[str, Any]) -> dict[str, Any]:
    """When a phase starts and ends."""
    return {
        f"{key} {name}": value
        for key in ("start", "until")
        for name, value in (phase.get(key) or {}).items()
    }
