"""CPU time in units that a slow or busy machine stretches alike."""

import time
from collections.abc import Callable

import yaml

_NUMBERS = "[" + "1," * 20_000 + "1]"


def reading() -> float:
    """Seconds that one of them takes now."""
    return _seconds(_read_numbers)


def cost(action: Callable[[], object], most: float) -> float:
    """The CPU time of an action, in readings of 20,000 numbers by PyYAML's fastest loader.

    A tenth of a second on a slow machine. Measured on both sides of the action, for a machine may
    turn slow in between; the dearer one counts. What costs more than `most` is tried twice more,
    and the least counts: a collection of garbage that others left falls into one of them only.
    """
    costs: list[float] = []
    while len(costs) < 3 and min(costs, default=most) >= most:
        before = reading()
        took = _seconds(action)
        costs.append(took / max(before, reading()))
    return min(costs)


def _read_numbers() -> None:
    yaml.compose(_NUMBERS, Loader=yaml.CSafeLoader)


def _seconds(action: Callable[[], object]) -> float:
    before = time.process_time()
    action()
    return time.process_time() - before
