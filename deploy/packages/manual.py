"""Man pages and completion for shells, made from the commands' own parsers when packages are built.

`python deploy/packages/manual.py DIRECTORY` writes them there.
"""

import os
import sys
from pathlib import Path
from typing import Final

from argparse_manpage.manpage import Manpage  # type: ignore[import-untyped]

from cephqos_base.command import COMMANDS, CommandEntry, build_parser
from cephqos_base.completion import completion, with_all_below
from cephqos_base.version import __version__
from cephqos_exporter import cli as exporter

# Not in the package, as the load generator does not belong on hosts of OSDs.
NOT_PACKAGED: Final = ("cephqos_loadgen", "cephqos_stack")
_SHORT: Final = {
    "cephqos": "rules, dashboards and doctor for the QoS of Ceph OSDs",
    "cephqos-exporter": "Prometheus exporter for the QoS of Ceph OSDs",
}
# By shell: what its file is called there.
_NAMES: Final = {"bash": "{}.bash", "zsh": "_{}"}


def packaged() -> list[CommandEntry]:
    """Those whose code and libraries are in the package."""
    return [
        command
        for command in COMMANDS
        if not command.function.startswith(NOT_PACKAGED) and not command.needs
    ]


def write(directory: Path) -> list[Path]:
    """A page of each command, and a completion for each shell."""
    before = os.environ.get("COLUMNS")
    # Where argparse breaks a long word, troff would put a space, or take the rest for a request.
    os.environ["COLUMNS"] = "100000"
    try:
        texts = _texts()
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in texts]


def _texts() -> dict[str, str]:
    """By the name of the file."""
    texts = {}
    for parser in (build_parser(packaged()), exporter.build_parser(exporter.every_option())):
        with_all_below(parser)
        parser.man_short_description = _SHORT[parser.prog]  # type: ignore[attr-defined]
        page = Manpage(parser, format="single-commands-section")
        page.manual, page.version, page.date = "User Commands", __version__, ""
        texts[f"{parser.prog}.1"] = f"{page}\n"
        for shell, name in _NAMES.items():
            texts[name.format(parser.prog)] = f"{completion(parser, shell)}\n"
    return texts


if __name__ == "__main__":
    print(*write(Path(sys.argv[1])), sep="\n")
