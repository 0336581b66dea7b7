"""Archives for other programs: CSV, Parquet, OpenMetrics."""

import csv
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from cephqos_base.errors import UsageError
from cephqos_base.extras import how_to_install
from cephqos_exporter.labels import render_labels
from cephqos_loadgen.archive import openmetrics
from cephqos_loadgen.archive.reader import Archive, RecordedRepeat
from cephqos_loadgen.archive.run_samples import RecordedRun, merge
from cephqos_loadgen.results.figures import PERCENTILES, LoadFigures
from cephqos_loadgen.results.phase import LoadResult, Step
from cephqos_loadgen.run_recording.columns import Columns, labelled, parse, render
from cephqos_loadgen.run_recording.layout import METRICS_FILE

Row = dict[str, Any]

FORMATS = ("csv", "parquet", "openmetrics")


def interval_rows(archive: Archive) -> Iterator[Row]:
    """One row per repeat, job, second and direction."""
    for repeat in archive.repeats:
        for interval in repeat.intervals():
            for op, figures in (("read", interval.read), ("write", interval.write)):
                if figures:
                    yield {
                        **_point_and_repeat(repeat),
                        **_fields(interval, "phase client job depth end_unix_seconds seconds"),
                        "op": op,
                        **_figures(figures),
                    }


def step_rows(archive: Archive) -> Iterator[Row]:
    """One row per repeat, load, depth and direction; `total` is both directions together."""
    for repeat, phase, step in _steps(archive):
        for op, figures in _by_op(step):
            yield {
                **_point_and_repeat(repeat),
                "phase": phase,
                **_fields(step, "depth start_unix_seconds end_unix_seconds seconds"),
                "op": op,
                **_figures(figures),
            }


def bin_rows(archive: Archive) -> Iterator[Row]:
    """One row per repeat, load, depth, direction and latency bin."""
    for repeat, phase, step in _steps(archive):
        for op, figures in _by_op(step):
            for centre, count in sorted(figures.latency_bins_ns.items()):
                where = {**_point_and_repeat(repeat), "phase": phase, "depth": step.depth, "op": op}
                yield {**where, "bin_ns": centre, "count": count}


def phase_rows(archive: Archive) -> Iterator[Row]:
    """One row per repeat, phase and figure."""
    for repeat in archive.repeats:
        for name, phase in repeat.record.phases.items():
            for figure, value in phase.headline().items():
                where = {**_point_and_repeat(repeat), "phase": name, "kind": phase.kind}
                yield {**where, "ended_by": phase.ended_by, "figure": figure, "value": value}


def _fields(record: object, names: str) -> Row:
    """Those fields of a record, by name."""
    return {name: getattr(record, name) for name in names.split()}


def _point_and_repeat(repeat: RecordedRepeat) -> Row:
    return {"point": repeat.record.point, "repeat": repeat.record.repeat}


def _steps(archive: Archive) -> Iterator[tuple[RecordedRepeat, str, Step]]:
    for repeat in archive.repeats:
        for name, phase in repeat.record.phases.items():
            if isinstance(phase.result, LoadResult):
                for step in phase.result.steps:
                    yield repeat, name, step


def _by_op(step: Step) -> Iterator[tuple[str, LoadFigures]]:
    for op, figures in (("total", step.total), ("read", step.read), ("write", step.write)):
        if figures:
            yield op, figures


def _figures(figures: LoadFigures) -> Row:
    """A latency of nothing is none, and not 0."""
    percentiles = figures.latency_percentiles_seconds
    return {
        **_fields(figures, "ios iops bytes_per_second"),
        "latency_mean_seconds": figures.latency_mean_seconds if figures.ios else None,
        **_fields(figures, "latency_deviation_seconds latency_max_seconds"),
        **{f"latency_p{p}_seconds": percentiles.get(p) for p in PERCENTILES},
    }


def metric_rows(archive: Archive) -> Iterator[Row]:
    """One row per repeat, series and second."""
    for repeat in archive.repeats:
        for series, samples in _metrics(repeat):
            name, labels = parse(series)
            text = render_labels(labels)
            for time, value in samples:
                row = {"unix_seconds": time, "metric": name, "labels": text, "value": value}
                yield {**_point_and_repeat(repeat), **row}


def _metrics(repeat: RecordedRepeat) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    path = repeat.folder / METRICS_FILE
    if path.exists():
        yield from repeat.metrics().series.items()


_TABLES: dict[str, Callable[[Archive], Iterator[Row]]] = {
    "phases": phase_rows,
    "steps": step_rows,
    "latency_bins": bin_rows,
    "intervals": interval_rows,
    "metrics": metric_rows,
}


def to_csv(archive: Archive, target: Path) -> list[Path]:
    """One file per table, in a folder."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in _TABLES.items():
        path = target / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            _write_csv(rows(archive), file)
        written.append(path)
    return written


def _write_csv(rows: Iterator[Row], file: TextIO) -> None:
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
        writer.writerow({key: as_cell(value) for key, value in row.items()})


def as_cell(value: Any) -> Any:
    """What a spreadsheet would take for a formula gets an apostrophe: names come from scenarios."""
    formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if formula else value


def to_parquet(archive: Archive, target: Path) -> list[Path]:
    """The same tables as Parquet; needs pyarrow, which nothing else here does."""
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(
            f"Parquet needs pyarrow (csv needs nothing); {how_to_install('parquet')}"
        ) from None
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in _TABLES.items():
        table = arrow.Table.from_pylist(list(rows(archive)))
        path = target / f"{name}.parquet"
        parquet.write_table(table, path, compression="zstd")
        written.append(path)
    return written


def to_openmetrics(archive: Archive, target: Path) -> list[Path]:
    """One file with timestamps, for `promtool tsdb create-blocks-from openmetrics`.

    Every sample is labelled with run, point and repeat; labels of these names that it has become
    `exported_NAME`, as in Prometheus. All are of type unknown, of which OpenMetrics asks nothing.
    """
    target.mkdir(parents=True, exist_ok=True)
    path = target / "metrics.om"
    run = RecordedRun({}, {})
    for repeat in archive.repeats:
        where = {
            "run": archive.manifest.run,
            **{k: str(v) for k, v in _point_and_repeat(repeat).items()},
        }
        for series, samples in merge([Columns({}, dict(_metrics(repeat)))]).series.items():
            name, labels = parse(series)
            run.series[render(name, labelled(labels, where))] = samples
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        for page in openmetrics.pages(run, {}, most_bytes=sys.maxsize):
            file.writelines(page)
    return [path]
