"""The list of licences that `make sbom` writes, and the licences of what runs beside OSDs."""

import importlib.metadata
import re
import tomllib

import pytest

from .programs import DEPLOY, program
from .requirements import closure

PYTHON = {
    "components": [
        {
            "name": "aiohttp",
            "version": "3",
            "licenses": [{"expression": "Apache-2.0 AND MIT"}],
        },
        {
            "name": "attrs",
            "version": "26",
            "licenses": [
                {"license": {"id": "MIT"}},
                {"license": {"name": "License :: OSI Approved :: MIT License"}},
            ],
        },
        {"name": "pytest", "version": "9"},
    ],
}
GO = {
    "components": [
        {
            "name": "example.org/m",
            "version": "v1",
            "evidence": {"licenses": [{"license": {"id": "ISC"}}]},
        }
    ],
}


def test_a_licence_is_the_declared_one_or_the_one_found_in_files_or_said_to_be_missing() -> None:
    rows = program("sbom.py").licences({"python": PYTHON, "go-loki": GO}).splitlines()
    assert rows[-4:] == [
        "| go-loki | example.org/m | v1 | ISC |",
        "| python | aiohttp | 3 | Apache-2.0 AND MIT |",
        "| python | attrs | 26 | MIT, MIT License |",
        "| python | pytest | 9 | not found |",
    ]


def test_no_licence_of_what_runs_beside_osds_is_a_strong_copyleft() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    names = closure(project["dependencies"])
    assert {"aiohttp", "bcrypt", "orjson", "prometheus-client", "psutil", "pyyaml"} <= names
    for name in names:
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or version of Python
        keys = ("License-Expression", "License", "Classifier")
        said = [text for key in keys for text in metadata.get_all(key) or []]
        licences = [text for text in said if text.startswith("License ::") or "::" not in text]
        assert licences, name
        assert not re.search(r"\b[AL]?GPL|General Public", " ".join(licences)), name


@pytest.mark.parametrize("needed", ["build/sbom", "requirements-sbom.txt", "deploy/sbom.py"])
def test_make_writes_the_bills_with_a_program_that_is_locked(needed: str) -> None:
    makefile = (DEPLOY.parent / "Makefile").read_text()
    recipe = makefile.split("\nCYCLONEDX :=")[1].split("\nrelease:")[0]
    assert "--require-hashes" in recipe
    assert needed in recipe
