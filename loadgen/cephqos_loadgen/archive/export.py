"""Archives for other programs: CSV, Parquet, OpenMetrics."""

import csv
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from cephqos_exporter.model import render_labels
from cephqos_loadgen.archive.reader import Archive, RecordedRepeat
from cephqos_loadgen.errors import UsageError

FORMATS = ("csv", "parquet", "openmetrics")
_SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?")


def split_series(series: str) -> tuple[str, str]:
    """Name and label text of `name{labels}`."""
    match = _SERIES.fullmatch(series)
    if not match:
        raise ValueError(f"not a series: {series!r}")
    return match[1], match[2] or ""


# -- tables --------------------------------------------------------------------------------------


def interval_rows(archive: Archive) -> Iterator[dict[str, Any]]:
    """One row per repeat, client, second and direction."""
    for repeat in archive.repeats:
        for entry in repeat.intervals():
            for direction in ("read", "write"):
                if direction in entry:
                    yield {
                        "point": repeat.outcome["point"],
                        "repeat": repeat.outcome["repeat"],
                        "phase": entry["phase"],
                        "client": entry["client"],
                        "time": entry["time"],
                        "seconds": entry["seconds"],
                        "op": direction,
                        **entry[direction],
                    }


def metric_rows(archive: Archive) -> Iterator[dict[str, Any]]:
    """One row per repeat, series and second."""
    for repeat in archive.repeats:
        for series, samples in _metrics(repeat):
            name, labels = split_series(series)
            for time, value in samples:
                yield {
                    "point": repeat.outcome["point"],
                    "repeat": repeat.outcome["repeat"],
                    "time": time,
                    "metric": name,
                    "labels": labels,
                    "value": value,
                }


def _metrics(repeat: RecordedRepeat) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    path = repeat.folder / "metrics.columns"
    if path.exists():
        yield from repeat.metrics().series.items()


_TABLES = {"intervals": interval_rows, "metrics": metric_rows}


def to_csv(archive: Archive, target: Path) -> list[Path]:
    """intervals.csv and metrics.csv in a folder."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in _TABLES.items():
        path = target / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            _write_csv(rows(archive), file)
        written.append(path)
    return written


def _write_csv(rows: Iterator[dict[str, Any]], file: TextIO) -> None:
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
        writer.writerow(row)


def to_parquet(archive: Archive, target: Path) -> list[Path]:
    """The same tables as Parquet; needs pyarrow, which nothing else here does."""
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow: pip install 'cephqos[parquet]', or export csv"
        ) from None
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in _TABLES.items():
        table = arrow.Table.from_pylist(list(rows(archive)))
        path = target / f"{name}.parquet"
        parquet.write_table(table, path, compression="zstd")
        written.append(path)
    return written


# -- OpenMetrics ---------------------------------------------------------------------------------


def to_openmetrics(archive: Archive, target: Path) -> list[Path]:
    """One file with timestamps, for `promtool tsdb create-blocks-from openmetrics`.

    Every sample is labelled with run, point and repeat. Counters that are not called `_total` and
    everything else that OpenMetrics would refuse are of type unknown: the samples are the same.
    """
    target.mkdir(parents=True, exist_ok=True)
    path = target / "metrics.om"
    families: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for repeat in archive.repeats:
        own = render_labels(
            {
                "run": archive.manifest["run"],
                "point": repeat.outcome["point"],
                "repeat": str(repeat.outcome["repeat"]),
            }
        )
        for series, samples in _metrics(repeat):
            name, labels = split_series(series)
            text = f"{labels},{own}" if labels else own
            families.setdefault(name, {})[f"{name}{{{text}}}"] = samples
    with path.open("w", encoding="utf-8") as file:
        for name in sorted(families):
            file.write(f"# TYPE {name} unknown\n")
            for line in sorted(families[name]):
                _write_samples(file, line, families[name][line])
        file.write("# EOF\n")
    return [path]


def _write_samples(file: TextIO, line: str, samples: list[tuple[float, float]]) -> None:
    for time, value in samples:
        file.write(f"{line} {_number(value)} {time:.3f}\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
