"""The software bill of materials and the list of licences: `python deploy/sbom.py`.

Of Python packages, names, versions and hashes come from the locks, licences from the installed
packages; of Go modules, all comes from deploy/tools. No time and no serial number is in it: the
same locks give the same bytes. A unit test compares.
"""

import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

ROOT: Final = Path(__file__).parents[1]
sys.path.append(str(ROOT / "deploy"))
from tools.go_modules import Module, Program, programs  # noqa: E402

# The second one is of the program that writes the others.
LOCKS: Final = (ROOT / "requirements-dev.txt", ROOT / "deploy" / "requirements-lock.txt")
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
# Programs that nobody needs but who makes packages or runs the tests.
_ONLY_TO_BUILD: Final = {"nfpm", "helm", "kubeconform"}
# Not installed here: for another system, or to renew the locks.
_KNOWN: Final = {"colorama": "BSD-3-Clause", "uv": "MIT OR Apache-2.0"}

_HEADER: Final = """# Licences

cephqos is Apache-2.0. Generated from the locks by `deploy/sbom.py`: do not edit.

| scope | meaning |
|---|---|
| required | runs beside OSDs |
| optional | an extra: live view, reports, dashboards; or a separate program for logs and growth |
| excluded | development, packaging and tests only |

## Python packages

| package | version | licence | scope |
|---|---|---|---|
"""
_PROGRAMS: Final = """
## Programs built from Go modules

`make tools` builds them, and they run as processes of their own.

| program | version | licence | scope | modules |
|---|---|---|---|---|
"""
_MODULES: Final = """
## Go modules

All that these programs can hold, pinned by `deploy/tools/*/go.mod` and `go.sum`. A licence is
listed if its text is in the licence files of the module. With `AND`, each is that of a part.

| module | version | licence | in |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """One package of a lock."""

    name: str
    version: str
    hashes: tuple[str, ...]
    scope: str
    licence: str


def locked() -> list[Locked]:
    """Every package of the locks, in their order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = _closure(project["dependencies"])
    extras = project["optional-dependencies"].values()
    optional = _closure([word for words in extras for word in words])
    found = []
    text = "".join(lock.read_text(encoding="utf-8") for lock in LOCKS)
    for name, version, hashes in _LOCKED.findall(text):
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


def bill(packages: Iterable[Locked], built: Sequence[Program], version: str) -> dict[str, Any]:
    """CycloneDX 1.5."""
    scopes = scope_of(built)
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
        "components": [
            *(_component(package) for package in packages),
            *(_program(one) for one in built),
            *(_module(one, scopes[one]) for one in sorted(scopes)),
        ],
        "dependencies": [
            {"ref": one.tool.name, "dependsOn": [_go_purl(module) for module in one.modules]}
            for one in built
        ],
    }


def scope_of(built: Iterable[Program]) -> dict[Module, str]:
    """Of every module: `optional` if one program that it can be in is."""
    pairs = sorted((_scope(one), module) for one in built for module in one.modules)
    return {module: scope for scope, module in pairs}  # the last one counts


def _scope(program: Program) -> str:
    return "excluded" if program.tool.name in _ONLY_TO_BUILD else "optional"


def _go_purl(module: Module) -> str:
    return f"pkg:golang/{quote(module.path)}@{quote(module.version)}"


def _program(program: Program) -> dict[str, Any]:
    main = program.main
    package = program.tool.package.removeprefix(f"{main.path}/") if main else ""
    return {
        "type": "application",
        "bom-ref": program.tool.name,
        "name": program.tool.name,
        "version": program.version,
        "scope": _scope(program),
        "licenses": [{"expression": program.licence}],
        **({"purl": f"{_go_purl(main)}#{package}"} if main else {}),
    }


def _module(module: Module, scope: str) -> dict[str, Any]:
    purl = _go_purl(module)
    return {
        "type": "library",
        "bom-ref": purl,
        "name": module.path,
        "version": module.version,
        "scope": scope,
        "licenses": [{"expression": module.licence}],
        "purl": purl,
        # Not under `hashes`: it is no hash of a file, but of the names and hashes of all files.
        "properties": [{"name": "cephqos:go.sum", "value": module.sum}],
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


def table(packages: Iterable[Locked], built: Sequence[Program]) -> str:
    """The list for people: what runs beside OSDs first."""
    order = ("required", "optional", "excluded")
    rows = sorted(packages, key=lambda one: (order.index(one.scope), one.name, one.version))
    lines = [f"| {one.name} | {one.version} | {one.licence} | {one.scope} |" for one in rows]
    return "\n".join([_HEADER + "\n".join(lines), *_go_tables(built)]) + "\n"


def _go_tables(built: Sequence[Program]) -> Iterator[str]:
    rows = [
        f"| {one.tool.name} | {one.version} | {one.licence} | {_scope(one)} | {len(one.modules)} |"
        for one in built
    ]
    yield _PROGRAMS + "\n".join(rows)
    holders: dict[Module, set[str]] = {}
    for one in built:
        for module in one.modules:
            holders.setdefault(module, set()).add(one.tool.module)
    rows = [
        f"| {one.path} | {one.version} | {one.licence} | {', '.join(sorted(holders[one]))} |"
        for one in sorted(holders)
    ]
    yield _MODULES + "\n".join(rows)


def generated(version: str) -> dict[Path, str]:
    """Both files and their content."""
    packages, built = locked(), programs()
    text = json.dumps(bill(packages, built, version), indent=1, ensure_ascii=False) + "\n"
    return {SBOM: text, LICENCES: table(packages, built)}


def main() -> int:
    from cephqos_base.version import __version__

    for file, text in generated(__version__).items():
        file.write_text(text, encoding="utf-8")
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
