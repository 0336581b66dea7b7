"""What the cluster complains of during a repeat is a finding, and that nobody could ask it too."""

from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_exporter.ceph.monclient import ClusterUnreachable
from cephqos_loadgen.load import cluster_watch
from cephqos_loadgen.load.cluster_watch import ClusterWatch


class Cluster:
    """A cluster with health checks, which may be away."""

    def __init__(self) -> None:
        self.checks: dict[str, Any] = {}
        self.away = False

    async def once(self, prefix: str, **_: Any) -> Any:
        if self.away:
            raise ClusterUnreachable("no answer")
        if prefix == "status":
            return {
                "health": {"status": "HEALTH_WARN", "checks": self.checks},
                "osdmap": {"num_up_osds": 3, "num_in_osds": 3},
                "pgmap": {"pgs_by_state": [{"state_name": "active+clean", "count": 8}]},
            }
        return {"pool_stats": []}

    async def fresh_stats(self) -> None:
        await self.once("status")


class SteadyClock:
    def __init__(self) -> None:
        self.now = 50.0

    def time(self) -> float:
        return 1_795_000_000 + self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteadyClock:
    clock = SteadyClock()
    monkeypatch.setattr(cluster_watch, "time", clock)
    return clock


def watching(cluster: Any, began: float | None) -> ClusterWatch:
    lines: Any = SimpleNamespace(write=lambda entry: None)
    watch = ClusterWatch(cluster, lines, lambda *_, **__: None)
    watch._last_seen = began
    return watch


async def test_complaints_are_findings_and_what_phases_bring_about_is_none(
    clock: SteadyClock,
) -> None:
    cluster = Cluster()
    watch = watching(cluster, clock.now)
    for checks in ([], ["SLOW_OPS", "OSD_DOWN"], ["SLOW_OPS", "OSDMAP_FLAGS"]):
        cluster.checks = dict.fromkeys(checks)
        await watch.look()
    assert list(watch.findings()) == ["cluster: SLOW_OPS in 2 of 3 looks, about a second apart"]


@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_cluster_that_nobody_saw_for_a_while_is_a_finding(
    clock: SteadyClock, comes_back: bool
) -> None:
    """What recovered in that time is known by its sums only, and not when."""
    cluster = Cluster()
    watch = watching(cluster, clock.now)
    await watch.look()
    for _ in range(23):
        cluster.away = True
        clock.now += 1
        await watch.latest()
    cluster.away = not comes_back
    if comes_back:
        await watch.look()
        clock.now += 9
    assert list(watch.findings()) == ["cluster: not seen for 23 s"]


async def test_the_time_in_which_pools_are_filled_is_no_time_in_which_nobody_looked(
    clock: SteadyClock,
) -> None:
    watch = watching(Cluster(), None)
    clock.now += 7200
    assert list(watch.findings()) == []
