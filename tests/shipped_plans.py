"""Plans of the scenarios that come with cephqos."""

from typing import Any

from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import Choices, parse


def shipped_plan(name: str, scale: str = "tiny", **choices: Any) -> Plan:
    """The plan of a scenario by its name, with what the command line may choose."""
    text, file = library.read(name)
    return parse(text, file, Choices(scale=scale, **choices))


def only(**axes: str) -> dict[str, tuple[str, ...]]:
    """One value of each of these axes."""
    return {axis: (value,) for axis, value in axes.items()}
