"""What a new user asks, and where the answer stands: the tables of docs/internals/questions.md.

`python -m tests.questions` searches the built site (`make docs`) for each, as its search page does.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path("docs/internals/questions.md")
_HEAD: Final = "| question | answer |"
LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Question:
    """One row."""

    asked: str
    answer: Path
    anchor: str  # of the heading; empty: the page
    clicks: tuple[str, ...]  # texts of links, from the site's first page
    search: str
    place: str  # among the results of the search
    from_readme: tuple[str, ...]


def _clicks(cell: str) -> tuple[str, ...]:
    return tuple(text.strip() for text in cell.split(" > "))


def target(page: Path, link: str) -> tuple[Path, str]:
    """The file and the anchor that a link of a page names."""
    file, _, anchor = link.partition("#")
    return ((page.parent / file).resolve().relative_to(Path().resolve()) if file else page), anchor


def read(page: Path = PAGE) -> Iterator[Question]:
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        inside = line.startswith(_HEAD) or (inside and line.startswith("|"))
        if not inside or line.startswith((_HEAD, "|--")):
            continue
        asked, answer, clicks, search, place, readme = (
            cell.strip() for cell in line.strip("|").split("|")
        )
        (link,) = LINK.findall(answer)
        file, anchor = target(page, link[1])
        yield Question(asked, file, anchor, _clicks(clicks), search, place, _clicks(readme))


def anchors(page: Path) -> set[str]:
    """Those that the site makes from the headings of a page."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower())) for title in titles}
