"""Hosts of replayed OSDs, whose /proc moves: 60 of them, and from 1 to 200."""

import contextlib
import http.client
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from tests.bench.exporter.floor import (
    floor,
    requests_since,
    requests_so_far,
    same_requests,
)
from tests.bench.exporter.processes import (
    BATCHES,
    NOISY,
    child,
    connect,
    cost,
    cpu_seconds,
    exporter,
    failing_collectors,
    scrape,
    waited_seconds,
)
from tests.bench.exporter.verdicts import Verdicts
from tests.replay.daemons import RecordedDaemon
from tests.replay.host_tree import CLASSIC_THREADS, HostTree, limits

from cephqos_base import marked
from cephqos_base.marked import NotOurs

ROOT = Path(__file__).resolve().parents[3]
RECORDING = ROOT / "tests" / "recordings" / "reef" / "load"
REPLAY = ROOT / "tests" / "replay" / "daemons.py"
FIRST_PID = 10_000
# As an OSD on flash has them: 75, of which 26 run between any two scrapes.
THREADS = (*CLASSIC_THREADS, *("tp_osd_tp",) * 11, *("ms_dispatch",) * 4, *("safe_timer",) * 3)
_PREFIX = "cephqos-bench-"
_KIND = "bench"  # what the mark of such a folder says
_LEAST_TO_GROW = 100  # scrapes
# Scrapes until what fills once is full: seen 99.0 MB after 5, 102.8 after 400, 102.7 after 800.
_TO_FILL = 400
_HOST_PATHS = (("procfs", "proc"), ("sysfs", "sys"), ("dev", "dev"))


class ReplayedHost:
    """OSDs with admin sockets that replay a recording, and with a /proc that moves."""

    def __init__(self, place: Path, count: int) -> None:
        self.sockets = place / "run"
        self.flags = [f"--path.{name}={place}/host/{end}" for name, end in _HOST_PATHS]
        self._count = count
        self._tree = HostTree(place / "host")
        self._step = 0
        self._tree.cpus()
        self._tree.used(2, 4000)
        with (place / "host/proc/stat").open("a") as stat:
            stat.write("btime 1700000000\n")
        # Where all of them say that it is: each process has its own view of it.
        data = json.loads(RecordedDaemon.load(RECORDING).replies["config show"])["osd_data"]
        for osd in range(count):
            pid = FIRST_PID + 100 * osd
            self._tree.classic_osd(pid, osd, names=THREADS)
            self._tree.disk(f"sd{osd}", f"8:{osd}", rotational=True)
            self._tree.data_directory(pid, data, {"block": f"/dev/sd{osd}"})
            self._tree.cgroup(pid, f"system.slice/osd{osd}.service", limits(f"8:{osd}"))

    @property
    def paths(self) -> list[Path]:
        return sorted(self.sockets.glob("*.asok"))

    def run_threads(self) -> None:
        """Let the threads that never sleep long run for a while."""
        self._step += 1
        for osd in range(self._count):
            self._tree.run_threads(FIRST_PID + 100 * osd, osd, step=self._step, names=THREADS)


@contextmanager
def replayed(count: int) -> Iterator[ReplayedHost]:
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as directory:
        marked.mark(Path(directory), _KIND)
        host = ReplayedHost(Path(directory), count)
        argv = [sys.executable, "-m", "tests.replay.daemons", "serve", str(host.sockets)]
        argv += ["--recording", str(RECORDING), "--count", str(count)]
        with child(argv, "daemons in"):
            yield host


def remove_leftovers() -> None:
    """What runs left behind that were killed: the process whose number they carry is gone."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        number = place.name.removeprefix(_PREFIX).partition("-")[0]
        if not (number.isdecimal() and psutil.pid_exists(int(number))):
            with contextlib.suppress(NotOurs):
                marked.remove(place, _KIND)


def bench_sixty(verdicts: Verdicts, repeats: int, long: int, until: float) -> None:
    print(f"60 replayed OSDs of {len(THREADS)} threads that run, every default collector")
    with replayed(60) as host, exporter(str(host.sockets), *host.flags) as (process, port):
        for every in (1.0, 5.0):
            scrapes = repeats if every == 1 else max(5, repeats // 5)
            share = _part_of(until, 0.3)
            spent = cost(process, port, scrapes, every=every, between=host.run_threads, until=share)
            pace = f"every {every:g} s"
            verdicts.say(
                f"CPU per OSD and scrape, {pace}",
                spent.per_osd(60),
                "ms",
                most=3.5,
                noisy=spent.noisy,
            )
            verdicts.say(f"CPU per sample, {pace}", spent.per_sample(), "us")
            verdicts.say(f"scrapes, {pace}", spent.scrapes, "")
            verdicts.say(f"scrapes that began late, {pace}", spent.late, "")
            verdicts.say(f"waited for a CPU in parts of CPU time, {pace}", spent.waited, "x")
        verdicts.say("samples per OSD", spent.samples / 60, "", most=700)
        for name in failing_collectors(port):
            verdicts.failed(f"collector {name}", "what it would cost is not in these figures")
        _ratio_to_floor(verdicts, host, process, port, repeats, _part_of(until, 0.5))
        _growth_over_time(verdicts, host, process, port, long, until)


def _part_of(until: float, share: float) -> float:
    """When this share of the time that is left will have passed."""
    now = time.monotonic()
    return now + (until - now) * share


def _ratio_to_floor(
    verdicts: Verdicts,
    host: ReplayedHost,
    process: psutil.Process,
    port: int,
    pairs: int,
    until: float,
) -> None:
    """One right after the other, so that other work on the machine strikes all."""
    connection = connect(port)
    found: list[float] = []
    least: list[float] = []
    more: list[float] = []
    waited, spent = waited_seconds(process), cpu_seconds(process)
    for _ in range(pairs):
        if len(found) >= BATCHES and time.monotonic() > until:
            break
        host.run_threads()
        bare = floor(host.paths)
        before = requests_so_far(host.paths)
        took = _wall(connection)
        asked = requests_since(before, requests_so_far(host.paths))
        same = same_requests(asked)
        found.append(took / bare)
        least.append(same / bare)
        more.append(took / same)
    waited, spent = waited_seconds(process) - waited, cpu_seconds(process) - spent
    # The bare client reads two replies of each OSD, a scrape up to eight: what is judged is what
    # the exporter adds to a client that makes the same requests.
    verdicts.say("wall time of a scrape in parts of a bare client's", found, "x")
    verdicts.say("a bare client that asks the same and parses it", least, "x")
    text = "wall time of a scrape in parts of that client's"
    verdicts.say(text, more, "x", most=3, noisy=waited > NOISY * spent)


def _wall(connection: http.client.HTTPConnection) -> float:
    started = time.perf_counter()
    scrape(connection)
    return time.perf_counter() - started


def _growth_over_time(
    verdicts: Verdicts,
    host: ReplayedHost,
    process: psutil.Process,
    port: int,
    long: int,
    until: float,
) -> None:
    descriptors, threads = process.num_fds(), process.num_threads()
    begun = 0
    connection = connect(port)
    done = -_TO_FILL
    while done < long and time.monotonic() < until:
        if done == 0:
            begun = process.memory_info().rss
        if done % 10 == 0:
            host.run_threads()
        scrape(connection)
        done += 1
    connection.close()
    rss = process.memory_info().rss
    more = process.num_fds() - descriptors + process.num_threads() - threads
    verdicts.say("resident memory", rss / 1e6, "MB", most=85)
    if done < _LEAST_TO_GROW:
        verdicts.not_judged("growth", f"time for {max(0, done)} scrapes only, once caches are full")
    else:
        verdicts.say(f"growth over {done} scrapes", (rss - begun) / 1e6, "MB", most=4)
    verdicts.say("more descriptors and threads", more, "", most=2)


def bench_growth(verdicts: Verdicts, repeats: int, until: float) -> None:
    print("cost by number of OSDs, scraped one after the other")
    points = []
    counts = (1, 4, 16, 60, 200)
    for left, count in zip(range(len(counts), 0, -1), counts, strict=True):
        share = _part_of(until, 1 / left)
        with replayed(count) as host, exporter(str(host.sockets), *host.flags) as (process, port):
            scrapes = max(repeats, 400 // count)
            spent = cost(process, port, scrapes, between=host.run_threads, until=share)
        points.append((count, statistics.median(spent.cpu)))
        verdicts.say(f"CPU per OSD and scrape, {count} OSDs", spent.per_osd(count), "ms")
        verdicts.say(f"resident memory, {count} OSDs", spent.rss / 1e6, "MB")
    # One OSD's figure is mostly the constant part of a scrape, which flatters the exponent.
    verdicts.say("fitted exponent, 1 to 200", _exponent(points), "", most=1.1)
    # 1.15 is half as much again for each of 200 OSDs as for each of 16. No host has 200: the bar
    # finds what grows with the square, not what no longer fits into a cache.
    verdicts.say("fitted exponent, 16 to 200", _exponent(points[2:]), "", most=1.15)


def _exponent(points: Sequence[tuple[int, float]]) -> float:
    slope = statistics.linear_regression(
        [math.log(count) for count, _ in points], [math.log(cpu) for _, cpu in points]
    ).slope
    return float(slope)
