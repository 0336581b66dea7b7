"""Exporters that record chosen pages at chosen times, asked over real sockets."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from cephqos_base.command import build_parser
from cephqos_exporter.config import Settings
from cephqos_exporter.daemon import Daemon, DaemonView, Host
from cephqos_exporter.flight_recorder import options
from cephqos_exporter.flight_recorder.recorder import Recorder
from cephqos_exporter.flight_recorder.ring import Stamp
from cephqos_exporter.labels import LabelText
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.web.addresses import listen_on
from cephqos_exporter.web.server import Server, Service


class RecordingExporter:
    """`record` stands for a scrape: what it would have shown, as text, and when."""

    def __init__(self, recorder: Recorder, address: str) -> None:
        self._recorder = recorder
        self.address = address

    def operation(self, osd: str, description: str, began: str, *events: tuple[str, str]) -> None:
        """One in progress, as the next scrape finds it: 12.5 s old."""
        each = [{"time": at, "event": event} for at, event in events]
        op = {"description": description, "initiated_at": began, "age": 12.5}
        replies = {"ops": {"ops": [op | {"type_data": {"events": each}}]}}
        daemon = Daemon("osd", osd, "c1", Path(f"/run/{osd}.asok"))
        host = Host(*[Path("/none")] * 3)
        self._recorder.operations.look(DaemonView(daemon, LabelText(""), replies, {}, 0.0, host))

    async def record(self, seconds: float, values: Mapping[str, float], **clock: float) -> None:
        """`clock`: what the clock showed, if that was another time."""
        text = "".join(f"{series} {value!r}\n" for series, value in values.items())
        wall = clock.get("shown", seconds)
        stamp = Stamp(round(wall * 1000), round(seconds * 1000))
        self._recorder.take(stamp, Page(), text.encode(), compressed=False)
        await self._recorder.listing()  # it is written


@asynccontextmanager
async def recording_exporter(
    folder: Path, minutes: float = 10.0
) -> AsyncIterator[RecordingExporter]:
    given = {options.MINUTES.name: minutes, options.PATH.name: str(folder)}
    recorder = Recorder(Settings().given(given))
    recorder.start()

    async def page(_: float) -> Page:
        return Page()

    service = Service(
        page=page, daemons=list, telemetry_path="/metrics", roles=("osd",), timeout=10.0,
        timeout_offset=0.5, max_requests=40, recorder=recorder,
    )  # fmt: skip
    server = Server(service, web_config=None, drain_seconds=5)
    (sock,) = listen_on(["127.0.0.1:0"])
    await server.start([sock])
    yield RecordingExporter(recorder, f"http://127.0.0.1:{sock.getsockname()[1]}")
    await server.drain()
    await recorder.close()


async def cephqos(*argv: str) -> int:
    """A command in this process: servers of the test answer it."""
    arguments = build_parser().parse_args(argv)
    status: int = await arguments.run(arguments)
    return status
