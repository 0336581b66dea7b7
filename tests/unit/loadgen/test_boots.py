"""An OSD that restarts in the middle of a repeat is no secret of its archive."""

from typing import Any

import pytest

from cephqos_exporter.ceph.monclient import ClusterUnreachable
from cephqos_loadgen.load.phase_runner import Recorded
from cephqos_loadgen.phase_kinds.osd_out_in import OsdInResult, OsdOutResult
from cephqos_loadgen.phase_kinds.wait import WaitResult
from cephqos_loadgen.results.phase import PhaseRecord
from cephqos_loadgen.run.boots import BootWatch
from cephqos_loadgen.run.one_repeat import _osds_taken_down


class Booted:
    """OSDs, by the map in which they came up; None: down."""

    def __init__(self, **osds: int | None) -> None:
        self.osds = osds
        self.restarted: set[int] = set()
        self.away = False

    async def once(self, prefix: str) -> Any:
        assert prefix == "osd dump"
        if self.away:
            raise ClusterUnreachable("no")
        each = ((int(name[1:]), up) for name, up in self.osds.items())
        return {"osds": [{"osd": n, "up": int(up is not None), "up_from": up} for n, up in each]}


@pytest.mark.parametrize(
    ("after", "own", "said"),
    [
        ({"o0": 5, "o1": 6}, (), []),
        ({"o0": 5, "o1": 9}, (), ["osd.1 went down and came back during the repeat"]),
        ({"o0": None, "o1": 6}, (), ["osd.0 went down during the repeat"]),
        ({"o0": 8, "o1": 9}, (1,), ["osd.0 went down and came back during the repeat"]),
    ],
)
@pytest.mark.parametrize("by", ["a phase", "a setting"])
async def test_osds_that_went_down_by_themselves_are_named(
    after: dict[str, int | None], own: tuple[int, ...], said: list[str], by: str
) -> None:
    cluster: Any = Booted(o0=5, o1=6)
    cluster.restarted = {0}  # for the repeat before
    watch = BootWatch(cluster)
    await watch.begin()
    cluster.osds = after
    cluster.restarted |= set(own) if by == "a setting" else set()
    await watch.end(own if by == "a phase" else ())
    assert watch.findings == said


async def test_what_cannot_be_asked_is_not_claimed() -> None:
    for away in (("begin",), ("end",)):
        cluster: Any = Booted(o0=5)
        watch = BootWatch(cluster)
        cluster.away = "begin" in away
        await watch.begin()
        cluster.away, cluster.osds = "end" in away, {"o0": 9}
        await watch.end(())
        assert watch.findings == []


def test_osds_that_phases_take_down_and_bring_back_are_known() -> None:
    results = {"out": OsdOutResult(2), "in": OsdInResult(3), "w": WaitResult(1.0), "x": None}
    records = {n: PhaseRecord("k", 0.0, 1.0, "done", result=it) for n, it in results.items()}
    assert _osds_taken_down(Recorded(records)) == {2, 3}
    assert _osds_taken_down(Recorded()) == set()
