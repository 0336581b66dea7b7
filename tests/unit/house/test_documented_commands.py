"""Every command of ours that a page shows is taken by the command line as it is typed."""

import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cephqos_base.command import COMMANDS, build_parser
from cephqos_exporter.cli import build_parser as exporter_parser
from cephqos_exporter.cli import every_option
from cephqos_loadgen.scenario.library import shipped

from .pages import PAGES, block_lines, spans

# What may stand before a command: variables, another user, a container, the place of the program.
_BEFORE: Final = re.compile(
    r"^(?:[A-Z_]+=\S* |sudo (?:-u \w+ )?|kubectl .* -- |ssh \S+ )*(?:\S+/)?"
    r"(?=cephqos(?:-exporter)? )"
)
# Ends a command: a pipe, another command, a redirection.
_ENDS: Final = re.compile(r"[|&;<>()]+")


def _words(line: str) -> list[str]:
    """The words of a command of ours, what is optional in it included; none for another line."""
    begin = _BEFORE.match(line)
    if not begin:
        return []
    lexer = shlex.shlex(line[begin.end() :], posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(itertools.takewhile(lambda word: not _ENDS.fullmatch(word), lexer))
    return [_filled(word.strip("[]")) for word in words if word != "2"]  # 2>FILE


def _filled(word: str) -> str:
    """What a reader would put in."""
    return re.sub(r"\b(?:SECONDS|N)\b", "1", word.replace("…", "X"))


def _typed() -> Iterator[tuple[str, str, bool]]:
    """Page, command, and whether it is whole: in a sentence it may lack what the sentence says."""
    names = {*(entry.name for entry in COMMANDS), "--version", "--help"}
    for page in PAGES:
        shown = [(line.strip(), True) for line in block_lines(page)]
        for line, whole in [*shown, *((span, False) for span in spans(page))]:
            a_screen = "  " in line.partition("  #")[0].rstrip()
            if a_screen or line.endswith(" …"):
                continue
            words = _words(line)
            if len(words) > 1 and (words[0] != "cephqos" or words[1] in names):
                yield str(page), shlex.join(words), whole


TYPED: Final = sorted(set(_typed()))
_RUNS: Final = sorted(
    {(page, line.split()[2]) for page, line, _ in TYPED if re.match(r"cephqos run [a-z]", line)}
)


def test_the_pages_have_commands_to_type() -> None:
    assert len([it for it in TYPED if it[2]]) > 40


@pytest.mark.parametrize(("page", "line", "whole"), TYPED)
def test_a_command_is_taken_as_it_is_typed(
    page: str, line: str, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = shlex.split(line)
    parser = build_parser() if program == "cephqos" else exporter_parser(every_option())
    try:
        parser.parse_args(words)
    except SystemExit as end:
        said = capsys.readouterr().err
        lacking = "the following arguments are required" in said or "expected" in said
        assert end.code == 0 or (lacking and not whole), f"{page}: {line}\n{said}"


@pytest.mark.parametrize(("page", "scenario"), _RUNS)
def test_a_scenario_that_a_page_runs_is_shipped(page: str, scenario: str) -> None:
    assert scenario in shipped(), page


GREPPED: Final = sorted(
    {
        (str(page), words)
        for page in PAGES
        for line in (*block_lines(page), *spans(page))
        for words in re.findall(r"/metrics \| (grep \S+)", line)
    }
)


@pytest.mark.parametrize(("page", "words"), GREPPED)
def test_what_a_page_greps_out_of_metrics_has_samples_and_no_comments(
    page: str, words: str
) -> None:
    """The pages say what each line means, and count them."""
    texts = [file.read_text() for file in sorted(Path("tests/golden").glob("*.prom"))]
    argv = shlex.split(words)
    done = subprocess.run(
        argv, input="".join(texts), capture_output=True, text=True, check=True, timeout=30
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("#")] == []
