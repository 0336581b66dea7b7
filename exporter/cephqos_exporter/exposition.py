"""Writes metric families in the text format 0.0.4 and in OpenMetrics 1.0.

The sample lines of the two formats are the same bytes; only the headers differ. So a page keeps
rendered lines, each written once however many formats are asked for, and drops the samples early.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cephqos_exporter.model import Family, FamilyType

TEXT_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_TEXT_TYPES: Final[dict[FamilyType, str]] = {"unknown": "untyped", "info": "gauge"}


def render_samples(family: Family) -> str:
    """The sample lines of a family, or TypeError if a value is not a number.

    The unary plus is that check: it costs next to nothing, and it turns True into 1.
    """
    name = family.name
    try:
        text = "".join(
            [
                f"{name}{suffix}{{{labels}}} {+value}\n" if labels else f"{name}{suffix} {+value}\n"
                for suffix, labels, value in family.samples
            ]
        )
    except TypeError as exc:
        raise TypeError(f"{name}: a sample's value is not a number: {exc}") from exc
    if " nan\n" in text or "inf\n" in text:
        text = text.replace(" nan\n", " NaN\n").replace(" inf\n", " +Inf\n")
        text = text.replace(" -inf\n", " -Inf\n")
    return text


@dataclass(slots=True)
class _Block:
    type: FamilyType
    help: str
    chunks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rendered samples of one family from one source."""

    name: str
    type: FamilyType
    help: str
    lines: str


def render(families: Iterable[Family]) -> tuple[list[Chunk], int]:
    """Chunks of the families that have samples, and how many samples there are."""
    chunks = []
    count = 0
    for family in families:
        if family.samples:
            lines = render_samples(family)
            chunks.append(Chunk(family.name, family.type, family.help, lines))
            count += len(family.samples)
    return chunks, count


class Page:
    """What one scrape has to say; the order of families is that of their names."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Block] = {}
        self._bodies: dict[bool, bytes] = {}

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add rendered families. The first source of a family says its type and help."""
        for chunk in chunks:
            block = self._blocks.get(chunk.name)
            if block is None:
                block = self._blocks[chunk.name] = _Block(chunk.type, chunk.help)
            block.chunks.append(chunk.lines)

    def add_families(self, families: Iterable[Family]) -> None:
        self.add(render(families)[0])

    def body(self, *, openmetrics: bool) -> bytes:
        """The page in one format; written once, however many ask."""
        if openmetrics not in self._bodies:
            self._bodies[openmetrics] = self._write(openmetrics).encode()
        return self._bodies[openmetrics]

    def _write(self, openmetrics: bool) -> str:
        head = _openmetrics_head if openmetrics else _text_head
        parts: list[str] = []
        for name in sorted(self._blocks):
            block = self._blocks[name]
            parts.append(head(name, block.type, block.help))
            parts += block.chunks
        if openmetrics:
            parts.append("# EOF\n")
        return "".join(parts)


def _text_head(name: str, kind: FamilyType, text: str) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {_TEXT_TYPES.get(kind, kind)}\n"


def _openmetrics_head(name: str, kind: FamilyType, text: str) -> str:
    """A counter's samples must end in `_total` there; one that does not is of unknown type."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    if kind == "counter":
        if name.endswith("_total"):
            name = name.removesuffix("_total")
        else:
            kind = "unknown"
    elif kind == "info":
        name = name.removesuffix("_info")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
