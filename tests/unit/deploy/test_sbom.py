"""The bill of materials and the list of licences are those of the locks."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cephqos_base.version import __version__

from .programs import DEPLOY, program

ROOT = DEPLOY.parent


def python_components() -> list[Any]:
    found = json.loads((ROOT / "docs" / "sbom.cdx.json").read_text())["components"]
    return [one for one in found if one.get("purl", "").startswith("pkg:pypi/")]


def test_they_are_what_the_lock_gives(compare: Callable[[str, Path], None]) -> None:
    for file, text in program("sbom.py").generated(__version__).items():
        compare(text, file)


def test_every_line_of_the_locks_is_a_component_with_its_hashes_and_a_licence() -> None:
    locks = (ROOT / "requirements-dev.txt", DEPLOY / "requirements-lock.txt")
    lock = "".join(file.read_text() for file in locks)
    components = python_components()
    assert len(components) == len(re.findall(r"^\S+==", lock, re.MULTILINE))
    hashes = {one["content"] for component in components for one in component["hashes"]}
    assert hashes == set(re.findall(r"sha256:([0-9a-f]{64})", lock))
    assert all(component["licenses"][0]["expression"] for component in components)


def test_what_runs_beside_osds_is_named_so() -> None:
    components = python_components()
    required = {one["name"] for one in components if one["scope"] == "required"}
    assert {"aiohttp", "bcrypt", "orjson", "prometheus-client", "psutil", "pyyaml"} <= required
    assert not required & {"textual", "numpy", "pytest", "mypy", "ruff"}


def test_no_licence_of_what_runs_beside_osds_is_a_strong_copyleft() -> None:
    components = python_components()
    for one in components:
        if one["scope"] == "required":
            assert not re.search(r"\b[AL]?GPL", one["licenses"][0]["expression"]), one["name"]
