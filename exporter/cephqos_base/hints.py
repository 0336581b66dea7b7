"""Hints for a mistyped name: of an option, a command, a key."""

import argparse
import re
from collections.abc import Iterable
from typing import Final

_UNKNOWN: Final = re.compile(r"unrecognized arguments: (--[^\s=]+)")
_NO_CHOICE: Final = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
_SWITCH_WITH_VALUE: Final = re.compile(r"argument (--[^/]+)/--no-.*: ignored explicit argument")
_OPTION: Final = re.compile(r"(?<![\w-])--[A-Za-z][\w.-]*\w")


def hint(parser: argparse.ArgumentParser, message: str) -> str:
    """Words to put behind argparse's message: the nearest allowed name, or nothing.

    >>> hint(argparse.ArgumentParser(), "invalid choice: 'topp' (choose from 'top', 'run')")
    '; did you mean top?'
    """
    if unknown := _UNKNOWN.search(message):
        return _meant(unknown[1], _OPTION.findall(parser.format_help()))
    if choice := _NO_CHOICE.search(message):
        return _meant(choice[1], [word.strip("' ") for word in choice[2].split(",")])
    if switch := _SWITCH_WITH_VALUE.match(message):
        return f"; allowed: {switch[1]} or --no-{switch[1][2:]}, no value"
    return ""


def _meant(word: str, known: Iterable[str]) -> str:
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known name that looks most like the word; empty if none does.

    >>> nearest("scrubs", ["scrub", "recovery"])
    'scrub'
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, set(known), n=1)), "")
