"""What can be chosen stands where users look for it, and what they are told to type exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cephqos_base.command import build_parser
from cephqos_loadgen.engines.fio_engines import ENGINES
from cephqos_loadgen.phase_kinds.fio import Fio
from cephqos_loadgen.phase_kinds.registry import KINDS
from cephqos_loadgen.plan.place import ProgramPaths

README = Path(__file__).parents[3] / "loadgen" / "README.md"
ROWS = [line for line in README.read_text("utf-8").splitlines() if line.startswith("| `")]

# What each engine needs of the action, and what then must stand in fio's command.
COMMANDS = {
    "rbd": ({"pool": "p"}, {"--ioengine=rbd", "--pool=p", "--rbdname=volume.0"}),
    "rados": ({"pool": "p"}, {"--ioengine=rados", "--pool=p"}),
    "krbd": ({"pool": "p"}, {"--ioengine=libaio", "--filename=/dev/made"}),
    "nbd": ({"pool": "p"}, {"--ioengine=nbd"}),
    "guest": ({"pool": "p"}, {"--ioengine=nbd"}),
    "libaio": ({"path": "/dev/x"}, {"--ioengine=libaio", "--direct=1", "--filename=/dev/x"}),
    "io_uring": ({"path": "/dev/x"}, {"--ioengine=io_uring", "--direct=1", "--filename=/dev/x"}),
}


def test_every_engine_of_fio_has_its_command_here() -> None:
    assert COMMANDS.keys() == ENGINES.keys()


@pytest.mark.parametrize("engine", COMMANDS)
def test_an_engine_of_fio_is_started_with_what_it_needs(engine: str) -> None:
    given, expected = COMMANDS[engine]
    action = Fio(engine=engine, rw="randread", block_size=4096, depth=1, **given)  # type: ignore[arg-type]
    target = action.target("load", ProgramPaths(conf="/run/c.conf", work="/run/w"))
    options = ENGINES[engine].options(target, "client.0", 0, {0: "/dev/made"})
    assert expected <= set(options)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_of_fio_stands_in_the_row_of_fio(engine: str) -> None:
    (row,) = (row for row in ROWS if row.startswith("| `fio` |"))
    assert f"`{engine}`" in row


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_phase_has_a_row(kind: str) -> None:
    assert any(f"`{kind}`" in row.split("|")[1] for row in ROWS)


# -- commands as they are typed --------------------------------------------------------------------

PAGES = sorted(README.parent.glob("*.md"))
# Options of other programs that the pages name.
NOT_OURS = {
    *("--query.lookback-delta", "--storage.tsdb.retention.time"),
    "--web.enable-remote-write-receiver",
}


def typed(page: Path) -> Iterator[list[str]]:
    """The words of every line of a block that starts `cephqos`, without variables before it."""
    for block in re.findall(
        r"^```\w*\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        for line in block.replace("\\\n", " ").splitlines():
            words = re.fullmatch(
                r"(?:\w+=\S+ )*cephqos (?! )(.*)", line.partition("  #")[0].strip()
            )
            if words and "  " not in words[1]:  # else it is a screen
                yield shlex.split(words[1].partition(" | ")[0], comments=True)


def test_the_pages_have_commands_to_type() -> None:
    assert sum(1 for page in PAGES for _ in typed(page)) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_of_the_pages_is_taken_as_it_is_typed(page: Path) -> None:
    for words in typed(page):
        build_parser().parse_args(words)


@pytest.mark.parametrize("page", ["REPORT.md", "REPLAY.md"])
def test_an_option_that_a_page_names_is_one_of_its_commands(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("report", "compare", "replay"):
        with pytest.raises(SystemExit):
            build_parser().parse_args([command, "--help"])
    known = set(re.findall(r"--[a-z][\w.-]+", capsys.readouterr().out)) | NOT_OURS
    text = (README.parent / page).read_text("utf-8")
    named = set(re.findall(r"(?<![\w=])--[a-z][\w.-]*\w", text))
    assert named - known <= {"--quick", "--page-only"}, "of make study-small"
