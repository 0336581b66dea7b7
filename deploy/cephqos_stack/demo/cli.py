"""`cephqos demo`: sets up the cluster, the load and the monitoring, then shows them."""

import argparse
import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.terminal import say
from cephqos_base.units import GIB
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN
from cephqos_loadgen.programs import free_ports
from cephqos_loadgen.progress import Progress
from cephqos_stack.demo.beside import Beside, grafana_beside, log_pipeline, logs_beside
from cephqos_stack.demo.load import running_load
from cephqos_stack.demo.provoke import PROVOCATIONS, find
from cephqos_stack.demo.remote import ask
from cephqos_stack.demo.screen import Screen
from cephqos_stack.demo.story import CAPACITY_OPTION, STORY_POOL
from cephqos_stack.grafana.find import find_grafana
from cephqos_stack.grafana.place import Grafana
from cephqos_stack.logs import LogPipeline
from cephqos_stack.stack import Stack, StackSpec
from cephqos_stack.staged.faults import create_image

POOL = IMAGE = "demo"
IMAGE_SIZE = "1G"
# A load that any machine can carry.
LOAD_IOPS = 200
# Clients of a healthy demo keep it, also while its capacity is measured.
_SLOS = Path(__file__).parent / "slos.yaml"
_LOAD = (
    *("--name=demo", "--ioengine=rbd", "--clientname=admin"),
    *(f"--pool={POOL}", f"--rbdname={IMAGE}", "--rw=randrw", "--rwmixread=30"),
    *("--bs=4k", "--iodepth=8", f"--rate_iops={LOAD_IOPS * 3 // 10},{LOAD_IOPS * 7 // 10}"),
    *("--time_based", "--runtime=30d"),
)
# IOPS, until the capacity is measured: so low that no reservation looks violated before. Ceph's
# default fits an NVMe drive, not OSDs on one shared disk.
CAPACITY = 500
# How long the screen may wait for Grafana. Later its state is shown there.
_GRAFANA_SECONDS = 20.0


def add_options(parser: Parser) -> None:
    parser.option("--release RELEASE", "Ceph release (default: %(default)s)", default="reef")
    parser.option("--osds N", "number of OSDs, 2 to 16 (default: %(default)s)", default=3)
    parser.option(
        "--interval SECONDS",
        "seconds between refreshes (default: %(default)g)",
        default=2.0,
    )
    parser.option("--tour", "a guided quarter of an hour instead of the story")
    parser.option("--calm", "tell no story; only show the cluster")
    parser.option("--once", "exit when the story is over")
    parser.option("--duration SECONDS", "exit after this many seconds")
    parser.option(
        "--provoke NAME",
        "provoke a fault in the demo that runs in another terminal, or end it: "
        + ", ".join(provocation.name for provocation in PROVOCATIONS),
    )
    parser.set_defaults(run=_demo)


async def _demo(arguments: argparse.Namespace) -> int:

    if arguments.provoke is not None:
        name = find(arguments.provoke).name
        say(f"asking the demo for {name}: its screen shows the steps", await ask(name))
        return 0
    _check(arguments)
    progress = Progress()
    grafana = await find_grafana(os.environ)
    load_port, loki_port = free_ports(2)
    listen = f"127.0.0.1:{load_port}"  # of the load's metrics
    targets = {"run": DEFAULT_LISTEN, "demo": listen, "loki": f"127.0.0.1:{loki_port}"}
    spec = LabSpec(
        name=f"demo-{os.getpid()}",
        release=find_release(arguments.release).name,
        osds=arguments.osds,
        osd_size=4 * GIB,
        backing="loop",
        rotational=False,
        op_queue="mclock_scheduler",
    )
    async with Lab(spec, progress) as lab, contextlib.AsyncExitStack() as running:
        with progress.step("starting the exporter, Prometheus and Alertmanager"):
            stack = await running.enter_async_context(Stack(lab, _stack_spec(grafana, targets)))
        beside = await _start_beside(running, log_pipeline(lab, stack, loki_port), stack, grafana)
        with progress.step(f"creating an RBD image of {IMAGE_SIZE} and starting fio on it"):
            await _make_pools_and_image(lab)
            load = await running.enter_async_context(running_load(lab, _LOAD, listen))
        client = await running.enter_async_context(lab.client())
        if grafana:
            with progress.step("starting Grafana"):
                await beside[0].within(_GRAFANA_SECONDS)
        try:
            await Screen(lab, client, load, stack, beside, arguments).run()
        except asyncio.CancelledError:
            # Ctrl-C is the normal end of the demo: no failure, but the clean-up must still run.
            if task := asyncio.current_task():
                task.uncancel()
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.tour and arguments.calm:
        raise UsageError("--tour and --calm: expected one of them")
    if arguments.tour and arguments.osds < 3:
        raise UsageError(f"--osds {arguments.osds}: --tour needs at least 3")
    if arguments.osds < 2:
        raise UsageError(
            f"--osds {arguments.osds}: the demo needs at least 2, because one of them gets slow"
        )
    if not 0.2 <= arguments.interval <= 3600:
        raise UsageError(f"--interval {arguments.interval:g}: expected 0.2 to 3600 seconds")
    if arguments.duration is not None and not arguments.duration > 0:
        raise UsageError(f"--duration {arguments.duration:g}: expected a number of seconds above 0")


def _stack_spec(grafana: Grafana | None, targets: Mapping[str, str]) -> StackSpec:
    """Alerts link to the dashboards; a `cephqos run` on the demo's cluster is watched too."""
    return StackSpec(
        name="demo",
        slos=_SLOS,
        goes_first=True,
        runs_silence=False,  # the demo shows itself as a run, and its alerts are what it shows
        runbook_url="docs/operate/runbooks/{page}.md",
        dashboard_url=f"{grafana.url}/d" if grafana else "",
        dashboard_prefix=grafana.prefix if grafana else "",
        targets=targets,
    )


async def _start_beside(
    running: contextlib.AsyncExitStack,
    pipeline: LogPipeline,
    stack: Stack,
    grafana: Grafana | None,
) -> tuple[Beside, Beside]:
    """Start Grafana and logs. The demo goes on while they start."""
    sources = Sources(
        prometheus=stack.prometheus_url,
        loki=pipeline.loki_url,
        scrape_interval=stack.spec.scrape_interval,
    )
    folder = stack.lab.paths.work / "grafana"
    grafana_part = await running.enter_async_context(grafana_beside(grafana, sources, folder))
    return grafana_part, await running.enter_async_context(logs_beside(pipeline, stack))


async def _make_pools_and_image(lab: RunningLab) -> None:
    async with lab.client() as client:
        # Not in ceph.conf, which would win over the value that the story sets later.
        await client.command("config set", who="osd", name=CAPACITY_OPTION, value=str(CAPACITY))
        await client.command("osd pool create", pool=POOL, pg_num=16)
        await client.command("osd pool application enable", pool=POOL, app="rbd")
        # Two copies, so that not every write waits for the slow OSD.
        await client.command("osd pool create", pool=STORY_POOL, pg_num=32, size=2)
        await client.command("osd pool application enable", pool=STORY_POOL, app="rados")
    await create_image(lab, f"{POOL}/{IMAGE}", IMAGE_SIZE)
