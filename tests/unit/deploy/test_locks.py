"""What is installed, where: each lock is in step with pyproject.toml, and with the one of all."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .programs import DEPLOY
from .requirements import closure

ROOT: Final = DEPLOY.parent
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
EVERYTHING: Final = ROOT / "requirements-dev.txt"
IMAGES: Final = DEPLOY / "images"
IMAGE_LOCKS: Final = sorted(IMAGES.glob("requirements-*.txt"))
# The last three are of the programs that write the others, the bills of materials and the site.
LOCKS: Final = (
    EVERYTHING,
    *IMAGE_LOCKS,
    DEPLOY / "requirements-lock.txt",
    DEPLOY / "requirements-sbom.txt",
    DEPLOY / "requirements-docs.txt",
)
EXTRAS: Final[dict[str, list[str]]] = PROJECT["project"]["optional-dependencies"]
NOT_LOCKED: Final = {"parquet"}
SECURITY: Final = (ROOT / "docs/internals/threats.md").read_text()

_OTHER: Final = re.compile(r"^-r (\S+)$", re.M)
_ENTRY: Final = re.compile(
    r"^(\S+)==([^\s;]+)[^\n]*((?:\\\n +--hash=sha256:[0-9a-f]{64} ?)+)$", re.M
)


def locked(lock: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Version and hashes by name, with those of the locks that it names."""
    text = lock.read_text()
    sums = re.compile(r"sha256:([0-9a-f]{64})")
    packages: dict[str, tuple[str, frozenset[str]]] = {}
    for other in _OTHER.findall(text):
        packages |= locked(lock.parent / other)
    for name, version, hashes in _ENTRY.findall(text):
        packages[name] = (version, frozenset(sums.findall(hashes)))
    return packages


def needed(requirements: Iterable[str]) -> set[str]:
    """Packages that these bring along, as far as the lock of all has them."""
    return closure(requirements) & locked(EVERYTHING).keys()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_has_nothing_but_versions_and_hashes(lock: Path) -> None:
    text = lock.read_text()
    assert _OTHER.sub("", _ENTRY.sub("", text)).split() == []
    assert not re.search(r"://|--(?:extra-)?index|--find|--trusted", text)


@pytest.mark.parametrize("lock", IMAGE_LOCKS, ids=lambda lock: lock.stem)
def test_what_an_image_gets_is_what_was_tested(lock: Path) -> None:
    everything = locked(EVERYTHING)
    assert locked(lock)
    assert {name for name, found in locked(lock).items() if everything.get(name) != found} == set()


@pytest.mark.parametrize(
    ("what", "requirements"),
    [
        ("exporter", PROJECT["project"]["dependencies"]),
        ("lab", PROJECT["project"]["dependencies"] + EXTRAS["loadgen"]),
        ("build", PROJECT["build-system"]["requires"]),
    ],
)
def test_an_image_gets_what_the_project_says_and_no_more(
    what: str, requirements: list[str]
) -> None:
    assert locked(IMAGES / f"requirements-{what}.txt").keys() == needed(requirements)


def test_every_requirement_of_the_project_is_locked_to_a_version_that_it_allows() -> None:
    everything = locked(EVERYTHING)
    texts = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    texts += [text for extra, inner in EXTRAS.items() if extra not in NOT_LOCKED for text in inner]
    for text in texts:
        wanted = Requirement(text)
        version, _ = everything[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version, prereleases=True), (text, version)


def test_what_is_not_locked_is_named_where_security_is_described() -> None:
    for extra in NOT_LOCKED:
        assert f"`{extra}`" in SECURITY
        for text in EXTRAS[extra]:
            assert canonicalize_name(Requirement(text).name) not in locked(EVERYTHING)


def test_the_number_of_direct_dependencies_is_the_one_that_is_written() -> None:
    [word] = re.findall(r"runs beside OSDs, has (\w+) direct dependencies", SECURITY)
    numbers = ("four", "five", "six", "seven", "eight")
    assert numbers.index(word) + 4 == len(PROJECT["project"]["dependencies"])


def test_what_writes_the_locks_is_locked_itself() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.split("\nlock:")[1].split("\n\n")[0]
    installed = [line for line in recipe.splitlines() if " install " in line]
    assert len(installed) == 1
    assert "--require-hashes -r deploy/requirements-lock.txt" in installed[0]
    assert set(locked(DEPLOY / "requirements-lock.txt")) == {"uv"}
    paths = recipe.replace("$(images)", "deploy/images/requirements")
    written = {path for path in re.findall(r"(?: -o |>)([\w/.-]+)", paths) if "build/" not in path}
    assert written == {str(lock.relative_to(ROOT)) for lock in LOCKS}


def test_no_lock_repeats_what_one_that_it_names_has() -> None:
    for lock in (EVERYTHING, IMAGES / "requirements-lab.txt"):
        lines = {line for line in lock.read_text().splitlines() if "==" in line}
        for other in _OTHER.findall(lock.read_text()):
            assert lines.isdisjoint((lock.parent / other).read_text().splitlines()), other


def test_every_program_that_is_built_from_go_modules_is_named_with_a_licence() -> None:
    [line] = [line for line in SECURITY.splitlines() if "Go modules" in line]
    tools = {folder.parent.name for folder in (DEPLOY / "tools").glob("*/go.mod")}
    for name in tools:
        assert name in line.lower(), name
    assert {"AGPL-3.0", "Apache-2.0", "MIT"} <= set(re.findall(r"[A-Z][A-Za-z]*(?:-\d\.\d)?", line))
