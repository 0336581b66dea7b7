"""Where `cephqos top` gets its samples. Small servers play Prometheus and exporters."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from tests.fake_server import Handler, serving

from cephqos_base.errors import UsageError
from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.figures import FIGURES, PageSamples, Selection, wanted_now
from cephqos_loadgen.top.sources.exporters import Exporters, SeriesReader
from cephqos_loadgen.top.sources.prometheus import PrometheusSource

from ..top_samples import FSID


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    """Start a server that answers everything with a handler; its URL."""
    async with contextlib.AsyncExitStack() as servers:
        yield lambda handler: servers.enter_async_context(serving(handler))


Serve = Callable[[Handler], Awaitable[str]]


def vector(*items: tuple[dict[str, str], float]) -> web.Response:
    result = [{"metric": labels, "value": [1.0, str(value)]} for labels, value in items]
    data = {"resultType": "vector", "result": result}
    return web.json_response({"status": "success", "data": data})


def moment() -> web.Response:
    """What a server says to `time()`."""
    data = {"resultType": "scalar", "result": [1000.0, "1000"]}
    return web.json_response({"status": "success", "data": data})


class FakePrometheus:
    """Answers queries by how they begin."""

    def __init__(self, answers: dict[str, list[tuple[dict[str, str], float]]]) -> None:
        self.answers = answers
        self.queries: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        query = str(form["query"])
        if query == "time()":
            return moment()
        assert form["time"] == "1000.000"
        self.queries.append(query)
        best = max((key for key in self.answers if query.startswith(key)), key=len, default=None)
        return vector(*(self.answers[best] if best is not None else []))


async def fetch(url: str, selection: Selection | None = None, window: float = 60.0) -> object:
    async with HttpServer(Address.parse(url, "--url")) as connection:
        return await PrometheusSource(connection, window).fetch(selection or Selection())


OSD = {"cluster": FSID, "ceph_daemon": "osd.1"}
UP = ({**OSD, "reason": ""}, 1.0)


async def test_what_the_rules_recorded_is_asked_for_first_and_only_that(serve: Serve) -> None:
    recorded = "osd_class:cephqos_attained_ops:rate"
    fake = FakePrometheus(
        {
            f"count(last_over_time({recorded}[60000ms]))": [({}, 4.0)],
            f"{recorded}{{": [({**OSD, "class": "client"}, 50.0)],
            "max by (cluster, ceph_daemon, reason)": [UP],
        }
    )
    async with HttpServer(Address.parse(await serve(fake.answer), "--url")) as connection:
        samples = await PrometheusSource(connection, 60).fetch(Selection())
    assert samples.rules
    assert samples.of("attained") == {(FSID, "osd.1", "client"): 50.0}
    assert not [query for query in fake.queries if "cephqos_qos_normalised_ops_total" in query]
    assert not [query for query in fake.queries if "store_seconds" in query]  # nothing to judge


async def test_an_osd_whose_exporter_missed_a_scrape_is_shown_as_it_was(serve: Serve) -> None:
    """One late answer, and a healthy cluster was shown as "no OSD answers"."""
    last = "(last_over_time(cephqos_daemon_up{}[60000ms]) unless on (cluster, ceph_daemon)"
    fake = FakePrometheus(
        {
            f"max by (cluster, ceph_daemon, reason) (cephqos_daemon_up{{}} or {last}": [UP],
            last: [({**OSD, "ceph_daemon": "osd.1\x1b"}, 1.0), ({"ceph_daemon": "mon.a"}, 1.0)],
        }
    )
    async with HttpServer(Address.parse(await serve(fake.answer), "--url")) as connection:
        samples = await PrometheusSource(connection, 60).fetch(Selection())
    assert samples.of("up") == {(FSID, "osd.1", ""): 1.0}
    (late,) = samples.troubles
    assert late.what == r"osd.1\x1b"
    assert late.why.endswith("shown as they were, at most 1 min ago"), late.why
    # What is of no OSD has no such answer.
    assert all("last_over_time" not in query for query in fake.queries if "_pool_" in query)


async def test_without_the_rules_the_exporters_series_are_asked_for(serve: Serve) -> None:
    query = (
        "max by (cluster, ceph_daemon, class) (rate(cephqos_qos_normalised_ops_total{}[60000ms]))"
    )
    fake = FakePrometheus({query: [({**OSD, "class": "client"}, 50.0)]})
    async with HttpServer(Address.parse(await serve(fake.answer), "--url")) as connection:
        samples = await PrometheusSource(connection, 60).fetch(Selection())
    assert not samples.rules
    assert samples.of("attained") == {(FSID, "osd.1", "client"): 50.0}
    assert "violated" in samples.values  # asked for nothing: it is a rule's alone
    assert not [query for query in fake.queries if query.startswith("osd_class:cephqos_violated")]


@pytest.mark.parametrize("before", [[], [({}, 3.0)]])
async def test_rates_are_late_while_no_scrape_is_older_than_the_window(
    serve: Serve, before: list[tuple[dict[str, str], float]]
) -> None:
    fake = FakePrometheus({"count(cephqos_daemon_up offset 60000ms)": before})
    async with HttpServer(Address.parse(await serve(fake.answer), "--url")) as connection:
        samples = await PrometheusSource(connection, 60).fetch(Selection())
    assert samples.with_rates == bool(before)


async def test_firing_alerts_come_with_the_time_since_when(serve: Serve) -> None:
    labels = {"alertname": "A", "severity": "critical", **OSD}
    fake = FakePrometheus(
        {
            "ALERTS{": [({"__name__": "ALERTS", "alertstate": "firing", **labels}, 1.0)],
            "ALERTS_FOR_STATE": [({"__name__": "ALERTS_FOR_STATE", **labels}, 1000.0)],
        }
    )
    async with HttpServer(Address.parse(await serve(fake.answer), "--url")) as connection:
        (alert,) = (await PrometheusSource(connection, 60).fetch(Selection())).alerts
    assert alert["since"] == "1000.0"


async def test_a_label_of_an_alert_is_not_taken_for_the_time_since_when(serve: Serve) -> None:
    """Anybody's rule may call a label so; the view ended with a traceback."""
    labels = {"__name__": "ALERTS", "alertstate": "firing", "alertname": "A", "since": "yesterday"}
    fake = FakePrometheus({"ALERTS{": [({**labels, **OSD}, 1.0)]})
    async with HttpServer(Address.parse(await serve(fake.answer), "--url")) as connection:
        samples = await PrometheusSource(connection, 60).fetch(Selection(cluster=FSID))
    (alert,) = build_picture(samples, Selection(cluster=FSID)).alerts
    assert alert.since is None


async def test_a_query_that_is_refused_costs_its_figure_only(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        query = str((await request.post())["query"])
        if query == "time()":
            return moment()
        if "scrub" in query:
            return web.json_response({"status": "error", "error": "too many samples"}, status=422)
        return vector()

    async with HttpServer(Address.parse(await serve(handler), "--url")) as connection:
        samples = await PrometheusSource(connection, 60).fetch(Selection())
    assert {it.what for it in samples.troubles} == {
        name for name in FIGURES if name.startswith("scrub")
    }
    assert "too many samples" in samples.troubles[0].why


def test_what_is_no_number_is_no_figure() -> None:
    metric = FIGURES["degraded"].metric
    assert not SeriesReader().read(f'{metric}{{pool="p"}} NaN\n# TYPE x gauge'.encode(), 0).samples


async def test_a_server_that_is_not_there_hangs_or_wants_a_password_is_told(serve: Serve) -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async def deny(_: web.Request) -> web.Response:
        return web.Response(status=401)

    with pytest.raises(NoAnswer, match="connection refused"):
        await fetch("http://127.0.0.1:1")
    with pytest.raises(NoAnswer, match="401 for /api/v1/query: user and password go into the URL"):
        await fetch(await serve(deny))
    address = Address.parse(await serve(hang), "--url")
    async with HttpServer(address, within=0.2) as connection:
        with pytest.raises(NoAnswer, match=r"no answer within 0\.2 s"):
            await PrometheusSource(connection, 60).fetch(Selection())


async def test_a_password_goes_into_the_request_and_nowhere_else(serve: Serve) -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return moment() if (await request.post())["query"] == "time()" else vector()

    url = (await serve(handler)).replace("http://", "http://me:secret@")
    address = Address.parse(url, "--url")
    async with HttpServer(address) as connection:
        source = PrometheusSource(connection, 60)
        await source.fetch(Selection())
    assert seen[0] == "Basic bWU6c2VjcmV0"
    assert "secret" not in source.name
    assert "secret" not in address.url


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:port", "http://[::1"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--url"):
        Address.parse(url, "--url")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("host:9090", "http://host:9090"),
        ("https://host/prometheus/", "https://host/prometheus"),
        ("http://[::1]:9090", "http://[::1]:9090"),
    ],
)
def test_urls_may_lack_their_scheme_and_have_a_path(given: str, url: str) -> None:
    assert Address.parse(given, "--url").url == url


def test_a_selection_becomes_matchers_and_their_text_cannot_leave_the_quotes() -> None:
    selection = Selection('x"} or vector(1) #', "osd.1")
    (query,) = FIGURES["throttle"].promql(selection, 60)
    assert query == (
        "max by (cluster, ceph_daemon, throttle) (cephqos_qos_throttle_used_ratio"
        '{cluster="x\\"} or vector(1) #",ceph_daemon="osd.1"})'
    )


ATTAINED = FIGURES["attained"].metric

# --- exporters -----------------------------------------------------------------------------------


def page(ops: float, osd: str = "osd.1") -> str:
    who = f'ceph_daemon="{osd}",cluster="{FSID}"'
    return f"""# TYPE cephqos_daemon_up gauge
cephqos_daemon_up{{{who},reason=""}} 1
# TYPE cephqos_qos_normalised_ops_total counter
cephqos_qos_normalised_ops_total{{{who},class="client"}} {ops}
# TYPE ceph_osd_op_total counter
ceph_osd_op_total{{ceph_daemon="{osd}"}} 99
# TYPE cephqos_qos_queue_length gauge
cephqos_qos_queue_length{{{who},class="client",shard="0"}} 2
cephqos_qos_queue_length{{{who},class="client",shard="1"}} 3
# TYPE cephqos_osd_op_latency_seconds histogram
cephqos_osd_op_latency_seconds_bucket{{{who},op="read",le="0.1"}} {ops}
cephqos_osd_op_latency_seconds_bucket{{{who},op="read",le="+Inf"}} {ops}
"""


def scrape(ops: float, when: float) -> PageSamples:
    return SeriesReader().read(page(ops).encode(), when)


def test_only_what_the_view_needs_is_read_from_a_page() -> None:
    assert "ceph_osd_op_total" not in scrape(1, 0).samples


def test_rates_are_the_increase_over_the_time_between_two_scrapes() -> None:
    attained = FIGURES["attained"]
    key = (FSID, "osd.1", "client")
    assert attained.computed(scrape(100, 10), scrape(500, 14), Selection()) == {key: 100.0}
    assert attained.computed(None, scrape(500, 14), Selection()) == {}


def test_a_counter_that_fell_was_reset_and_counts_from_zero() -> None:
    found = FIGURES["attained"].computed(scrape(500, 10), scrape(40, 14), Selection())
    assert list(found.values()) == [10.0]


def test_tenants_are_asked_for_only_while_they_are_shown_and_over_a_longer_time() -> None:
    """Of many OSDs that is much, and the operations behind it are sampled every 10 s or less."""
    assert not {"tenants", "tenant_squares", "pools"} & wanted_now(Selection(), True).keys()
    figure = wanted_now(Selection(tenants=True), True)["tenants"]
    (query,) = figure.promql(Selection(tenants=True), 60)
    assert query.endswith("(rate(cephqos_tenants_seconds_total{}[300000ms]))")
    assert figure.computed(scrape(1, 10), scrape(2, 14), Selection(tenants=True)) == {}


def test_queues_add_up_over_shards() -> None:
    found = FIGURES["queued"].computed(None, scrape(1, 0), Selection())
    assert found == {(FSID, "osd.1", "client"): 5.0}


def test_a_reader_that_knows_its_series_reads_new_values_and_new_series() -> None:
    reader = SeriesReader()
    reader.read(page(1).encode(), 0)
    again = reader.read((page(7) + page(9, "osd.2")).encode(), 1)
    values = {labels["ceph_daemon"]: value for labels, value in again.samples[ATTAINED].values()}
    assert values == {"osd.1": 7.0, "osd.2": 9.0}


def test_a_name_with_braces_spaces_and_quotes_is_one_name() -> None:
    metric = FIGURES["degraded"].metric
    line = metric + '{cluster="f",pool="a } b \\"c\\" 1"} 5\n'
    (sample,) = SeriesReader().read(line.encode(), 0).samples[metric].values()
    assert sample == ({"cluster": "f", "pool": 'a } b "c" 1'}, 5.0)


def test_both_sources_name_buckets_alike() -> None:
    found = FIGURES["latency"].computed(scrape(100, 10), scrape(300, 12), Selection())
    assert found == {(FSID, "read", "0.1"): 100.0, (FSID, "read", "+Inf"): 100.0}


@pytest.mark.parametrize("body", [b"<html></html>", b"", b"\xff\xfe"])
def test_a_page_that_is_not_one_of_metrics_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a page of metrics"):
        SeriesReader().read(body, 0)


def test_metrics_of_something_else_are_refused() -> None:
    with pytest.raises(ValueError, match="not of cephqos: expected a cephqos-exporter"):
        SeriesReader().read(b"# TYPE up gauge\nup 1\n", 0)


async def test_an_exporter_that_goes_away_keeps_its_last_values_with_their_age(
    serve: Serve,
) -> None:
    alive = True

    async def second(_: web.Request) -> web.Response:
        return web.Response(text=page(2, "osd.2")) if alive else web.Response(status=500)

    async def first(_: web.Request) -> web.Response:
        return web.Response(text=page(1))

    urls = [await serve(first), await serve(second)]
    async with (
        HttpServer(Address.parse(urls[0], "--exporter")) as one,
        HttpServer(Address.parse(urls[1], "--exporter")) as two,
    ):
        source = Exporters([one, two])
        assert {key[1] for key in (await source.fetch(Selection())).of("up")} == {"osd.1", "osd.2"}
        alive = False
        samples = await source.fetch(Selection())
    assert {key[1] for key in samples.of("up")} == {"osd.1", "osd.2"}
    (trouble,) = samples.troubles
    assert trouble.what == f"exporter {urls[1]}"
    assert trouble.why == "no answer: HTTP status 500; its values are 0 s old"
    assert samples.with_rates
    assert json.dumps(sorted(samples.values))


async def test_when_no_exporter_answers_the_source_is_down() -> None:
    async with HttpServer(Address.parse("127.0.0.1:1", "--exporter")) as connection:
        with pytest.raises(NoAnswer, match="connection refused"):
            await Exporters([connection]).fetch(Selection())
