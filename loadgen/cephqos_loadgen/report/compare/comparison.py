"""Runs against each other: rows matched by point, differences with their interval, rules."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.terminal import printable
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun
from cephqos_loadgen.report.figures.environment import environment_differences
from cephqos_loadgen.report.figures.metrics import METRICS, FigureKind
from cephqos_loadgen.report.figures.observe import WHOLE
from cephqos_loadgen.report.figures.statistics import ChangeInterval
from cephqos_loadgen.report.words import listed

# What every comparison shows. Other figures appear when a rule names them.
SHOWN: Final = (
    *(metrics.IOPS, metrics.MEAN, metrics.P99, metrics.SCRUB_SECONDS),
    *(metrics.RECOVERY_SECONDS, metrics.RECOVERY_OBJECT_RATE),
)
# Of a planned pool, what its figures depend on.
_OF_POOLS: Final = ("pg_num", "size", "images", "objects")


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one row of a run, against the same of the reference."""

    row: ReportRow
    metric: FigureKind
    value: float
    reference: float
    change: ChangeInterval

    @property
    def beyond_noise(self) -> bool:
        return self.change.beyond_noise

    @property
    def regression(self) -> bool:
        """Worse than the reference, and not by noise."""
        worse = self.change.absolute < 0 if self.metric.better == "more" else True
        if self.metric.better == "less":
            worse = self.change.absolute > 0
        return self.beyond_noise and worse and bool(self.metric.better)


@dataclass(frozen=True, slots=True)
class LostFigure:
    """A figure of the reference that a run planned too, and does not have of all its repeats.

    Of a load that stood still, of a recovery that did not end, of a point whose repeats failed.
    """

    metric: FigureKind
    words: str


@dataclass(frozen=True, slots=True)
class Comparison:
    reference: ReportRun
    others: tuple[ReportRun, ...]
    differences: tuple[Difference, ...]
    unmatched: tuple[str, ...]  # rows that only some of the runs have
    lost: tuple[LostFigure, ...]


def compare(
    reference: ReportRun, others: Sequence[ReportRun], wanted: Sequence[FigureKind]
) -> Comparison:
    """Every row of each run against that of the reference."""
    base = {row.key.matching: row for row in reference.rows}
    found: list[Difference] = []
    unmatched: list[str] = []
    lost: list[LostFigure] = []
    for run in others:
        own = {row.key.matching: row for row in run.rows}
        unmatched += [f"{run.name} lacks {name}" for name in _missing(base, own)]
        unmatched += [f"{reference.name} lacks {name}" for name in _missing(own, base)]
        for matching, row in own.items():
            if matching in base:
                found += _differences(row, base[matching], wanted)
        lost += _lost_by(run, own, base, wanted)
    return Comparison(reference, tuple(others), tuple(found), tuple(unmatched), tuple(lost))


def _lost_by(
    run: ReportRun,
    own: Mapping[tuple[object, ...], ReportRow],
    base: Mapping[tuple[object, ...], ReportRow],
    wanted: Sequence[FigureKind],
) -> Iterator[LostFigure]:
    planned = {
        (str(point["name"]), str(phase["name"]))
        for point in run.plan.get("points", [])
        for phase in point.get("phases", [])
    }
    began = {(row.key.point, row.key.phase) for row in own.values()}
    for matching, row in base.items():
        phase = (row.key.point, row.key.phase)
        # A sweep may end early, and a search chooses its depths.
        elsewhere = row.key.depth is not None and matching not in own and phase in began
        if row.key.window == WHOLE and phase in planned and not elsewhere:
            yield from _lost(run.name, own.get(matching), row, wanted)


def _lost(
    run: str, row: ReportRow | None, base: ReportRow, wanted: Sequence[FigureKind]
) -> Iterator[LostFigure]:
    for metric in wanted:
        old = base.figures.get(metric.key)
        if old is None or len(old.samples) < base.repeats:
            continue
        new = row.figures.get(metric.key) if row else None
        what = f"{metric.title} of {row_name(base)}"
        if row is None:
            yield LostFigure(metric, f"{run} lacks {row_name(base)}")
        elif new is None:
            yield LostFigure(metric, f"{run} has no {what}")
        elif (having := len(new.samples)) < row.repeats:
            yield LostFigure(metric, f"{run} has {what} in {having} of {row.repeats} repeats")


def _missing(
    there: dict[tuple[object, ...], ReportRow], here: dict[tuple[object, ...], ReportRow]
) -> Iterator[str]:
    for matching, row in there.items():
        if matching not in here:
            yield row_name(row)


def row_name(row: ReportRow) -> str:
    key = row.key
    depth = "" if key.depth is None else f" depth {key.depth}"
    op = "" if key.op == "total" else f" {key.op}s"
    window = f", {key.window}" if key.kind == "load" else ""
    return f"{key.point}: {key.phase}{depth}{op}{window}"


def _differences(
    row: ReportRow, base: ReportRow, wanted: Sequence[FigureKind]
) -> Iterator[Difference]:
    for metric in wanted:
        new, old = row.figures.get(metric.key), base.figures.get(metric.key)
        if new and old:
            moved = new.against(old)
            yield Difference(row, metric, new.value, old.value, moved)


# -- environments ----------------------------------------------------------------------------------


def run_differences(runs: Sequence[ReportRun]) -> Iterator[str]:
    """What differs between the machines, clusters and phases of runs, one line each."""
    yield from environment_differences(runs)
    yield from _plan_differences(runs)


def _plan_differences(runs: Sequence[ReportRun]) -> Iterator[str]:
    """Phases that do something else, and pools of another kind, in points that all have; each once.
    Without such a point, those of the first."""
    plans = [_parts(run) for run in runs]
    common = [name for name in plans[0] if all(name in plan for plan in plans)]
    sides = [[plan[name] for plan in plans] for name in common]
    sides = sides or [[next(iter(plan.values()), {}) for plan in plans]]
    yield from dict.fromkeys(line for parts in sides for line in _differing(runs, parts))


def _differing(
    runs: Sequence[ReportRun], parts: Sequence[dict[str, dict[str, Any]]]
) -> Iterator[str]:
    for name in dict.fromkeys(name for found in parts for name in found):
        having = [run.name for run, found in zip(runs, parts, strict=True) if name in found]
        if len(having) < len(runs):
            yield printable(f"{name}: only in {listed(having)}")
            continue
        same = [found[name] for found in parts]
        for key in dict.fromkeys(key for part in same for key in part):
            values = [part.get(key, "absent") for part in same]
            if any(value != values[0] for value in values):
                shown = ", ".join(
                    f"{value} ({run.name})" for run, value in zip(runs, values, strict=True)
                )
                yield printable(f"{name}, {key}: {shown}")


def _parts(run: ReportRun) -> dict[str, dict[str, dict[str, Any]]]:
    """By point: what each phase does, what each pool is, and how all is configured."""
    found = {}
    for point in run.plan.get("points", []):
        phases = {
            f"phase {it['name']}": it["action"] | _times(it) for it in point.get("phases", [])
        }
        pools = {
            f"pool {it['name']}": {key: it[key] for key in _OF_POOLS if key in it}
            for it in point.get("pools", [])
        }
        settings = {
            f"{it['section']} {it['name']}": it["value"] for it in point.get("settings", [])
        }
        found[str(point["name"])] = {
            **phases,
            **pools,
            "clients' configuration": dict(point.get("client") or []),
            "settings": settings,
            "devices": dict(point.get("devices") or {}),
        }
    return found


def _times(phase: Mapping[str, Any]) -> dict[str, Any]:
    """When a phase starts and ends."""
    return {
        f"{key} {name}": value
        for key in ("start", "until")
        for name, value in (phase.get(key) or {}).items()
    }


# -- rules -----------------------------------------------------------------------------------------

_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_RULE: Final = re.compile(
    r"\s*(?P<key>[a-z][\w.]*)\s*(?P<op>>=|<=|>|<)\s*"
    r"(?:(?P<factor>\d+(?:\.\d+)?)\s*\*\s*(?P<ref>ref)|(?P<ref1>ref)|(?P<value>\d+(?:\.\d+)?))\s*"
)


@dataclass(frozen=True, slots=True)
class FailRule:
    """`clat_p99 > 1.10 * ref`, or with a number of its own in the shown unit."""

    text: str
    metric: FigureKind
    op: str
    factor: float | None  # of the reference
    bound: float | None  # a figure, in the metric's shown unit

    def surely_broken_by(self, difference: Difference) -> bool:
        """All of the interval is beyond the factor, or there is a change beyond noise at all."""
        moved = difference.change
        if self.factor is None or difference.beyond_noise:
            return True
        if moved.low is None or moved.high is None:
            return False
        ends = (1 + moved.low, 1 + moved.high)
        return all(_OPERATORS[self.op](end, self.factor) for end in ends)

    def broken_by(self, difference: Difference) -> bool:
        bound = self.bound
        value = difference.value * self.metric.scale
        if self.factor is not None:
            bound = self.factor * difference.reference * self.metric.scale
        return bound is not None and _OPERATORS[self.op](value, bound)


def read_rule(text: str) -> FailRule:
    """UsageError where it is none."""
    match = _RULE.fullmatch(text)
    if not match:
        raise UsageError(
            f"--fail-if {text!r}: expected FIGURE > FACTOR * ref, or FIGURE > NUMBER, such as"
            " 'clat_p99 > 1.10 * ref'"
        )
    metric = METRICS.get(match["key"])
    if metric is None:
        raise UsageError(
            f"--fail-if {text!r}: no figure {match['key']}; there are {', '.join(METRICS)}"
        )
    factor = float(match["factor"]) if match["factor"] else 1.0 if match["ref1"] else None
    bound = float(match["value"]) if match["value"] else None
    return FailRule(text, metric, match["op"], factor, bound)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is worse: lines for the user, and what of it cannot be judged."""

    failures: tuple[str, ...]
    unjudged: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """1: worse beyond noise. 2: a rule is broken by too few repeats, or a figure is missing."""
        return 1 if self.failures else 2 if self.unjudged else 0


def judge(found: Comparison, rules: Sequence[FailRule]) -> Verdict:
    """By the rules; without rules, any regression beyond noise counts."""
    if not rules:
        worse = tuple(f"worse: {_words(d)}" for d in found.differences if d.regression)
        lost = dict.fromkeys(printable(f"not known: {it.words}") for it in found.lost)
        return Verdict(worse, tuple(lost))
    failures, unjudged = [], []
    for rule in rules:
        concerned = [d for d in found.differences if d.metric.key == rule.metric.key]
        if not concerned:
            names = listed([run.name for run in (found.reference, *found.others)])
            raise UsageError(f"--fail-if {rule.text!r}: no row of {names} has {rule.metric.key}")
        unjudged += [
            printable(f"{rule.text}: not known: {it.words}")
            for it in found.lost
            if it.metric.key == rule.metric.key
        ]
        for difference in filter(rule.broken_by, concerned):
            line = f"{rule.text}: {_words(difference)}"
            if rule.surely_broken_by(difference):
                failures.append(line)
            elif not difference.reference:
                unjudged.append(f"{line}; the reference is 0, so a rule needs a number, not ref")
            elif not difference.change.known:
                unjudged.append(f"{line}; one repeat, so noise is not known")
    return Verdict(tuple(failures), tuple(unjudged))


def _words(difference: Difference) -> str:
    metric, moved = difference.metric, difference.change
    ratio = "" if moved.ratio is None else f" ({moved.ratio * 100:+.1f} %)"
    return printable(
        f"{row_name(difference.row)}: {metric.title} {difference.value * metric.scale:,.4g}"
        f" {metric.unit}, reference {difference.reference * metric.scale:,.4g}{ratio}"
    )
