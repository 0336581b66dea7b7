"""What the programs of this folder are made of: Go modules with their sums and licences.

Versions come from go.mod, sums from go.sum, licences from licences.txt beside them, so neither Go
nor a network is needed. Run `python deploy/tools/go_modules.py` after a version was renewed: it
fetches the modules and writes licences.txt from their licence files.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cephqos_stack.tools import TOOLS, Tool

TOOLS_FOLDER: Final = Path(__file__).parent
LICENCES: Final = TOOLS_FOLDER / "licences.txt"
# The program that is not built from somebody's main package but from the files here.
_OWN_LICENCE: Final = "Apache-2.0"
_HEADER: Final = "# module version licence. Written by deploy/tools/go_modules.py: do not edit.\n"
_SECONDS: Final = 600

_REQUIRED: Final = re.compile(r"^\t?(?:require )?(\S+) (v[\w.+-]+)(?: // indirect)?$", re.M)
_REPLACED: Final = re.compile(r"^\t?(?:replace )?(\S+)(?: v\S+)? => (\S+) (v\S+)$", re.M)
_LICENCE_FILE: Final = re.compile(r"(un)?licen[cs]e(?!.*\.go$)|copying", re.I)

# A licence that is a whole document begins with its name; it may name others further down.
_TITLES: Final = {
    "AGPL-3.0-only": "gnu affero general public license version 3",
    "GPL-2.0-only": "gnu general public license version 2",
    "GPL-3.0-only": "gnu general public license version 3",
    "LGPL-2.1-only": "gnu lesser general public license version 2.1",
    "LGPL-3.0-only": "gnu lesser general public license version 3",
    "MPL-2.0": "mozilla public license",
    "CC0-1.0": "cc0 1.0 universal",
}
# Of those that stand in one file with others. The first that matches of a group counts.
_PHRASES: Final = (
    (("Apache-2.0", "apache license version 2.0"),),
    (("MIT", "permission is hereby granted free of charge to any person obtaining a copy"),),
    (
        (
            "BSD-3-Clause",
            "redistribution and use in source and binary forms.*"
            "(neither the name|nor the names|may not be used to endorse)",
        ),
        ("BSD-2-Clause", "redistribution and use in source and binary forms"),
    ),
    (("ISC", "permission to use copy modify and (or )?distribute this software for any purpose"),),
    (("Unlicense", "free and unencumbered software"),),
)


@dataclass(frozen=True, slots=True, order=True)
class Module:
    """One version of a Go module; `sum` is that of go.sum, `h1:…`."""

    path: str
    version: str
    sum: str
    licence: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is built here, and all modules that can be in it."""

    tool: Tool
    version: str
    licence: str
    main: Module | None  # that has its main package; None if the package is in this folder
    modules: tuple[Module, ...]


def programs() -> list[Program]:
    """Every program of `make tools`, in its order. KeyError names what licences.txt has not."""
    known = _known_licences()
    found = []
    for tool in TOOLS.values():
        folder = TOOLS_FOLDER / tool.module
        modules = tuple(sorted(pinned(folder, known)))
        inside = [one for one in modules if f"{tool.package}/".startswith(f"{one.path}/")]
        # The longest path is the module itself, should one be nested in another.
        main = max(inside, key=lambda one: len(one.path), default=None)
        version = main.version if main else _own_version(folder)
        found.append(Program(tool, version, main.licence if main else _OWN_LICENCE, main, modules))
    return found


def pinned(folder: Path, licences: Mapping[tuple[str, str], str]) -> Iterator[Module]:
    """The modules that go.mod requires, each as the one that takes its place, if any does."""
    text = (folder / "go.mod").read_text(encoding="utf-8")
    sums = _sums(folder)
    instead = {old: (new, version) for old, new, version in _REPLACED.findall(text)}
    for path, version in _REQUIRED.findall(text):
        one = instead.get(path, (path, version))
        if one not in licences:
            raise KeyError(f"{LICENCES.name} has no {' '.join(one)}: python {__file__}")
        yield Module(*one, sums[one], licences[one])


def _sums(folder: Path) -> dict[tuple[str, str], str]:
    lines = (folder / "go.sum").read_text(encoding="utf-8").splitlines()
    return {(path, version): found for path, version, found in map(str.split, lines)}


def _own_version(folder: Path) -> str:
    [version] = re.findall(r"^  version: (\S+)$", (folder / "builder.yaml").read_text(), re.M)
    return str(version)


def _known_licences() -> dict[tuple[str, str], str]:
    lines = LICENCES.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" ", 2) for line in lines if not line.startswith("#")]
    return {(path, version): licence for path, version, licence in rows}


def licence_of(directory: Path) -> str:
    """As an SPDX expression, from the licence files of a module; an error if none is known."""
    found = {one for text in _texts(directory) for one in licences_in(text)}
    if not found:
        raise ValueError(f"{directory}: no licence file with a known text")
    return " AND ".join(sorted(found))


def _texts(directory: Path) -> list[str]:
    files = sorted(path for path in directory.iterdir() if _LICENCE_FILE.match(path.name))
    return [path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file()]


def licence_texts(name: str) -> str:
    """The licence files of all modules of a folder, for those who get the program. Needs Go."""
    modules = sorted(_fetched(TOOLS_FOLDER / name), key=lambda one: str(one["Path"]))
    return "\n".join(
        "\n".join([f"==== {one['Path']} {one['Version']}", "", *_texts(Path(one["Dir"]))])
        for one in modules
    )


def licences_in(text: str) -> set[str]:
    """Those that a licence file holds, by phrases that each of them has."""
    words = re.sub(r"[^a-z0-9.]+", " ", text.lower())
    for name, title in _TITLES.items():
        if title in words[:600]:
            return {name}
    matches = (
        next((name for name, phrase in group if re.search(phrase, words)), None)
        for group in _PHRASES
    )
    return {name for name in matches if name}


def _fetched(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Go checks each module against go.sum, and says where it is."""
    argv = ["go", "-C", str(folder), "mod", "download", "-json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_SECONDS)
    decoder, at, text = json.JSONDecoder(), 0, done.stdout.strip()
    while at < len(text):
        one, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        yield one


def main() -> int:
    folders = {TOOLS_FOLDER / tool.module for tool in TOOLS.values()}
    rows = {
        f"{one['Path']} {one['Version']} {licence_of(Path(one['Dir']))}\n"
        for folder in folders
        for one in _fetched(folder)
    }
    LICENCES.write_text(_HEADER + "".join(sorted(rows)), encoding="utf-8")
    print(f"{LICENCES}: {len(rows)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
