"""A repeat does not measure while OSDs delete what the pools of the one before held."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_exporter.ceph.monclient import ClusterSilent, CommandFailed
from cephqos_loadgen.load.phase_runner import Recorded
from cephqos_loadgen.pools import pools
from cephqos_loadgen.pools.pools import Pools
from cephqos_loadgen.results.repeat import MetricsRecording
from cephqos_loadgen.run.clock import ClockWatch
from cephqos_loadgen.run.one_repeat import OneRepeat


class Clock:
    """Time passes while the code sleeps."""

    def __init__(self) -> None:
        self.now = 50.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Cluster:
    """OSDs that answer how many groups they delete: the next of their numbers, or the last."""

    def __init__(self, **replies: list[Any]) -> None:
        self.replies: dict[str, Iterator[Any]] = {o: iter(said) for o, said in replies.items()}
        self.last: dict[str, Any] = {}

    async def up_osds(self) -> list[int]:
        return [int(name.removeprefix("osd")) for name in self.replies]

    async def once(self, prefix: str, *, target: str, logger: str, counter: str) -> Any:
        assert (prefix, logger, counter) == ("perf dump", "osd", "numpg_removing")
        name = target.replace(".", "")
        reply = self.last[name] = next(self.replies[name], self.last.get(name))
        if isinstance(reply, Exception):
            raise reply
        return {"osd": {"numpg_removing": reply}} if isinstance(reply, int) else reply


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pools, "time", clock)
    monkeypatch.setattr(pools, "asyncio", SimpleNamespace(sleep=clock.sleep))
    return clock


async def waited(cluster: Any) -> str:
    live: Any = SimpleNamespace(doing="")
    nothing: Any = None
    found = await Pools(cluster, nothing, nothing, live).until_deleted()
    assert live.doing == ""
    return found


async def test_a_repeat_waits_until_no_osd_deletes_groups(clock: Clock) -> None:
    assert await waited(Cluster(osd0=[3, 2, 0, 0], osd1=[0, 0, 1, 0])) == ""
    assert clock.now == 50 + 4


async def test_groups_that_are_deleted_for_longer_are_a_finding(clock: Clock) -> None:
    said = await waited(Cluster(osd0=[0], osd1=[9], osd2=[40, 3]))
    assert said == (
        "cluster: still deleted when the phases began: 12 placement groups that were removed or"
        " have moved, on osd.1, osd.2"
    )
    assert clock.now == pytest.approx(650, abs=2)


async def test_osds_that_do_not_say_it_are_not_waited_for(clock: Clock) -> None:
    """One that hangs, one that refuses, and Crimson's, which has no such counter."""
    refused = CommandFailed("perf dump", -22, "no")
    replies: dict[str, list[Any]] = {"osd0": [ClusterSilent("late")], "osd1": [refused]}
    assert await waited(Cluster(**replies, osd2=[{}, ""], osd3=[{"osd": {}}])) == ""
    assert clock.now == 51


async def test_a_repeat_waits_after_its_pools_are_made_and_before_its_phases() -> None:
    done: list[str] = []

    def step(name: str, result: str = "") -> Any:
        async def run(*_: object) -> str:
            done.append(name)
            if name == "phases":
                raise OSError
            return result

        return run

    left = "cluster: still deleted when the phases began: 3"
    of_context = SimpleNamespace(
        prepare=step("prepare"), empty=step("empty"), until_deleted=step("wait", left)
    )
    repeat = OneRepeat.__new__(OneRepeat)
    repeat._point = SimpleNamespace(pools=(), phases=())  # type: ignore[assignment]
    repeat._boots = SimpleNamespace(begin=step("phases"), findings=())  # type: ignore[assignment]
    repeat._clock = ClockWatch(lambda *_, **__: None)
    repeat._changed_by_others = repeat._cluster_findings = ()
    context: Any = SimpleNamespace(pools=of_context)
    metrics: Any = None
    with pytest.raises(OSError):
        await repeat._prepare_and_run(context, metrics, Recorded())
    assert done == ["prepare", "empty", "wait", "phases"]
    assert repeat._findings(Recorded(), MetricsRecording(0, 0, {}, "")) == (left,)
