"""Recovery work as the exporter estimates it, against what the scheduler says it charged."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import until

from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec

from .conftest import LabPool, lab_name
from .live_exporter import LiveExporter
from .test_exporter_qos import DONE, POOL, ceph, make_pool, pg_states, settled

OBJECTS = 800
# `enqueue { class_id: 0 … } item_cost: 263144 scaled_cost: 499321`
_CHARGED = re.compile(rb"enqueue .*class_id: (\w+).* scaled_cost: (\d+)")
_CLASSES = {b"0": "background_recovery", b"1": "background_best_effort", b"3": "client"}


class SchedulerLog:
    """What the schedulers of a lab's OSDs charged, from their logs at debug_mclock 20."""

    def __init__(self, lab: RunningLab) -> None:
        self._logs = [lab.paths.log(f"osd.{osd}") for osd in range(lab.spec.osds)]
        self._from = [log.stat().st_size for log in self._logs]

    def charged(self) -> Counter[str]:
        """Cost in bytes by class since this was made."""
        return sum((self.charged_by(osd) for osd in range(len(self._logs))), Counter())

    def charged_by(self, osd: int) -> Counter[str]:
        """The same, of one OSD."""
        found: Counter[str] = Counter()
        for line in _lines(self._logs[osd], self._from[osd]):
            if match := _CHARGED.search(line):
                found[_CLASSES[match[1]]] += int(match[2])
        return found


def _lines(log: Path, start: int) -> Iterator[bytes]:
    with log.open("rb") as file:
        file.seek(start)
        yield from file


async def degrade(lab: RunningLab) -> None:
    """Write while an OSD is down, and bring it back without letting it recover."""
    for flag in ("noout", "norecover", "nobackfill"):
        await ceph(lab, "osd", "set", flag)
    # Stopped and not killed: it takes leave, and the others do not wait for its leases to end.
    await ceph(lab, "osd", "stop", "2")
    bench = ["rados", "--conf", str(lab.paths.conf), "bench", "-b", "262144", "-p", POOL]
    write = [*bench, "90", "write", "-t", "16", "--no-cleanup", "--max-objects", str(OBJECTS)]
    await lab.exec(write, within=150)
    await lab.faults.restart(2)
    await peered(lab)


async def peered(lab: RunningLab) -> None:
    """Wait until all OSDs are up and every PG is active: what is left to do is recovery."""

    async def active() -> bool:
        up = json.loads(await ceph(lab, "osd", "stat", "--format", "json"))["num_up_osds"]
        states = await pg_states(lab)
        return up == lab.spec.osds and all(state.startswith("active+") for state in states)

    await until(active, "all OSDs are up, every PG is active")


async def recover(lab: RunningLab) -> None:
    for flag in ("noout", "norecover", "nobackfill"):
        await ceph(lab, "osd", "unset", flag)
    await asyncio.sleep(1)
    await settled(lab)


@pytest.mark.parametrize(
    ("release", "receives_only"), [("tentacle", False), ("reef", True)], ids=str
)
async def test_recovery_work_is_what_the_scheduler_charged(
    labs: LabPool, release: str, receives_only: bool
) -> None:
    """Of the OSD that came back, and of all. If recovery is asynchronous, that one leads no
    placement group so long: it sends no push, from which it would know their size."""
    settings = [CephOption("osd", "debug_mclock", "20")]
    if receives_only:
        settings.append(CephOption("osd", "osd_async_recovery_min_cost", "1"))
    spec = LabSpec(name=lab_name("recovery"), release=release, osds=3, settings=tuple(settings))
    if receives_only:  # on SSDs, where a push of 256 KiB is charged as more than one operation
        spec = replace(spec, backing="loop", rotational=False)
    lab = labs.start(spec)
    try:
        await make_pool(lab)
        await degrade(lab)
        async with LiveExporter(lab, [MclockCollector(interval=0)]) as exporter:
            before, log = await exporter.scrape(), SchedulerLog(lab)
            work = asyncio.create_task(recover(lab))
            while not work.done():
                await exporter.scrape()
                await asyncio.sleep(0.3)
            await work
            after = await exporter.scrape()
        cost_per_io = after.values("cephqos_qos_cost_per_io_bytes")[0]
        recovery = {"class_": "background_recovery"}
        came_back = recovery | {"ceph_daemon": "osd.2"}
        looked_at = [(came_back, log.charged_by(2), 100)]
        if not receives_only:  # on SSDs, what primaries are charged is known less well (qos.md)
            looked_at.append((recovery, log.charged(), 500))
        for labels, charges, least in looked_at:
            charged = charges["background_recovery"] / cost_per_io
            ours = after.sum(DONE, **labels) - before.sum(DONE, **labels)
            print(f"{labels}: scheduler {charged:.1f}, exporter {ours:.1f}")
            assert charged > least
            assert ours == pytest.approx(charged, rel=0.05)
    finally:
        labs.end(lab)
