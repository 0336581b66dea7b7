"""What one Prometheus takes for so many OSDs: `python -m tests.scale.sizing`, five minutes a size.

A recorded OSD of 18.2, with every series that it shows, is served many times over, 50 to a host.
A real Prometheus scrapes all of them every 15 s and evaluates all rules. Printed: series, samples
per second, CPU, memory, and how long the overview's queries take.
"""

import argparse
import json
import sys
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Final

from tests.bench.rules import INTERVAL, own_metric, prometheus, recorded_page, served
from tests.board_panels import ShownQuery, fill, promql
from tests.by_signal import clean_up_when_ended

from cephqos_alerts.cli import DEFAULT_SLOS, load_slos
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base import dashboards

_WARM: Final = 150  # rates and what is recorded from them are there
_VARIABLES: Final = {"cluster": "c1", "detail": "c1", "osd": "osd.0", "host": ".+", "run": "",
                     "load": "", "second": "", "shift": "1", "__rate_interval": "1m",
                     "__range": "300s", "__interval": "15s"}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """One row of the table."""

    osds: int
    series: float
    samples: float  # per second
    cores: float
    memory_gib: float
    evaluated: float  # share of the rule evaluations that were due
    overview: float  # seconds, all queries one after the other
    slowest: float


class Everything(set[str]):
    """Every name is wanted."""

    def __contains__(self, _: object) -> bool:
        return True


def measure(osds: int, seconds: float) -> Size:
    samples = recorded_page(Everything())
    rules = build_rules(RuleSettings(), load_slos(DEFAULT_SLOS))
    names = (
        "process_cpu_seconds_total",
        "prometheus_tsdb_head_samples_appended_total",
        "prometheus_rule_group_iterations_total",
        "prometheus_rule_group_iterations_missed_total",
    )
    with served(samples, osds, 0.1) as target, prometheus(rules, target, osds) as url:
        time.sleep(_WARM)
        before = [own_metric(url, name) for name in names], time.monotonic()
        time.sleep(seconds)
        after = [own_metric(url, name) for name in names], time.monotonic()
        cpu, appended, due, missed = (b - a for a, b in zip(before[0], after[0], strict=True))
        took = [asked(url, fill(query.expr, _VARIABLES)) for query in overview()]
        elapsed = after[1] - before[1]
        return Size(
            osds=osds,
            series=own_metric(url, "prometheus_tsdb_head_series "),
            samples=appended / elapsed,
            cores=cpu / elapsed,
            memory_gib=own_metric(url, "process_resident_memory_bytes") / 2**30,
            evaluated=1 - missed / due,
            overview=sum(took),
            slowest=max(took),
        )


def overview() -> list[ShownQuery]:
    return [query for query in promql() if query.uid == dashboards.OVERVIEW]


def asked(url: str, expr: str) -> float:
    """Seconds that a panel of the last five minutes takes."""
    now = time.time()
    given = {"query": expr, "start": now - 300, "end": now, "step": INTERVAL}
    text = urllib.parse.urlencode(given)
    began = time.monotonic()
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{text}", timeout=120) as reply:  # noqa: S310
        assert json.load(reply)["status"] == "success"
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osds", type=int, nargs="+", default=[100, 1000, 3000])
    parser.add_argument("--seconds", type=float, default=90)
    given = parser.parse_args()
    print("| OSDs | series | samples/s | cores | GiB | evaluated | overview | its slowest query |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for osds in given.osds:
        row = measure(osds, given.seconds)
        print(
            f"| {row.osds:,} | {row.series:,.0f} | {row.samples:,.0f} | {row.cores:.2f}"
            f" | {row.memory_gib:.2f} | {row.evaluated:.0%} | {row.overview:.2f} s"
            f" | {row.slowest:.2f} s |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
