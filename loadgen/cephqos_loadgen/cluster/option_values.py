"""Values of Ceph's options: whether one is accepted, and whether two spellings mean the same."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """What the monitors know of an option."""

    name: str
    type: str
    runtime: bool
    allowed: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


def read_info(answer: Mapping[str, Any]) -> OptionInfo:
    """The reply of `config help`."""
    return OptionInfo(
        name=answer["name"],
        type=answer["type"],
        runtime=bool(answer["can_update_at_runtime"]),
        allowed=tuple(answer.get("enum_values", ())),
        least=_bound(answer.get("min", "")),
        most=_bound(answer.get("max", "")),
    )


def _bound(value: Any) -> float | None:
    """A limit is a number, or an empty text where there is none."""
    return float(value) if isinstance(value, int | float) else None


def unfit(info: OptionInfo, value: str) -> str:
    """What is expected instead of this value; empty if it is accepted.

    Ceph has more spellings of times than are known here: those are left to the monitors.
    """
    if info.allowed and value not in info.allowed:
        return f"one of {', '.join(info.allowed)}"
    read = _READERS.get(info.type)
    if read is None:
        return ""
    try:
        number = read(value)
    except ValueError:
        return f"a value of type {info.type}"
    if info.least is not None and number < info.least:
        return f"at least {info.least:g}"
    if info.most is not None and number > info.most:
        return f"at most {info.most:g}"
    return ""


def same_value(kind: str, wanted: str, present: str) -> bool:
    """Whether two spellings mean the same for an option of this type."""
    if wanted == present:
        return True
    try:
        if kind == "bool":
            return _boolean(wanted) == _boolean(present)
        if kind in ("float", "double"):
            return abs(float(wanted) - float(present)) <= 1e-6 * max(1.0, abs(float(wanted)))
        if kind in ("int", "uint", "size"):
            return _whole(wanted) == _whole(present)
        if kind in ("secs", "millisecs"):
            return _whole(wanted) == _whole(present)
    except ValueError:
        return False
    return False


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "yes", "1", "on"):
        return True
    if text.lower() in ("false", "no", "0", "off"):
        return False
    raise ValueError(text)


def _whole(text: str) -> int:
    match = re.fullmatch(r"(-?\d+) ?([KMGT]?)(i?B)?(_|s)?", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2].upper()]


_READERS: dict[str, Callable[[str], float]] = {
    "bool": _boolean,
    "int": _whole,
    "uint": _whole,
    "size": _whole,
    "float": float,
    "double": float,
}
