"""Whether all places state the same version: package, chart, changelog, and with a tag the names.

`python deploy/release/versions.py [TAG]` prints what does not agree, and exits with 1.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# A file, and what finds the version in it.
_PACKAGE: Final = ("exporter/cephqos_base/version.py", r'^__version__ = "(.+)"$')
_CHART: Final = "deploy/helm/cephqos/Chart.yaml"
_OTHERS: Final = ((_CHART, r"^version: (\S+)$"), (_CHART, r"^appVersion: (\S+)$"))
_NAMES: Final = ("deploy/release/names.tsv", r"^# (\S+)$")
_HEADING: Final = re.compile(r"^## (\S+)", re.MULTILINE)
_UNRELEASED: Final = "Unreleased"
_CANDIDATE: Final = re.compile(r"-rc\d+$")  # built and published nowhere


def version(root: Path = ROOT) -> str:
    """The version that the package states. The other places must state the same."""
    return _stated(root, *_PACKAGE)


def disagreements(root: Path = ROOT, tag: str = "") -> list[str]:
    """What was found and what was expected, one line for each place."""
    return list(_disagreements(root, version(root), tag))


def _disagreements(root: Path, stated: str, tag: str) -> Iterator[str]:
    for name, pattern in _OTHERS:
        if (other := _stated(root, name, pattern)) != stated:
            yield f"{name}: found {other}, expected {stated} ({pattern.split(':')[0][1:]})"
    headings = _HEADING.findall((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    released = tag and not _CANDIDATE.search(tag)
    allowed = [stated] if released else [_UNRELEASED, stated]
    if not headings or headings[0] not in allowed:
        yield (
            f"CHANGELOG.md: the first heading is {' '.join(headings[:1]) or 'missing'},"
            f" expected {' or '.join(allowed)}"
        )
    if tag and _CANDIDATE.sub("", tag) != f"v{stated}":
        yield f"tag: found {tag}, expected v{stated}, or v{stated}-rc1 for a rehearsal"
    if released and (other := _stated(root, *_NAMES)) != stated:
        yield f"{_NAMES[0]}: found {other}, expected {stated}: python -m tests.reference.names"


def notes(root: Path = ROOT) -> str:
    """The first section of the changelog, without its heading: what a release says of itself."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.split(r"^## .*\n", text, flags=re.MULTILINE)[1].strip() + "\n"


def _stated(root: Path, name: str, pattern: str) -> str:
    match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
    return match[1].strip("\"'") if match else "nothing"


def main(arguments: Sequence[str]) -> int:
    wrong = disagreements(tag=arguments[0] if arguments else "")
    print("\n".join(wrong) or f"versions agree: {version()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
