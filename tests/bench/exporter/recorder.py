"""What the recorder costs an exporter: each scrape, and then the recording of the same scrape.

    python -m tests.bench.exporter.recorder --osds 20 --scrapes 60

Both are counted in CPU time of this process, all threads: other work on the machine has little
effect. The recording's share is too large by what it takes to wait for it.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.exporter.replayed import ReplayedHost, replayed

from cephqos_exporter.app import build_scraper
from cephqos_exporter.cli import read_settings
from cephqos_exporter.daemon import DaemonView
from cephqos_exporter.flight_recorder.recorder import Recorder
from cephqos_exporter.flight_recorder.ring import Stamp, packed

_WARM_UP = 5
MOST = 0.03  # of the exporter's CPU time


def main() -> int:
    parser = argparse.ArgumentParser(description="measure the recorder's share of an exporter")
    parser.add_argument("--osds", type=int, default=20)
    parser.add_argument("--scrapes", type=int, default=60)
    arguments = parser.parse_args()
    osds = arguments.osds
    with tempfile.TemporaryDirectory(prefix="cephqos-bench-") as place, replayed(osds) as host:
        scraped, more = asyncio.run(pairs(host, arguments.scrapes, Path(place)))
        size = sum(path.stat().st_size for path in Path(place).glob("ring/*"))
    shares = [part / whole for part, whole in zip(more, scraped, strict=True)]
    low, middle, high = statistics.quantiles(shares, n=4)
    print(f"{osds} OSDs, {arguments.scrapes} scrapes")
    print(f"  CPU of a scrape, per OSD: median {statistics.median(scraped) / osds * 1e3:.3f} ms")
    print(f"  CPU of its recording: {middle:.2%} of that (quartiles {low:.2%} to {high:.2%})")
    print(f"  on disk: {size / osds / (arguments.scrapes + _WARM_UP) / 1e3:.2f} kB per OSD")
    return 0 if middle <= MOST else 1


async def pairs(host: ReplayedHost, count: int, place: Path) -> tuple[list[float], list[float]]:
    """CPU seconds of each scrape, and of recording it."""
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in host.flags)
    flags |= {"discovery.sockets": str(host.sockets), "recorder.minutes": "120"}
    settings = read_settings({**flags, "recorder.path": str(place)}, {})
    recorder = Recorder(settings)
    look, looked = recorder.operations.look, 0.0

    def timed(view: DaemonView) -> None:
        nonlocal looked
        begun = time.thread_time()
        look(view)
        looked += time.thread_time() - begun

    recorder.operations.look = timed  # type: ignore[method-assign]
    scraper = build_scraper(settings, recorder)
    recorder.start()
    scraper.start()
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(_WARM_UP + count):
        host.run_threads()
        looked = 0.0
        begun = time.process_time()
        page = await scraper.page(60)
        body = packed(page.pieces(openmetrics=True))
        written = time.process_time()
        recorder.take(Stamp(number * 15_000, number * 15_000), page, body, compressed=True)
        await recorder.listing()
        recorded = time.process_time()
        if number >= _WARM_UP:
            found[0].append(written - begun - looked)
            found[1].append(recorded - written + looked)
    await recorder.close()
    await scraper.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
