"""Programs of the release trees, as tests run them."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.programs import tree_program


def tool(release: str, name: str) -> list[str]:
    """A command of a release tree, run with that tree's own libraries; skips without the tree."""
    argv = tree_program(find_release(release), name)
    if not argv:
        pytest.skip(f"no release tree of {release}: run `cephqos lab trees`")
    return argv


def run(argv: Sequence[str], *, cwd: Path = Path(), within: float = 280) -> str:
    # Memory is cheap: to collect garbage is a third of what promtool does.
    environment = {**os.environ, "GOGC": "400"}
    environment.pop("LD_PRELOAD", None)  # tests/clock: it is of this machine, not of the tree
    done = subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=within, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
