"""Hints for a mistyped option or command: `; did you mean top?`."""

import argparse
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_UNKNOWN: Final = re.compile(r"unrecognized arguments: (--[^\s=]+)")
_NO_CHOICE: Final = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
_OPTION: Final = re.compile(r"(?<![\w-])--[A-Za-z][\w.-]*\w")


def hint(parser: argparse.ArgumentParser, message: str) -> str:
    """Words to put behind argparse's message: the nearest allowed name, or nothing.

    >>> hint(argparse.ArgumentParser(), "invalid choice: 'topp' (choose from 'top', 'run')")
    '; did you mean top?'
    """
    if unknown := _UNKNOWN.search(message):
        return _nearest(unknown[1], _OPTION.findall(parser.format_help()))
    if choice := _NO_CHOICE.search(message):
        return _nearest(choice[1], [word.strip("' ") for word in choice[2].split(",")])
    return ""


def _nearest(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, set(known), n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
