"""A storm: what an OSD pays for its answers while thousands of operations are in progress.

One OSD, scraped every second. In the first storm operations wait in the scheduler's queue, as the
client class is limited. In the second they are begun and wait for the store, as the device is
limited. Before and after each, nothing is in progress. The pages tell how many operations there
are: asking for that would cost the OSD something.
"""

import asyncio
import contextlib
import gzip
import re
import secrets
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.exporter.processes import connect, exporter, scrape
from tests.bench.exporter.real import cpu_of_answers
from tests.bench.exporter.verdicts import Verdicts

from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_stack.staged.stage import StagedLab, wait_until_clean

_MOST: Final = 1.25  # CPU in a storm, in parts of what it is with nothing in progress
_LEAST: Final = 5000  # operations that make a storm
_CLIENTS, _DEPTH = 3, 3000
_WINDOW: Final = 13  # scrapes
_RISE: Final = 40  # scrapes until operations count as blocked, which they do after 30 s
_REST: Final = 60.0  # seconds until what clients have left is done, at most
_POOL: Final = "storm"
_LIMIT: Final = ("osd", "osd_mclock_scheduler_client_lim")  # a part of the capacity
_DEVICE: Final = {"wiops": 300, "wbps": 300 * 4096}  # one request may have many commits
_QUEUED, _BEGUN = "in the queue", "begun"
_OPTIONS: Final = {
    "osd_client_message_cap": "0",
    "osd_client_message_size_cap": "0",
    "objecter_inflight_ops": "1000000",
    "objecter_inflight_op_bytes": str(1 << 30),
    # Else only some hundred would be begun.
    "bluestore_throttle_bytes": str(1 << 30),
    "bluestore_throttle_deferred_bytes": str(1 << 30),
    "osd_mclock_profile": "custom",
    "osd_mclock_max_capacity_iops_ssd": "1000",
}
_COUNTED: Final = {
    _QUEUED: re.compile(r'^cephqos_qos_queue_length\{.*class="client".* (\S+)$', re.MULTILINE),
    _BEGUN: re.compile(r"^cephqos_ops_in_progress\{.* (\S+)$", re.MULTILINE),
    "blocked": re.compile(r"^cephqos_ops_blocked\{.* (\S+)$", re.MULTILINE),
}


class Window(NamedTuple):
    """Scrapes in a row: ms of the OSD's CPU per second, and the median of operations by state."""

    ms: float
    ops: dict[str, float]


class _Osd:
    """The OSD, and the exporter that asks it every second."""

    def __init__(self, socket: Path, connection: HTTPConnection) -> None:
        self._socket, self._connection = socket, connection
        self._next = time.monotonic()

    def windows(self, count: int, scrapes: int = _WINDOW) -> list[Window]:
        return [self._window(scrapes) for _ in range(count)]

    def rest(self) -> None:
        until = time.monotonic() + _REST
        while any(self._window(3).ops.values()):
            if time.monotonic() > until:
                raise RuntimeError(f"operations are in progress {_REST:g} s after the clients")

    def _window(self, scrapes: int) -> Window:
        paid, began = cpu_of_answers([self._socket]), time.monotonic()
        counted = [self._scrape() for _ in range(scrapes)]
        paid, took = cpu_of_answers([self._socket]) - paid, time.monotonic() - began
        ops = {state: statistics.median(it[state] for it in counted) for state in _COUNTED}
        return Window(paid / took * 1e3, ops)

    def _scrape(self) -> dict[str, float]:
        page = gzip.decompress(scrape(self._connection)).decode()
        self._next += 1
        time.sleep(max(0.0, self._next - time.monotonic()))
        return {state: sum(map(float, it.findall(page))) for state, it in _COUNTED.items()}


@contextlib.asynccontextmanager
async def _storm(lab: RunningLab, kind: str) -> AsyncIterator[None]:
    argv = ["rados", "-p", _POOL, "bench", "600", "write", "-b", "4096", "-t", str(_DEPTH)]
    argv += ["--no-cleanup", "--run-name"]
    if kind == _BEGUN:
        argv.insert(argv.index("--no-cleanup"), "--write-omap")
        await lab.faults.throttle(0, **_DEVICE)
    else:
        await lab.exec(["ceph", "config", "set", *_LIMIT, "0.2"])
    names = [secrets.token_hex(4) for _ in range(_CLIENTS)]
    runs = [asyncio.create_task(lab.exec([*argv, name], within=700)) for name in names]
    try:
        yield
    finally:
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
    await lab.faults.throttle(0)
    await lab.exec(["ceph", "config", "set", *_LIMIT, "0"])


async def bench_storm(verdicts: Verdicts) -> None:
    settings = tuple(CephOption("global", name, value) for name, value in _OPTIONS.items())
    name = f"bench-storm-{secrets.token_hex(2)}"
    spec = LabSpec(name=name, osds=1, backing="loop", rotational=False, settings=settings)
    async with Lab(spec) as lab:
        await lab.exec(["ceph", "osd", "pool", "create", _POOL, "32", "32"])
        await wait_until_clean(StagedLab(lab))
        socket = lab.paths.socket("osd.0")
        with exporter(str(socket)) as (_, port):
            osd = _Osd(socket, connect(port))
            _, *before = await asyncio.to_thread(osd.windows, 3)  # the first warms up
            for kind in (_QUEUED, _BEGUN):
                async with _storm(lab, kind):
                    await asyncio.to_thread(osd.windows, 1, _RISE)
                    storm = await asyncio.to_thread(osd.windows, 3)
                await asyncio.to_thread(osd.rest)
                after = await asyncio.to_thread(osd.windows, 2)
                _say(verdicts, kind, [*before, *after], storm)
                before = after


def _say(verdicts: Verdicts, kind: str, idle: Sequence[Window], storm: Sequence[Window]) -> None:
    print(f"a storm of operations that are {kind}")
    for state in _COUNTED:
        verdicts.say(f"operations {state}", [it.ops[state] for it in storm], "")
    calm = [it.ms for it in idle]
    verdicts.say("CPU of the OSD per second, nothing in progress", calm, "ms")
    verdicts.say("CPU of the OSD per second, in the storm", [it.ms for it in storm], "ms")
    what = "in parts of what it is with nothing in progress"
    if (least := min(it.ops[kind] for it in storm)) < _LEAST:
        return verdicts.not_judged(what, f"no storm, {least:.0f} operations {kind}")
    ratios = [it.ms / statistics.median(calm) for it in storm]
    verdicts.say(what, ratios, "x", most=_MOST, noisy=max(calm) > _MOST * min(calm))
