"""What a run serves and sends while it goes on."""

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format

from cephqos_loadgen.engines.fio import Figures, Status
from cephqos_loadgen.errors import UsageError
from cephqos_loadgen.run.endpoint import serve
from cephqos_loadgen.run.live import Live, Where
from cephqos_loadgen.run.notify import TOKEN_VARIABLE, Notifier


def live() -> Live:
    found = Live(Where("r1", "s", "fsid", "point=a", 2, ("client", "scrub")))
    found.start_client("client", "client.0", "rbd")
    done = Figures(10, 40960, 10, 0.05, 0.0, 0.009, {0.004: 6, 0.009: 4})
    found.status(
        "client", "client.0", Status(0.0, {"v": {"read": done, "write": Figures()}}, {}, 1)
    )
    found.scrub = (50, 150, 1.0)
    found.recovery = (7, 30, 10.0)
    found.eta = 60.0
    return found


async def fetch(url: str, accept: str) -> str:
    headers = {"Accept": accept}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return await response.text()


@pytest.mark.parametrize(
    ("accept", "parse"),
    [("text/plain", text_format), ("application/openmetrics-text", openmetrics)],
)
async def test_both_formats_parse_and_say_where_the_run_is(accept: str, parse: object) -> None:
    async with serve("127.0.0.1:0", live().families, fall_back=False) as url:
        page = await fetch(url, accept)
    samples = {}
    for family in parse(page):  # type: ignore[operator]
        for sample in family.samples:
            samples[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
            assert sample.labels["run"] == "r1"
            assert sample.labels["cluster"] == "fsid"
    phases = {dict(labels)["phase"] for name, labels in samples if name == "cephqos_run_info"}
    assert phases == {"client", "scrub"}
    under = {
        float(dict(labels)["le"]): value
        for (name, labels), value in samples.items()
        if name == "cephqos_client_latency_seconds_bucket"
    }
    assert under[0.0064] == 6
    assert under[float("inf")] == 10
    left = next(v for (n, _), v in samples.items() if n == "cephqos_run_recovery_remaining_seconds")
    assert left == 3


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error_and_a_default_one_is_not() -> (
    None
):
    async with serve("127.0.0.1:0", list, fall_back=False) as url:
        port = url.split(":")[2].split("/")[0]
        with pytest.raises(UsageError, match=rf"--listen 127.0.0.1:{port}"):
            async with serve(f"127.0.0.1:{port}", list, fall_back=False):
                pass
        async with serve(f"127.0.0.1:{port}", list, fall_back=True) as other:
            assert other != url


async def test_annotations_and_logs_arrive_and_a_dead_receiver_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    got: list[tuple[str, str | None, dict[str, object]]] = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.path, request.headers.get("Authorization"), await request.json()))
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/api/annotations", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with Notifier(f"http://127.0.0.1:{port}/", "http://127.0.0.1:1", "r1") as notify:
            notify("phase_started", phase="scrub")
    finally:
        await runner.cleanup()
    ((path, token, body),) = got
    assert (path, token) == ("/api/annotations", "Bearer secret")
    assert body["text"] == "phase_started run=r1 phase=scrub"
    assert (notify.sent, notify.failed) == (1, 1)
    assert "127.0.0.1:1" in notify.last_error


def test_nothing_is_sent_where_nothing_is_configured() -> None:
    notify = Notifier(None, None, "r1")
    notify("phase_started")
    assert notify._queue.empty()
