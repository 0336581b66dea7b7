"""A skipped test is a failure in CI, with its reason."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[2] / "conftest.py"
SKIPPING = """
import pytest

def test_that_needs_something():
    pytest.skip("frobnicator is missing: apt-get install frobnicator")

@pytest.mark.skip(reason="marked")
def test_that_is_marked():
    pass

def test_that_runs():
    pass
"""


def outcome(folder: Path, ci: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "test_it.py").write_text(SKIPPING)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", str(folder)]
    environment = {**os.environ, "CI": ci}
    return subprocess.run(
        argv, capture_output=True, text=True, env=environment, cwd=folder, check=False, timeout=60
    )


def test_in_ci_a_skip_is_a_failure_that_says_what_is_missing(tmp_path: Path) -> None:
    done = outcome(tmp_path, "true")
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 error" in done.stdout  # a mark skips before the test itself
    assert "a failed test: Skipped: frobnicator is missing" in done.stdout
    assert "marked" in done.stdout
