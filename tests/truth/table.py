"""The table of all runs, and the sums under it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.rule import RecordedSeries
from cephqos_base.thresholds import Thresholds

_WORSE = ("late", "missed", "false", "wrong cause", "wrong OSD", "not run")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: a line for each situation, its runs together."""
    lines = [
        "| situation | runs | verdict | seconds to alert | then fired | what else came |",
        "|---|---|---|---|---|---|",
    ]
    for healthy in (True, False):
        for name in sorted({row["name"] for row in rows if row["healthy"] is healthy}):
            lines.append(_line(name, [row for row in rows if row["name"] == name]))
    return "\n".join([*lines, "", *_sums(rows)])


def _line(name: str, runs: Sequence[dict[str, Any]]) -> str:
    verdicts = Counter(run["verdict"] for run in runs)
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    if len(verdicts) == 1:
        said = runs[0]["verdict"]
    times = ", ".join(f"{run['seconds']:.0f}" for run in runs if run["seconds"] is not None)
    stayed = ", ".join(f"{it:.0%}" for run in runs if (it := run.get("stayed")) is not None)
    others = sorted({_without_time(other) for run in runs for other in run["others"]})
    notes = sorted({run["note"] for run in runs if run["note"]})
    return (
        f"| {name} | {len(runs)} | {said} | {times} | {stayed} | {'; '.join([*others, *notes])} |"
    )


def _without_time(other: str) -> str:
    return other.rpartition(" @")[0]


def _sums(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    for title, healthy in (("healthy", True), ("faults", False)):
        runs = [row for row in rows if row["healthy"] is healthy]
        counts = Counter(run["verdict"] for run in runs)
        parts = [f"{counts['right']} right", *(f"{counts[it]} {it}" for it in _WORSE if counts[it])]
        critical = sum(run["critical"] for run in runs)
        watched = sum(run.get("watched", 0.0) for run in runs)
        situations = len({run["name"] for run in runs})
        yield (
            f"{title}: {len(runs)} runs of {situations} situations: {', '.join(parts)};"
            f" wrong critical alerts in {critical}; watched for {watched / 60:.0f} minutes"
        )
    names = {
        rule.record
        for groups in FILES.values()
        for group in groups
        for rule in group.rules
        if isinstance(rule, RecordedSeries)
    }
    yield f"rules: {len(names)} recorded series, {len(fields(Thresholds))} thresholds"
