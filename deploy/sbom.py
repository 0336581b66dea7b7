"""The bills of materials and the list of licences, into dist/: `make sbom`.

CycloneDX's own programs write the bills: one of this Python environment, with its packages for
development, and one of each folder with a go.mod in deploy/tools. `release/everything.py` takes
components of these for the bill of each file of a release.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from cephqos_loadgen.progress import Progress
from cephqos_stack.tools import ensure_tool

ROOT: Final = Path(__file__).parents[1]
OUT: Final = ROOT / "dist"
_SECONDS: Final = 1800
_HEADER: Final = """# Licences

cephqos is Apache-2.0. Licences of Python packages are as their authors declare them; those of Go
modules are what cyclonedx-gomod found in their licence files.

| in | name | version | licence |
|---|---|---|---|
"""
_LOCKED: Final = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
_SEPARATORS: Final = re.compile(r"[-_.]+")

Bill = Mapping[str, Any]


def python_bill(cyclonedx: Path, target: Path) -> Bill:
    """The bill of this environment."""
    _run(
        [cyclonedx, "environment", sys.prefix, "--pyproject", ROOT / "pyproject.toml"],
        ["--output-reproducible", "--no-validate", "--output-file", target],
    )
    return read(target)


def go_bill(name: str, target: Path) -> Bill:
    """The bill of a folder of deploy/tools. Needs Go, and fetches all modules."""
    _run(
        [_gomod(), "mod", "-licenses", "-json", "-noserial", "-notimestamp"],
        ["-output", target, ROOT / "deploy" / "tools" / name],
    )
    return read(target)


@cache
def _gomod() -> Path:
    return asyncio.run(ensure_tool("cyclonedx-gomod", Progress()))


def read(file: Path) -> Bill:
    bill: Bill = json.loads(file.read_text(encoding="utf-8"))
    return bill


def _run(*words: Sequence[str | Path]) -> None:
    subprocess.run([word for part in words for word in part], check=True, timeout=_SECONDS)


def locked(*locks: Path) -> dict[str, str]:
    """Versions by name, of requirements with hashes."""
    texts = [lock.read_text(encoding="utf-8") for lock in locks]
    return {_same(name): version for text in texts for name, version in _LOCKED.findall(text)}


def among(bill: Bill, wanted: Mapping[str, str]) -> list[Bill]:
    """The components with these names and versions. One that the environment lacks, because it is
    for another Python, has no licence."""
    known = {
        (_same(component["name"]), component.get("version")): component
        for component in bill["components"]
    }
    return [
        known.get(pair) or _component(*pair, f"pkg:pypi/{pair[0]}@{pair[1]}")
        for pair in sorted(wanted.items())
    ]


def _component(name: str, version: str, purl: str) -> Bill:
    return {"type": "library", "name": name, "version": version, "purl": purl}


def _same(name: str) -> str:
    """The name in one spelling, as package indexes compare names."""
    return _SEPARATORS.sub("-", name).lower()


def debian(listed: str) -> list[Bill]:
    """Components of an image, from lines of `dpkg-query` with name, version and architecture."""
    rows = [line.split() for line in sorted(set(listed.splitlines())) if line.strip()]
    return [
        _component(name, version, f"pkg:deb/debian/{name}@{version}?arch={architecture}")
        for name, version, architecture in rows
    ]


def bill_of(artefact: str, version: str, sha256: str, components: Sequence[Bill]) -> Bill:
    """The bill of one file of a release: what it holds of others."""
    subject = {
        "type": "file",
        "bom-ref": artefact,
        "name": artefact,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": list(components),
    }


def licences(bills: Mapping[str, Bill]) -> str:
    """The list for people, of bills by name."""
    rows = sorted({row for name, bill in bills.items() for row in _rows(name, bill)})
    return _HEADER + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _rows(name: str, bill: Bill) -> Iterator[tuple[str, str, str, str]]:
    for component in bill.get("components", []):
        version = component.get("version", "")
        yield name, component["name"], version, _licence(component)


def _licence(component: Mapping[str, Any]) -> str:
    """The licences that the component declares, or else those found in its files."""
    licences = component.get("licenses") or component.get("evidence", {}).get("licenses", [])
    names = {
        entry.get("expression") or entry["license"].get("id") or entry["license"]["name"]
        for entry in licences
    }
    return ", ".join(sorted(name.rpartition(" :: ")[2] for name in names)) or "not found"


def main(arguments: Sequence[str]) -> int:
    OUT.mkdir(exist_ok=True)
    file = OUT / "cephqos-python.cdx.json"
    bills = {"python": python_bill(Path(arguments[0]), file)}
    files = [file]
    for go_mod in sorted((ROOT / "deploy" / "tools").glob("*/go.mod")):
        name = go_mod.parent.name
        files.append(OUT / f"cephqos-go-{name}.cdx.json")
        bills[f"go-{name}"] = go_bill(name, files[-1])
    table = OUT / "licences.md"
    table.write_text(licences(bills), encoding="utf-8")
    print(*files, table, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
