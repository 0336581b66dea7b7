"""One story: the demo, a run on its cluster, a violated reservation, its alert, logs, dashboards.

The times of its steps are printed.
"""

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.board_panels import queries
from tests.stack.log_files import need_tools
from tests.waiting import until

from cephqos_base.servers import fetch
from cephqos_loadgen.archive.reader import open_archive, problems

from .test_demo import start

SCENARIO = """
scenario: beside
about: A light load on the demo's cluster while its reservation is violated.
pools:
  - {name: beside, size: 2, pg_num: 8, images: {size: 32M}}
phases:
  - name: writes
    fio: {engine: rbd, pool: beside, rw: randwrite, bs: 4K, depth: 1, rate_iops: 20}
    until: {duration: 45s}
"""
STORY = r"FIRING \(critical\): CephQosReservationViolated osd\.1 client, cause device"


class Told:
    """The lines of the demo so far, with the seconds at which they came."""

    def __init__(self, demo: "subprocess.Popen[str]") -> None:
        self.begin = time.monotonic()
        self.lines: list[str] = []
        self.times: dict[str, float] = {}
        self._came = threading.Condition()
        self._demo = demo
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._demo.stdout
        with self._demo.stdout as lines:
            for line in lines:
                with self._came:
                    self.lines.append(line.rstrip("\n"))
                    self._came.notify_all()

    def ended(self) -> None:
        """Wait for the last line, once the demo has ended."""
        self._reader.join(10)

    def until(self, step: str, pattern: str, within: float) -> re.Match[str]:
        """The first match of a line; its time is kept as the step's."""

        def found() -> "re.Match[str] | None":
            return next((m for line in self.lines if (m := re.search(pattern, line))), None)

        with self._came:
            self._came.wait_for(lambda: found() or self._demo.poll() is not None, within)
            match = found()
        assert match, f"no {pattern!r} within {within:g} s in:\n" + "\n".join(self.lines[-200:])
        self.done(step)
        return match

    def done(self, step: str) -> None:
        self.times[step] = time.monotonic() - self.begin


@contextmanager
def run_beside(
    name: str, folder: Path, exporter: str, loki: str
) -> Iterator[subprocess.Popen[str]]:
    """`cephqos run` on the demo's cluster."""
    scenario = folder / "beside.yaml"
    scenario.write_text(SCENARIO)
    argv = [sys.executable, "-m", "cephqos_base", "run", str(scenario), "--lab", name]
    argv += ["--out", str(folder / "runs"), "--exporter", f"{exporter}/metrics", "--loki", loki]
    run = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield run
    finally:
        run.terminate()
        print(run.communicate(timeout=30)[0])  # shown where the test fails


@pytest.mark.full
@pytest.mark.alone
async def test_a_violated_reservation_is_seen_in_alert_log_run_and_dashboards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_tools()
    demo = start()
    told = Told(demo)
    try:
        await asyncio.to_thread(_tell, told, tmp_path)
        demo.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(demo.wait, 30) == 0
    finally:
        demo.kill()
        demo.wait(30)
        told.ended()
    story = " | ".join(line for line in told.lines if " s  " in line[:9])
    ended = r"RESOLVED after \d+ s: CephQosReservationViolated osd\.1 client"
    course = f"MEASURED: .*PROVOKED: .*{STORY}.*MENDED: .*{ended}.*story is over"
    assert re.search(course, story), story
    assert "runbooks/reservations.md#cephqosreservationviolated" in story
    assert not re.search(r"FIRING \(critical\): \S+ osd\.[02]", story), story
    with capsys.disabled():
        print("\nthe story:", *(f"{step} {at:.0f} s" for step, at in told.times.items()), sep="  ")


def _tell(told: Told, folder: Path) -> None:
    exporter = told.until("up", r"^metrics: +(\S+)/metrics$", 120)[1]
    prometheus = told.until("up", r"^Prometheus: +(\S+)/alerts$", 5)[1]
    name = told.until("up", r"--name (demo-\d+)", 5)[1]
    told.until("first data", "FIRST DATA", 60)
    loki = told.until("logs", r"logs: +in Loki: (\S+)", 60)[1]
    told.until("measured", "MEASURED: ", 60)
    with run_beside(name, folder, exporter, loki) as run:
        told.until("broken", "PROVOKED: ", 60)
        provoked = time.time()
        told.until("alert", STORY, 150)
        link = told.until("alert", r"\s/d/(cephqos-osd\S+)", 10)[1]
        asyncio.run(_seen(told, Watchers(prometheus, loki, provoked), _linked(link)))
        told.until("resolved", "RESOLVED after .* osd.1 client", 150)
        told.until("over", "story is over", 10)
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 0, said
    told.done("run over")
    (archive,) = (folder / "runs").iterdir()
    assert list(problems(open_archive(archive))) == []


def _linked(link: str) -> dict[str, str]:
    """What the alert's link tells the dashboard; its time range is around this moment."""
    board, _, query = link.partition("?")
    found = dict(urllib.parse.parse_qsl(query))
    assert board == "cephqos-osd" and found["var-osd"] == "osd.1"
    assert int(found["from"]) / 1000 < time.time() < int(found["to"]) / 1000 + 60
    return {"cluster": found["var-cluster"], "osd": found["var-osd"]}


@dataclass(frozen=True)
class Watchers:
    """Prometheus and Loki, asked about all that was since a moment."""

    prometheus: str
    loki: str
    since: float

    async def series(self, expr: str) -> list[dict[str, Any]]:
        asked = {"query": expr, "start": self.since, "end": time.time(), "step": 1}
        return await _get(f"{self.prometheus}/api/v1/query_range", asked)

    async def lines(self, expr: str) -> list[dict[str, Any]]:
        begin = int((self.since - 600) * 1e9)
        return await _get(f"{self.loki}/loki/api/v1/query_range", {"query": expr, "start": begin})


async def _seen(told: Told, watchers: Watchers, linked: dict[str, str]) -> None:
    """What the dashboards' own queries show of it."""
    runs = 'max by (run) (cephqos_run_info{scenario="beside"})'
    (info,) = await until(lambda: watchers.series(runs), runs)
    run = info["metric"]["run"]
    values = linked | {
        "detail": linked["cluster"],
        "host": ".+",
        "run": run,
        "second": "(none)",
        "load": "client",
        "shift": "1",
    }
    asked = {query.where: query.filled({**values, "__range": "120s"}) for query in queries()}

    async def labels(panel: str, *names: str) -> set[tuple[str, ...]]:
        found = await until(lambda: watchers.series(asked[panel]), asked[panel])
        return {tuple(each["metric"].get(name, "") for name in names) for each in found}

    worst = await labels("cephqos-overview: Worst OSDs A", "ceph_daemon", "class")
    assert ("osd.1", "client") in worst
    firing = await labels("cephqos-overview: Firing alerts A", "alertname")
    assert ("CephQosReservationViolated",) in firing
    assert await labels("cephqos-run: Running now A", "scenario") == {("beside",)}
    told.done("dashboards")
    for panel in ("cephqos-osd: Log of this OSD A", "cephqos-run: Events of the run A"):
        assert await until(partial(watchers.lines, asked[panel]), asked[panel])
    told.done("log lines")


async def _get(url: str, parameters: Mapping[str, object]) -> list[dict[str, Any]]:
    reply = json.loads(await fetch(f"{url}?{urllib.parse.urlencode(parameters)}", within=30))
    found: list[dict[str, Any]] = reply["data"]["result"]
    return found
