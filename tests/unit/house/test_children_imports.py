"""No child imports from the directory that its parent was started in.

That may be the folder of an archive or of a scenario that somebody else made, and we may be root.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.processes import own_module
from cephqos_loadgen.run_recording import own_exporter

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    path
    for folder in ("exporter", "loadgen", "alerts", "dashboards", "deploy")
    for path in (ROOT / folder).rglob("*.py")
)
MODULES = ("json", "queue", "yaml", "asyncio", "time", "aiohttp", "orjson", "argparse", "shlex")


def bare_interpreters(tree: ast.AST) -> Iterator[int]:
    """Lines where our interpreter is started without -P or -I."""
    for node in ast.walk(tree):
        items = getattr(node, "elts", None) or getattr(node, "args", None)
        if not isinstance(items, list) or not items:
            continue
        for item, after in zip(items, [*items[1:], None], strict=True):
            started = isinstance(item, ast.Attribute) and ast.unparse(item) == "sys.executable"
            if started and not (isinstance(after, ast.Constant) and after.value in ("-P", "-I")):
                yield item.lineno


def test_our_interpreter_is_never_started_without_isolation() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in SOURCES
        for line in bare_interpreters(ast.parse(path.read_text()))
    }
    assert not found
    seen = ast.parse("run(sys.executable, '-m', 'x'); [sys.executable, '-c', y]; [sys.executable]")
    assert len(list(bare_interpreters(seen))) == 3


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A directory whose modules would leave a file if one of them was imported."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"open('executed', 'a').write({name!r})\n")
    return tmp_path


@pytest.mark.parametrize("which", ["exporter", "stack's exporter"])
def test_children_of_a_run_and_of_a_demo_import_nothing_from_the_working_directory(
    which: str, trap: Path
) -> None:
    if which == "exporter":
        access: Any = _Reach()
        argv = [*own_exporter.argv(0, access, "/nonexistent", None), "--config.check"]
    else:
        argv = [*own_module("cephqos_exporter.cli"), "--config.check"]
    subprocess.run(argv, cwd=trap, capture_output=True, timeout=60, check=False)
    assert not (trap / "executed").exists(), (trap / "executed").read_text()


def test_the_trap_would_be_seen(trap: Path) -> None:
    argv = [sys.executable, "-m", "cephqos_base", "--version"]
    subprocess.run(argv, cwd=trap, capture_output=True, timeout=60, check=False)
    assert (trap / "executed").exists()


class _Reach:
    conf = Path("/nonexistent")
    place = ProgramPaths()

    def argv(self, argv: Sequence[str]) -> list[str]:
        return list(argv)
