"""The probe as a source of a scrape: it measures in the background, a scrape shows what it found.

What it can cost the cluster: `rate` operations a second over all pools, of `size` bytes, one at a
time, on `objects` objects per pool in a namespace of their own. Without scrapes it rests.
"""

import asyncio
import itertools
import logging
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cephqos_exporter.ceph.monclient import ClusterAccess, ClusterUnreachable
from cephqos_exporter.families import Family
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.probe.child import ProbeChild
from cephqos_exporter.probe.latencies import Measured
from cephqos_exporter.resting import WhileScraped

log = logging.getLogger(__name__)

_PAUSE_AFTER_FAILURE: Final = 5.0
# The operation under way when the probe ends may take this long, then it is cancelled.
_LAST_SECONDS: Final = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeSpec:
    """What to do to which pools."""

    pools: tuple[str, ...]
    rate: float = 2.0
    size: int = 4096
    objects: int = 64  # placement hashes them over the pool's PGs, and so over its OSDs
    namespace: str = "cephqos-probe"
    timeout: float = 30.0


def plan(spec: ProbeSpec, host: str) -> Iterator[tuple[str, str, str]]:
    """(pool, op, object) for ever: every object of every pool is written, then read."""
    for number in itertools.cycle(range(spec.objects)):
        for pool in spec.pools:
            name = f"{host}.{number}"
            yield pool, "write", name
            yield pool, "read", name


class ProbeSource:
    """Small reads and writes against pools, at a bounded rate."""

    name = "probe"

    def __init__(self, connection: ClusterAccess, spec: ProbeSpec) -> None:
        self.not_understood = NotUnderstood()  # nothing: it reads no replies of Ceph
        self._spec = spec
        self._child = ProbeChild(connection, namespace=spec.namespace, size=spec.size)
        self._measured = Measured()
        self._fsid = ""
        self._up = False
        self._probing = WhileScraped("probe", self._run)

    def start(self) -> None:
        """Nothing: who is not scraped puts no load on a cluster."""

    async def collect(self, deadline: float) -> Iterable[Family]:
        """What was measured so far; starts measuring."""
        self._probing.go_on()
        return list(self._measured.families(self._fsid, self._up))

    async def close(self) -> None:
        """Stop, and remove the objects if the cluster lets us."""
        await self._probing.end()

    async def _run(self) -> None:
        operations = plan(self._spec, socket.gethostname())
        while True:
            try:
                await self._connected(operations)
            except ClusterUnreachable as exc:
                log.warning("probe: %s", exc)
            await asyncio.sleep(_PAUSE_AFTER_FAILURE)

    async def _connected(self, operations: Iterator[tuple[str, str, str]]) -> None:
        pause = 1 / self._spec.rate
        operation: asyncio.Task[None] | None = None
        try:
            self._fsid, self._up = await self._child.fsid(self._spec.timeout), True
            while True:
                operation = asyncio.create_task(self._operation(*next(operations)))
                await asyncio.gather(asyncio.shield(operation), asyncio.sleep(pause))
        finally:
            self._up = False
            if operation is not None:  # else the child is killed with it, and leaves its objects
                with suppress(ClusterUnreachable, TimeoutError):
                    await asyncio.wait_for(operation, _LAST_SECONDS)
            await self._child.close()

    async def _operation(self, pool: str, op: str, name: str) -> None:
        timeout = self._spec.timeout
        try:
            answer = await self._child.ask(pool, op, name, timeout)
        except ClusterUnreachable:
            self._measured.failed(pool, op, "timeout", timeout)
            raise
        if answer.error is None:
            self._measured.add(pool, op, answer.seconds)
        else:
            self._measured.failed(pool, op, answer.error, answer.seconds)
