"""A cluster on which every dashboard has something to show, within three minutes.

A test run loads the cluster: clients alone, against a deep scrub, against recovery, and for a
while at the end, during which one device is held to a few writes a second. That OSD breaks its
reservation, and the alert for it fires.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.log_pipeline import TriedPipeline

from cephqos_base.units import GIB
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.programs import free_ports
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.scenario.parse import parse
from cephqos_stack.logs import LogSpec
from cephqos_stack.stack import Stack, StackSpec

VICTIM: Final = 1
WRITES_PER_SECOND: Final = 60
CAPACITY: Final = "osd_mclock_max_capacity_iops_ssd"
SLOS: Final = """version: 1
slos:
  - {name: writes, source: osd, op: write, threshold: 0.0512, objective: 0.9}
"""
LAST: Final = "slow_device"
SCENARIO: Final = """
scenario: dashboards
about: Something of everything that dashboards show.
lab: {osds: 3, osd_size: 4G}
settings:
  osd: {osd_scrub_sleep: 0, osd_mclock_profile: balanced}
  mgr: {mgr_stats_period: 1}
pools:
  - {name: client, size: 2, pg_num: 16, images: {size: 128M}}
  - {name: scrub, size: 2, pg_num: 8, objects: {count: 400, size: 64K}}
  - {name: recovery, size: 2, pg_num: 8, fresh: true}
phases:
  - name: clients_alone
    fio: {engine: rbd, pool: client, rw: randrw, bs: 4K, depth: 16}
    until: {duration: 10s}
  - name: client
    fio: {engine: rbd, pool: client, rw: randrw, bs: 4K, depth: 16}
    until: {duration: 12s}
  - {name: scrub, scrub: {pool: scrub}, start: {with: client, delay: 1s}, at_most: 5m, expect: 10s}
  - name: after_scrub
    wait: {}
    start: {after: client}
    until: {phase: scrub}
    at_most: 5m
    expect: 5s
  - {name: osd_out, osd_out: {osd: last}}
  - {name: recovered, settle: {}, at_most: 5m, expect: 20s}
  - {name: fill_pool, prefill: {pool: recovery, objects: {count: 60, size: 1M}}, at_most: 5m}
  - {name: osd_back_in, osd_in: {osd: last}}
  - name: with_recovery
    fio: {engine: rbd, pool: client, rw: randrw, bs: 4K, depth: 16}
    start: {when: recovery_started}
    until: {duration: 12s}
  - name: slow_device
    fio: {engine: rbd, pool: client, rw: randwrite, bs: 4K, depth: 64}
    start: {after: with_recovery}
    until: {duration: SQUEEZED}
"""


def story_lab(name: str, release: str = "tentacle", op_queue: str = "mclock_scheduler") -> LabSpec:
    """Three OSDs on loop devices that count as SSDs."""
    return LabSpec(
        name=name,
        release=release,
        osds=3,
        osd_size=4 * GIB,
        backing="loop",
        rotational=False,
        op_queue=op_queue,
    )


@dataclass(frozen=True)
class Told:
    """The story at its climax: everything goes on, and the alert fires."""

    stack: Stack
    logs: TriedPipeline
    begin: float  # seconds since 1970
    run: str
    cluster: str

    @property
    def variables(self) -> dict[str, str]:
        """What the dashboards' variables stand for."""
        return {
            "cluster": self.cluster,
            "detail": self.cluster,
            "osd": f"osd.{VICTIM}",
            "host": ".+",
            "run": self.run,
            "second": self.run,
            "load": "client",
            "shift": "1",
        }


@contextlib.asynccontextmanager
async def story(lab: RunningLab, folder: Path, *, climax: float = 60) -> AsyncIterator[Told]:
    """The story, up to its climax, which lasts for so many seconds; archives go into the folder."""
    archives, slos = folder / "archives", folder / "slos.yaml"
    archives.mkdir(parents=True, exist_ok=True)
    slos.write_text(SLOS, encoding="utf-8")
    (port,) = free_ports(1)
    await _probed_pool(lab)
    wanted = LogSpec(
        folder=folder / "loki", logs=lab.paths.logs, cluster=lab.state.fsid, archives=archives
    )
    async with TriedPipeline(wanted) as logs:
        begin = time.time()
        async with Stack(lab, _stack_spec(slos, logs, port)) as stack:
            await _calibrate(lab, stack)
            async with _running(lab, archives, port, climax) as run:
                (info,) = await _answer(stack, f'cephqos_run_info{{phase="{LAST}"}}', run, 240)
                await lab.faults.throttle(VICTIM, wiops=WRITES_PER_SECOND)
                await _answer(stack, _alert(), run, 60)
                yield Told(stack, logs, begin, info["metric"]["run"], lab.state.fsid)


def _stack_spec(slos: Path, logs: TriedPipeline, port: int) -> StackSpec:
    return StackSpec(
        name="story",
        slos=slos,
        exporter_options=(
            *("--role=osd,cluster,probe", "--probe.pools=probed", "--probe.rate=10"),
            "--probe.timeout=5",
        ),
        targets={"load": f"127.0.0.1:{port}", "loki": logs.loki_url.removeprefix("http://")},
    )


@contextlib.asynccontextmanager
async def _running(
    lab: RunningLab, archives: Path, port: int, climax: float
) -> AsyncIterator[asyncio.Task[Path]]:
    """The run, which is interrupted when the block ends; the device is set free then."""
    options = RunOptions(out=archives, lab=lab.paths.name, listen=f"127.0.0.1:{port}")
    scenario = parse(SCENARIO.replace("SQUEEZED", f"{climax + 60:g}s"), "story.yaml")
    run = asyncio.create_task(Runner(scenario, options, Silent()).run())
    try:
        yield run
    finally:
        await lab.faults.throttle(VICTIM)
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run


def _alert() -> str:
    return (
        'ALERTS{alertname="CephQosReservationViolated", alertstate="firing", class="client",'
        f' severity="critical", ceph_daemon="osd.{VICTIM}"}}'
    )


async def _probed_pool(lab: RunningLab) -> None:
    for argv in (["create", "probed", "8"], ["application", "enable", "probed", "rados"]):
        await lab.exec(["ceph", "osd", "pool", *argv])


async def _calibrate(lab: RunningLab, stack: Stack) -> None:
    """Give the OSDs the capacity that they have: what they deliver under full load."""
    await lab.exec(["ceph", "config", "set", "osd", CAPACITY, "2000"])
    for argv in (["create", "full", "32"], ["set", "full", "size", "2"]):
        await lab.exec(["ceph", "osd", "pool", *argv])
    load = ["rados", "-p", "full", "bench", "14", "write", "-b", "4096", "-t", "128"]
    running = asyncio.create_task(lab.exec([*load, "--no-cleanup"], within=90))
    await asyncio.sleep(11)
    found = await stack.query("avg(avg_over_time(osd:cephqos_saturated_ops:rate[5s]))")
    await running
    if found:
        delivered = round(float(found[0]["value"][1]))
        await lab.exec(["ceph", "config", "set", "osd", CAPACITY, str(delivered)])


async def _answer(
    stack: Stack, expr: str, run: asyncio.Task[Path], within: float
) -> list[dict[str, Any]]:
    """The first answer of a query that is not empty, while the run goes on."""
    async with asyncio.timeout(within):
        while True:
            if run.done():
                raise AssertionError(f"the run ended early: {run.result()}")
            if found := await stack.query(expr):
                return found
            await asyncio.sleep(0.5)
