"""Values of Ceph's options: whether one is accepted, and whether two spellings mean the same."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

# Ceph calls every number changeable that has no flag against it. Those of these families are for
# what an OSD opens or makes at its start, so without the flag `runtime` none is trusted.
_READ_AT_START: Final = (
    "bdev_",
    "bluefs_",
    "rocksdb_",
    "osd_mclock_scheduler_anticipation_timeout",
)
_READ_AT_USE: Final = ("bluefs_buffered_io",)  # of them
_CREATION: Final = frozenset(("create", "cluster_create"))
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """What the monitors say about an option."""

    name: str
    type: str  # bool, int, uint, size, float, secs, str ...
    runtime: bool  # whether it takes effect without a restart
    allowed: tuple[str, ...] = ()  # values; empty: any
    least: float | None = None
    most: float | None = None
    at_creation: bool = False  # whether only a daemon or a cluster that is made takes it


def read_info(answer: Mapping[str, Any]) -> OptionInfo:
    """From the reply to `config help`."""
    name = answer["name"]
    flags = answer.get("flags", ())
    at_start = name.startswith(_READ_AT_START) and name not in _READ_AT_USE
    return OptionInfo(
        name=name,
        type=answer["type"],
        runtime=bool(answer["can_update_at_runtime"]) and ("runtime" in flags or not at_start),
        allowed=tuple(answer.get("enum_values", ())),
        least=_bound(answer.get("min", "")),
        most=_bound(answer.get("max", "")),
        at_creation=not _CREATION.isdisjoint(flags),
    )


def _bound(value: Any) -> float | None:
    """A limit is a number, or an empty text where there is none."""
    return float(value) if isinstance(value, int | float) else None


def unfit(info: OptionInfo, value: str) -> str:
    """What is expected instead of this value; empty if it is accepted.

    Times are not checked here, as Ceph has many spellings for them: the monitors check them.
    """
    if info.allowed and value not in info.allowed:
        return f"one of {', '.join(info.allowed)}"
    to_number = _NUMBER_OF.get(info.type)
    if to_number is None:
        return ""
    try:
        number = to_number(value)
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
        if kind in ("int", "uint", "size", "secs", "millisecs"):
            return _integer(wanted) == _integer(present)
    except ValueError:
        return False
    return False


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "yes", "1", "on"):
        return True
    if text.lower() in ("false", "no", "0", "off"):
        return False
    raise ValueError(text)


def _integer(text: str) -> int:
    """A whole number, perhaps with a unit: `4096`, `4K`, `4 KiB`, `30s`."""
    match = re.fullmatch(r"(-?\d+) ?([KMGT]?)(i?B)?(_|s)?", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2].upper()]


_NUMBER_OF: dict[str, Callable[[str], float]] = {
    "bool": _boolean,
    "int": _integer,
    "uint": _integer,
    "size": _integer,
    "float": float,
    "double": float,
}
