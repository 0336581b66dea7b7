"""Markdown of the reference pages."""

from collections.abc import Iterable, Sequence

MADE_BY = "<!-- Made by `python -m tests.reference`. Do not edit. -->\n"


def page(title: str, *parts: str) -> str:
    return "\n".join([MADE_BY, f"# {title}", *parts]).rstrip("\n") + "\n"


def cell(text: str) -> str:
    """One cell: no line breaks, no bars."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n" + "\n".join(lines) + "\n"


def code(text: str) -> str:
    """As code, also where it holds a backtick."""
    return f"`{text}`" if text else ""
