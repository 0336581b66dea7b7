"""On real Ceph: OSDs restart one after the other, and all is active and clean between."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import restarts, undo
from cephqos_loadgen.cluster.connection import (
    ClusterConnection,
    LabAccess,
    is_settled,
    write_client_conf,
)
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.run.session import scheduler_of

from .conftest import LabPool, lab_name

WPQ = CephOption("osd", "osd_op_queue", "wpq")


class Given(LabAccess):
    """A lab that is treated as a cluster of others. It notes what each restart met."""

    at_once = False

    def __init__(self, lab: RunningLab, run: str) -> None:
        super().__init__(lab, run)
        self.met: list[tuple[Sequence[int], int, list[str]]] = []

    async def restart(self, cluster: ClusterConnection, osds: Sequence[int]) -> None:
        up, states = await cluster.up_osds(), await cluster.states()
        unclean = [state for state in states if not is_settled(state, clean=True)]
        self.met.append((list(osds), len(up), unclean))
        await super().restart(cluster, osds)


@pytest.fixture
def lab(labs: LabPool) -> Any:
    lab = labs.start(LabSpec(name=lab_name("restarts"), osds=2, osd_size=4 << 30))
    yield lab
    labs.end(lab)


@asynccontextmanager
async def least_up(lab: RunningLab) -> AsyncIterator[list[int]]:
    """How many OSDs are up, looked at ten times a second."""
    counts: list[int] = []

    async def look() -> None:
        async with lab.client() as client:
            while True:
                dump = await client.command("osd dump", within=5.0)
                counts.append(sum(osd["up"] for osd in dump["osds"]))
                await asyncio.sleep(0.1)

    looking = asyncio.create_task(look())
    try:
        yield counts
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def test_osds_restart_one_after_the_other_there_and_back(
    lab: RunningLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "_LOOK_SECONDS", 0.2)
    access, told = Given(lab, "restarts"), list[str]()
    write_client_conf(access, {})

    async def save(steps: Mapping[int, StepBack]) -> None: ...

    async with ClusterConnection(access) as cluster:
        cluster.note = told.append
        await two_copies(cluster)
        journal = undo.Journal(save)
        settings = ClusterSettings(cluster, journal)
        async with least_up(lab) as counts:
            await settings.apply([WPQ])
            assert await schedulers(cluster) == {"wpq"}
            assert await journal.roll_back(cluster) == []
        assert await schedulers(cluster) == {"mclock_scheduler"}
        assert access.met == [([osd], 2, []) for osd in (0, 1)] * 2, told
        assert min(counts) == 1, "never more than one OSD is down"
        await marked_down_is_not_restarted(cluster)
        await no_is_a_no(cluster, access)


async def two_copies(cluster: ClusterConnection) -> None:
    await cluster.command("osd pool create", pool="p", pg_num=16)
    for pool in (await cluster.command("osd dump"))["pools"]:
        name = pool["pool_name"]
        await cluster.command("osd pool set", pool=name, var="size", val="2")
        await cluster.command("osd pool set", pool=name, var="min_size", val="1")
    await cluster.wait_for_pgs(clean=True, within=60)


async def schedulers(cluster: ClusterConnection) -> set[str]:
    dumps = [await cluster.command("dump_op_pq_state", target=f"osd.{osd}") for osd in range(2)]
    return set(map(scheduler_of, dumps))


async def marked_down_is_not_restarted(cluster: ClusterConnection) -> None:
    """It comes up in a later map, and is the process that it was."""

    def up_from(dump: Any) -> int:
        return int(dump["osds"][1]["up_from"])

    before = await cluster.command("osd dump")
    await cluster.command("osd down", ids=["1"])
    while up_from(after := await cluster.command("osd dump")) == up_from(before):
        await asyncio.sleep(0.1)
    await cluster.wait_for_osd(1, up=True)
    after = await cluster.command("osd dump")
    assert up_from(after) > up_from(before)
    assert restarts.processes(after) == restarts.processes(before)


async def no_is_a_no(cluster: ClusterConnection, access: Given) -> None:
    """A pool needs both of its copies: Ceph says no, and no OSD is stopped."""
    await cluster.wait_for_pgs(clean=True, within=60)
    # Texts for people name an OSD so.
    assert await cluster.command("osd ok-to-stop", target="mgr", ids=["osd.0"])
    await cluster.command("osd pool set", pool="p", var="min_size", val="2")
    await cluster.wait_for_pgs(clean=True, within=60)
    assert await restarts.why_not_stop(cluster, [0])
    access.met.clear()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RunError, match="must not stop now"):
        patch.setattr(restarts, "MAY_STOP_SECONDS", 2.0)
        await restarts.restart(cluster, [0, 1])
    assert access.met == []
