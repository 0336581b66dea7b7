"""Whether series that an expression reads exist: cephqos_base names all of them."""

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from cephqos_alerts.rules.rule import without_texts
from cephqos_base import recorded, series

# Names of recorded series have colons.
_OURS: Final = re.compile(r"\b(?:cephqos_\w+|\w+:[\w:]+)")


def names_in(module: ModuleType) -> Iterator[str]:
    """All series that a module of cephqos_base names; histograms have a name without suffix."""
    for group in vars(module).values():
        if isinstance(group, type):
            yield from (name for key, name in vars(group).items() if key.isupper())


_SERIES: Final = frozenset(names_in(series))
_SUFFIXED: Final = (series.bucket, series.count, series.total)
_KNOWN: Final = {
    *_SERIES,
    *names_in(recorded),
    *(suffixed(name) for name in _SERIES for suffixed in _SUFFIXED),
}


def unknown_series(expr: str) -> list[str]:
    """Names of ours in an expression that stand for no series."""
    found = dict.fromkeys(_OURS.findall(without_texts(expr)))
    return [name for name in found if name not in _KNOWN]
