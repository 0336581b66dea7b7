"""Reads the counters of OSDs, many at once: one that hangs makes no other one late."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_insight.trial.measure import OsdCounters, counters_of
from cephqos_loadgen.cluster.connection import ClusterConnection

LOOK_SECONDS: Final = 5.0  # for all OSDs

OsdRead = tuple[OsdCounters, tuple[float, ...]]  # and the bounds of the buckets


class OsdReaders:
    """Each connection asks one OSD at a time."""

    def __init__(self, connections: Sequence[ClusterConnection]) -> None:
        self._connections = connections
        self._hung: set[int] = set()  # at the last look: they are asked last
        self.why: dict[int, str] = {}  # by OSD: why it did not answer

    async def read(self, osds: Sequence[int]) -> Mapping[int, OsdRead]:
        """Of those that answer in time."""
        waiting = deque(sorted(osds, key=self._hung.__contains__))
        read: dict[int, OsdRead] = {}
        asked = set[int]()

        async def ask(connection: ClusterConnection) -> None:
            while waiting:
                asked.add(osd := waiting.popleft())
                try:
                    read[osd] = await _counters(connection, f"osd.{osd}")
                except (ClusterUnreachable, CommandFailed) as error:
                    self.why[osd] = str(error)

        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS), asyncio.TaskGroup() as group:
                for connection in self._connections:
                    group.create_task(ask(connection))
        self._hung = asked - read.keys()
        return read


async def _counters(connection: ClusterConnection, osd: str) -> OsdRead:
    histograms = await connection.once("perf histogram dump", target=osd)
    return counters_of(histograms, await connection.once("perf dump", target=osd))
