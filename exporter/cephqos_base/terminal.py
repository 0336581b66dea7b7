"""Text on a terminal: the one place that all strings from files, archives and clusters pass.

A name may hold escape sequences that move the cursor, retitle the window or hide what follows. They
are shown as what they are: `\\x1b[2J`.
"""

import unicodedata
from typing import Final, TextIO

# Controls, formats (also those that change the direction of writing), surrogates, private ones,
# and separators of lines and paragraphs.
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


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def say(*lines: object, file: TextIO | None = None) -> None:
    """Print lines, each of them printable."""
    for line in lines:
        print(printable(str(line)), file=file, flush=True)
