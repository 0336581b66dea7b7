"""What stands in pages between marks: figures of more than one page (docs/internals/figures.yaml),
counts, and the kinds of phases."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml
from tests.reference.files import written
from tests.reference.tables import code, table

from cephqos_loadgen.phase_kinds.registry import KINDS

FIGURES: Final = Path("docs/internals/figures.yaml")
_DASHBOARDS: Final = Path("dashboards/cephqos_dashboards/generated")
_NUMBERS: Final = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)
_MARK: Final = re.compile(r"<!--=([\w-]+)-->(.*?)<!--/-->", re.DOTALL)


def figures() -> Mapping[str, str]:
    """What each mark says."""
    count = len(list(_DASHBOARDS.glob("*.json")))
    known = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return {name: figure["value"] for name, figure in known.items()} | {
        "dashboards": _NUMBERS[count] if count < len(_NUMBERS) else str(count),
        "phase-kinds": "\n" + table(("kind of phase", "what it does"), _phase_kinds()) + "\n",
        "taken-back": ", ".join(code(name) for name, kind in KINDS.items() if kind.can_take_back),
    }


def _phase_kinds() -> Iterator[tuple[str, str]]:
    sentences = written("scenario")["keys"]
    for name in KINDS:
        said = sentences[f"phases.{name}"]
        yield code(name), said if isinstance(said, str) else said[1]


def pages() -> Iterator[Path]:
    yield Path("README.md")
    yield from sorted(Path("docs").rglob("*.md"))


def marks(text: str) -> list[str]:
    """The names of the figures of a page."""
    return [found[1] for found in _MARK.finditer(text)]


def filled(text: str, known: Mapping[str, str]) -> str:
    """The page with these figures; a KeyError names one that is not there."""
    return _MARK.sub(lambda found: f"<!--={found[1]}-->{known[found[1]]}<!--/-->", text)


def write() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text, figures()), encoding="utf-8")
