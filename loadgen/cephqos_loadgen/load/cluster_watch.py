"""Watches the cluster while phases run: health, PG progress, the start and end of recovery."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.load.guard_rails import GuardRails
from cephqos_loadgen.load.recovery_watch import RecoveryFollower, read_look
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.results.phase import RecoveryFigures
from cephqos_loadgen.run_recording.daemon_watch import Note
from cephqos_loadgen.run_recording.files import JsonLines

_INTERVAL = 1.0
_PROGRESS = (
    "num_objects",
    "num_objects_recovered",
    "num_bytes_recovered",
    "num_objects_misplaced",
    "num_objects_degraded",
    "num_objects_unfound",
)

# Health checks that explain figures, and that no phase brings about.
_COMPLAINTS = (
    *("SLOW_OPS", "OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL", "POOL_NEARFULL", "POOL_FULL"),
    *("OBJECT_UNFOUND", "OSD_SCRUB_ERRORS", "PG_DAMAGED", "BLUEFS_SPILLOVER"),
    *("OSD_SLOW_PING_TIME_BACK", "OSD_SLOW_PING_TIME_FRONT"),
)
_UNSEEN_SECONDS = 10.0


class ClusterWatch:
    """A look per second, written down; gaps while the monitors are away are written down too."""

    def __init__(
        self,
        cluster: ClusterConnection,
        series: JsonLines,
        note: Note,
        rails: GuardRails | None = None,
    ) -> None:
        self._cluster = cluster
        self._rails = rails
        self._series = series
        self._note = note
        self.follower = RecoveryFollower()
        self._reachable = True
        self._changed = asyncio.Condition()
        self._looking = asyncio.Lock()
        self._looks = 0
        self._complaints: Counter[str] = Counter()  # in how many looks
        self._last_seen: float | None = None  # time of the last look that succeeded
        self._unseen: list[float] = []  # seconds of each time without a look

    def findings(self) -> Iterator[str]:
        """What a reader must know: complaints of the cluster, and times without a look at it."""
        for check, looks in sorted(self._complaints.items()):
            yield f"cluster: {check} in {looks} of {self._looks} looks, about a second apart"
        self._note_unseen()
        for seconds in self._unseen:
            yield f"cluster: not seen for {seconds:.0f} s"

    def _note_unseen(self) -> None:
        """Note the time since the last look, if it is long."""
        seconds = time.monotonic() - self._last_seen if self._last_seen is not None else 0.0
        if seconds > _UNSEEN_SECONDS:
            self._unseen.append(seconds)

    async def run(self) -> None:
        """Until cancelled; RunError if the cluster becomes worse than phases make it."""
        self._last_seen = time.monotonic()
        while True:
            started = time.monotonic()
            try:
                status = await self.look()
                if self._rails is not None:
                    await self._rails.check(time.monotonic(), status)
                if not self._reachable:
                    self._note("cluster_reachable")
                self._reachable = True
            except (ClusterUnreachable, CommandFailed) as error:
                if self._reachable:
                    self._note("cluster_unreachable", reason=str(error))
                self._reachable = False
            await asyncio.sleep(max(0.1, _INTERVAL - (time.monotonic() - started)))

    async def look(self) -> Mapping[str, Any]:
        """Look once, and write it down; returns the reply to `status`."""
        async with self._looking:
            status: Mapping[str, Any] = await self._cluster.once("status")
            dump = await self._cluster.once("pg dump", target="mgr", dumpcontents=["pools"])
            now = time.time()
            self._series.write(
                {
                    "time": now,
                    "health": status["health"]["status"],
                    "checks": sorted(status["health"]["checks"]),
                    "osds_up": status["osdmap"]["num_up_osds"],
                    "osds_in": status["osdmap"]["num_in_osds"],
                    "pgmap": status["pgmap"],
                    "pools": {
                        str(pool["poolid"]): {k: pool["stat_sum"].get(k, 0) for k in _PROGRESS}
                        for pool in dump["pool_stats"]
                    },
                }
            )
            self._looks += 1
            self._complaints.update(c for c in status["health"]["checks"] if c in _COMPLAINTS)
            self._note_unseen()
            self._last_seen = time.monotonic()
            event = self.follower.take(read_look(now, status, dump))
        if event:
            is_done = event == "recovery_done"
            details = {"seconds": self.follower.recovery().seconds} if is_done else {}
            self._note(event, **details)
        async with self._changed:
            self._changed.notify_all()
        return status

    async def latest(self) -> None:
        """Look once more, after all OSDs have reported; as far as they can be reached."""
        with contextlib.suppress(ClusterUnreachable, CommandFailed, RunError):
            await self._cluster.fresh_stats()
            await self.look()

    async def recovery(self) -> RecoveryFigures:
        """What was recovered since data was last moved."""
        await self.latest()
        return self.follower.recovery()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true after a look."""
        async with self._changed:
            await self._changed.wait_for(condition)

    async def recovery_started(self, since: float) -> None:
        """Recovery is seen under way at a time after `since`."""
        await self.until(lambda: self.follower.last_under_way > since)

    async def recovery_done(self, since: float) -> None:
        """Recovery was seen after `since`, and now nothing of it is left."""
        await self.until(lambda: self.follower.last_under_way > since and self.follower.calm)
