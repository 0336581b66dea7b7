"""`cephqos demo`: a real cluster, a small load, the exporter, and their state on the terminal."""

import argparse
import asyncio
import contextlib
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from rich.console import Console
from rich.live import Live

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed, MonClient
from cephqos_loadgen.children import child
from cephqos_loadgen.demo_view import rows, table
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.spec import GIB, LabSpec, Setting
from cephqos_loadgen.metrics import Scrape, scrape
from cephqos_loadgen.progress import Progress

POOL = IMAGE = "demo"
IMAGE_SIZE = "1G"
# A load that any machine carries: the demo is to show, not to saturate.
LOAD_IOPS = 200
# What OSDs on a shared disk can do without lying much; their default is that of an NVMe drive.
CAPACITY = 2000
_EXPORTER_START = 10.0


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="a cluster under load with its QoS shown live, until Ctrl-C"
    )
    parser.add_argument("--release", default="reef", help="Ceph release (default %(default)s)")
    parser.add_argument("--osds", type=int, default=3)
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between refreshes")
    parser.add_argument("--duration", type=float, help="end by itself after so many seconds")
    parser.set_defaults(run=_demo)


async def _demo(arguments: argparse.Namespace) -> int:
    progress = Progress()
    spec = LabSpec(
        name=f"demo-{os.getpid()}",
        release=find_release(arguments.release).name,
        osds=arguments.osds,
        osd_size=4 * GIB,
        settings=(
            Setting("osd", "osd_op_queue", "mclock_scheduler"),
            Setting("osd", "osd_mclock_max_capacity_iops_ssd", str(CAPACITY)),
            Setting("osd", "osd_mclock_max_capacity_iops_hdd", str(CAPACITY)),
        ),
    )
    async with Lab(spec, progress) as lab, contextlib.AsyncExitStack() as running:
        with progress.step("starting the exporter"):
            url = await running.enter_async_context(_exporter(lab))
        with progress.step(f"making an RBD image of {IMAGE_SIZE} and starting fio on it"):
            await _make_image(lab)
            load = await running.enter_async_context(_load(lab))
        client = await running.enter_async_context(lab.client())
        try:
            await _show(lab, client, load, url, arguments)
        except asyncio.CancelledError:
            # Ctrl-C is how the demo is meant to end: no failure, but the clean-up must still run.
            if task := asyncio.current_task():
                task.uncancel()
    return 0


@contextlib.asynccontextmanager
async def _exporter(lab: RunningLab) -> AsyncIterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, "-m", "cephqos_exporter.cli"]
    argv += [f"--web.listen-address=127.0.0.1:{port}"]
    argv += [f"--discovery.sockets={lab.paths.sockets}"]
    log = lab.paths.logs / "exporter.out"
    url = f"http://127.0.0.1:{port}/metrics"
    async with child(argv, log) as process:
        deadline = time.monotonic() + _EXPORTER_START
        while True:
            with contextlib.suppress(OSError):
                await scrape(url)
                break
            if process.returncode is not None or time.monotonic() > deadline:
                raise LabError(f"the exporter did not start: {log.read_text(errors='replace')}")
            await asyncio.sleep(0.1)
        yield url


async def _make_image(lab: RunningLab) -> None:
    async with lab.client() as client:
        await client.command("osd pool create", pool=POOL, pg_num=16)
        await client.command("osd pool application enable", pool=POOL, app="rbd")
    await lab.exec(["rbd", "create", f"{POOL}/{IMAGE}", "--size", IMAGE_SIZE])


@contextlib.asynccontextmanager
async def _load(lab: RunningLab) -> AsyncIterator[asyncio.subprocess.Process]:
    argv = [
        *("fio", "--name=demo", "--ioengine=rbd", "--clientname=admin"),
        *(f"--pool={POOL}", f"--rbdname={IMAGE}", "--rw=randrw", "--rwmixread=30"),
        *("--bs=4k", "--iodepth=8", f"--rate_iops={LOAD_IOPS * 3 // 10},{LOAD_IOPS * 7 // 10}"),
        *("--time_based", "--runtime=30d", "--output-format=json"),
    ]
    async with child(lab.enter_argv(argv), lab.paths.logs / "fio.out") as process:
        yield process


async def _show(
    lab: RunningLab,
    client: MonClient,
    load: asyncio.subprocess.Process,
    url: str,
    arguments: argparse.Namespace,
) -> None:
    console = Console()
    console.print(f"metrics: {url}")
    console.print(f"inside:  cephqos lab exec --name {lab.paths.name} -- ceph -s")
    begin = time.monotonic()
    before = await scrape(url)
    with Live(console=console, auto_refresh=False) if console.is_terminal else _lines() as live:
        while arguments.duration is None or time.monotonic() - begin < arguments.duration:
            await asyncio.sleep(arguments.interval)
            if load.returncode is not None:
                said = (lab.paths.logs / "fio.out").read_text(errors="replace")
                raise LabError(f"fio ended with status {load.returncode}: {said[-500:]}")
            now = await scrape(url)
            view = await _view(lab, client, before, now, time.monotonic() - begin)
            if isinstance(live, Live):
                live.update(view, refresh=True)
            else:
                console.print(view)
            before = now


@contextlib.contextmanager
def _lines() -> Any:
    """In place of a live screen where there is no terminal: states are printed one by one."""
    yield None


async def _view(
    lab: RunningLab, client: MonClient, before: Scrape, now: Scrape, seconds: float
) -> Any:
    try:
        status = await client.command("status", within=2.0)
        health = status["health"]["status"]
        states = status["pgmap"].get("pgs_by_state", [])
        pgs = ", ".join(f"{state['count']} PGs {state['state_name']}" for state in states)
    except (ClusterUnreachable, CommandFailed) as error:
        health, pgs = f"monitor: {error}", "PGs unknown"
    ceph = lab.spec.ceph
    title = f"Ceph {ceph.version} ({ceph.name}) · {health} · {pgs} · {seconds:.0f} s"
    caption = "ops/s are normalised ops, of one cost per io each. Ctrl-C ends all of it."
    return table(title, caption, rows(before, now))
