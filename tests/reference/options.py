"""Every option of every command."""

import argparse
from collections.abc import Iterator
from typing import Any

from tests.reference.tables import code, page, table

from cephqos_base.command import COMMANDS, Parser, load
from cephqos_exporter.cli import every_option
from cephqos_exporter.config import Option


def _commands(
    parser: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    below = [it for it in parser._actions if isinstance(it, argparse._SubParsersAction)]
    if not below:
        yield name, parser
    for action in below:
        for word, choice in action.choices.items():
            yield from _commands(choice, f"{name} {word}")


def _help(action: argparse.Action) -> str:
    values = {**vars(action), "prog": "cephqos"}
    return (action.help or "") % values


def _rows(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        metavar = action.metavar if action.option_strings and action.nargs != 0 else None
        yield code(f"{name} {metavar}" if metavar else name), _help(action)


def commands() -> str:
    parts = []
    for entry in COMMANDS:
        parser = Parser(prog=f"cephqos {entry.name}")
        load(entry)(parser)
        parts += [
            f"## {name}\n" + table(("option", "what it is"), _rows(each))
            for name, each in _commands(parser, f"cephqos {entry.name}")
        ]
    return page("Commands", *parts)


def _allowed(option: Option[Any]) -> str:
    if option.boolean:
        return ""
    return f" Allowed: {option.allowed}{'; in a file, a list' if option.repeatable else ''}."


def exporter() -> str:
    rows = [
        (
            code(f"--{it.name}"),
            code(it.default_text),
            it.help + _allowed(it),
        )
        for it in every_option()
    ]
    return page(
        "Options of the exporter",
        """
Each option is a flag, a key of the configuration file, and a variable of the environment:
`--scrape.timeout`, `timeout` below `scrape`, `CEPHQOS_EXPORTER_SCRAPE_TIMEOUT`.
""",
        table(("option", "default", "what it is"), rows),
    )
