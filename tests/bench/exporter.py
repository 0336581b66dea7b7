"""What the exporter costs: printed with its ratios, in one go.

    make bench-exporter                  everything, with a cluster of 4 OSDs brought up for it
    python -m tests.bench.exporter --no-real    without a cluster
    python -m tests.bench.exporter --quick      fewer repeats

The exporter is the real command in a process of its own, asked over HTTP as Prometheus asks it
(gzip, OpenMetrics); the replayed daemons are another process. CPU is user + system of the exporter.
Exit status 1 if a bar is missed.
"""

import argparse
import asyncio
import http.client
import math
import os
import random
import secrets
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from tests.replay.host_tree import HostTree

from cephqos_exporter.ceph.cluster import tied
from cephqos_exporter.exposition import Page
from cephqos_exporter.model import Family, render_labels
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "tests" / "recordings"
REPLAY = ROOT / "tests" / "replay" / "daemons.py"
FLOOR_COMMANDS = ("counter dump", "perf histogram dump")
FIRST_PID = 10_000
_PREFIX = "cephqos-bench-"
PROMETHEUS_HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
    "Accept-Encoding": "gzip",
    "X-Prometheus-Scrape-Timeout-Seconds": "10",
}


@dataclass(frozen=True)
class Cost:
    """Medians and totals of a number of scrapes."""

    wall: float
    cpu: float
    rss: int
    growth: int
    samples: int


class Verdicts:
    """Prints each figure with its bar; remembers whether one was missed."""

    def __init__(self) -> None:
        self.missed = False

    def say(self, what: str, figure: float, unit: str, *, most: float = math.inf) -> None:
        bar = "" if most == math.inf else f"   (at most {most:g})"
        if figure > most:
            self.missed = True
            bar += "   MISSED"
        print(f"  {what:<58} {figure:9.2f} {unit}{bar}", flush=True)


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
                raise SystemExit(f"{argv[0]} ended before it was ready")
        yield process, line
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


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
        raise SystemExit(f"the exporter answered {response.status}: {body[:200]!r}")
    return body


def count_samples(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().splitlines()
    connection.close()
    return sum(not line.startswith(b"#") for line in lines)


def cost(process: psutil.Process, port: int, repeats: int) -> Cost:
    """Scrape once a quarter second at most, after a warm-up."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(5):
        scrape(connection)
    samples = count_samples(port)
    begun = process.cpu_times()
    resident = process.memory_info().rss
    walls = []
    for _ in range(repeats):
        started = time.perf_counter()
        scrape(connection)
        walls.append(time.perf_counter() - started)
    ended = process.cpu_times()
    connection.close()
    spent = ended.user + ended.system - begun.user - begun.system
    rss = process.memory_info().rss
    return Cost(statistics.median(walls), spent / repeats, rss, rss - resident, samples)


def floor(paths: Sequence[Path]) -> float:
    """Read the two replies of one daemon after the other, and throw them away."""
    started = time.perf_counter()
    for path in paths:
        _ask([path])
    return time.perf_counter() - started


def floor_at_once(paths: Sequence[Path]) -> float:
    """The same of all daemons at once: what no client of theirs can beat."""
    started = time.perf_counter()
    _ask(paths)
    return time.perf_counter() - started


def _ask(paths: Sequence[Path]) -> None:
    for command in FLOOR_COMMANDS:
        request = b'{"prefix":"%s","format":"json"}\0' % command.encode()
        waiting: dict[int, tuple[socket.socket, int]] = {}
        for path in paths:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(path))
            sock.sendall(request)
            waiting[sock.fileno()] = (sock, -1)
        _drain(waiting)


def _drain(waiting: dict[int, tuple[socket.socket, int]]) -> None:
    poll = select.epoll()
    for number in waiting:
        poll.register(number, select.EPOLLIN)
    while waiting:
        for number, _ in poll.poll():
            sock, left = waiting[number]
            data = sock.recv(1 << 18)
            if left < 0:
                (left,) = struct.unpack(">I", data[:4])
                data = data[4:]
            left -= len(data)
            waiting[number] = (sock, left)
            if not left:
                poll.unregister(number)
                sock.close()
                del waiting[number]
    poll.close()


def bench_real(verdicts: Verdicts, paths: Sequence[Path], repeats: int) -> None:
    print(f"{len(paths)} real OSDs")
    with exporter(",".join(str(path) for path in paths)) as (process, port):
        spent = cost(process, port, repeats)
        # Each figure twice in turn: other work on the machine comes in bursts.
        bare = statistics.median(floor(paths) for _ in range(repeats))
        at_once = statistics.median(floor_at_once(paths) for _ in range(repeats))
        again = cost(process, port, repeats)
        bare = min(bare, statistics.median(floor(paths) for _ in range(repeats)))
    wall = min(spent.wall, again.wall)
    verdicts.say("floor: bare client, one OSD after the other", bare * 1e3, "ms")
    verdicts.say("bare client, all OSDs at once", at_once * 1e3, "ms")
    verdicts.say("wall time of a scrape", wall * 1e3, "ms")
    verdicts.say("ratio to the floor", wall / bare, "x", most=3)
    verdicts.say("ratio to the client that asks all at once", wall / at_once, "x")
    verdicts.say("CPU per OSD and scrape", spent.cpu / len(paths) * 1e3, "ms")
    verdicts.say("CPU per sample", spent.cpu / spent.samples * 1e6, "us")
    verdicts.say("samples per OSD", spent.samples / len(paths), "")


async def bench_lab(verdicts: Verdicts, repeats: int) -> None:
    """The same on a cluster of its own, 4 OSDs of 18.2."""
    spec = LabSpec(name=f"bench-{secrets.token_hex(3)}", release="reef", osds=4)
    async with Lab(spec) as lab:
        paths = sorted(lab.paths.sockets.glob("ceph-osd.*.asok"))
        await asyncio.to_thread(bench_real, verdicts, paths, repeats)


def remove_leftovers() -> None:
    """What runs left behind that were killed: the process whose number they carry is gone."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        number = place.name.removeprefix(_PREFIX).partition("-")[0]
        if not (number.isdecimal() and psutil.pid_exists(int(number))):
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def replayed(count: int) -> Iterator[tuple[str, list[str]]]:
    """`count` OSDs with sockets and a /proc of 57 threads each: the pattern, and flags for it."""
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as directory:
        place = Path(directory)
        host = HostTree(place / "host")
        host.cpus()
        (place / "host/proc/stat").write_text("btime 1700000000\n")
        for osd in range(count):
            host.classic_osd(FIRST_PID + 100 * osd, osd)
            host.disk(f"sd{osd}", f"8:{osd}", rotational=True)
            data = f"/var/lib/ceph/osd/ceph-{osd}"
            host.data_directory(FIRST_PID + 100 * osd, data, {"block": f"/dev/sd{osd}"})
        argv = [sys.executable, str(REPLAY), "serve", str(place / "run")]
        argv += ["--recording", str(RECORDINGS / "reef/load"), "--count", str(count)]
        roots = [f"--path.{name}={place}/host/{end}" for name, end in HOST_PATHS]
        with child(argv, "daemons in"):
            yield str(place / "run"), roots


HOST_PATHS = (("procfs", "proc"), ("sysfs", "sys"), ("dev", "dev"), ("run", "run"))


def bench_replayed(verdicts: Verdicts, repeats: int, long: int) -> None:
    print("60 replayed OSDs of 57 threads, every default collector")
    with replayed(60) as (sockets, flags), exporter(sockets, *flags) as (process, port):
        spent = cost(process, port, repeats)
        paths = sorted(Path(sockets).glob("*.asok"))
        bare = statistics.median(floor(paths) for _ in range(20))
        begun = process.memory_info().rss
        descriptors, threads = process.num_fds(), process.num_threads()
        cost(process, port, long)
        grown = process.memory_info().rss - begun
        more = process.num_fds() - descriptors + process.num_threads() - threads
        peak = process.memory_info().rss
    verdicts.say("CPU per OSD and scrape", spent.cpu / 60 * 1e3, "ms", most=5)
    verdicts.say("CPU per sample", spent.cpu / spent.samples * 1e6, "us")
    verdicts.say("wall time of a scrape", spent.wall * 1e3, "ms", most=350)
    verdicts.say("ratio to the floor", spent.wall / bare, "x")
    verdicts.say("samples per OSD", spent.samples / 60, "", most=700)
    verdicts.say("resident memory", peak / 1e6, "MB", most=120)
    verdicts.say(f"growth over {long} scrapes", grown / 1e6, "MB", most=4)
    verdicts.say("more descriptors and threads", more, "", most=2)


def bench_exposition(verdicts: Verdicts) -> None:
    print("writing 100,000 samples")
    ours, theirs = _families()
    registry = CollectorRegistry()
    registry.register(_Fixed(theirs))
    peer = _best(lambda: generate_latest(registry), 3)

    def write() -> bytes:
        page = Page()
        page.add_families(ours)
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
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def bench_growth(verdicts: Verdicts, repeats: int) -> None:
    print("cost by number of OSDs")
    points = []
    for count in (1, 4, 16, 60, 200):
        with replayed(count) as (sockets, flags), exporter(sockets, *flags) as (process, port):
            spent = cost(process, port, max(repeats, 400 // count))
        points.append((count, spent.cpu))
        verdicts.say(f"CPU per OSD and scrape, {count} OSDs", spent.cpu / count * 1e3, "ms")
    # One OSD's figure is mostly the constant part of a scrape, which flatters the exponent.
    verdicts.say("fitted exponent, 1 to 200", _exponent(points), "", most=1.1)
    verdicts.say("fitted exponent, 16 to 200", _exponent(points[2:]), "", most=1.1)


def _exponent(points: Sequence[tuple[int, float]]) -> float:
    slope = statistics.linear_regression(
        [math.log(count) for count, _ in points], [math.log(cpu) for _, cpu in points]
    ).slope
    return float(slope)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-real", action="store_true")
    parser.add_argument("--sockets", nargs="+", type=Path, help="real OSDs' sockets to use")
    parser.add_argument("--only", choices=("real", "replayed", "exposition", "growth"))
    arguments = parser.parse_args()
    repeats, long = (20, 50) if arguments.quick else (60, 1000)
    verdicts = Verdicts()

    def wanted(part: str) -> bool:
        return arguments.only in (None, part)

    remove_leftovers()
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that what was begun is ended and removed
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    cpus = os.cpu_count() or 1
    print(f"{cpus} CPUs, Python {sys.version.split()[0]}")
    if os.getloadavg()[0] > cpus / 2:
        print(f"load {os.getloadavg()[0]:.1f}: other work runs here, so wall times say little")
    if wanted("real") and arguments.sockets:
        bench_real(verdicts, arguments.sockets, repeats)
    elif wanted("real") and not arguments.no_real:
        asyncio.run(bench_lab(verdicts, repeats))
    if wanted("replayed"):
        bench_replayed(verdicts, repeats, long)
    if wanted("exposition"):
        bench_exposition(verdicts)
    if wanted("growth"):
        bench_growth(verdicts, repeats // 3)
    return int(verdicts.missed)


if __name__ == "__main__":
    sys.exit(main())
