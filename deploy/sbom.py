"""The bills of materials and the list of licences, into dist/: `make sbom`.

CycloneDX's own programs write the bills: one of this Python environment, with what is there for
development, and one of each folder with a go.mod in deploy/tools.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
OUT: Final = ROOT / "dist"
# Go checks it against its public list of sums.
_GOMOD: Final = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
_SECONDS: Final = 1800
_HEADER: Final = """# Licences

cephqos is Apache-2.0. Licences of Python packages are as their authors declare them; those of Go
modules are what cyclonedx-gomod found in their licence files.

| in | name | version | licence |
|---|---|---|---|
"""

Bill = Mapping[str, Any]


def write_bills(cyclonedx: Path) -> list[Path]:
    """One of Python, and one of each Go program. Needs Go, and fetches all modules."""
    OUT.mkdir(exist_ok=True)
    python = OUT / "cephqos-python.cdx.json"
    _run(
        [cyclonedx, "environment", sys.prefix, "--pyproject", ROOT / "pyproject.toml"],
        ["--output-reproducible", "--no-validate", "--output-file", python],
    )
    bills = [python]
    for go_mod in sorted((ROOT / "deploy" / "tools").glob("*/go.mod")):
        bill = OUT / f"cephqos-go-{go_mod.parent.name}.cdx.json"
        _run(
            ["go", "run", _GOMOD, "mod", "-licenses", "-json", "-noserial", "-notimestamp"],
            ["-output", bill, go_mod.parent],
        )
        bills.append(bill)
    return bills


def _run(*words: Sequence[str | Path]) -> None:
    subprocess.run([word for part in words for word in part], check=True, timeout=_SECONDS)


def licences(bills: Mapping[str, Bill]) -> str:
    """The list for people, of bills by name."""
    rows = sorted({row for name, bill in bills.items() for row in _rows(name, bill)})
    return _HEADER + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _rows(name: str, bill: Bill) -> Iterator[tuple[str, str, str, str]]:
    for one in bill.get("components", []):
        yield name, one["name"], one.get("version", ""), _licence(one)


def _licence(component: Mapping[str, Any]) -> str:
    """As declared, else as found in files; of several, each."""
    said = component.get("licenses") or component.get("evidence", {}).get("licenses", [])
    names = {
        one.get("expression") or one["license"].get("id") or one["license"]["name"] for one in said
    }
    return ", ".join(sorted(name.rpartition(" :: ")[2] for name in names)) or "not found"


def main(arguments: Sequence[str]) -> int:
    files = write_bills(Path(arguments[0]))
    bills = {
        file.name.removesuffix(".cdx.json").removeprefix("cephqos-"): json.loads(file.read_text())
        for file in files
    }
    table = OUT / "licences.md"
    table.write_text(licences(bills), encoding="utf-8")
    print(*files, table, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
