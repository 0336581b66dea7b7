"""Lines of styled text, and how sections share the rows of a screen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from cephqos_loadgen.top.screen.text import fit, width

Style = Literal["", "title", "dim", "good", "warn", "bad", "cursor", "bar", "empty", "mark"]


@dataclass(frozen=True, slots=True)
class Span:
    text: str
    style: Style = ""


Line = tuple[Span, ...]


def line(*parts: str | Span) -> Line:
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def plain(one: Line) -> str:
    """A line without styles, as `--once` prints it."""
    return "".join(span.text for span in one).rstrip()


def in_ascii(one: Line) -> Line:
    """For a terminal that has no other characters: each becomes one that it has."""
    if all(span.text.isascii() for span in one):
        return one
    return tuple(
        Span(span.text.replace("…", "~").encode("ascii", "replace").decode(), span.style)
        for span in one
    )


def cut(one: Line, columns: int) -> Line:
    """The line exactly that wide: padded, or cut with an ellipsis."""
    size = sum(width(span.text) for span in one)
    if size <= columns:
        return (*one, Span(" " * (columns - size))) if size < columns else one
    spans: list[Span] = []
    left = columns
    for span in one:
        if width(span.text) >= left:
            # Two more columns than there are, so that the ellipsis shows that something follows.
            spans.append(Span(fit(f"{span.text}  ", left), span.style))
            break
        spans.append(span)
        left -= width(span.text)
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the screen: it can be drawn with any number of rows up to what it wants."""

    draw: Callable[[int], list[Line]]
    wants: int
    needs: int  # fewer rows than this are of no use


def fixed(lines: list[Line], needs: int) -> Section:
    """A section that is cut where there are fewer rows than lines."""
    return Section(lambda rows: lines[:rows], len(lines), needs)


def share(sections: Sequence[Section], rows: int) -> list[int]:
    """Rows for each section. In order of importance: what it needs, then what it wants."""
    rows = max(0, rows)  # a flat screen has none left beside the gaps
    given = [0] * len(sections)
    for position, section in enumerate(sections):
        need = min(section.needs, section.wants)
        if need <= rows:
            given[position] = need
            rows -= need
    for position, section in enumerate(sections):
        if given[position] or not section.needs:
            more = min(section.wants - given[position], rows)
            given[position] += more
            rows -= more
    return given


def titled(title: Line, lines: list[Line], rows: int) -> list[Line]:
    """A title and what there is room for; if not all, the title says so."""
    room = max(0, rows - 1)
    if len(lines) > room:
        title = (*title, Span(f"  {room} of {len(lines)} shown", "dim"))
    return [title, *lines[:room]][:rows]


def beside(left: list[Line], right: list[Line], left_columns: int, columns: int) -> list[Line]:
    """Two columns of lines, with a gap of two."""
    rows = max(len(left), len(right))
    right_columns = columns - left_columns - 2
    return [
        (
            *cut(left[row] if row < len(left) else (), left_columns),
            Span("  "),
            *cut(right[row] if row < len(right) else (), right_columns),
        )
        for row in range(rows)
    ]


GLYPHS: Final = ("█", "░", "│")
ASCII_GLYPHS: Final = ("#", ".", "|")


def bar(
    value: float | None,
    reserved: float | None,
    largest: float,
    columns: int,
    style: Style = "bar",
    ascii_only: bool = False,
) -> Line:
    """A bar of `value`, and a mark where the reservation is. `largest` fills all columns."""
    full, empty, mark = ASCII_GLYPHS if ascii_only else GLYPHS
    if value is None or largest <= 0 or columns < 3:
        return (Span(" " * columns),)
    filled = min(columns, round(value / largest * columns))
    if value > 0 and filled == 0:
        filled = 1
    text = [full] * filled + [" "] * (columns - filled)
    if not reserved:
        return (Span("".join(text[:filled]), style), Span("".join(text[filled:])))
    place = min(columns - 1, max(0, round(reserved / largest * columns) - 1))
    for column in range(filled, place):
        text[column] = empty
    return tuple(
        span
        for span in (
            Span("".join(text[: min(filled, place)]), style),
            Span("".join(text[min(filled, place) : place]), "empty"),
            Span(mark, "mark"),
            Span("".join(text[place + 1 : max(filled, place + 1)]), style),
            Span("".join(text[max(filled, place + 1) :])),
        )
        if span.text
    )
