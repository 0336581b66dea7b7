"""Frozen dataclasses as JSON, and back with every value checked against its type.

A class with a `version` is written with it, and one of another version is refused. A class with a
`kind` is written with that too, so that a field that may hold several classes can be read again.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from inspect import isabstract
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
# The classes that an abstract class stands for, by their `kind`.
Kinds = Mapping[str, type]


class Misfit(ValueError):
    """A value is not what its type says."""

    def __init__(self, path: str, expected: str, found: object) -> None:
        shown = repr(found) if not isinstance(found, dict | list) else type(found).__name__
        super().__init__(f"{path or 'the whole'}: found {shown:.80}, expected {expected}")


def to_json(value: Any) -> Any:
    """What `json.dumps` takes."""
    if is_dataclass(value) and not isinstance(value, type):
        tags = {name: getattr(value, name) for name in ("kind", "version") if _tagged(value, name)}
        return tags | {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(entry) for entry in value]
    return value


def from_json(wanted: type[T], data: Any, kinds: Kinds | None = None, path: str = "") -> T:
    """An object of this class; Misfit where the data are not one."""
    read: T = _read(wanted, data, kinds or {}, path)
    return read


def _tagged(value: Any, name: str) -> bool:
    """`kind` and `version` of the class itself, not a field that is called so."""
    return hasattr(type(value), name) and name not in {field.name for field in fields(value)}


def _read(wanted: Any, data: Any, kinds: Kinds, path: str) -> Any:
    origin = get_origin(wanted)
    if wanted is Any:
        return data
    if origin in (Union, UnionType):
        return _read_optional(wanted, data, kinds, path)
    if origin is Literal:
        if data not in get_args(wanted):
            raise Misfit(path, f"one of {', '.join(map(str, get_args(wanted)))}", data)
        return data
    if origin is tuple:
        return _read_tuple(wanted, data, kinds, path)
    if origin is not None and issubclass(origin, Mapping):
        return _read_mapping(wanted, data, kinds, path)
    if is_dataclass(wanted) or isabstract(wanted):
        return _read_class(wanted, data, kinds, path)
    return _read_scalar(wanted, data, path)


def _read_optional(wanted: Any, data: Any, kinds: Kinds, path: str) -> Any:
    (inner,) = [part for part in get_args(wanted) if part is not type(None)]
    return None if data is None else _read(inner, data, kinds, path)


def _read_tuple(wanted: Any, data: Any, kinds: Kinds, path: str) -> Any:
    if not isinstance(data, list):
        raise Misfit(path, "a list", data)
    inner = get_args(wanted)[0]
    return tuple(_read(inner, entry, kinds, f"{path}[{n}]") for n, entry in enumerate(data))


def _read_mapping(wanted: Any, data: Any, kinds: Kinds, path: str) -> Any:
    if not isinstance(data, dict):
        raise Misfit(path, "an object", data)
    key_type, inner = get_args(wanted)
    read = {}
    for key, entry in data.items():
        if key_type is int and not key.lstrip("-").isdigit():
            raise Misfit(f"{path}.{key}", "a whole number as key", key)
        read[key_type(key)] = _read(inner, entry, kinds, f"{path}.{key}")
    return read


def _read_scalar(wanted: Any, data: Any, path: str) -> Any:
    if wanted is float and isinstance(data, int | float) and not isinstance(data, bool):
        if not math.isfinite(data):
            raise Misfit(path, "a finite number", data)
        return float(data)
    if type(data) is not wanted:
        names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
        raise Misfit(path, names.get(wanted, str(wanted)), data)
    return data


def _read_class(wanted: Any, data: Any, kinds: Kinds, path: str) -> Any:
    if not isinstance(data, dict):
        raise Misfit(path, "an object", data)
    entries = dict(data)
    if not is_dataclass(wanted):
        wanted = kinds.get(str(data.get("kind")))
        if wanted is None:
            raise Misfit(f"{path}.kind", f"one of {', '.join(kinds)}", data.get("kind"))
    hints, needed, names = _shape(wanted)
    for tag in ("kind", "version"):
        if (
            tag not in names
            and hasattr(wanted, tag)
            and entries.pop(tag, None) != getattr(wanted, tag)
        ):
            raise Misfit(f"{path}.{tag}", str(getattr(wanted, tag)), data.get(tag))
    for name in needed:
        if name not in entries:
            raise Misfit(path, f"the key {name}", data)
    for name in entries:
        if name not in names:
            raise Misfit(f"{path}.{name}".lstrip("."), "no such key", entries[name])
    values = {
        name: _read(hints[name], entry, kinds, f"{path}.{name}".lstrip("."))
        for name, entry in entries.items()
    }
    return wanted(**values)


@lru_cache(maxsize=256)
def _shape(wanted: Any) -> tuple[dict[str, Any], tuple[str, ...], frozenset[str]]:
    """The types of a class's fields, the fields that have no default, and all of them."""
    declared = fields(wanted)
    needed = tuple(
        f.name for f in declared if f.default is MISSING and f.default_factory is MISSING
    )
    return get_type_hints(wanted), needed, frozenset(field.name for field in declared)
