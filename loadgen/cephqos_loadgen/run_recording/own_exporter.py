"""The exporters that a run records: those that the user gives with --exporter, and one of its own.

The run's own asks the cluster for the progress of scrub and recovery. It asks the OSDs too, if the
user gives no exporter and the OSDs' admin sockets are on this host.
"""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from cephqos_base.servers import Address
from cephqos_loadgen.cluster.connection import Access
from cephqos_loadgen.processes import ENDS_WITH_PARENT, own_module
from cephqos_loadgen.programs import answers, free_ports
from cephqos_loadgen.run_recording.child import Child, ChildFailed, Launch
from cephqos_loadgen.run_recording.daemon_watch import Note

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.5
_RESTARTS = 5
_LAST_WORDS_SECONDS = 1.0


def argv(port: int, access: Access, python: str, sockets: Path | None) -> list[str]:
    """The run's own exporter; `python` is one that has the rados module."""
    # It also ends when the run is killed. No other program would end it.
    command = [*ENDS_WITH_PARENT, *own_module("cephqos_exporter.cli")]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    if sockets is None:
        command += ["--role=cluster"]
    else:
        command += ["--role=osd,cluster", f"--discovery.sockets={sockets}"]
    place = access.place
    command += [f"--cluster.conf={access.conf}", f"--cluster.name=client.{place.user}"]
    command += [f"--cluster.keyring={place.keyring}"] if place.keyring else []
    command += [f"--cluster.python={shlex.join(access.argv([python]))}"]
    # Scenarios let the OSDs report every second, and a run is measured in seconds: cluster and
    # histograms are read as often. A scrub of a small placement group is over before it is seen to
    # run: only its time stamp shows it, and stamps are read once per schedule interval. A phase of
    # a few seconds needs several samples of operations: they say who waits for whom.
    command += ["--cluster.interval=1", "--cluster.schedule-interval=5"]
    return [*command, "--collector.histograms.interval=0", "--collector.ops.sample-interval=2"]


class OwnExporter:
    """The run's own exporter. One that ends is started again, on the same port."""

    def __init__(self, command: Sequence[str], url: str, output: Path, note: Note) -> None:
        self._command, self.url, self._output, self._note = command, url, output, note
        self._child: Child | None = None
        self._open = AsyncExitStack()  # ends the child
        self._starts = 0

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child and self._child.running else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For as long as the block."""
        watching: asyncio.Task[None] | None = None
        try:
            await self._start()
            watching = asyncio.create_task(self._keep_running(), name="exporter")
            yield
        finally:
            if watching:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            await self._open.aclose()

    async def _start(self) -> None:
        self._starts += 1
        name = "exporter" if self._starts == 1 else f"exporter.{self._starts}"
        child = Child(Launch(name, self._command, {}), self._output)
        self._child = await self._open.enter_async_context(child)
        if not await answers(self.url, lambda: child.running, _START_SECONDS):
            with contextlib.suppress(ChildFailed):
                await child.wait(_LAST_WORDS_SECONDS)
            raise ChildFailed(f"the exporter did not start: {child.last_words}")

    async def _keep_running(self) -> None:
        while self._starts <= _RESTARTS:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._child and not self._child.running:
                self._note("exporter_ended", said=self._child.last_words)
                with contextlib.suppress(ChildFailed, OSError):
                    await self._open.aclose()
                    await self._start()
                    self._note("exporter_restarted", starts=self._starts)


class RunExporters(NamedTuple):
    """What a run records."""

    sources: Mapping[str, Address]  # by name, all that are scraped
    own: OwnExporter


@asynccontextmanager
async def exporters(
    access: Access,
    python: str,
    sockets: Path | None,
    given: Sequence[Address],
    output: Path,
    note: Note,
) -> AsyncIterator["RunExporters"]:
    """The exporters of a run; its own one is up while the block runs."""
    sources = {f"exporter.{n}": address for n, address in enumerate(given)}
    [port] = free_ports(1)
    command = argv(port, access, python, None if given else sockets)
    exporter = OwnExporter(command, f"http://127.0.0.1:{port}/metrics", output, note)
    async with exporter.running():
        yield RunExporters({**sources, "exporter": Address(exporter.url)}, exporter)
