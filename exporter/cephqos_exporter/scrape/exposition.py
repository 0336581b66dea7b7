"""Writes metric families in the text format 0.0.4 and in OpenMetrics 1.0.

The sample lines of the two formats are the same bytes; only the headers differ. So a page keeps
rendered lines, which serve both formats, and drops the samples early. It is given away family by
family: a page of 60 OSDs has 5 MB, which would be in memory twice more.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from cephqos_exporter.families import FamilyType
from cephqos_exporter.scrape.rendering import Heads, Rendered

TEXT_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(slots=True)
class _Block:
    type: FamilyType
    help: str
    lines: list[str] = field(default_factory=list)  # of each source


class Page:
    """All families of one scrape, ordered by name."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Block] = {}
        # Where the lines of families with these names go. Most daemons have the same families.
        self._places: dict[tuple[str, ...], Sequence[list[str]]] = {}
        self.size = 0  # characters of all samples

    def add(self, rendered: Rendered) -> None:
        """Add rendered families. The first source of a family says its type and help."""
        places = self._places.get(rendered.heads.names)
        if places is None:
            places = self._places[rendered.heads.names] = self._place(rendered.heads)
        if len(places) != len(rendered.lines):
            raise ValueError(f"lines of {len(rendered.lines)} families for {len(places)}")
        deque(map(list.append, places, rendered.lines), maxlen=0)  # a third of what a loop takes
        self.size += rendered.size

    def _place(self, heads: Heads) -> Sequence[list[str]]:
        places = []
        for name, kind, text in zip(*heads, strict=True):
            if name not in self._blocks:
                self._blocks[name] = _Block(kind, text)
            places.append(self._blocks[name].lines)
        return places

    def body(self, *, openmetrics: bool) -> bytes:
        """The page in one format."""
        return b"".join(self.pieces(openmetrics=openmetrics))

    def pieces(self, *, openmetrics: bool) -> Iterator[bytes]:
        """The page in one format, family by family."""
        head = _openmetrics_head if openmetrics else _text_head
        for name, block in sorted(self._blocks.items()):
            yield "".join([head(name, block.type, block.help), *block.lines]).encode()
        if openmetrics:
            yield b"# EOF\n"

    def lines(self, name: str) -> Iterator[str]:
        """The samples of one family."""
        for part in self._blocks[name].lines if name in self._blocks else ():
            yield from part.removesuffix("\n").split("\n")  # labels may have other line ends

    def families(self) -> Iterator[tuple[str, FamilyType, str, Sequence[str]]]:
        """Name and type as OpenMetrics has them, help and lines of each family."""
        for name, block in sorted(self._blocks.items()):
            yield *_in_openmetrics(name, block.type), block.help, block.lines


_KEPT_HEADS: Final = 2048  # a page has about 300; daemons come and go for years


@lru_cache(_KEPT_HEADS)
def _text_head(name: str, kind: FamilyType, text: str) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {'untyped' if kind == 'unknown' else kind}\n"


@lru_cache(_KEPT_HEADS)
def _openmetrics_head(name: str, kind: FamilyType, text: str) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    name, kind = _in_openmetrics(name, kind)
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _in_openmetrics(name: str, kind: FamilyType) -> tuple[str, FamilyType]:
    """A counter's samples must end in `_total` there; one that does not is of unknown type."""
    if kind != "counter":
        return name, kind
    return (name.removesuffix("_total"), kind) if name.endswith("_total") else (name, "unknown")
