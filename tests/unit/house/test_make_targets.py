"""What the targets of the Makefile run is there, and can be loaded the way they run it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = re.findall(r"\$\(BIN\)/python (-m )?(\S+)", Path("Makefile").read_text(encoding="utf-8"))
MODULES = sorted({name for by_name, name in RUNS if by_name})


def test_targets_run_tests_by_their_names() -> None:
    """A file is run with its own folder in the path: what it imports of the others is not found."""
    assert [name for by_name, name in RUNS if not by_name and name.startswith("tests/")] == []
    assert len(MODULES) > 10


@pytest.mark.parametrize("name", MODULES)
def test_what_a_target_runs_can_be_loaded(name: str) -> None:
    argv = [sys.executable, "-c", f"import {name}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
