"""The prose of a Markdown page: its sentences and its table cells, without code and names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_IMAGE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE: Final = re.compile(r"`[^`\n]*`")
_MARKS: Final = re.compile(r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}")
_ATTRIBUTES: Final = re.compile(r"\{[:#.][^}]*\}")
_LIST_ITEM: Final = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_END: Final = re.compile(r"(?<=[.!?])[\"')]*\s+")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_MARK_ONLY: Final = re.compile(r"(?<!\S)[|#>*:-]+(?!\S)")
_RULE: Final = re.compile(r"^\s*\|?[\s:|-]+\|[\s:|-]*$")

# Stands for a piece of code in a sentence: a word that is counted and has one syllable.
CODE: Final = "code"


@dataclass(frozen=True, slots=True)
class Prose:
    """What a reader reads of a page."""

    sentences: tuple[str, ...]
    cells: tuple[str, ...]
    words: int  # between spaces, headings and code in lines included; code blocks are not


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def sentences_of(text: str) -> list[str]:
    """Those of plain text."""
    return [sentence for sentence in _END.split(text) if words(sentence)]


def plain(text: str) -> str:
    """Text without Markdown: code becomes one short word, links their text."""
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    return _ATTRIBUTES.sub("", _MARKS.sub("", _CODE.sub(CODE, text)))


def _blocks(text: str) -> Iterator[list[str]]:
    """Paragraphs, list items and headings, each as its lines; table rows are left out."""
    block: list[str] = []
    for line in text.splitlines():
        starts = _LIST_ITEM.match(line) or line.startswith(("#", ">", "!!!", "???"))
        if not line.strip() or starts or line.lstrip().startswith("|"):
            yield block
            block = []
        if line.strip() and not line.lstrip().startswith(("|", "#", "!!!", "???")):
            block.append(_LIST_ITEM.sub("", line).lstrip("> "))
    yield block


def read(page: str) -> Prose:
    """The prose of a page. Headings count nowhere: they are no sentences."""
    text = _COMMENT.sub("", _FENCE.sub("", page))
    sentences = [
        sentence for block in _blocks(text) for sentence in sentences_of(plain(" ".join(block)))
    ]
    rows = [row for row in text.splitlines() if row.lstrip().startswith("|")]
    cells = [
        cell.strip()
        for row in rows
        if not _RULE.match(row)
        for cell in re.split(r"(?<!\\)\|", plain(row))
        if words(cell)
    ]
    return Prose(tuple(sentences), tuple(cells), len(_MARK_ONLY.sub(" ", text).split()))


def syllables(word: str) -> int:
    """Groups of vowels, without a silent e at the end: right to about a tenth over a page."""
    lower = word.lower()
    groups = len(re.findall(r"[aeiouy]+", lower))
    if lower.endswith("e") and not lower.endswith(("le", "ee")) and groups > 1:
        groups -= 1
    return max(1, groups)


def reading_ease(sentences: tuple[str, ...]) -> float:
    """Flesch: 206.835 - 1.015 words per sentence - 84.6 syllables per word; code left out."""
    said = [word for text in sentences for word in words(text) if word != CODE]
    if not said:
        return 100.0
    lengths = [len(words(text)) for text in sentences]
    return (
        206.835
        - 1.015 * sum(lengths) / len(lengths)
        - 84.6 * sum(syllables(word) for word in said) / len(said)
    )
