"""The live screen of `cephqos top` in a real terminal, with made-up figures."""

import shlex
import sys
from pathlib import Path

import pytest
from tests.terminal import PROMPT, Terminal

PROGRAM = """
import asyncio, sys
from tests.unit.top_samples import FakeSource
from cephqos_base.command import run_command
from cephqos_loadgen.top.screen.app import Top
from cephqos_loadgen.top.screen.view import View
from cephqos_loadgen.top.watch import Watch

async def main():
    await Top(Watch(FakeSource(), 0.5), View(sort="name")).run()
    return 0

sys.exit(run_command(main()))
"""


def command(folder: Path) -> str:
    program = folder / "screen.py"
    program.write_text(PROGRAM)
    root = Path(__file__).parents[2]
    return shlex.join(["env", f"PYTHONPATH={root}", sys.executable, str(program)])


async def test_keys_move_filter_open_and_explain(tmp_path: Path) -> None:
    with Terminal(80, 24) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(command(tmp_path), "Enter")
        await terminal.shows("^>osd.0 ")
        for keys, shown in (
            (("Down", "j"), "^>osd.2 "),
            (("Up",), "^>osd.1 "),
            (("End",), "^>osd.11 "),
            (("Home",), "^>osd.0 "),
            (("NPage",), "^>osd.10 "),
            (("PPage",), "^>osd.0 "),
            (("/", "osd.33", "BSpace"), "/osd.3_?"),
            (("Enter",), "OSDS  1 of 12"),
            (("Enter",), "^osd.3  up"),
            (("Escape",), "^>osd.3 "),
            (("Escape",), "^>osd.0 "),
            (("?",), "^KEYS"),
            (("?",), "^>osd.0 "),
            (("Space",), "PAUSED"),
        ):
            terminal.type(*keys)
            await terminal.shows(shown, 20)


async def test_another_size_is_filled_and_the_terminal_is_given_back(tmp_path: Path) -> None:
    with Terminal(80, 24) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(command(tmp_path), "Enter")
        await terminal.shows("^>osd.0 ")
        for columns, rows in ((160, 50), (60, 12), (100, 30)):
            terminal.tmux("resize-window", "-x", str(columns), "-y", str(rows))
            await terminal.shows(rf"\A(.*\n){{{rows - 1}}}q quit", 20)
        terminal.type("C-c")
        await terminal.shows(PROMPT, 20)
        terminal.type("echo left: $?", "Enter")
        await terminal.shows("^left: 0", 20)
        assert "osd." not in terminal.screen()


@pytest.mark.parametrize("term", ["screen-256color", "xterm", "vt100", "linux"])
async def test_each_kind_of_terminal_shows_the_words(tmp_path: Path, term: str) -> None:
    with Terminal(80, 24) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(f"TERM={term} {command(tmp_path)}", "Enter")
        await terminal.shows("VIOLATED: client on 2 OSDs", 20)
        coloured = "\x1b[1m\x1b[31m" in terminal.tmux("capture-pane", "-p", "-e")
        assert coloured or term == "vt100"
        terminal.type("q")
        await terminal.shows(PROMPT, 20)


async def test_an_unknown_terminal_is_told_in_one_line(tmp_path: Path) -> None:
    with Terminal(100, 24) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(f"TERM=nonsense {sys.executable} -m cephqos_base top", "Enter")
        await terminal.shows("TERM=nonsense: .*--once", 20)
