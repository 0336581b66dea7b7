"""How long sentences may be, and how long they and their pages are."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.words import prose
from tests.words.prose import Prose
from tests.words.texts import Text

MOST_WORDS_OF_A_CELL: Final = 40
# Words of a sentence.
MEDIAN: Final = 14
LONG: Final = 28
MOST_LONG_PERCENT: Final = 3.0
LONGEST: Final = 40
# Flesch's reading ease, of each page that has enough sentences: a few names make a short one hard.
LEAST_EASE: Final = 50.0
FEWEST_SENTENCES: Final = 10


@dataclass(frozen=True, slots=True)
class Measured:
    """One page."""

    page: Path
    read: Prose

    @property
    def lengths(self) -> list[int]:
        return [len(prose.words(text)) for text in self.read.sentences]

    @property
    def ease(self) -> float | None:
        """None for a page with too few sentences to measure."""
        if len(self.read.sentences) < FEWEST_SENTENCES:
            return None
        return prose.reading_ease(self.read.sentences)

    def row(self) -> str:
        lengths = self.lengths or [0]
        ease = "-" if self.ease is None else f"{self.ease:.0f}"
        return (
            f"{self.page!s:44} {self.read.words:6} {statistics.median(lengths):6.0f}"
            f" {_long_percent(lengths):5.1f} {max(lengths):4} {ease:>5}"
        )

    def faults(self) -> Iterator[str]:
        if self.ease is not None and self.ease < LEAST_EASE:
            yield f"{self.page}: reading ease {self.ease:.0f}, at least {LEAST_EASE:.0f}"
        for text in self.read.sentences:
            if len(prose.words(text)) > LONGEST:
                yield f"{self.page}: more than {LONGEST} words: {text[:70]} …"
        for cell in self.read.cells:
            if len(prose.words(cell)) > MOST_WORDS_OF_A_CELL:
                yield f"{self.page}: a cell above {MOST_WORDS_OF_A_CELL} words: {cell[:60]} …"


def _long_percent(lengths: Sequence[int]) -> float:
    return 100 * sum(length > LONG for length in lengths) / max(1, len(lengths))


def measure(page: Path) -> Measured:
    return Measured(page, prose.read(page.read_text(encoding="utf-8")))


def long_sentences(texts: Iterable[Text]) -> Iterator[str]:
    for text in texts:
        for sentence in prose.sentences_of(text.text):
            if len(prose.words(sentence)) > LONGEST:
                yield f"{text.file}: more than {LONGEST} words: {sentence[:70]} …"


def faults_of_all(pages: Sequence[Measured]) -> Iterator[str]:
    """What holds for all pages together."""
    lengths = [length for page in pages for length in page.lengths]
    if statistics.median(lengths) > MEDIAN:
        yield f"all pages: a median sentence of {statistics.median(lengths)} words, not {MEDIAN}"
    if _long_percent(lengths) > MOST_LONG_PERCENT:
        yield (
            f"all pages: {_long_percent(lengths):.1f} % of sentences above {LONG} words,"
            f" at most {MOST_LONG_PERCENT:.0f} %"
        )
