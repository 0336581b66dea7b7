"""The software bill of materials and the list of licences, from the lock: `python deploy/sbom.py`.

Names, versions and hashes come from requirements-dev.txt, licences from the installed packages. No
time and no serial number is in it: the same lock gives the same bytes. A unit test compares.
"""

import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements-dev.txt"
SBOM: Final = ROOT / "docs" / "sbom.cdx.json"
LICENCES: Final = ROOT / "docs" / "licences.md"

_LOCKED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)[^\n]*\\\n((?: +--hash=.*\n?)+)", re.M)
_NAME: Final = re.compile(r"([A-Za-z0-9._-]+)(\[[^]]*\])?")
# Classifiers and free texts that are no SPDX expression, as SPDX says them.
_SPDX: Final = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
# Never installed here, since it is for another system.
_KNOWN: Final = {"colorama": "BSD-3-Clause"}

_HEADER: Final = """# Licences

cephqos is Apache-2.0. Generated from the lock by `deploy/sbom.py`: do not edit.

| scope | meaning |
|---|---|
| required | runs beside OSDs |
| optional | an extra: live view, reports, dashboards |
| excluded | development and tests only |

| package | version | licence | scope |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """One package of the lock."""

    name: str
    version: str
    hashes: tuple[str, ...]
    scope: str
    licence: str


def locked() -> list[Locked]:
    """Every package of the lock, in its order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = _closure(project["dependencies"])
    extras = project["optional-dependencies"].values()
    optional = _closure([word for words in extras for word in words])
    found = []
    for name, version, hashes in _LOCKED.findall(LOCK.read_text(encoding="utf-8")):
        scope = "required" if name in required else "optional" if name in optional else "excluded"
        sums = tuple(re.findall(r"sha256:([0-9a-f]{64})", hashes))
        found.append(Locked(name, version, sums, scope, _licence(name)))
    return found


def _closure(requirements: Iterable[str]) -> set[str]:
    """Names of packages and of all that they need, with the extras that are asked for."""
    found: set[tuple[str, str]] = set()
    waiting = [pair for text in requirements for pair in _needed(text, "")]
    while waiting:
        name, extra = pair = waiting.pop()
        if pair in found:
            continue
        found.add(pair)
        try:
            needed = importlib.metadata.distribution(name).requires or []
        except importlib.metadata.PackageNotFoundError:
            continue
        waiting += [inner for text in needed for inner in _needed(text, extra)]
    return {name for name, _ in found}


def _needed(requirement: str, extra: str) -> Iterator[tuple[str, str]]:
    """The package that a requirement names, once for itself and once for each of its extras."""
    only = re.search(r"""extra == ["'](.+?)["']""", requirement)
    match = _NAME.match(requirement)
    if match is None or (only and only[1] != extra):
        return
    name = re.sub(r"[-_.]+", "-", match[1]).lower()
    for inner in ("", *re.findall(r"[A-Za-z0-9._-]+", match[2] or "")):
        yield name, inner


def _licence(name: str) -> str:
    """As an SPDX expression; an error if a package says nothing that is known."""
    try:
        metadata = importlib.metadata.distribution(name).metadata
    except importlib.metadata.PackageNotFoundError:
        return _KNOWN[name]
    expression = metadata.get_all("License-Expression")
    if expression:
        return str(expression[0])
    said = [text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or []]
    known = {_SPDX[text] for text in said if text in _SPDX} or {
        *(metadata.get_all("License") or [])
    }
    if not known <= set(_SPDX.values()):
        raise ValueError(f"{name}: its licence is not known: {', '.join(sorted(known))}")
    return " AND ".join(sorted(known))


def bill(packages: Iterable[Locked], version: str) -> dict[str, Any]:
    """CycloneDX 1.5."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "cephqos",
                "name": "cephqos",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [_component(package) for package in packages],
    }


def _component(package: Locked) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{quote(package.version)}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "scope": package.scope,
        "licenses": [{"expression": package.licence}],
        "purl": purl,
        # One for each file of the release; whichever is installed must have one of them.
        "hashes": [{"alg": "SHA-256", "content": one} for one in package.hashes],
    }


def table(packages: Iterable[Locked]) -> str:
    """The list for people: what runs beside OSDs first."""
    order = ("required", "optional", "excluded")
    rows = sorted(packages, key=lambda one: (order.index(one.scope), one.name, one.version))
    lines = [f"| {one.name} | {one.version} | {one.licence} | {one.scope} |" for one in rows]
    return _HEADER + "\n".join(lines) + "\n"


def generated(version: str) -> dict[Path, str]:
    """Both files and their content."""
    packages = locked()
    text = json.dumps(bill(packages, version), indent=1, ensure_ascii=False) + "\n"
    return {SBOM: text, LICENCES: table(packages)}


def main() -> int:
    from cephqos_base.version import __version__

    for file, text in generated(__version__).items():
        file.write_text(text, encoding="utf-8")
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
