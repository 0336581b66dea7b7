"""What a run serves and sends while it goes on."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format
from tests.fake_server import serving
from tests.recorded import RELEASES, client_output, documents

from cephqos_base.errors import UsageError
from cephqos_base.servers import Address
from cephqos_exporter.labels import render_labels
from cephqos_loadgen.engines import fio_output, rados_bench
from cephqos_loadgen.engines.fio_output import ClientStatus, IoTotals, JobStatus
from cephqos_loadgen.live import endpoint
from cephqos_loadgen.live.endpoint import serve
from cephqos_loadgen.live.metrics import METRICS, LiveMetrics
from cephqos_loadgen.live.notify import TOKEN_VARIABLE, Notifier
from cephqos_loadgen.live.state import Live, LiveRecovery, LiveScrub, RunPlace
from cephqos_loadgen.top.quantile import quantile

NOTHING = LiveMetrics(Live(RunPlace()))


def live() -> Live:
    found = Live(RunPlace("r1", "s", "fsid", "point=a", 2, {"client": 50.0, "scrub": 48.0}))
    found.will_fill("data", "bytes", "volume.0", 100)
    found.filled("data", "bytes", "volume.0", 40)
    found.start_client("client", "client.0", "rbd")
    done = IoTotals(10, 40960, 10, 0.05, 0.0, 0.009, {4_000_000: 6, 9_000_000: 4})
    job = JobStatus({"read": done, "write": IoTotals()}, 0.0, 1.0)
    found.status("client", "client.0", ClientStatus(0.0, {"v": job}))
    found.scrub = LiveScrub("scrub", 50, 150, 1.0)
    found.recovery = LiveRecovery(7, 30, 10.0)
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
    async with serve("127.0.0.1:0", LiveMetrics(live()), fall_back=False) as url:
        page = await fetch(url, accept)
    samples = {}
    for family in parse(page):  # type: ignore[operator]
        for sample in family.samples:
            samples[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
            assert sample.labels["run"] == "r1"
            assert sample.labels["cluster"] == "fsid"
    phases = {dict(labels)["phase"] for name, labels in samples if name == "cephqos_run_info"}
    assert phases == {"client", "scrub"}
    starts = {
        dict(labels)["phase"]: value
        for (name, labels), value in samples.items()
        if name == "cephqos_run_phase_start_timestamp_seconds"
    }
    assert starts == {"client": 50.0, "scrub": 48.0}
    under = {
        float(dict(labels)["le"]): value
        for (name, labels), value in samples.items()
        if name == "cephqos_client_latency_seconds_bucket"
    }
    assert under[0.0064] == 6
    assert under[float("inf")] == 10
    left = next(v for (n, _), v in samples.items() if n == "cephqos_run_recovery_remaining_seconds")
    assert left == 3


async def test_clients_that_do_not_take_their_answer_are_few_and_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = bytes(16 << 20)
    monkeypatch.setattr(endpoint, "ANSWER_SECONDS", 5.0)
    monkeypatch.setattr(endpoint, "choose_encoder", lambda _: (lambda _: large, "text/plain"))
    async with serve("127.0.0.1:0", NOTHING, fall_back=False) as url:
        port = int(url.rsplit(":", 1)[1].partition("/")[0])
        slow = []
        for _ in range(endpoint.MOST_AT_ONCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 12)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            slow.append(writer)
        assert "too many" in await fetch(url, "text/plain")
        async with asyncio.timeout(20):
            while "too many" in await fetch(url, "text/plain"):
                await asyncio.sleep(0.2)
        for writer in slow:
            writer.close()


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error_and_a_default_one_is_not() -> (
    None
):
    async with serve("127.0.0.1:0", NOTHING, fall_back=False) as url:
        port = url.split(":")[2].split("/")[0]
        with pytest.raises(UsageError, match=rf"--listen 127.0.0.1:{port}"):
            async with serve(f"127.0.0.1:{port}", NOTHING, fall_back=False):
                pass
        async with serve(f"127.0.0.1:{port}", NOTHING, fall_back=True) as other:
            assert other != url


@pytest.mark.parametrize(
    "listen", ["127.0.0.1", "127.0.0.1:²", ":70000", "::1:80", f"{'a' * 64}:1"]
)
async def test_what_is_no_address_is_refused_in_one_line(listen: str) -> None:
    with pytest.raises(UsageError, match="--listen") as refused:
        async with serve(listen, NOTHING, fall_back=True):
            pass
    assert "\n" not in str(refused.value)


async def test_only_the_metrics_are_served() -> None:
    async with (
        serve("127.0.0.1:0", NOTHING, fall_back=False) as url,
        aiohttp.ClientSession() as session,
    ):
        assert (await session.post(url)).status == 405
        assert (await session.get(url.replace("metrics", "else"))).status == 404


@asynccontextmanager
async def receiver(
    answers: bool = True,
) -> AsyncIterator[tuple[str, list[tuple[str, str | None, Any]]]]:
    """Takes what Grafana and Loki take; one that does not answer keeps the connection open."""
    got: list[tuple[str, str | None, Any]] = []
    ended = asyncio.Event()

    async def take(request: web.Request) -> web.Response:
        if not answers:
            await ended.wait()
        got.append((request.path, request.headers.get("Authorization"), await request.json()))
        return web.Response(status=204)

    async with serving({"POST /api/annotations": take, "POST /loki/api/v1/push": take}) as url:
        try:
            yield f"{url}/", got
        finally:
            ended.set()


async def test_annotations_and_logs_arrive_with_run_and_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    async with receiver() as (url, got):
        there = Address.parse(url, "--grafana")
        async with Notifier(there, there, "r1") as notify:
            notify.cluster = "c1"
            notify("phase_ended", phase="scrub", error="did not end")
    found = {path: (token, body) for path, token, body in got}
    token, body = found["/api/annotations"]
    assert token == "Bearer secret"
    assert body["text"] == 'phase_ended run=r1 phase=scrub error="did not end"'
    assert abs(body["time"] / 1000 - time.time()) < 60
    token, body = found["/loki/api/v1/push"]
    assert token is None, "the token is Grafana's"
    (stream,) = body["streams"]
    # As the collector labels the events of archives, which the dashboard asks for.
    assert stream["stream"] == {"cluster": "c1", "log": "run", "severity": "error"}
    ((stamp, line, metadata),) = stream["values"]
    assert metadata == {"event": "phase_ended", "run": "r1", "phase": "scrub"}
    shown = json.loads(line)
    assert shown.pop("time") == int(stamp) / 1e9
    assert shown == {
        "event": "phase_ended",
        "run": "r1",
        "phase": "scrub",
        "error": "did not end",
    }
    assert abs(int(stamp) / 1e9 - time.time()) < 60
    assert (notify.sent, notify.failed) == (2, 0)


async def test_receivers_that_are_dead_or_silent_hold_up_neither_the_run_nor_each_other() -> None:
    async with receiver(answers=False) as (silent, _), receiver() as (loki, got):
        before = time.monotonic()
        async with Notifier(Address(silent.rstrip("/")), Address(loki.rstrip("/")), "r1") as notify:
            for number in range(3):
                notify("repeat_started", repeat=number)
            assert time.monotonic() - before < 2.0
            async with asyncio.timeout(30.0):
                while len(got) < 3:
                    await asyncio.sleep(0.01)
        assert time.monotonic() - before < 20.0, "a farewell of two seconds at most"
    assert (notify.sent, notify.failed) == (3, 3)
    assert "no answer before the run ended" in notify.last_error
    async with Notifier(Address("http://127.0.0.1:1"), None, "r1") as dead:
        dead("repeat_started")
    assert (dead.sent, dead.failed) == (0, 1)
    assert "127.0.0.1:1" in dead.last_error


def test_nothing_is_sent_where_nothing_is_configured() -> None:
    notify = Notifier(None, None, "r1")
    notify("phase_started")
    assert (notify.sent, notify.failed) == (0, 0)


# -- figures -------------------------------------------------------------------------------------


def samples_of(live: Live) -> dict[tuple[str, str], float]:
    return {
        (sample.name, render_labels(sample.labels)): sample.value
        for metric in LiveMetrics(live).collect()
        for sample in metric.samples
    }


@pytest.mark.parametrize("release", RELEASES)
def test_percentiles_of_the_endpoint_are_those_that_fio_reports_at_its_end(release: str) -> None:
    """Within the width of the bucket that they fall into."""
    found = Live(RunPlace("r1", phases={"load": 50.0}))
    found.start_client("load", "client.0", "rbd")
    printed = documents(client_output(release, "interrupted"))
    for document in printed:
        found.status("load", "client.0", fio_output.read_status(document))
    bounds = {
        float(re.findall(r'le="([^"]*)"', labels)[0]): value
        for (name, labels), value in samples_of(found).items()
        if name == "cephqos_client_latency_seconds_bucket" and 'op="write"' in labels
    }
    own = printed[-1]["jobs"][0]["write"]["clat_ns"]
    assert bounds[float("inf")] == own["N"]
    ordered = [0.0, *sorted(bounds)]
    for percent in ("50.000000", "95.000000", "99.000000", "99.500000", "99.900000"):
        value = quantile(bounds, float(percent) / 100)
        exact = own["percentile"][percent] * 1e-9
        upper = next(bound for bound in ordered if bound >= exact)
        width = upper - ordered[ordered.index(upper) - 1]
        assert value == pytest.approx(exact, abs=width), percent
        assert width <= 0.26 * exact


@pytest.mark.parametrize("release", RELEASES)
def test_rados_bench_is_in_the_live_metrics_second_by_second(release: str) -> None:
    found = Live(RunPlace("r1", phases={"write": 50.0}))
    found.start_client("write", "bench0", "rados_bench")
    data = client_output(release, "bench_write")
    result = rados_bench.read_result(data)
    rows = rados_bench.RowStream().feed(data)
    for row in rows:
        done = {"write": row.totals(4096), "read": IoTotals()}
        job = JobStatus(done, 0.0, float(row.second))
        found.status("write", "bench0", ClientStatus(0.0, {"v": job}))
    samples = samples_of(found)
    labels = 'run="r1",engine="rados_bench",load="write",client="bench0",op="write"'
    last, before = rows[-1], rows[-2]
    rate = (last.finished - before.finished) / (last.second - before.second)
    assert samples["cephqos_client_ops_total", labels] == last.finished
    assert samples["cephqos_client_iops", labels] == pytest.approx(rate)
    assert samples["cephqos_client_bytes_per_second", labels] == pytest.approx(rate * 4096)
    mean = samples["cephqos_client_latency_mean_seconds", labels]
    assert mean == pytest.approx(result.latency_mean, rel=0.5)
    assert not any("latency_seconds_bucket" in name for name, _ in samples), "it has no bins"


def test_a_client_that_ended_keeps_its_counters_and_loses_its_rates() -> None:
    found = live()
    found.where.phases = {}
    names = {name for name, _ in samples_of(found)}
    assert "cephqos_client_ops_total" in names
    assert "cephqos_client_iops" not in names


def test_a_client_that_hangs_keeps_its_counters_and_loses_its_rates() -> None:
    found = live()
    for figures in found.clients.values():
        figures.last_came -= 30
    names = {name for name, _ in samples_of(found)}
    assert "cephqos_client_ops_total" in names
    assert "cephqos_client_iops" not in names


def test_every_live_metric_has_exactly_the_labels_that_are_said() -> None:
    seen: dict[str, set[frozenset[str]]] = {}
    for metric in LiveMetrics(live()).collect():
        for sample in metric.samples:
            names = frozenset(sample.labels) - {"run", "cluster", "le"}
            name = re.sub("(_bucket|_sum|_count)$", "", sample.name)
            seen.setdefault(name, set()).add(names)
    assert seen == {name: {frozenset(metric.labels)} for name, metric in METRICS.items()}
