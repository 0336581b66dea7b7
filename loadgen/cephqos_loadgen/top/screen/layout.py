"""Lines of styled text, and how sections share the rows of a screen.

A line is a tuple of spans: line("osd.3 ", Span("violated", "bad")).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from cephqos_loadgen.top.screen.text import fit, width

Style = Literal["", "title", "dim", "good", "warn", "bad", "cursor", "bar", "empty", "mark"]


@dataclass(frozen=True, slots=True)
class Span:
    text: str
    style: Style = ""


Line = tuple[Span, ...]


def line(*texts: str | Span) -> Line:
    return tuple(text if isinstance(text, Span) else Span(text) for text in texts)


def plain(spans: Line) -> str:
    """A line without styles, as `--once` prints it."""
    return "".join(span.text for span in spans).rstrip()


def in_ascii(spans: Line) -> Line:
    """For a terminal that has only ASCII: `…` becomes `~`, and other characters `?`."""
    if all(span.text.isascii() for span in spans):
        return spans
    return tuple(
        Span(span.text.replace("…", "~").encode("ascii", "replace").decode(), span.style)
        for span in spans
    )


def cut(whole: Line, columns: int) -> Line:
    """The line exactly that wide: padded, or cut with an ellipsis."""
    size = sum(width(span.text) for span in whole)
    if size == columns:
        return whole
    if size < columns:
        return (*whole, Span(" " * (columns - size)))
    spans: list[Span] = []
    left = columns
    for span in whole:
        if width(span.text) >= left:
            # Two spaces more than fit, so that `fit` puts an ellipsis even if this span just fits.
            spans.append(Span(fit(f"{span.text}  ", left), span.style))
            break
        spans.append(span)
        left -= width(span.text)
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the screen, with so many rows as it is given."""

    draw: Callable[[int], list[Line]]  # with this number of rows
    wants: int  # rows to show everything
    needs: int  # rows to show anything of use


def fixed(lines: list[Line], needs: int) -> Section:
    """A section of these lines, cut if there are fewer rows."""
    return Section(lambda rows: lines[:rows], len(lines), needs)


def share(sections: Sequence[Section], rows: int) -> list[int]:
    """Rows for each section. In order of importance, each first gets what it needs, and then what
    it wants of the rows that are left."""
    rows = max(0, rows)  # on a low screen, gaps between sections take more than there is
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
    """A title and as many lines as there is room for; if not all, the title says so."""
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


class _Glyphs(NamedTuple):
    full: str
    empty: str  # between the bar's end and the mark
    mark: str


GLYPHS: Final = _Glyphs("█", "░", "│")
ASCII_GLYPHS: Final = _Glyphs("#", ".", "|")


def bar(
    value: float | None,
    reserved: float | None,
    largest: float,
    columns: int,
    style: Style = "bar",
    ascii_only: bool = False,
) -> Line:
    """A bar of `value`, and a mark where the reservation is. `largest` fills all columns.

    █████████░░░░│      the value is below the reservation
    ████████│█████      it is above
    """
    glyphs = ASCII_GLYPHS if ascii_only else GLYPHS
    if value is None or largest <= 0 or columns < 3:
        return (Span(" " * columns),)
    filled = min(columns, round(value / largest * columns))
    if value > 0 and filled == 0:
        filled = 1
    if not reserved:
        return (Span(glyphs.full * filled, style), Span(" " * (columns - filled)))
    mark = min(columns - 1, max(0, round(reserved / largest * columns) - 1))  # its column
    end = max(filled, mark + 1)
    spans = (
        Span(glyphs.full * min(filled, mark), style),
        Span(glyphs.empty * (mark - min(filled, mark)), "empty"),
        Span(glyphs.mark, "mark"),
        Span(glyphs.full * (end - mark - 1), style),
        Span(" " * (columns - end)),
    )
    return tuple(span for span in spans if span.text)
