"""Whether series that an expression reads exist: cephqos_base names all of them."""

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from cephqos_base import recorded, series

# Without strings. Names of recorded series have colons.
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')
_OURS: Final = re.compile(r"\b(?:cephqos_\w+|\w+:[\w:]+)")


def _names(module: ModuleType) -> Iterator[str]:
    for group in vars(module).values():
        if isinstance(group, type):
            yield from (name for key, name in vars(group).items() if key.isupper())


_SERIES: Final = frozenset(_names(series))
# Histograms have a name without suffix.
_SUFFIXED: Final = (series.bucket, series.count, series.total)
_KNOWN: Final = {
    *_SERIES,
    *_names(recorded),
    *(suffixed(name) for name in _SERIES for suffixed in _SUFFIXED),
}


def unknown_series(expr: str) -> list[str]:
    """Names of ours in an expression without comments that stand for no series."""
    found = dict.fromkeys(_OURS.findall(_STRING.sub("", expr)))
    return [name for name in found if name not in _KNOWN]
