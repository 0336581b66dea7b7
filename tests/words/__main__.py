"""`python -m tests.words`: how every page reads, and each use of a word that is replaced."""

import statistics
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from tests.words import bars, replaced, texts

# Pages for readers of the code, and what a program writes. The bars are not theirs; the words are.
_INTERNALS: Final = ("docs/internals", "CONTRIBUTING.md", "CHANGELOG.md")
_GENERATED: Final = ("docs/reference", "deploy/helm", "docs/internals/study-small")
# The pages that say what the replaced words are.
_WORDS: Final = (replaced.GLOSSARY, replaced.WRITING)


def pages() -> list[Path]:
    roots = ("docs", "exporter", "loadgen", "dashboards", "alerts", "deploy")
    found = [*Path().glob("*.md"), *chain(*(Path(root).rglob("*.md") for root in roots))]
    return sorted(page for page in found if not str(page).startswith(_GENERATED))


def _uses() -> Iterator[str]:
    read = chain(*(texts.of_page(page) for page in pages() if page not in _WORDS))
    yield from replaced.uses(
        chain(read, texts.of_product(), texts.of_heads(), texts.of_code()), replaced.read()
    )
    yield from replaced.uses(texts.of_names(), replaced.read_of_names())


def main() -> int:
    users = [bars.measure(page) for page in pages() if not str(page).startswith(_INTERNALS)]
    print(f"{'page':44} {'words':>6} {'median':>6} {'>28 %':>5} {'max':>4} {'ease':>5}")
    for page in users:
        print(page.row())
    lengths = [length for page in users for length in page.lengths]
    words = sum(page.read.words for page in users)
    print(f"{len(users)} pages, {words} words, median sentence {statistics.median(lengths)} words")
    faults = [*chain(*(page.faults() for page in users)), *bars.faults_of_all(users), *_uses()]
    faults += bars.long_sentences(chain(texts.of_heads(), texts.of_code()))
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(faults)} to mend")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
