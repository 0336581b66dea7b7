"""Words that we do not use, and what we write instead, from the pages that say so.

Two tables are read: the glossary (a term, what it means, what it is not called), and the list of
words in internals/writing.md. To add a word, add it to a row there.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.words.texts import Text

GLOSSARY: Final = Path("docs/start/glossary.md")
WRITING: Final = Path("docs/internals/writing.md")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A word or phrase that is not used, and the one that is."""

    word: str
    instead: str

    @property
    def pattern(self) -> str:
        return rf"\b{re.escape(self.word)}\b".replace(r"\ ", r"\s+")


class TableError(Exception):
    """A page has no such table: nothing would be checked."""


def _rows(page: Path, head: str) -> Iterator[list[str]]:
    """The cells of each row of the tables whose head begins so."""
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.startswith(head):
            inside = True
        elif inside and not re.fullmatch(r"[|\s:-]+", line):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _words(cell: str) -> list[str]:
    return [word.strip().strip("`") for word in cell.split(",") if word.strip()]


def read(glossary: Path = GLOSSARY, writing: Path = WRITING) -> list[Replaced]:
    found = [
        Replaced(word, row[0].strip("*`"))
        for row in _rows(glossary, "| term |")
        for word in _words(row[2])
    ]
    more = [
        Replaced(word, row[1])
        for row in _rows(writing, "| instead of |")
        for word in _words(row[0])
    ]
    if not found or not more:
        raise TableError(f"{glossary} and {writing} must each have a table of words")
    return found + more


def read_of_names(writing: Path = WRITING) -> list[Replaced]:
    """Words that no name has."""
    found = [
        Replaced(word, row[1])
        for row in _rows(writing, "| in a name, not |")
        for word in _words(row[0])
    ]
    if not found:
        raise TableError(f"{writing} must have a table of words in names")
    return found


def uses(texts: Iterable[Text], replaced: Iterable[Replaced]) -> Iterator[str]:
    """One line for each use of a word that is replaced."""
    by_word = {one.word.lower(): one for one in replaced}
    any_of = re.compile("|".join(one.pattern for one in by_word.values()), re.IGNORECASE)
    for text in texts:
        for match in any_of.finditer(text.text):
            one = by_word[re.sub(r"\s+", " ", match[0].lower())]
            yield f"{text.file}:{text.line}: {match[0]!r}: write {one.instead!r}"
