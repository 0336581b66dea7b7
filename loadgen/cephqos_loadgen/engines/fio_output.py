"""fio's `json+` output, read as it comes.

With `--status-interval` fio writes one JSON document per interval, one after the other, sometimes
with lines of text between them. Each has counts since the start:

    bytes -> JsonStream -> document -> read_status -> ClientStatus -> since -> figures
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import orjson

from cephqos_base.bounds import FIO_BOUNDS
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.results.figures import PERCENTILES, LoadFigures, percentile_ns
from cephqos_loadgen.results.rates import DoneSoFar

DIRECTIONS = ("read", "write")
_NS = 1e-9
_DOCUMENT_BEGINS = re.compile(rb"(^|\n)\{($|\n)")


class JsonStream:
    """Takes pieces of output, and returns the documents that are complete."""

    def __init__(self) -> None:
        self._unparsed = b""
        self._last_is_broken = False

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """A document begins with a line `{` and ends with a line `}`. Other lines are text."""
        self._unparsed += data
        documents = []
        while (end := self._unparsed.find(b"\n}\n")) >= 0:
            document, self._unparsed = self._unparsed[: end + 2], self._unparsed[end + 3 :]
            begin = 0 if document.startswith(b"{\n") else document.rfind(b"\n{\n") + 1
            self._last_is_broken = False
            try:
                documents.append(orjson.loads(document[begin:]))
            except orjson.JSONDecodeError:
                self._last_is_broken = True  # cut off by a signal or a full disk
        return documents

    @property
    def torn(self) -> bool:
        """Whether the last document is not complete so far."""
        return self._last_is_broken or bool(_DOCUMENT_BEGINS.search(self._unparsed))


@dataclass(frozen=True, slots=True)
class IoTotals:
    """Counts of one direction since the start. Latencies are completion latencies, in seconds."""

    ios: int = 0
    bytes: int = 0
    latency_count: int = 0
    latency_sum: float = 0.0
    latency_squares: float = 0.0  # the sum of squares
    latency_max: float = 0.0
    bins_ns: Mapping[int, int] = field(default_factory=dict)  # operations by latency

    @property
    def mean(self) -> float:
        return self.latency_sum / self.latency_count if self.latency_count else 0.0

    @property
    def deviation(self) -> float:
        if not self.latency_count:
            return 0.0
        return math.sqrt(max(0.0, self.latency_squares / self.latency_count - self.mean**2))

    def percentile(self, percent: float) -> float:
        """In seconds, from the bins, which are 1.6 % wide at most."""
        return percentile_ns(self.bins_ns, percent) * _NS


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job of a document."""

    totals: Mapping[str, IoTotals]  # by direction
    start: float  # Unix seconds
    runtime: float  # seconds since then
    error: int = 0
    steady: bool | None = None  # whether it reached fio's steady state; None: that was not asked

    def done_so_far(self, start: float) -> DoneSoFar:
        """What it has done until its runtime."""
        return DoneSoFar(
            start + self.runtime,
            {direction: totals.ios for direction, totals in self.totals.items()},
            {direction: totals.bytes for direction, totals in self.totals.items()},
        )

    def counts_anew(self, before: "JobStatus") -> bool:
        """Whether its counts began again at zero, as they do when a ramp (`ramp_time`) is over."""
        fell = (self.totals[d].ios < before.totals[d].ios for d in DIRECTIONS)
        return self.runtime < before.runtime or any(fell)


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One document: its jobs by name."""

    time: float  # Unix seconds, when it was written
    jobs: Mapping[str, JobStatus]

    @property
    def runtime(self) -> float:
        return max((job.runtime for job in self.jobs.values()), default=0.0)

    @property
    def total(self) -> IoTotals:
        return add(totals for job in self.jobs.values() for totals in job.totals.values())

    def of(self, direction: str) -> IoTotals:
        return add(job.totals[direction] for job in self.jobs.values())

    def counted_on(self, before: "ClientStatus | None") -> dict[str, JobStatus]:
        """The jobs of an earlier document whose counts have gone on since then."""
        earlier = before.jobs if before else {}
        return {
            name: earlier[name]
            for name, job in self.jobs.items()
            if name in earlier and not job.counts_anew(earlier[name])
        }


def read_status(document: Mapping[str, Any]) -> ClientStatus:
    """A document as figures. fio 3.33, 3.39 and 3.41 have the same names of fields. 3.33 does not
    say when a job started, and the others say 0 if it does not run."""
    written = document["timestamp_ms"] / 1000
    jobs = {job["jobname"]: _read_job(job, written) for job in document["jobs"]}
    if len(jobs) < len(document["jobs"]):
        raise RunError(f"fio reports {len(document['jobs'])} jobs with {len(jobs)} names")
    return ClientStatus(written, jobs)


def _read_job(job: Mapping[str, Any], written: float) -> JobStatus:
    runtime = max(job[direction]["runtime"] for direction in DIRECTIONS) / 1000
    start = job["job_start"] / 1000 if job.get("job_start") else written - runtime
    steady = bool(job["steadystate"]["attained"]) if "steadystate" in job else None
    totals = {direction: _totals(job[direction]) for direction in DIRECTIONS}
    return JobStatus(totals, start, runtime, job["error"], steady)


def _totals(entry: Mapping[str, Any]) -> IoTotals:
    """What completed. fio's `total_ios` is not used: it counts what was submitted, up to a whole
    queue more."""
    latency = entry["clat_ns"]
    count = _completed(entry)
    mean, deviation = latency["mean"] * _NS, latency["stddev"] * _NS
    return IoTotals(
        ios=count,
        bytes=entry["io_bytes"],
        latency_count=count,
        latency_sum=mean * count,
        latency_squares=(deviation**2 + mean**2) * count,
        latency_max=latency["max"] * _NS,
        bins_ns={int(ns): n for ns, n in latency.get("bins", {}).items()},
    )


def _completed(entry: Mapping[str, Any]) -> int:
    """How many operations completed. fio 3.16 and older show that only in the bins."""
    latency = entry["clat_ns"]
    if "N" in latency:
        return int(latency["N"])
    if "bins" in latency:
        return sum(latency["bins"].values())
    if entry["total_ios"]:
        raise RunError(
            "this fio writes neither how many operations completed nor their latencies one by one:"
            " expected fio 3.17 or later"
        )
    return 0


def add(parts: Iterable[IoTotals]) -> IoTotals:
    """Totals of jobs or directions taken together."""
    total = IoTotals()
    bins: dict[int, int] = {}
    for part in parts:
        for value, count in part.bins_ns.items():
            bins[value] = bins.get(value, 0) + count
        total = IoTotals(
            total.ios + part.ios,
            total.bytes + part.bytes,
            total.latency_count + part.latency_count,
            total.latency_sum + part.latency_sum,
            total.latency_squares + part.latency_squares,
            max(total.latency_max, part.latency_max),
            bins,
        )
    return total


def since(later: IoTotals, earlier: IoTotals) -> IoTotals:
    """What happened between two cumulative totals."""
    before = earlier.bins_ns
    bins = {v: n - before.get(v, 0) for v, n in later.bins_ns.items() if n > before.get(v, 0)}
    return IoTotals(
        later.ios - earlier.ios,
        later.bytes - earlier.bytes,
        later.latency_count - earlier.latency_count,
        max(0.0, later.latency_sum - earlier.latency_sum),
        max(0.0, later.latency_squares - earlier.latency_squares),
        max(bins, default=0) * _NS,
        bins,
    )


def figures(totals: IoTotals, iops: float, bytes_per_second: float) -> LoadFigures:
    """Totals as a run records them. Without bins (another engine, or nothing completed) neither
    deviation nor percentiles are known."""
    known = bool(totals.bins_ns)
    percentiles = {p: totals.percentile(float(p)) for p in PERCENTILES} if known else {}
    return LoadFigures(
        ios=totals.ios,
        iops=iops,
        bytes_per_second=bytes_per_second,
        latency_mean_seconds=totals.mean,
        latency_deviation_seconds=totals.deviation if known else None,
        latency_max_seconds=totals.latency_max if known or totals.latency_max else None,
        latency_percentiles_seconds=percentiles,
        latency_bins_ns=dict(sorted(totals.bins_ns.items())),
    )


def figures_over(totals: IoTotals, seconds: float) -> LoadFigures:
    """Totals as a run records them, with mean rates over a time."""
    per_second = 1 / seconds if seconds else 0.0
    return figures(totals, totals.ios * per_second, totals.bytes * per_second)


def buckets(bins_ns: Mapping[int, int]) -> list[int]:
    """Counts of a Prometheus histogram: for each of FIO_BOUNDS (`le`, in seconds), then +Inf."""
    ordered = sorted((ns * _NS, count) for ns, count in bins_ns.items())
    counts = [0, *accumulate(count for _, count in ordered)]
    centres = [centre for centre, _ in ordered]
    return [*(counts[bisect_right(centres, bound)] for bound in FIO_BOUNDS), counts[-1]]
