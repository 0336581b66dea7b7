"""SLOs as operators write them: read, checked, refused in one line that says what is allowed.

version: 1
slos:
  - name: client-write-ssd      # of a-z, 0-9 and -
    source: osd                 # osd: op histograms; fio: test runs; probe: --role probe
    op: write                   # read, write; rw too where the source is osd
    threshold: 0.0512           # seconds: an operation that takes longer is a bad one
    objective: 0.99             # share of good operations
    window: 30d
    media: ssd                  # optional, osd only: OSDs of this kind
    labels: {team: storage}     # optional: put on its alerts
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from cephqos_alerts.errors import SpecError
from cephqos_base.bounds import BOUNDS_BY_SOURCE

Source = Literal["osd", "fio", "probe"]

_KEYS: Final = frozenset(
    ("name", "source", "op", "threshold", "objective", "window", "media", "labels")
)
_NEEDED: Final = ("name", "source", "op", "threshold", "objective")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_WINDOW: Final = re.compile(r"(\d+)d")
_DAY: Final = 86400.0
# Labels that the rules set themselves.
_OURS: Final = frozenset(("slo", "cluster", "cause", "by", "severity", "window", "op", "le"))

OPS: Final[Mapping[str, tuple[str, ...]]] = {
    "osd": ("read", "write", "rw"),
    "fio": ("read", "write"),
    "probe": ("read", "write"),
}


@dataclass(frozen=True, kw_only=True)
class Slo:
    """One objective; `window` in seconds."""

    name: str
    source: Source
    op: str
    threshold: float
    objective: float
    window: float = 30 * _DAY
    media: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def budget(self) -> float:
        """The share of operations that may be bad."""
        return 1 - self.objective


def parse_slos(text: str, where: str) -> list[Slo]:
    """The SLOs of one file; SpecError for the first thing that is wrong with it."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise SpecError(f"{where}: not YAML: {' '.join(str(exc).split())}") from exc
    if not isinstance(document, dict) or document.get("version") != 1:
        raise SpecError(f"{where}: version: expected 1")
    if extra := sorted(document.keys() - {"version", "slos"}):
        raise SpecError(f"{where}: {extra[0]}: unknown key, expected version and slos")
    entries = document.get("slos")
    if not isinstance(entries, list) or not entries:
        raise SpecError(f"{where}: slos: expected a list of at least one SLO")
    found = [_parse(entry, f"{where}: slos[{i}]") for i, entry in enumerate(entries)]
    check_names(found, where)
    return found


def check_names(slos: list[Slo], where: str) -> None:
    """Names are identities: none may come twice."""
    seen: set[str] = set()
    for slo in slos:
        if slo.name in seen:
            raise SpecError(f"{where}: name: {slo.name!r} is there twice")
        seen.add(slo.name)


def _parse(entry: Any, where: str) -> Slo:
    if not isinstance(entry, dict):
        raise SpecError(f"{where}: expected an SLO, found {entry!r}")
    if extra := sorted(str(key) for key in entry.keys() - _KEYS):
        raise SpecError(f"{where}.{extra[0]}: unknown key, expected {', '.join(sorted(_KEYS))}")
    for key in _NEEDED:
        if key not in entry:
            raise SpecError(f"{where}.{key}: missing")
    name = entry["name"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpecError(f"{where}.name: expected a-z, 0-9 and -, found {name!r}")
    source = _one_of(entry["source"], tuple(BOUNDS_BY_SOURCE), f"{where}.source")
    return Slo(
        name=name,
        source=source,
        op=_one_of(entry["op"], OPS[source], f"{where}.op"),
        threshold=_threshold(entry["threshold"], source, f"{where}.threshold"),
        objective=_number(entry["objective"], 0.5, 0.99999, f"{where}.objective"),
        window=_window(entry.get("window", "30d"), f"{where}.window"),
        media=_media(entry.get("media"), source, f"{where}.media"),
        labels=_labels(entry.get("labels", {}), f"{where}.labels"),
    )


def _one_of(value: Any, allowed: tuple[str, ...], where: str) -> Any:
    if value not in allowed:
        raise SpecError(f"{where}: expected {' or '.join(allowed)}, found {value!r}")
    return value


def _number(value: Any, least: float, most: float, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise SpecError(f"{where}: expected a number from {least:g} to {most:g}, found {value!r}")
    return float(value)


def _threshold(value: Any, source: str, where: str) -> float:
    """A bound of the histogram: between two, good and bad operations cannot be told apart."""
    bounds = BOUNDS_BY_SOURCE[source]
    threshold = _number(value, bounds[0], bounds[-1], where)
    for bound in bounds:
        if abs(bound - threshold) <= 1e-9 * bound:
            return bound
    below = max(bound for bound in bounds if bound < threshold)
    above = min(bound for bound in bounds if bound > threshold)
    raise SpecError(
        f"{where}: {threshold:g} lies between two bucket bounds of source {source};"
        f" the nearest are {below:.10g} and {above:.10g}"
    )


def _window(value: Any, where: str) -> float:
    match = _WINDOW.fullmatch(value) if isinstance(value, str) else None
    if not match or not 1 <= int(match[1]) <= 90:
        raise SpecError(f"{where}: expected 1d to 90d, found {value!r}")
    return int(match[1]) * _DAY


def _media(value: Any, source: str, where: str) -> str | None:
    if value is None:
        return None
    if source != "osd":
        raise SpecError(f"{where}: only source osd knows its media")
    return str(_one_of(value, ("hdd", "ssd"), where))


def _labels(value: Any, where: str) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise SpecError(f"{where}: expected names and values, found {value!r}")
    for name, text in value.items():
        if not isinstance(name, str) or not _LABEL.fullmatch(name) or name in _OURS:
            raise SpecError(f"{where}.{name}: not a label name that an SLO may set")
        if not isinstance(text, str):
            raise SpecError(f"{where}.{name}: expected text, found {text!r}")
    return value
