"""A scrub is asked for once; what was lost of it is asked for again, and nothing else."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cephqos_loadgen.load.context import Context
from cephqos_loadgen.phase_kinds import scrub
from cephqos_loadgen.phase_kinds.scrub import Scrub

NEVER, NOW = "2026-01-01T00:00:00", "2026-01-02T00:00:00"


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
    context = SimpleNamespace(
        cluster=cluster,
        live=SimpleNamespace(scrub=None),
        recorder=SimpleNamespace(event=lambda name, **more: events.append((name, more))),
        scrub_started=asyncio.Event(),
    )
    phase = SimpleNamespace(name="scrub")
    scrubbing = Scrub("p", deep).carry_out(cast(Context, context), cast(Any, phase), None)
    result = await asyncio.wait_for(scrubbing, 10)
    assert cluster.asked == [(f"osd pool {verb}", ["p"]), (f"pg {verb}", "1.2")]
    assert events == [("scrub_asked_again", {"left": ["1.2"]})]
    assert (result.placement_groups, result.objects) == (3, 30)
    assert context.scrub_started.is_set()
