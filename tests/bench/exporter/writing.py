"""Writing a page of 100,000 samples, against prometheus_client."""

import random
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from tests.bench.exporter.verdicts import Verdicts

from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render


def bench_exposition(verdicts: Verdicts) -> None:
    print("writing 100,000 samples")
    ours, theirs = _families()
    registry = CollectorRegistry()
    registry.register(_Fixed(theirs))
    peer = _best(lambda: generate_latest(registry), 3)

    def write() -> bytes:
        page = Page()
        page.add(render(ours))
        return page.body(openmetrics=False)

    own = _best(write, 9)
    if _parsed(write()) != _parsed(generate_latest(registry)):
        raise SystemExit("the two expositions differ")
    verdicts.say("prometheus_client's generate_latest", peer * 1e3, "ms")
    verdicts.say("ours", own * 1e3, "ms")
    verdicts.say("ours in parts of theirs", own / peer, "x", most=1 / 8)


def _parsed(body: bytes) -> dict[bytes, float]:
    """Samples by name and labels: the two writers spell numbers differently."""
    samples = (line.rpartition(b" ") for line in body.splitlines() if not line.startswith(b"#"))
    return {name: float(value) for name, _, value in samples}


def _families() -> tuple[list[Family], list[Metric]]:
    """The same samples for both writers: half whole numbers, half fractions, as counters are."""
    rng = random.Random(1)  # noqa: S311
    ours: list[Family] = []
    theirs: list[Metric] = []
    cluster = "b57be7fd-f103-4eb6-a252-ba6e212f166b"
    rendered = [
        render_labels({"ceph_daemon": f"osd.{osd}", "cluster": cluster}) for osd in range(100)
    ]
    for number in range(1000):
        name = f"ceph_bluestore_some_counter_{number:04}"
        family = Family(name, "gauge", "A counter.")
        metric = GaugeMetricFamily(name, "A counter.", labels=["ceph_daemon", "cluster"])
        for osd, labels in enumerate(rendered):
            value = rng.randrange(10**9) if number % 2 else rng.random() * 1e6
            family.add(labels, value)
            metric.add_metric([f"osd.{osd}", cluster], value)
        ours.append(family)
        theirs.append(metric)
    return ours, theirs


class _Fixed:
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _best(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)
