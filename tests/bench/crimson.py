"""Prints the CPU time that the crimson collector takes per shard: python -m tests.bench.crimson."""

import time
from pathlib import Path
from typing import Any, Final

import orjson
from tests.recorded import CRIMSON
from tests.replay.daemons import RecordedDaemon

from cephqos_exporter.collectors.crimson import METRICS, CrimsonCollector
from cephqos_exporter.daemon import Daemon, DaemonView, Host
from cephqos_exporter.labels import render_labels
from cephqos_exporter.scrape.rendering import render

SCRAPES: Final = 50
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "usual": {},
    "include=*": {"include": ["*"]},
}


def main() -> None:
    print("| build | option | collect, ms per shard | written too, ms per shard |")
    print("|---|---|---|---|")
    for build in sorted(path.name for path in CRIMSON.iterdir() if path.is_dir()):
        reply = orjson.loads(RecordedDaemon.load(CRIMSON / build).replies[METRICS])
        shards = {body["shard"] for item in reply["metrics"] for body in item.values()}
        for name, options in OPTIONS.items():
            collected, written = (1000 * cost / len(shards) for cost in costs(reply, options))
            print(f"| {build} | {name} | {collected:.2f} | {written:.2f} |")


def costs(reply: object, options: dict[str, Any]) -> tuple[float, float]:
    """CPU seconds of a scrape: of collecting alone, and of writing the page as well."""
    daemon = Daemon("osd", "0", "c", Path("/run/osd.0.asok"))
    view = DaemonView(daemon, render_labels(daemon.labels), {METRICS: reply}, {}, 1.0, Host())
    collector = CrimsonCollector(**options)
    families = list(collector.collect(view))  # the first one renders labels
    begun = time.process_time()
    for _ in range(SCRAPES):
        families = list(collector.collect(view))
    between = time.process_time()
    for _ in range(SCRAPES):
        render(families)
    collecting = (between - begun) / SCRAPES
    return collecting, collecting + (time.process_time() - between) / SCRAPES


if __name__ == "__main__":
    main()
