"""The summary of a report: what came out, in sentences made from the figures."""

import time
from collections.abc import Iterator, Sequence

from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow
from cephqos_loadgen.report.figures.baseline import is_no_baseline, loads_with_alone
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_changes import change_between
from cephqos_loadgen.report.words import NONE_FOUND, interval, listed, percent, verdict, with_unit
from cephqos_loadgen.run_recording.layout import RECORDED


def summary(subject: Subject) -> Iterator[str]:
    """What ran, what clients got, what background work cost them and how long it took."""
    yield _what_ran(subject)
    rows = subject.main_loads
    if rows:
        yield from _best_and_worst(subject, rows)
    else:
        yield from _curve(subject)
    yield from _against_alone(subject)
    yield from _background(subject)
    if all(run.manifest.scenario == RECORDED for run in subject.runs):
        yield "An exporter recorded this by itself: the clients and their latency are not known."
    elif not subject.rows:
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
    alone = {other.key for run in subject.runs for _, other in loads_with_alone(run)}
    rows = [row for row in rows if row.key not in alone]
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
        pairs_of_points = len(group) * (len(group) - 1) // 2
        # The two were chosen of all pairs for their distance: that widens the interval.
        change = change_between(least, most, metrics.IOPS, pairs_of_points)
        if change is None or not change.known:
            yield f"{sentence}; one repeat cannot say whether that is more than noise."
        elif not change.beyond_noise:
            yield f"{sentence}; {NONE_FOUND} between the two beyond noise."
        else:
            yield f"{sentence}: {percent(change.ratio)} (95 % interval {interval(change)})."


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


def _against_alone(subject: Subject) -> Iterator[str]:
    """What background work cost the clients of each point, while it was active; over the whole load
    where no part of it is known to be during such work."""
    changes: dict[str, str] = {}  # by label
    for row, alone in (pair for run in subject.runs for pair in loads_with_alone(run)):
        change = change_between(row, alone, metrics.IOPS)
        if change is None or change.ratio is None:
            continue
        label, window = subject.label(row.key), row.key.window
        result = "not put to the test" if is_no_baseline(change) else verdict(change)
        if window.startswith("during"):
            changes[label] = f"{percent(change.ratio)} {window} with {label} ({result})"
        elif window == WHOLE and label not in changes:
            changes[label] = f"{percent(change.ratio)} with {label} ({result})"
    if changes:
        yield f"Throughput against the load alone: {listed(list(changes.values()), 8)}."


def _background(subject: Subject) -> Iterator[str]:
    """How long scrub and recovery took, at the fastest and at the slowest point."""
    for metric, work in (
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
            yield f"{work} took {quick}."
            continue
        yield (
            f"{work} took {quick} with {subject.label(fast.key)} and"
            f" {with_unit(metric, slow.figures[metric.key].value)} with"
            f" {subject.label(slow.key)}."
        )
