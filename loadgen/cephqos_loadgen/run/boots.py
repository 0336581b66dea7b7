"""Notices OSDs that went down during a repeat without the repeat's doing.

An OSD that restarts in a second is up in every look at the cluster. But the OSD map notes its boot,
and the restart has cost it its CPU pinning, its caches and its queues.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.cluster.connection import ClusterConnection


class BootWatch:
    """Compares the epochs at which OSDs came up, as far as the cluster can be reached."""

    def __init__(self, cluster: ClusterConnection) -> None:
        self._cluster = cluster
        self._before: dict[int, int | None] = {}
        self.findings: list[str] = []

    async def begin(self) -> None:
        self._cluster.restarted.clear()
        self._before = await self._up_from()

    async def end(self, taken_down: Collection[int]) -> None:
        """`taken_down`: OSDs that phases took down or brought back."""
        after = await self._up_from()
        intended = {*taken_down, *self._cluster.restarted}
        self.findings = list(_changes(self._before, after, intended)) if after else []

    async def _up_from(self) -> dict[int, int | None]:
        """The epoch of the OSD map at which each OSD came up last; None while it is down."""
        with suppress(ClusterUnreachable, CommandFailed):
            dump = await self._cluster.once("osd dump")
            return {osd["osd"]: osd["up_from"] if osd["up"] else None for osd in dump["osds"]}
        return {}


def _changes(
    before: dict[int, int | None], after: dict[int, int | None], intended: Collection[int]
) -> Iterator[str]:
    for osd, was in before.items():
        now = after.get(osd)
        if osd not in intended and was != now:
            how = "went down" if now is None else "went down and came back"
            yield f"osd.{osd} {how} during the repeat"
