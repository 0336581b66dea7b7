"""A lab watched by the real exporter, Prometheus and Alertmanager, and a receiver that listens."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.lab.conftest import LabPool, lab_name
from tests.waiting import PATIENCE, until

from cephqos_base.units import GIB
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_stack.stack import Stack, StackSpec
from cephqos_stack.staged.judge import Heard
from cephqos_stack.staged.stage import StagedLab

MEDIA = "ssd"
CAPACITY = f"osd_mclock_max_capacity_iops_{MEDIA}"
# Saturated writes take a tenth of this on a machine like the one CI has; those held back by a
# small limit take much longer.
SLOS = Path(__file__).parent / "slos.yaml"


# Whether a reservation is violated depends on what else the machine does meanwhile.
ALONE = ("test_end_to_end.py", "test_recovery_flood.py", "test_slow_disk.py", "test_staged.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/stack/" in item.path.as_posix():
            item.add_marker(pytest.mark.lab)
            if item.path.name in ALONE:
                item.add_marker(pytest.mark.alone)


@pytest.fixture(scope="session")
def small_lab(labs: LabPool) -> Iterator[RunningLab]:
    """One OSD, for tests that need some cluster, or only its programs. Leave it as you found it."""
    lab = labs.start(lab_spec("small", osds=1))
    yield lab
    labs.end(lab)


@dataclass(frozen=True)
class Received:
    """One alert as the webhook got it."""

    time: float
    receiver: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def said(self) -> Mapping[str, str]:
        """Its labels, with the cause and the culprit of its text."""
        return Heard.of(self.time, self.labels, self.annotations.get("description", "")).labels

    def has(self, **labels: str) -> bool:
        wanted = {key.rstrip("_"): value for key, value in labels.items()}
        return wanted.items() <= self.said.items()

    def accuses_another_than(self, osd: str) -> bool:
        """It wakes somebody for another OSD, or says that another one's reservation is violated."""
        told = self.receiver == "critical" or self.has(alertname="CephQosReservationViolated")
        return told and self.labels.get("ceph_daemon", osd) != osd


class Webhook:
    """What Alertmanager sends, in the order it came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alerts: list[Received] = []
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                webhook.take(self.path.strip("/"), json.loads(self.rfile.read(size)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, receiver: str, message: Any) -> None:
        now = time.monotonic()
        with self._lock:
            for alert in message["alerts"]:
                self._alerts.append(
                    Received(now, receiver, alert["status"], alert["labels"], alert["annotations"])
                )

    def since(self, moment: float) -> list[Received]:
        """All that came after a moment, the CephQosWatchdog aside."""
        with self._lock:
            return [
                alert
                for alert in self._alerts
                if alert.time >= moment and alert.labels["alertname"] != "CephQosWatchdog"
            ]

    def firing_since(self, moment: float) -> list[Received]:
        return [alert for alert in self.since(moment) if alert.status == "firing"]

    def watchdogs(self) -> int:
        with self._lock:
            return sum(alert.labels["alertname"] == "CephQosWatchdog" for alert in self._alerts)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Watched(StagedLab):
    """A lab with all that watches it, and what the cases do with it."""

    def __init__(self, lab: RunningLab, stack: Stack, webhook: Webhook) -> None:
        super().__init__(lab)
        self.stack = stack
        self.webhook = webhook

    async def pool(self, name: str, size: int, pgs: int = 32) -> str:
        ceph = ["ceph", "osd", "pool"]
        await self.lab.exec([*ceph, "create", name, str(pgs)])
        sure = ["--yes-i-really-mean-it"] if size == 1 else []
        await self.lab.exec([*ceph, "set", name, "size", str(size), *sure])
        return name

    def write(self, pool: str, seconds: float, depth: int = 128) -> asyncio.Task[float]:
        """Write small objects for that long, in the background; gives the mean IOPS."""
        argv = ["rados", "-p", pool, "bench", f"{seconds:g}", "write", "-b", "4096"]
        argv += ["-t", str(depth), "--no-cleanup", "--run-name", f"r{time.monotonic_ns()}"]

        async def run() -> float:
            done = await self.lab.exec(argv, within=seconds + 60)
            line = next(x for x in done.stdout.splitlines() if x.startswith("Average IOPS"))
            return float(line.split(":")[1])

        return asyncio.create_task(run())

    async def number(self, expr: str) -> float | None:
        found = await self.stack.query(expr)
        return float(found[0]["value"][1]) if found else None

    async def firing(self) -> list[dict[str, str]]:
        """Labels of what Prometheus says is firing, the CephQosWatchdog aside."""
        return [
            alert["labels"]
            for alert in await self.stack.alerts()
            if alert["state"] == "firing" and alert["labels"]["alertname"] != "CephQosWatchdog"
        ]

    async def quiet(self, within: float = PATIENCE) -> float:
        """Wait until nothing fires; the moment from which on alerts are the next case's."""

        said: list[dict[str, str]] = []

        async def nothing_for_a_while() -> bool:
            for _ in range(6):  # as long as Alertmanager may wait to speak of the last case
                said[:] = await self.firing()
                if said:
                    return False
                await asyncio.sleep(1)
            return True

        await until(nothing_for_a_while, lambda: f"no alert firing; it is {said}", within)
        return time.monotonic()

    async def received(
        self, since: float, within: float = PATIENCE, status: str = "firing", **labels: str
    ) -> Received:
        """The first alert with these labels that reached the webhook since then."""

        async def look() -> Received | None:
            matching = (a for a in self.webhook.since(since) if a.status == status)
            return next((a for a in matching if a.has(**labels)), None)

        def what() -> str:
            return f"{status} {labels}; came: {[dict(a.labels) for a in self.webhook.since(since)]}"

        found: Received = await until(look, what, within)
        return found


def watched(labs: LabPool, spec: LabSpec) -> Iterator[Watched]:
    """A new lab and its watchers, until the generator is closed."""
    lab = labs.start(spec)
    try:
        yield from watching(labs, lab, "stack")
    finally:
        labs.end(lab)


def watching(
    labs: LabPool, lab: RunningLab, name: str, *options: str, slos: Path | None = None
) -> Iterator[Watched]:
    """New watchers of a running lab, which remember nothing of what was before.

    With SLOs where a test is about them: a load that saturates a busy machine burns any budget, and
    its warning for three days would fire into every later test.
    """
    webhook = Webhook()
    spec = StackSpec(name=name, slos=slos, webhook=webhook.url, exporter_options=options)
    stack = Stack(lab, spec)
    try:
        labs.call(stack.__aenter__())
        try:
            yield Watched(lab, stack, webhook)
        finally:
            labs.call(stack.__aexit__(None, None, None))
    finally:
        webhook.close()


def lab_spec(purpose: str, **changes: Any) -> LabSpec:
    """Three OSDs on loop devices that count as SSDs."""
    base: dict[str, Any] = {
        "name": lab_name(purpose),
        "osds": 3,
        "osd_size": 4 * GIB,
        "backing": "loop",
        "rotational": False,
        "op_queue": "mclock_scheduler",
    }
    return LabSpec(**(base | changes))
