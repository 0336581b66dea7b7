"""Whether the series that an expression reads exist: in cephqos_base, or recorded by a source."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from cephqos_alerts.rules.rule import without_texts
from cephqos_base import recorded, series

SOURCES: Final = Path(__file__).parents[1] / "sources"
# Names of recorded series have colons.
_OURS: Final = re.compile(r"\b(?:cephqos_\w+|\w+:[\w:]+)")


def names_in(module: ModuleType) -> Iterator[str]:
    """All series that a module of cephqos_base names; histograms have a name without suffix."""
    for group in vars(module).values():
        if isinstance(group, type):
            yield from (name for key, name in vars(group).items() if key.isupper())


_SERIES: Final = frozenset(names_in(series))
_SUFFIXED: Final = (series.bucket, series.count, series.total)
_RECORD: Final = re.compile(r"^ *- record: (\S+)$", re.MULTILINE)
_KNOWN: Final = {
    *_SERIES,
    *(name for it in SOURCES.rglob("*.yml") for name in _RECORD.findall(it.read_text("utf-8"))),
    *names_in(recorded),
    *(suffixed(name) for name in _SERIES for suffixed in _SUFFIXED),
}


def unknown_series(expr: str) -> list[str]:
    """Names of ours in an expression that stand for no series."""
    found = dict.fromkeys(_OURS.findall(without_texts(expr)))
    return [name for name in found if name not in _KNOWN]
