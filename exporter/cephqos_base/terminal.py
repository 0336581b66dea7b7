"""Text on a terminal: the one place that all strings from files, archives and clusters pass.

A name may hold escape sequences that move the cursor, retitle the window or hide what follows. They
are shown as what they are: `\\x1b[2J`. No other module prints (`tests/unit/base/test_terminal.py`).
"""

import json
import sys
import unicodedata
from typing import IO, Any, Final

# Controls, formats (also those that change the direction of writing), surrogates, private ones,
# unassigned ones, and separators of lines and paragraphs.
_HIDDEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def printable(text: str) -> str:
    """The same text as one line that does nothing but show itself; newlines become spaces.

    >>> printable("a\\x1b[2J\\nb")
    'a\\\\x1b[2J b'
    """
    if text.isprintable():
        return text
    return "".join(
        " " if char in "\n\t" else _escaped(char) if unicodedata.category(char) in _HIDDEN else char
        for char in text
    )


def printable_lines(text: str) -> str:
    """The same for a text of several lines: newlines and tabs stay, and nothing else does.

    >>> printable_lines("a:\\n\\tb\\x07")
    'a:\\n\\tb\\\\x07'
    """
    if text.isascii() and text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON in ASCII that a terminal cannot obey: json escapes all else but the delete character."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def say(*lines: object, file: IO[str] | None = None) -> None:
    """Print lines, each of them printable."""
    for line in lines:
        _print(printable(str(line)), file)


def say_text(text: str) -> None:
    """Print a text of several lines, whether it ends with a newline or not."""
    _print(printable_lines(text.removesuffix("\n")))


def say_json(value: Any, indent: int = 1) -> None:
    """Print JSON."""
    _print(json_text(value, indent))


def _print(text: str, file: IO[str] | None = None) -> None:
    stream = file or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # What the terminal's encoding lacks is escaped too: no reason to end with a traceback.
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
