"""Names that users write into their own queries, routes and silences, and what became of them.

`python -m tests.reference.names` writes the list of a release; a test compares it with today's.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml
from tests.reference import metrics

from cephqos_base.version import __version__

RELEASED: Final = Path("deploy/release/names.tsv")
_RULES: Final = Path("alerts/rules")
_SECTION: Final = re.compile(r"^## .*\n((?:(?!## ).*\n?)*)", re.MULTILINE)

# What it is, its name, and one of its labels, or the severity of an alert.
Name = tuple[str, str, str]


def today() -> set[Name]:
    """Of metrics with their labels, recorded series and alerts."""
    return {*_metrics(), *_rules()}


def _metrics() -> Iterator[Name]:
    for metric in metrics.everything().values():
        if metric.name.startswith("cephqos_"):
            yield "metric", metric.name, ""
            yield from (("metric", metric.name, label) for label in metric.labels)


def _rules() -> Iterator[Name]:
    for file in sorted(_RULES.glob("*.yml")):
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    yield "alert", rule["alert"], rule["labels"]["severity"]
                else:
                    yield "series", rule["record"], ""


def written(names: Iterable[Name], version: str = __version__) -> str:
    """The file of a release."""
    return "".join([f"# {version}\n", *("\t".join(name) + "\n" for name in sorted(names))])


def read(text: str) -> set[Name]:
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {(what, name, more) for what, name, more in lines}


def untold(before: set[Name], now: set[Name], changelog: str) -> list[str]:
    """What is gone or renamed, and stands with its name in no line of the newest section."""
    section = _SECTION.search(changelog)
    told = set(re.findall(r"[\w:]+", section[1] if section else ""))
    gone = before - now
    whole = {name for _, name, more in gone if not more}
    return [
        f"{what} {name} {more}".strip()
        for what, name, more in sorted(gone)
        if not (name in whole and more) and not {name, more or name} <= told
    ]


if __name__ == "__main__":
    RELEASED.write_text(written(today()), encoding="utf-8")
