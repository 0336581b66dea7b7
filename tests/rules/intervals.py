"""Cases at other scrape intervals: the same behaviour of an OSD, seen more or less often."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .cases import RuleCase, promtool_document
from .series import STEP, Series

_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_PART = re.compile(rf"(?P<first>_|{_NUMBER})(?P<step>[+-]{_NUMBER})?(?:x(?P<times>\d+))?")


def samples(values: str) -> list[float | None]:
    """promtool's notation, sample by sample; None where there is none."""
    found: list[float | None] = []
    for part in values.split():
        match = _PART.fullmatch(part)
        assert match, part
        times = int(match["times"] or 0)
        if match["first"] == "_":
            found += [None] * max(times, 1)
            continue
        first, step = float(match["first"]), float(match["step"] or 0)
        found += [first + step * i for i in range(times + 1)]
    return found


def seen_every(seconds: int, values: str) -> str:
    """What a scrape every so many seconds sees; between two samples, a straight line."""
    every = samples(values)
    parts = []
    for i in range((len(every) - 1) * STEP // seconds + 1):
        at, rest = divmod(i * seconds, STEP)
        value = every[at]
        if value is not None and rest:
            after = every[at + 1]
            value = None if after is None else value + (after - value) * rest / STEP
        parts.append("_" if value is None else f"{value:.12g}")
    return " ".join(parts)


def at_interval(case: RuleCase, seconds: int) -> RuleCase:
    series: Series = {name: seen_every(seconds, values) for name, values in case.series.items()}
    return replace(case, series=series, interval=seconds)


def document_every(cases: Sequence[RuleCase], rules: Path, seconds: int) -> dict[str, Any]:
    """The cases on rules that were made for the interval, and lie elsewhere."""
    document = promtool_document("across", [at_interval(case, seconds) for case in cases], rules)
    document["evaluation_interval"] = f"{seconds}s"
    return document
