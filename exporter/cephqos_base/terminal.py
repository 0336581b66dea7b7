"""Text on a terminal: the one place that all strings from files, archives and clusters pass.

A name may hold escape sequences that move the cursor, retitle the window or hide what follows. They
are shown as what they are: `\\x1b[2J`. No other module prints (`tests/unit/base/test_terminal.py`).
"""

import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any, Final

# Unicode categories: control, format (also what changes the direction of writing), surrogate,
# private use, unassigned, and the separators of lines and paragraphs.
_HIDDEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def printable(text: str) -> str:
    """The same text as one line that does nothing but show itself; newlines become spaces.

    >>> printable("a\\x1b[2J\\nb")
    'a\\\\x1b[2J b'
    """
    if text.isprintable():
        return text
    return "".join(map(_printable_character, text))


def _printable_character(char: str) -> str:
    if char in "\n\t":
        return " "
    if unicodedata.category(char) in _HIDDEN:
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char


def printable_lines(text: str) -> str:
    """The same for a text of several lines: newlines and tabs stay, and nothing else does.

    >>> printable_lines("a:\\n\\tb\\x07")
    'a:\\n\\tb\\\\x07'
    """
    if text.isascii() and text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def first_names(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence, and how many more there are.

    >>> first_names(["osd.1", "osd.2", "osd.3"], most=2)
    'osd.1, osd.2 and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows as lines, printable, with columns under each other; `right`: columns of numbers.

    >>> aligned([["osd", "IOPS"], ["osd.11", "7"]], right=[1])
    ['osd     IOPS', 'osd.11     7']
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON in ASCII that a terminal cannot obey: json.dumps leaves only the delete character."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def can_draw() -> bool:
    """Whether all three streams are a terminal that can do more than show plain lines."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"


def say(*lines: object, file: IO[str] | None = None) -> None:
    """Print lines, each of them printable."""
    for line in lines:
        _print(printable(str(line)), file)


def say_text(text: str) -> None:
    """Print a text of several lines, whether it ends with a newline or not."""
    _print(printable_lines(text.removesuffix("\n")))


def say_progress(line: str) -> None:
    """Print on standard error if a person watches it: a script that reads errors gets none."""
    if sys.stderr.isatty():
        say(line, file=sys.stderr)


def say_json(value: Any, indent: int = 1) -> None:
    """Print JSON."""
    _print(json_text(value, indent))


def _print(text: str, file: IO[str] | None = None) -> None:
    stream = file or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # What the terminal's encoding lacks is escaped too, or printing it would end in a traceback.
    with _output_lost_on_error(stream):
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


class OutputLost(Exception):
    """What was to be printed could not be written."""


@contextlib.contextmanager
def _output_lost_on_error(stream: IO[str]) -> Iterator[None]:
    """OutputLost instead of OSError, so that a full disk ends in one line and not in a traceback.

    BrokenPipeError passes: `cephqos scenarios | head` is not a failure.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "error" if stream is sys.stderr else "output"
        raise OutputLost(f"cannot write to standard {name}: {error.strerror}") from error


def flush() -> None:
    """Write what standard output still holds; there may be none."""
    if sys.stdout is not None:
        with _output_lost_on_error(sys.stdout):
            sys.stdout.flush()


def discard_output() -> None:
    """Drop what standard output still holds, or the interpreter complains when it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
