"""Which pools of earlier runs are used again, and which refuse a run."""

from dataclasses import replace
from typing import Any

import pytest

from cephqos_base.errors import UsageError
from cephqos_loadgen.plan.parts import Images, PlannedPool
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.pools import kept_pools
from cephqos_loadgen.scenario.parse import parse

POOL = PlannedPool("client", size=2, pg_num=8, images=Images(1, 32 << 20))
SAID = {"spec": kept_pools.spec_of(POOL), "objects": "13", "size": "2", "run": "r1"}
ENTRY = {"pool_name": "client", "pg_num": 8, "size": 2}


def wrong(pool: PlannedPool = POOL, count: int = 13, **changes: Any) -> list[str]:
    said = {**SAID, **changes.pop("said", {})}
    return list(kept_pools.differences(pool, {**ENTRY, **changes}, said, count))


def test_the_same_pool_with_the_same_content_is_used_again() -> None:
    assert wrong() == []
    assert wrong(replace(POOL, keep=True)) == [], "whether it is to be kept says nothing about it"


def test_an_emptied_pool_is_used_again_whatever_it_holds() -> None:
    emptied = PlannedPool("client", size=2, pg_num=8, emptied=True)
    said = {"spec": kept_pools.spec_of(emptied)}
    assert wrong(emptied, count=99, said=said) == []


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (wrong(pg_num=16), "pg_num is 16, not 8"),
        (wrong(size=3), "size is 3, not 2"),
        (wrong(count=14), "it holds 14 objects, not 13"),
        (wrong(replace(POOL, images=Images(1, 64 << 20))), "it was filled with something else"),
        (wrong(replace(POOL, fresh=True)), "the scenario creates it again for every repeat"),
        (
            list(kept_pools.differences(POOL, ENTRY, {"run": "r1"}, 13)),
            "it was never filled to the end",
        ),
    ],
)
def test_what_differs_is_named(found: list[str], message: str) -> None:
    assert found == [message]


def test_a_pool_of_the_clusters_own_size_is_compared_with_what_that_was() -> None:
    own = replace(POOL, size=None)
    said = {"spec": kept_pools.spec_of(own), "size": "3"}
    assert wrong(own, size=3, said=said) == []
    assert wrong(own, size=2, said=said) == ["size is 2, not 3"]


class KeptCluster:
    """One pool, and what it says of itself."""

    def __init__(self, metadata: dict[str, Any], objects: int = 13) -> None:
        self.metadata, self.objects = metadata, objects

    async def fresh_stats(self) -> None:
        pass

    async def command(self, prefix: str, **_: Any) -> Any:
        return {
            "osd pool ls": [{**ENTRY, "application_metadata": self.metadata}],
            "osd lspools": [{"poolnum": 4, "poolname": "client"}],
            "pg dump": {"pool_stats": [{"poolid": 4, "stat_sum": {"num_objects": self.objects}}]},
        }[prefix]


def plan(name: str = "client") -> Plan:
    text = f"""\
scenario: mini
pools: [{{name: {name}, size: 2, pg_num: 8, images: {{size: 32M}}}}]
phases: [{{name: c, fio: {{engine: rbd, pool: {name}, rw: read, bs: 4K}}, until: {{duration: 1s}}}}]
"""
    return parse(text, "mini.yaml")


async def look(cluster: KeptCluster, of: Plan) -> dict[str, str]:
    return await kept_pools.look(cluster, of)  # type: ignore[arg-type]


async def test_pools_found_are_told_with_the_run_that_kept_them() -> None:
    assert await look(KeptCluster({"cephqos": SAID}), plan()) == {"client": "r1"}
    assert await look(KeptCluster({"cephqos": SAID}), plan("other")) == {}


async def test_a_pool_that_somebody_else_made_refuses_the_run() -> None:
    with pytest.raises(UsageError, match="was not made by cephqos: it is left alone"):
        await look(KeptCluster({"rbd": {}}), plan())


async def test_a_pool_that_was_changed_refuses_the_run_with_the_command_that_removes_it() -> None:
    with pytest.raises(UsageError) as error:
        await look(KeptCluster({"cephqos": SAID}, objects=14), plan())
    assert "pool 'client' of run r1 is not what this run needs: it holds 14" in str(error.value)
    assert "ceph osd pool rm client client --yes-i-really" in str(error.value)
