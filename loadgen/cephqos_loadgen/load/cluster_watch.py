"""Watches the cluster while phases run: health, PG progress, the start and end of recovery."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.record.files import JsonLines

_INTERVAL = 1.0
_RECOVERING = ("recovering", "backfilling")
_WAITING = ("recovery_wait", "backfill_wait", "recovery_toofull", "backfill_toofull")
# Recovery counts as over when two looks in a row find nothing left of it.
_CALM_LOOKS = 2
_PROGRESS = (
    "num_objects",
    "num_objects_recovered",
    "num_bytes_recovered",
    "num_objects_misplaced",
    "num_objects_degraded",
    "num_objects_unfound",
)

Note = Callable[..., None]


@dataclass(slots=True)
class ClusterLook:
    """What the last look found."""

    time: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    recovered_objects: int = 0
    recovered_bytes: int = 0
    misplaced: int = 0
    degraded: int = 0
    unfound: int = 0

    @property
    def recovering(self) -> bool:
        return any(part in _RECOVERING for state in self.states for part in state.split("+"))

    @property
    def calm(self) -> bool:
        """Nothing recovers, waits to, or ought to."""
        parts = {part for state in self.states for part in state.split("+")}
        busy = {*_RECOVERING, *_WAITING, "degraded", "undersized", "peering", "remapped"}
        return bool(parts) and not parts & busy and not self.misplaced and not self.degraded


class ClusterWatch:
    """A look per second, written down; gaps while the monitors are away are written down too."""

    def __init__(self, cluster: ClusterConnection, series: JsonLines, note: Note) -> None:
        self._cluster = cluster
        self._series = series
        self._note = note
        self.now = ClusterLook()
        self.previous = ClusterLook()
        self.recovery_seen = 0.0  # when the last look that found recovery under way was
        self._recovery_began = 0.0  # 0: none is under way
        self.recovery_seconds = 0.0  # how long the last one took
        self._calm_looks = 0
        self._reachable = True
        self._down: frozenset[int] = frozenset()
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            started = time.monotonic()
            try:
                await self._look()
                if not self._reachable:
                    self._note("cluster_reachable")
                self._reachable = True
            except (ClusterUnreachable, CommandFailed) as error:
                if self._reachable:
                    self._note("cluster_unreachable", reason=str(error))
                self._reachable = False
            await asyncio.sleep(max(0.1, _INTERVAL - (time.monotonic() - started)))

    async def _look(self) -> None:
        status = await self._cluster.once("status")
        dump = await self._cluster.once("pg dump", target="mgr", dumpcontents=["pools"])
        now = read_progress(time.time(), status, dump)
        self._series.write(
            {
                "time": now.time,
                "health": status["health"]["status"],
                "checks": sorted(status["health"]["checks"]),
                "osds_up": status["osdmap"]["num_up_osds"],
                "osds_in": status["osdmap"]["num_in_osds"],
                "pgmap": status["pgmap"],
                "pools": {
                    str(pool["poolid"]): {key: pool["stat_sum"].get(key, 0) for key in _PROGRESS}
                    for pool in dump["pool_stats"]
                },
            }
        )
        await self._take(now)

    async def _take(self, now: ClusterLook) -> None:
        self.previous, self.now = self.now, now
        # A short recovery may fall between two looks: what it moved still shows.
        moved = self.previous.time and now.recovered_objects > self.previous.recovered_objects
        if now.recovering or moved:
            if not self._recovery_began:
                self._note("recovery_started")
                self._recovery_began = now.time
            self.recovery_seen = now.time
        self._calm_looks = self._calm_looks + 1 if now.calm else 0
        if self._recovery_began and self._calm_looks == _CALM_LOOKS:
            self.recovery_seconds = now.time - self._recovery_began
            self._note("recovery_done", seconds=self.recovery_seconds)
            self._recovery_began = 0.0
        async with self._changed:
            self._changed.notify_all()

    def expect_recovery(self) -> None:
        """Data is about to be moved: what is under way, or never came to rest, is not that."""
        self._recovery_began = self.recovery_seconds = 0.0

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a look makes it so."""
        async with self._changed:
            await self._changed.wait_for(condition)

    async def recovery_started(self, since: float) -> None:
        """Recovery is seen under way at a time after `since`."""
        await self.until(lambda: self.recovery_seen > since)

    async def recovery_done(self, since: float) -> None:
        """Recovery was seen after `since`, and now nothing of it is left."""
        await self.until(lambda: self.recovery_seen > since and self._calm_looks >= _CALM_LOOKS)


def read_progress(now: float, status: dict[str, Any], dump: dict[str, Any]) -> ClusterLook:
    """What `status` and `pg dump pools` say, taken together."""
    pools = [pool["stat_sum"] for pool in dump["pool_stats"]]

    def total(key: str) -> int:
        return sum(int(pool.get(key, 0)) for pool in pools)

    return ClusterLook(
        time=now,
        states={s["state_name"]: s["count"] for s in status["pgmap"].get("pgs_by_state", [])},
        recovered_objects=total("num_objects_recovered"),
        recovered_bytes=total("num_bytes_recovered"),
        misplaced=total("num_objects_misplaced"),
        degraded=total("num_objects_degraded"),
        unfound=total("num_objects_unfound"),
    )


async def recovered(cluster: ClusterConnection) -> dict[str, int]:
    """Objects and bytes recovered, of all pools, since they were made; empty if not to be had."""
    try:
        dump = await cluster.command("pg dump", target="mgr", dumpcontents=["pools"])
    except (CommandFailed, ClusterUnreachable, RunError):
        return {}
    sums = [pool["stat_sum"] for pool in dump["pool_stats"]]
    return {
        "objects": sum(int(entry["num_objects_recovered"]) for entry in sums),
        "bytes": sum(int(entry["num_bytes_recovered"]) for entry in sums),
    }
