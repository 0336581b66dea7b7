"""What fio prints in `json+`, made up: as much of it as is read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SaidJob:
    """One job, all of it reads: completions by latency in nanoseconds."""

    seconds: float
    bins: Mapping[int, int] = field(default_factory=dict)
    block: int = 4096
    error: int = 0
    began: float = 1_000_000.0


def document(at: float, jobs: Mapping[str, SaidJob]) -> str:
    """One document, written at this time."""
    entries = [_entry(name, job) for name, job in jobs.items()]
    return json.dumps({"timestamp_ms": round(at * 1000), "jobs": entries}, indent=2) + "\n"


def _entry(name: str, job: SaidJob) -> dict[str, Any]:
    ios = sum(job.bins.values())
    mean = sum(ns * count for ns, count in job.bins.items()) / ios if ios else 0.0
    squares = sum(count * (ns - mean) ** 2 for ns, count in job.bins.items())
    latency = {
        "N": ios,
        "mean": mean,
        "stddev": (squares / ios) ** 0.5 if ios else 0.0,
        "max": max(job.bins, default=0),
        "bins": {str(ns): count for ns, count in job.bins.items()},
    }
    nothing = {"N": 0, "mean": 0.0, "stddev": 0.0, "max": 0}
    return {
        "jobname": name,
        "error": job.error,
        "job_start": round(job.began * 1000),
        "read": {
            "io_bytes": ios * job.block,
            "runtime": round(job.seconds * 1000),
            "clat_ns": latency,
        },
        "write": {"io_bytes": 0, "runtime": 0, "clat_ns": nothing},
    }
