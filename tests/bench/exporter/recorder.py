"""What the recorder costs an exporter: pairs of scrapes of the same OSDs, with and without it.

    python -m tests.bench.exporter.recorder --osds 20 --pairs 60

The order changes with each pair, so other work on the machine strikes both alike.
"""

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.bench.exporter.processes import connect, cpu_seconds, exporter, scrape
from tests.bench.exporter.replayed import replayed

_WARM_UP = 5
MOST = 0.03  # of the exporter's CPU time


def main() -> int:
    parser = argparse.ArgumentParser(description="compare an exporter with and without recorder")
    parser.add_argument("--osds", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cephqos-bench-") as place:
        without, recorded = pairs(arguments.osds, arguments.pairs, Path(place))
        size = sum(path.stat().st_size for path in Path(place).glob("ring/*"))
    more = [after - before for before, after in zip(without, recorded, strict=True)]
    share = statistics.median(more) / statistics.median(without)
    low, _, high = statistics.quantiles(more, n=4)
    print(f"{arguments.osds} OSDs, {arguments.pairs} pairs, CPU per OSD and scrape:")
    for name, found in (("without", without), ("with", recorded)):
        print(f"  {name}: median {statistics.median(found) / arguments.osds * 1e3:.3f} ms")
    quartiles = (part / statistics.median(without) for part in (low, high))
    print("  recorder: {:.1%} (quartiles {:.1%} to {:.1%})".format(share, *quartiles))
    print(f"  on disk: {size / arguments.osds / (arguments.pairs + _WARM_UP) / 1e3:.2f} kB per OSD"
          " and scrape")  # fmt: skip
    return 0 if share <= MOST else 1


def pairs(osds: int, count: int, place: Path) -> tuple[list[float], list[float]]:
    """CPU seconds of each scrape without and with the recorder."""
    flags = ("--recorder.minutes=120", f"--recorder.path={place}", "--recorder.megabytes=100000")
    found: tuple[list[float], list[float]] = ([], [])
    with ExitStack() as stack:
        host = stack.enter_context(replayed(osds))
        sides = []
        for more in ((), flags):
            running = exporter(str(host.sockets), *host.flags, *more)
            process, port = stack.enter_context(running)
            sides.append((process, connect(port)))
        for number in range(_WARM_UP + count):
            host.run_threads()
            for which in (0, 1) if number % 2 else (1, 0):
                process, connection = sides[which]
                before = cpu_seconds(process)
                scrape(connection)
                time.sleep(0.3)  # the recorder writes after the answer
                if number >= _WARM_UP:
                    found[which].append(cpu_seconds(process) - before)
    return found


if __name__ == "__main__":
    sys.exit(main())
