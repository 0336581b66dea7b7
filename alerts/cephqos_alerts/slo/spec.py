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
    alerts: no                  # optional: only recorded
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from cephqos_base.bounds import BOUNDS_BY_SOURCE
from cephqos_base.errors import ConfigError, Described
from cephqos_base.units import DAY
from cephqos_base.yamlfile import Value

Source = Literal["osd", "fio", "probe"]
_SOURCES: tuple[Source, ...] = get_args(Source)

_KEYS: Final = (
    *("name", "source", "op", "threshold", "objective", "window", "media", "labels"),
    "alerts",
)
_NEEDED: Final = ("name", "source", "op", "threshold", "objective")
_NAME: Final = "[a-z0-9][a-z0-9-]{0,62}"
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# Labels that the rules set themselves: an operator's label may not replace them.
_OUR_LABELS: Final = frozenset(("slo", "cluster", "cause", "by", "severity", "window", "op", "le"))

# The operations that each source measures separately.
OPS: Final[Mapping[str, tuple[str, ...]]] = {
    "osd": ("read", "write", "rw"),
    "fio": ("read", "write"),
    "probe": ("read", "write"),
}


@dataclass(frozen=True, kw_only=True)
class Slo:
    """One objective. The docstring of this module explains the fields; times are in seconds."""

    name: str
    source: Source
    op: str
    threshold: float
    objective: float
    window: float = 30 * DAY
    media: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    alerts: bool = True

    @property
    def budget(self) -> float:
        """The share of operations that may be bad."""
        return 1 - self.objective


def parse_slos(document: Value) -> list[Slo]:
    """The SLOs of one file; ConfigError for the first thing that is wrong with it."""
    top = document.table(("version", "slos"), ("version", "slos"))
    top["version"].integer(1, 1, "1")
    entries = top["slos"].sequence("a list of at least one SLO", least=1)
    slos = [_parse(entry) for entry in entries]
    check_names(slos, document.file)
    return slos


def check_names(slos: list[Slo], where: str) -> None:
    """Names are identities: none may come twice."""
    seen: set[str] = set()
    for slo in slos:
        if slo.name in seen:
            found = Described(f"{slo.name!r} twice")
            raise ConfigError(where=where, key="name", found=found, allowed="each name once")
        seen.add(slo.name)


def _parse(entry: Value) -> Slo:
    keys = entry.table(_KEYS, _NEEDED, "an SLO")
    source = keys["source"].choice(_SOURCES)
    return Slo(
        name=keys["name"].text(_NAME, "a name of a-z, 0-9 and -"),
        source=source,
        op=keys["op"].choice(OPS[source]),
        threshold=_threshold(keys["threshold"], source),
        objective=keys["objective"].number(0.5, 0.99999),
        window=_window(keys["window"]) if "window" in keys else 30 * DAY,
        media=_media(keys["media"], source) if "media" in keys else None,
        labels=_labels(keys["labels"]) if "labels" in keys else {},
        alerts=keys["alerts"].boolean() if "alerts" in keys else True,
    )


def _threshold(value: Value, source: Source) -> float:
    """A bound of the histogram. Between two bounds, good and bad operations look the same."""
    bounds = BOUNDS_BY_SOURCE[source]
    threshold = value.number(bounds[0], bounds[-1])
    for bound in bounds:
        if abs(bound - threshold) <= 1e-9 * bound:
            return bound
    below = max(bound for bound in bounds if bound < threshold)
    above = min(bound for bound in bounds if bound > threshold)
    value.fail(f"a bucket bound of source {source}; the nearest are {below:.10g} and {above:.10g}")


def _window(value: Value) -> float:
    allowed = "1d to 90d"
    days = int(value.text(r"\d{1,2}d", allowed)[:-1])
    if not 1 <= days <= 90:
        value.fail(allowed)
    return days * DAY


def _media(value: Value, source: Source) -> str:
    if source != "osd":
        value.fail("source osd: the other sources do not know the media")
    return value.choice(("hdd", "ssd"))


def _labels(value: Value) -> Mapping[str, str]:
    labels = {}
    for name, text in value.entries("names and values").items():
        if not _LABEL.fullmatch(name) or name in _OUR_LABELS:
            text.fail("a label name that the rules do not use themselves", f"label {name!r}")
        labels[name] = text.string()
    return labels
