"""`rados bench`: command lines, and its JSON output.

Its numbers are strings, and its standard deviation of IOPS is not usable (it has been negative). It
writes one JSON document in pieces, a row of `datas` each second. Rows are read as they come.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from cephqos_loadgen.engines.fio_output import IoTotals
from cephqos_loadgen.plan.place import ProgramPaths, whole_seconds


def bench_argv(
    pool: str, op: str, object_size: int, in_flight: int, place: ProgramPaths, *, seconds: float
) -> list[str]:
    """The command line of one instance. A read needs what a write to the same pool has left."""
    # Without stdbuf, rows would come only in pieces of 4 KiB.
    command = ["stdbuf", "--output=0", "rados", *place.identity, "--pool", pool]
    command += ["--format", "json", "bench", str(whole_seconds(seconds)), op]
    command += ["--concurrent-ios", str(in_flight)]
    command += ["--run-name", f"cephqos.{pool}.{object_size}"]
    if op == "write":
        command += ["--block-size", str(object_size), "--no-cleanup"]
    return command


def prefill_argv(
    pool: str, count: int, object_size: int, place: ProgramPaths, *, name: str, seconds: float
) -> list[str]:
    """The command line that writes this many objects and ends."""
    command = ["rados", *place.identity, "--pool", pool, "--format", "json"]
    command += ["bench", str(round(seconds)), "write", "--concurrent-ios", "16"]
    command += ["--block-size", str(object_size), "--max-objects", str(count)]
    return [*command, "--run-name", f"cephqos.prefill.{name}", "--no-cleanup"]


@dataclass(frozen=True, slots=True)
class Second:
    """One row."""

    second: int
    finished: int  # operations since the start
    latency_mean: float  # of all of them, in seconds

    def totals(self, object_size: int) -> IoTotals:
        """Totals as fio has them, but without bins, and so without percentiles."""
        waited = self.latency_mean * self.finished
        moved = self.finished * object_size
        return IoTotals(self.finished, moved, self.finished, waited)


@dataclass(frozen=True, slots=True)
class Result:
    """What an instance reports at its end; latencies in seconds."""

    seconds: float
    ops: int
    latency_mean: float
    latency_max: float


_ROW = re.compile(rb'\{"sec":[^{}]*\}')


class RowStream:
    """Takes pieces of output, and returns the rows that are complete."""

    def __init__(self) -> None:
        self._unparsed = b""

    def feed(self, data: bytes) -> list[Second]:
        self._unparsed += data
        rows, end = [], 0
        for match in _ROW.finditer(self._unparsed):
            row = orjson.loads(match[0])
            rows.append(Second(int(row["sec"]), int(row["finished"]), float(row["avg_lat"])))
            end = match.end()
        # Text before the first row is not needed, and what follows the last row is short.
        self._unparsed = self._unparsed[end:]
        return rows


def read_result(data: bytes) -> Result:
    """The result in the output of an instance; ValueError without a complete document."""
    begin, end = data.find(b"{"), data.rfind(b"}")
    if begin < 0 or end < begin:
        raise ValueError("rados bench wrote no JSON")
    document: Mapping[str, Any] = orjson.loads(data[begin : end + 1])
    return Result(
        seconds=float(document["total_time_run"]),
        ops=int(document.get("total_writes_made") or document.get("total_reads_made") or 0),
        latency_mean=float(document["average_latency"]),
        latency_max=float(document["max_latency"]),
    )
