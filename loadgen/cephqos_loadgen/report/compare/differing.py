"""Whether two runs did the same on the same machine and cluster: what differs, one line each.

`cephqos compare` refuses runs with such a line, unless the user says `--although-different`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cephqos_base.terminal import printable
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.environment import environment_differences

# Keys of a planned pool on which figures depend.
_POOL_KEYS: Final = ("pg_num", "size", "images", "objects")

# A planned point: by part (`phase load`, `pool rbd`, `settings`) its keys and values.
_Parts = Mapping[str, Mapping[str, Any]]


def run_differences(reference: ReportRun, run: ReportRun) -> Iterator[str]:
    """What differs between the machines and clusters of two runs, and between what they do."""
    yield from environment_differences(reference, run)
    old, new = _points(reference), _points(run)
    pairs = [(old[name], new[name]) for name in old if name in new]
    # Without a point that both have, the first ones are compared.
    pairs = pairs or [(next(iter(old.values()), {}), next(iter(new.values()), {}))]
    lines = (line for pair in pairs for line in _differences(reference.name, run.name, *pair))
    yield from map(printable, dict.fromkeys(lines))


def _differences(reference: str, run: str, old: _Parts, new: _Parts) -> Iterator[str]:
    for part in {**old, **new}:
        if part not in old or part not in new:
            yield f"{part}: only in {reference if part in old else run}"
            continue
        for key in {**old[part], **new[part]}:
            was, is_now = old[part].get(key, "absent"), new[part].get(key, "absent")
            if was != is_now:
                yield f"{part}, {key}: {was} ({reference}), {is_now} ({run})"


def _points(run: ReportRun) -> Mapping[str, _Parts]:
    """By point: what each phase does, what each pool is, and how all is configured."""
    return {str(point["name"]): _parts(point) for point in run.plan.get("points", [])}


def _parts(point: Mapping[str, Any]) -> _Parts:
    parts: dict[str, dict[str, Any]] = {}
    for phase in point.get("phases", []):
        parts[f"phase {phase['name']}"] = phase["action"] | _times(phase)
    for pool in point.get("pools", []):
        parts[f"pool {pool['name']}"] = {key: pool[key] for key in _POOL_KEYS if key in pool}
    parts["clients' configuration"] = dict(point.get("client") or [])
    settings = point.get("settings", [])
    parts["settings"] = {f"{opt['section']} {opt['name']}": opt["value"] for opt in settings}
    parts["devices"] = dict(point.get("devices") or {})
    return parts


def _times(phase: Mapping[str, Any]) -> dict[str, Any]:
    """When a phase starts and ends."""
    return {
        f"{key} {name}": value
        for key in ("start", "until")
        for name, value in (phase.get(key) or {}).items()
    }
