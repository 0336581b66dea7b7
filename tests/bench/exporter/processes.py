"""The exporter as a process, and what its scrapes cost at a pace."""

import http.client
import itertools
import math
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from cephqos_exporter.ceph.cluster import tied

PROMETHEUS_HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
    "Accept-Encoding": "gzip",
    "X-Prometheus-Scrape-Timeout-Seconds": "60",
}
BATCHES = 5
WARM_UP = 5
# Waiting for a CPU, in parts of CPU time, beyond which other work decides what is measured.
NOISY = 0.25


@dataclass(frozen=True)
class Cost:
    """What scrapes cost: CPU seconds of each batch, and the whole."""

    wall: float  # median of a scrape
    cpu: Sequence[float]  # of a scrape, by batch
    rss: int
    scrapes: int
    samples: int
    late: int  # scrapes that began late, as the one before was not over
    waited: float  # for a CPU, in parts of the CPU time

    @property
    def noisy(self) -> bool:
        """Whether other work had the CPUs."""
        return self.waited > NOISY

    def per_osd(self, osds: int) -> list[float]:
        """Milliseconds of CPU per OSD and scrape, by batch."""
        return [cpu / osds * 1e3 for cpu in self.cpu]

    def per_sample(self) -> list[float]:
        """Microseconds of CPU per sample, by batch."""
        return [cpu / self.samples * 1e6 for cpu in self.cpu]


@contextmanager
def child(argv: Sequence[str], ready: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of ours and the line in which it said that it is ready."""
    process = subprocess.Popen(
        tied(argv), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0
    )
    assert process.stdout is not None
    try:
        line = ""
        while ready not in line:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{argv[0]} ended before it was ready")
        yield process, line
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


@contextmanager
def exporter(sockets: str, *flags: str) -> Iterator[tuple[psutil.Process, int]]:
    argv = [
        str(Path(sys.executable).with_name("cephqos-exporter")),
        f"--discovery.sockets={sockets}",
        "--web.listen-address=127.0.0.1:0",
        *flags,
    ]
    with child(argv, "listening on") as (process, line):
        yield psutil.Process(process.pid), int(line.rsplit(":", 1)[1].strip().rstrip('"'))


def scrape(connection: http.client.HTTPConnection) -> bytes:
    connection.request("GET", "/metrics", headers=PROMETHEUS_HEADERS)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"the exporter answered {response.status}: {body[:200]!r}")
    return body


def connect(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=90)


def count_samples(port: int) -> int:
    return len(_samples(port))


def failing_collectors(port: int) -> list[str]:
    """Collectors that give nothing of some daemon."""
    failed = re.compile(r'cephqos_collector_success{.*collector="(\w+)"} 0')
    return sorted({found[1] for found in map(failed.fullmatch, _samples(port)) if found})


def _samples(port: int) -> list[str]:
    connection = connect(port)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return [line for line in lines if not line.startswith("#")]


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of all threads, exact: `stat` counts in steps of 10 ms."""
    return _schedstat(process, 0)


def waited_seconds(process: psutil.Process) -> float:
    """Time that all threads could have run and had no CPU."""
    return _schedstat(process, 1)


def _schedstat(process: psutil.Process, field: int) -> float:
    tasks = Path(f"/proc/{process.pid}/task")
    found = [int((task / "schedstat").read_text().split()[field]) for task in tasks.iterdir()]
    return sum(found) / 1e9


def cost(
    process: psutil.Process,
    port: int,
    repeats: int,
    *,
    every: float = 0.0,
    between: Callable[[], object] = lambda: None,
    until: float = math.inf,
) -> Cost:
    """Scrape every so many seconds (0: one after the other), after a warm-up at the same pace.

    `between` is called before each scrape and is not part of the cost. `until`: of the monotonic
    clock; then fewer scrapes are enough.
    """
    connection = connect(port)
    walls: list[float] = []
    spent: list[float] = []
    begun, late = time.perf_counter(), 0
    waited_before = waited_seconds(process)
    for number in range(WARM_UP + repeats):
        if len(spent) >= BATCHES and time.monotonic() > until:
            break
        between()
        left = begun + number * every - time.perf_counter()
        late += left < 0 < every
        time.sleep(max(0.0, left))
        before, started = cpu_seconds(process), time.perf_counter()
        scrape(connection)
        if number >= WARM_UP or time.monotonic() > until:
            walls.append(time.perf_counter() - started)
            spent.append(cpu_seconds(process) - before)
    connection.close()
    return Cost(
        wall=statistics.median(walls),
        cpu=batches(spent),
        rss=process.memory_info().rss,
        scrapes=len(spent),
        samples=count_samples(port),
        late=late,
        waited=(waited_seconds(process) - waited_before) / max(sum(spent), 1e-9),
    )


def batches(figures: Sequence[float]) -> list[float]:
    """The mean of each of five parts, in the order in which they were taken."""
    ends = [len(figures) * i // BATCHES for i in range(BATCHES + 1)]
    parts = [figures[start:end] for start, end in itertools.pairwise(ends)]
    return [statistics.mean(part) for part in parts if part]
