"""`rados bench`: command lines, and its JSON output.

Its numbers are strings, and its standard deviation of IOPS is unusable (it has been seen negative).
It writes one JSON document, a piece each second: a row of `datas`, which is read as it comes.
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
    """The command line of one instance. Reads read what the write phase of its pool left."""
    # Its standard output would keep the seconds back until it has 4 KiB of them.
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
    """Write so many objects and end."""
    command = ["rados", *place.identity, "--pool", pool, "--format", "json"]
    command += ["bench", str(round(seconds)), "write", "--concurrent-ios", "16"]
    command += ["--block-size", str(object_size), "--max-objects", str(count)]
    return [*command, "--run-name", f"cephqos.prefill.{name}", "--no-cleanup"]


@dataclass(frozen=True, slots=True)
class Second:
    """One row: what finished so far, and its mean latency."""

    second: int
    finished: int
    latency_mean: float

    def totals(self, object_size: int) -> IoTotals:
        """Cumulative totals as of fio; without bins, so without percentiles."""
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
    """Takes output as it comes, gives the rows that are whole."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Second]:
        self._rest += data
        rows, end = [], 0
        for match in _ROW.finditer(self._rest):
            row = orjson.loads(match[0])
            rows.append(Second(int(row["sec"]), int(row["finished"]), float(row["avg_lat"])))
            end = match.end()
        # Text before the first row is not needed, and what follows the last row is short.
        self._rest = self._rest[end:]
        return rows


def read_result(data: bytes) -> Result:
    """The output of one instance; ValueError where there is no whole document."""
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
