"""Pools of a run: marked before they get their name, known by id and mark, and by nothing else."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.changed_cluster import ChangedCluster

from cephqos_loadgen.cluster.steps.pools import PoolMade
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.pools.kept_pools import KeptPools
from cephqos_loadgen.pools.pools import Pools

RUN = "20260101T000000Z-mini-ab12"
FRESH = PlannedPool("client", size=2, pg_num=8, fresh=True)


class PoolCluster(ChangedCluster):
    """It dies with the run after so many of its changes."""

    def __init__(self, dies_after: int = 1000) -> None:
        super().__init__()
        self._left = dies_after

    async def command(self, prefix: str, **given: Any) -> Any:
        if prefix.startswith("osd pool"):
            if not self._left:
                raise asyncio.CancelledError
            self._left -= 1
        return await super().command(prefix, **given)

    async def wait_for_pgs(self, **_: object) -> None: ...


def pools_of(cluster: Any, kept: KeptPools | None = None) -> tuple[Pools, Journal]:
    async def save(steps: Mapping[int, StepBack]) -> None: ...

    live: Any = SimpleNamespace(where=SimpleNamespace(run=RUN), doing="", fill_ended=lambda *_: 0)
    start: Any = None
    journal = Journal(save)
    return Pools(cluster, journal, start, live, kept), journal


async def test_a_pool_carries_the_runs_mark_before_it_has_its_name() -> None:
    cluster = PoolCluster()
    cluster.add_pool(4, "rbd")
    pools, journal = pools_of(cluster)
    await pools.prepare([FRESH])
    (step,) = journal.entries
    assert isinstance(step, PoolMade)
    assert (step.id, step.run, step.above) == (5, RUN, 4)
    assert cluster.pools[5]["application_metadata"] == {"cephqos": {"run": RUN}}
    assert cluster.pools[5]["pool_name"] == "client"
    assert cluster.asked[0] == f"osd pool create cephqos.{step.token}.client"


@pytest.mark.parametrize("changes", range(8))
async def test_wherever_the_run_dies_its_pool_is_removed_and_no_other(changes: int) -> None:
    cluster = PoolCluster(dies_after=changes)
    cluster.add_pool(4, "rbd")
    pools, journal = pools_of(cluster)
    with pytest.raises(asyncio.CancelledError):
        await pools.prepare([FRESH])
        raise asyncio.CancelledError
    cluster._left = 1000
    if "client" not in [pool["pool_name"] for pool in cluster.pools.values()]:
        cluster.add_pool(9, "client")  # by someone else, after the run had died
    before = set(cluster.pools) - {5}
    connection: Any = cluster
    assert await journal.roll_back(connection) == [] and journal.left == []
    assert set(cluster.pools) == before


async def test_a_pool_that_someone_else_makes_meanwhile_is_not_taken_for_the_runs_own() -> None:
    cluster = PoolCluster()
    pools, journal = pools_of(cluster)
    command = cluster.command

    async def slip_in(prefix: str, **given: Any) -> Any:
        if prefix == "osd pool rename":
            cluster.add_pool(77, "client")
        return await command(prefix, **given)

    cluster.command = slip_in  # type: ignore[method-assign]
    with pytest.raises(RunError, match=r"pool 'client' cannot be made: .* exists"):
        await pools.prepare([FRESH])
    connection: Any = cluster
    assert await journal.roll_back(connection) == []
    assert sorted(cluster.pools) == [77]


async def test_a_fresh_pool_is_made_again_with_a_step_of_its_own() -> None:
    cluster = PoolCluster()
    pools, journal = pools_of(cluster)
    await pools.prepare([FRESH])
    await pools.prepare([FRESH])
    (step,) = journal.entries
    assert isinstance(step, PoolMade) and list(cluster.pools) == [step.id]


@pytest.mark.parametrize("run", ["kept-by-run", None, "another-run"])
async def test_a_kept_pool_is_replaced_only_while_it_has_the_mark_of_the_run_that_kept_it(
    run: str | None,
) -> None:
    """Its name alone says nothing: someone may have removed it, and made another one."""
    cluster = PoolCluster()
    cluster.add_pool(3, "client", run)
    pools, _ = pools_of(cluster, KeptPools(found={"client": "kept-by-run"}))
    if run == "kept-by-run":
        await pools.prepare([FRESH])
        assert 3 not in cluster.pools
        return
    with pytest.raises(RunError, match="pool 'client' was created by someone else"):
        await pools.prepare([FRESH])
    assert 3 in cluster.pools
