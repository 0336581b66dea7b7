"""Completion of a command line: `--print-completion zsh`. The library shtab writes it."""

import argparse
import contextlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.extras import how_to_install
from cephqos_base.terminal import say_text

SHELLS: Final = ("bash", "zsh", "tcsh")


class PrintCompletion(argparse.Action):
    """An option that prints the completion for a shell, and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        help_ = "print the completion of the command line for a shell"
        super().__init__(option_strings, dest, choices=SHELLS, metavar="SHELL", help=help_)

    def __call__(self, parser: argparse.ArgumentParser, _: object, shell: Any, *__: object) -> None:
        say_text(completion(parser, shell))
        parser.exit()


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """A script for the shell; UsageError if shtab is not installed."""
    if importlib.util.find_spec("shtab") is None:
        raise UsageError(f"--print-completion needs shtab; {how_to_install('completion')}")
    import shtab

    for each in with_all_below(parser):
        for action in each._actions:
            if action.type is Path or str(action.option_strings).endswith("file']"):
                of_folders = action.metavar == "DIR"
                action.complete = shtab.DIRECTORY if of_folders else shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def with_all_below(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A parser and those of its commands, whose options are added now. A command that needs what is
    not installed stays without options."""
    found = [parser]
    if callable(add_options := getattr(parser, "add_options", None)):
        with contextlib.suppress(UsageError):
            add_options()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found += with_all_below(below)
    return found
