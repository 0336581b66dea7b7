"""From runs to a document: sentences made from the figures, doubts, tables, charts."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cephqos_loadgen.report.charts.every import charts
from cephqos_loadgen.report.document import Document
from cephqos_loadgen.report.doubts.doubt import Doubt
from cephqos_loadgen.report.doubts.every import doubts
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import Key, ReportRow, ReportRun, ReportSettings
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.every import tables
from cephqos_loadgen.report.tables.of_changes import change_between
from cephqos_loadgen.report.words import (
    NONE_FOUND,
    interval,
    listed,
    percent,
    short_point,
    with_unit,
)


def build(runs: Sequence[ReportRun], settings: ReportSettings) -> Document:
    """The whole report."""
    labels = Subject(runs, settings)
    findings = [_in_short(finding, labels) for finding in _findings(runs)]
    findings += _of_baseline(settings)
    doubted: dict[Key, list[int]] = {}
    for number, finding in enumerate(findings, start=1):
        for key in finding.rows:
            doubted.setdefault(key, []).append(number)
    subject = Subject(runs, settings, doubted)
    names = list(dict.fromkeys(run.manifest.scenario for run in runs))
    about = list(dict.fromkeys(" ".join(str(run.plan.get("about", "")).split()) for run in runs))
    return Document(
        title=f"{listed(names)}: what clients got",
        question=" ".join(filter(None, about)),
        summary=tuple(_summary(subject)),
        findings=tuple(findings),
        tables=tuple(tables(subject)),
        charts=tuple(charts(subject)),
        commands=tuple(repeat_command(run) for run in runs),
    )


def _findings(runs: Sequence[ReportRun]) -> list[Doubt]:
    """Of all runs, the gravest first; the run is named where there are several."""
    order = {"serious": 0, "caution": 1, "note": 2}
    found = []
    for run in runs:
        for finding in doubts(run):
            words = f"{run.name}: {finding.text}" if len(runs) > 1 else finding.text
            found.append(Doubt(finding.severity, words, finding.evidence, finding.rows))
    return sorted(found, key=lambda finding: order[finding.severity])


def _of_baseline(settings: ReportSettings) -> list[Doubt]:
    """What speaks against the baseline speaks against every change from it."""
    found = doubts(settings.baseline_run) if settings.baseline_run else []
    return [replace(f, text=f"Baseline: {f.text}", rows=()) for f in found]


def _in_short(finding: Doubt, subject: Subject) -> Doubt:
    """The finding with the points called as in the tables."""
    text, evidence = finding.text, finding.evidence
    points = {row.key.point for row in subject.rows}
    for point in sorted(points, key=len, reverse=True):
        label = short_point(point, subject.varying)
        text, evidence = text.replace(point, label), evidence.replace(point, label)
    return replace(finding, text=text, evidence=evidence)


def repeat_command(run: ReportRun) -> str:
    """What was asked for, as a command line."""
    scale = f" --scale {run.manifest.scale}" if run.manifest.scale else ""
    variables = "".join(f" --var '{name}={value}'" for name, value in run.plan.get("variables", []))
    repeats = run.plan.get("repeats", 1)
    return f"cephqos run {run.manifest.scenario}{scale} --repeats {repeats}{variables}"


# -- sentences -------------------------------------------------------------------------------------


def _summary(subject: Subject) -> Iterator[str]:
    yield _what_ran(subject)
    rows = subject.main_loads
    if rows:
        yield from _best_and_worst(subject, rows)
    else:
        yield from _curve(subject)
    yield from _background(subject)
    if not subject.rows:
        yield "No repeat finished, so there are no figures."


def _what_ran(subject: Subject) -> str:
    parts = []
    for run in subject.runs:
        manifest = run.manifest
        day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(manifest.start_unix_seconds))
        points = len({o.record.point for o in run.finished})
        parts.append(
            f"{run.name} ({manifest.status}, {day} UTC): {points} point{'s' * (points != 1)},"
            f" {len(run.finished)} of {manifest.repeats_planned} repeats"
        )
    return "; ".join(parts) + "."


def _best_and_worst(subject: Subject, rows: Sequence[ReportRow]) -> Iterator[str]:
    """Per load: the most and the least throughput, and whether they really differ."""
    for phase in dict.fromkeys(row.key.phase for row in rows):
        group = [row for row in rows if row.key.phase == phase]
        ordered = sorted(group, key=lambda row: row.figures[metrics.IOPS.key].value)
        least, most = ordered[0], ordered[-1]
        if len(group) == 1:
            yield f"The load {phase} got {_figures(most)}."
            continue
        sentence = (
            f"The load {phase} got most with {subject.label(most.key)}, {_figures(most)}, and least"
            f" with {subject.label(least.key)}, {_figures(least)}"
        )
        found = change_between(least, most, metrics.IOPS)
        if found is None or not found.known:
            yield f"{sentence}; one repeat cannot say whether that is more than noise."
        elif not found.beyond_noise:
            yield f"{sentence}; {NONE_FOUND} between the two beyond noise."
        else:
            yield f"{sentence}: {percent(found.ratio)} (95 % interval {interval(found)})."


def _figures(row: ReportRow) -> str:
    parts = [with_unit(metrics.IOPS, row.figures[metrics.IOPS.key].value)]
    if metrics.P99.key in row.figures:
        parts.append(f"p99 {with_unit(metrics.P99, row.figures[metrics.P99.key].value)}")
    elif metrics.MEAN.key in row.figures:
        parts.append(f"mean {with_unit(metrics.MEAN, row.figures[metrics.MEAN.key].value)}")
    return " at ".join(parts)


def _curve(subject: Subject) -> Iterator[str]:
    rows = [row for row in subject.loads(curves=True) if row.key.op == "total"]
    if rows:
        best = max(rows, key=lambda row: row.figures[metrics.IOPS.key].value)
        yield (
            f"The highest throughput was {_figures(best)}, at depth {best.key.depth} of"
            f" {subject.label(best.key)}."
        )


def _background(subject: Subject) -> Iterator[str]:
    for metric, words in (
        (metrics.SCRUB_SECONDS, "The scrub"),
        (metrics.RECOVERY_SECONDS, "Recovery"),
    ):
        rows = [row for row in subject.rows if metric.key in row.figures]
        if not rows:
            continue
        ordered = sorted(rows, key=lambda row: row.figures[metric.key].value)
        fast, slow = ordered[0], ordered[-1]
        quick = with_unit(metric, fast.figures[metric.key].value)
        if fast is slow:
            yield f"{words} took {quick}."
            continue
        yield (
            f"{words} took {quick} with {subject.label(fast.key)} and"
            f" {with_unit(metric, slow.figures[metric.key].value)} with"
            f" {subject.label(slow.key)}."
        )
