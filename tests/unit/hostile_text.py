"""Names that somebody else may have chosen, and what a terminal would act on in a text."""

import unicodedata
from typing import Final

HOSTILE = {
    "clears the screen": "\x1b[2J\x1b[H",
    "retitles the window": "\x1b]0;owned\x07",
    "a link": "\x1b]8;;http://h/\x1b\\x\x1b]8;;\x1b\\",
    "an 8-bit control sequence": "\x9b31m\x9d0;x\x9c",
    "goes back over the line": "bad\rgood\b\b\x7f",
    "turns text around": "\u202egpj.exe\u202c \u2066a\u2069 \u200f",
    "cannot be seen": "a\u200b\u2060\ufeff\u00ad\U000e0041b",
    "lines": "a\nosd.1: healthy\x0b\x0c\x85\u2028\u2029z",
    "ends a string": "a\0b",
    "no text": "\udcff\ud800",
    "nobody's characters": "\ue000\U0010ffff\u0378",
    "markup": "[red]x[/] [@click=app.quit]y[/] [link=http://h]z[/link] :bomb: [/]",
}
HIDDEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def obeyed(text: str) -> set[str]:
    """Characters that a terminal would act on; a newline between lines is ours."""
    return {c for c in text if unicodedata.category(c) in HIDDEN} - {"\n"}
