"""Every text that a user can read: pages, and the strings of the product that are prose.

A string is prose if it has two words of letters with a space between them: help of options, HELP of
metrics, errors, titles, descriptions, alerts. Strings of PromQL are prose as well; they only fail
if they use a word that is replaced. Docstrings and comments of the product are read, too.
"""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.words.prose import plain

PACKAGES: Final = ("exporter", "loadgen", "alerts", "dashboards", "deploy")
_PROSE: Final = re.compile(r"[A-Za-z]{2,}[,.;:]? [a-z]{2,}")
_COLUMNS: Final = re.compile(r"^ +\S|\S {2,}\S", re.MULTILINE)
_NAME: Final = re.compile(
    r"\b(?:\w+:)?cephqos_[a-z0-9_:]+|\bCephQos\w+|^-{0,2}[a-z]+(?:[-_][a-z]+)+$"
)
_FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """One text, and where it stands."""

    file: Path
    line: int
    text: str


def of_page(page: Path) -> Iterator[Text]:
    """Its lines without code. What stands in code blocks is checked by running it."""
    kept = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    for number, line in enumerate(kept.splitlines(), 1):
        if line.strip():
            yield Text(page, number, plain(line))


def _docstrings(tree: ast.AST) -> set[int]:
    """Where the docstrings of a module are: strings that are statements."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def of_module(file: Path) -> Iterator[Text]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out = _docstrings(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in left_out and _PROSE.search(node.value):
            yield Text(file, node.lineno, node.value)


def _files(root: Path) -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((root / package).rglob("*.py"))


def in_words(name: str) -> str:
    """A name as words: `osd:cephqos_owed_ops` is "osd cephqos owed ops"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_:-]+", " ", name)


def of_names(root: Path = Path()) -> Iterator[Text]:
    """Names in the strings of the product: of metrics, series, alerts, checks, keys and options."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    for name in _NAME.findall(node.value):
                        yield Text(file, node.lineno, in_words(name))


def of_product(root: Path = Path()) -> Iterator[Text]:
    for file in _files(root):
        yield from of_module(file)


def _paragraphs(file: Path, line: int, said: str) -> Iterator[Text]:
    """Tables and examples of files are left out: they have columns."""
    for paragraph in re.split(r"\n\s*\n", said):
        if not _COLUMNS.search(paragraph):
            yield Text(file, line, plain(" ".join(paragraph.split())))


def of_heads(root: Path = Path()) -> Iterator[Text]:
    """What each module says of itself, by paragraph."""
    for file in _files(root):
        said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")), clean=False) or ""
        yield from _paragraphs(file, 1, said)


def _inner_docstrings(file: Path, source: str) -> Iterator[Text]:
    """Those of classes, functions and attributes."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(said))) if node is not tree.body[0]:
                yield from _paragraphs(file, node.lineno, inspect.cleandoc(said))


def _comments(file: Path, source: str) -> Iterator[Text]:
    """Comments on lines that follow each other at one indentation are one text."""
    start, last, column, said = 0, 0, 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, at = token.start
        words = token.string.lstrip("#: ")
        if (line, at) == (last + 1, column):
            said = f"{said}\n{words}"
        else:
            yield from _paragraphs(file, start, said)
            start, column, said = line, at, words
        last = line
    yield from _paragraphs(file, start, said)


def of_code(root: Path = Path()) -> Iterator[Text]:
    """What readers of the code read: docstrings below a module's own, and comments."""
    for file in _files(root):
        source = file.read_text(encoding="utf-8")
        yield from _inner_docstrings(file, source)
        yield from _comments(file, source)
