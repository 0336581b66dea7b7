"""A scrub is asked for once; what was lost of it is asked for again, and nothing else."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cephqos_loadgen.load import phase_runner
from cephqos_loadgen.load.context import Context, Hands, Marks, Sightings
from cephqos_loadgen.phase_kinds import scrub
from cephqos_loadgen.phase_kinds.scrub import Scrub
from cephqos_loadgen.phase_kinds.wait import Wait
from cephqos_loadgen.plan.planned import Phase, Start, Until
from cephqos_loadgen.results.phase import PhaseRecord

NEVER, NOW = "2026-01-01T00:00:00", "2026-01-02T00:00:00"


NO_HANDS = cast(Hands, None)


class Cluster:
    """Three placement groups. The request for one of them is lost when the pool is asked."""

    def __init__(self) -> None:
        self.stamps = dict.fromkeys(("1.0", "1.1", "1.2"), NEVER)
        self.asked: list[tuple[str, Any]] = []

    async def command(self, prefix: str, target: str, **arguments: Any) -> Any:
        assert target == "mgr"
        if prefix == "pg ls-by-pool":
            return {"pg_stats": [self._group(pgid) for pgid in self.stamps]}
        (what,) = arguments.values()
        self.asked.append((prefix, what))
        self.stamps |= dict.fromkeys(("1.0", "1.1") if what == ["p"] else (what,), NOW)
        return None

    def _group(self, pgid: str) -> dict[str, Any]:
        stamp = self.stamps[pgid]
        return {
            "pgid": pgid,
            "state": "active+clean",
            "last_scrub_stamp": stamp,
            "last_deep_scrub_stamp": stamp,
            "stat_sum": {"num_objects": 10, "num_bytes": 4096},
        }


@pytest.mark.parametrize(("deep", "verb"), [(True, "deep-scrub"), (False, "scrub")])
async def test_only_groups_that_were_not_scrubbed_are_asked_again(
    deep: bool, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "_ASK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(scrub, "_LOOK_SECONDS", 0.001)
    cluster, events = Cluster(), list[tuple[str, Any]]()
    scrubs, began = Sightings(), time.time()
    context = SimpleNamespace(
        cluster=cluster,
        live=SimpleNamespace(scrub=None),
        recorder=SimpleNamespace(event=lambda name, **more: events.append((name, more))),
        scrubs=scrubs,
    )
    phase = SimpleNamespace(name="scrub")
    scrubbing = Scrub("p", deep).carry_out(cast(Context, context), cast(Any, phase), None)
    result = await asyncio.wait_for(scrubbing, 10)
    assert cluster.asked == [(f"osd pool {verb}", ["p"]), (f"pg {verb}", "1.2")]
    assert events == [("scrub_asked_again", {"left": ["1.2"]})]
    assert (result.placement_groups, result.objects) == (3, 30)
    await asyncio.wait_for(scrubs.after(began), 1)


@pytest.mark.parametrize(("whole", "how"), [(True, "condition"), (False, "other_phase")])
async def test_a_load_beside_a_scrub_that_was_cut_off_did_not_see_it_done(
    whole: bool, how: str
) -> None:
    scrubbing = Phase("scrub", Scrub("p"), Start("at"), Until("done", 9.0, 9.0), may_fail=True)
    beside = Phase("w", Wait(), Start("with", "scrub"), Until("scrub_done", 9.0, 9.0))
    mark = Marks(succeeded=whole)
    mark.ended.set()
    point = SimpleNamespace(phases=(scrubbing, beside))
    context = cast(Context, SimpleNamespace(marks={"scrub": mark}, point=point, cluster=None))
    record = PhaseRecord("wait", 0.0, 0.0, "failed", "not over yet")
    record = await phase_runner._within_limit(context, NO_HANDS, beside, 0.0, record)
    assert (record.ended_by, record.error) == (how, "")
