"""A capacity that is measured, and one that is given, as a baseline of clients."""

from typing import Any

import pytest
from tests.shipped_plans import shipped_plan

from cephqos_base.errors import CephqosError
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import capacity_bench
from cephqos_loadgen.plan.parts import Capacity
from cephqos_loadgen.scenario.variables import variable_from_text


class Cluster:
    def __init__(self) -> None:
        self.benched = 0

    async def command(self, prefix: str, **_: Any) -> Any:
        if prefix == "bench":
            self.benched += 1
            return {"iops": 4321.0, "bytes_per_sec": 1.0}
        return [{"id": 0, "rotational": "0"}, {"id": 1, "rotational": "1"}]

    async def up_osds(self) -> list[int]:
        return [0, 1]


async def measured(spec: Capacity) -> tuple[dict[str, float], list[CephOption], int]:
    put: list[CephOption] = []

    class Settings:
        async def apply(self, options: list[CephOption]) -> None:
            put.extend(options)

    cluster, settings = Cluster(), Settings()
    found = await capacity_bench.measure(cluster, settings, spec, lambda _: None)  # type: ignore[arg-type]
    return found, put, cluster.benched


async def test_a_capacity_that_is_given_is_set_without_a_benchmark() -> None:
    found, put, benched = await measured(Capacity(iops=21500))
    assert found == {"osd.0": 21500.0, "osd.1": 21500.0} and benched == 0
    assert [(it.section, it.name, it.value) for it in put] == [
        ("osd.0", "osd_mclock_max_capacity_iops_ssd", "21500.00"),
        ("osd.1", "osd_mclock_max_capacity_iops_hdd", "21500.00"),
    ]


async def test_else_each_osd_is_measured() -> None:
    found, _, benched = await measured(Capacity())
    assert found == {"osd.0": 4321.0, "osd.1": 4321.0} and benched == 2


@pytest.mark.parametrize("name", ["client-vs-recovery", "client-vs-scrub"])
def test_a_variable_of_the_scenario_gives_it(name: str) -> None:
    measured_plan = shipped_plan(name).capacity
    assert measured_plan and measured_plan.iops is None
    given = shipped_plan(name, variables={"capacity": variable_from_text("21500")}).capacity
    assert given and given.iops == 21500
    with pytest.raises(CephqosError, match="a whole number from 1"):
        shipped_plan(name, variables={"capacity": variable_from_text("fast")})
