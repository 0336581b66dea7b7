"""What the targets of the Makefile run is there."""

import itertools
import re
from pathlib import Path

import pytest

RUNS = re.findall(r"\$\(BIN\)/python (-m )?(\S+)", Path("Makefile").read_text(encoding="utf-8"))
MODULES = sorted({name for by_name, name in RUNS if by_name})


def test_targets_run_tests_by_their_names() -> None:
    """A file is run with its own folder in the path: what it imports of the others is not found."""
    assert [name for by_name, name in RUNS if not by_name and name.startswith("tests/")] == []
    assert len(MODULES) > 10


# What it needs is a Docker engine of its own: make test-compose.
APART = "tests/compose"
FOLDERS = sorted({"/".join(it.parts[:2]) for it in Path("tests").rglob("test_*.py")} - {APART})


def pytest_lines(target: str) -> list[tuple[list[str], str]]:
    """The folders and the expression of marks of each pytest that a target runs."""
    text = Path("Makefile").read_text(encoding="utf-8")
    recipe = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)[0]
    found = re.findall(r"/pytest ((?:tests/\w+ ?)+)(?:-m (\w+|\"[^\"]+\"))?", recipe)
    return [(folders.split(), marks.strip('"') or "True") for folders, marks in found]


@pytest.mark.parametrize("folder", FOLDERS)
def test_make_test_and_test_full_run_every_test_once(folder: str) -> None:
    lines = [*pytest_lines("test"), *pytest_lines("test-full")]
    for alone, full in itertools.product((False, True), repeat=2):
        marks = {"alone": alone, "full": full}
        times = sum(folder in folders and eval(it, {}, marks) for folders, it in lines)  # noqa: S307
        # Only tests with clusters are marked alone.
        possible = folder in ("tests/lab", "tests/stack") or not alone
        assert times == 1 or not possible, marks


def test_the_night_runs_what_make_test_leaves() -> None:
    assert "make test-full" in Path(".ci/nightly").read_text(encoding="utf-8")
