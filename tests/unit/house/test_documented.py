"""What can be chosen stands where users look for it."""

import re
from pathlib import Path

import pytest

from cephqos_loadgen.engines.fio_engines import ENGINES
from cephqos_loadgen.phase_kinds.fio import Fio
from cephqos_loadgen.plan.place import ProgramPaths

PAGE = Path(__file__).parents[3] / "docs/measure/scenarios.md"
RAN = Path(__file__).parents[3] / "docs/internals/measure.md"

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


@pytest.mark.parametrize("page", [PAGE.with_name("index.md"), RAN], ids=lambda page: page.name)
def test_a_scenario_that_is_shipped_has_a_row(page: Path) -> None:
    shipped = {file.stem for file in Path("loadgen/cephqos_loadgen/scenarios").glob("*.yaml")}
    assert shipped
    assert shipped - set(re.findall(r"^\| `([\w-]+)`", page.read_text("utf-8"), re.M)) == set()
