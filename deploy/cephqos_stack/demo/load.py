"""The demo's load, shown like the load of a run, so that dashboards of test runs have something
to show. Its phases are the steps of the story.
"""

import asyncio
import contextlib
import time
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cephqos_loadgen.engines.fio_output import JsonStream, read_status
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.live.endpoint import serve
from cephqos_loadgen.live.metrics import LiveMetrics
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.processes import ENDS_WITH_PARENT, end, start
from cephqos_loadgen.run_recording.files import JsonLines
from cephqos_loadgen.run_recording.layout import EVENTS_FILE

_CLIENTS = "clients"
_CLIENT = "fio"
_READ_BYTES = 1 << 16
_KEPT_BYTES = 500  # of what fio wrote last


def archives(lab: RunningLab) -> Path:
    """Where the collector looks for events of runs."""
    return lab.paths.work / "archives"


@dataclass
class DemoLoad:
    """fio on the demo's image, and what it has done."""

    process: Process
    live: Live
    events: JsonLines
    last_output: bytes = b""

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A step of the story, for as long as the block runs."""
        where = self.live.where
        where.phases = {**where.phases, name: time.time()}
        self._event("phase_started", name)
        try:
            yield
        finally:
            self._event("phase_ended", name)
            where.phases = {each: at for each, at in where.phases.items() if each != name}

    def _event(self, event: str, phase: str) -> None:
        self.events.write({"time": time.time(), "event": event, "phase": phase})

    async def read(self, output: asyncio.StreamReader) -> None:
        """Take fio's figures from its output, until it ends."""
        documents = JsonStream()
        while data := await output.read(_READ_BYTES):
            self.last_output = (self.last_output + data)[-_KEPT_BYTES:]
            for document in documents.feed(data):
                self.live.status(_CLIENTS, _CLIENT, read_status(document))


@contextlib.asynccontextmanager
async def running_load(
    lab: RunningLab, options: Sequence[str], listen: str
) -> AsyncIterator[DemoLoad]:
    """fio with these options; its metrics are served at this address."""
    run = time.strftime("%Y%m%dT%H%M%SZ-demo", time.gmtime())  # as the collector knows runs
    where = RunPlace(
        run=run,
        scenario="demo",
        cluster=lab.state.fsid,
        point="one slow device",
        repeat=1,
        phases={_CLIENTS: time.time()},
    )
    live = Live(where)
    live.repeats = (0, 1)
    live.start_client(_CLIENTS, _CLIENT, "rbd")
    argv = ["fio", "--output-format=json+", "--status-interval=1", "--eta=never", *options]
    async with serve(listen, LiveMetrics(live), fall_back=False):
        process = await start(
            [*ENDS_WITH_PARENT, *lab.enter_argv(argv)], stdout=PIPE, stderr=STDOUT
        )
        if process.stdout is None:
            raise LabError("fio has no output")
        folder = archives(lab) / run
        folder.mkdir(parents=True)
        load = DemoLoad(process, live, JsonLines(folder / EVENTS_FILE))
        reading = asyncio.create_task(load.read(process.stdout))
        try:
            yield load
        finally:
            await end(process)
            reading.cancel()
            await asyncio.wait([reading])
            load.events.close()
        if not reading.cancelled():
            reading.result()
