"""Asks a cluster's monitors and manager, through a child process that can be killed.

Nothing but the few read-only commands below is ever asked.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_exporter.ceph.monclient import ClusterAccess, MonClient
from cephqos_exporter.daemon_errors import CommandRefused

READ_ONLY_COMMANDS: Final = frozenset(
    {"config get", "osd dump", "pg dump", "pg ls", "pg ls-by-primary", "status"}
)

# The placement groups of one OSD are 2.5 kB each; the sums of a pool are as long.
MAX_REPLY_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class ClusterQuery:
    """A command: its arguments in the order in which the `ceph` command takes them."""

    prefix: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    target: str = "mgr"


STATUS: Final = ClusterQuery("status", target="mon")
OSD_DUMP: Final = ClusterQuery("osd dump", target="mon")
POOL_TOTALS: Final = ClusterQuery("pg dump", {"dumpcontents": ["pools"]})
SCRUBBING_PGS: Final = ClusterQuery("pg ls", {"states": ["scrubbing"]})


def pgs_of_primary(osd: int) -> ClusterQuery:
    """The placement groups that an OSD leads, in full: about 2.5 kB each."""
    return ClusterQuery("pg ls-by-primary", {"osd": osd})


def option(who: str, key: str) -> ClusterQuery:
    """An option as the monitors have it; what a local file overrides they do not know."""
    return ClusterQuery("config get", {"who": who, "key": key}, target="mon")


class ClusterReader:
    """Puts queries to one cluster, one at a time, each within `timeout` seconds."""

    def __init__(self, access: ClusterAccess, *, timeout: float = 10.0) -> None:
        self._timeout = timeout
        self._client = MonClient(access, max_bytes=MAX_REPLY_BYTES)
        self.seconds: dict[str, float] = {}  # spent on each command since the start

    @property
    def starts(self) -> int:
        """Children started so far."""
        return self._client.starts

    async def ask(self, query: ClusterQuery) -> Any:
        """The parsed reply; CommandFailed, or ClusterUnreachable with its reason."""
        if query.prefix not in READ_ONLY_COMMANDS:
            raise CommandRefused(f"{query.prefix!r} is not on the list of read-only commands")
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            return await self._client.command(
                query.prefix, target=query.target, within=self._timeout, **query.arguments
            )
        finally:
            spent = self.seconds.get(query.prefix, 0.0)
            self.seconds[query.prefix] = spent + loop.time() - started

    async def close(self) -> None:
        """End the child, whatever it is doing."""
        await self._client.close()
