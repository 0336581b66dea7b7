"""Refuses points of a matrix that do the same under two names."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from cephqos_base.errors import UsageError
from cephqos_base.units import parse_size
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.plan import planned
from cephqos_loadgen.scenario.variables import ScenarioValue


def refuse_equal(document: ScenarioValue, points: Sequence[planned.Point]) -> None:
    """Points that do the same would be compared as if they did not."""
    seen: dict[planned.Point, str] = {}
    for point in points:
        same = _what_it_does(point)
        if same in seen:
            matrix = document.entries()["matrix"]
            matrix.fail("points that differ", f"{seen[same]} and {point.name}, which do the same")
        seen[same] = point.name


def _what_it_does(point: planned.Point) -> planned.Point:
    """The same without its names, and with what has no order in one order."""
    return replace(
        point,
        name="",
        axes=(),
        settings=tuple(sorted(map(_one_spelling, point.settings), key=_by_name)),
        client=tuple(sorted(point.client)),
        flags=tuple(sorted({*point.flags})),
        lab_axes=(),
        fresh_lab=False,
    )


def _by_name(option: CephOption) -> tuple[str, str]:
    return option.section, option.name


def _one_spelling(option: CephOption) -> CephOption:
    """4M and 4194304, 0.1 and 0.10 are one value."""
    with suppress(UsageError):
        return replace(option, value=str(parse_size(option.value)))
    with suppress(ValueError):
        return replace(option, value=str(float(option.value)))
    return option
