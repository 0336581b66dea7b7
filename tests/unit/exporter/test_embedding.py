"""The exporter in somebody else's process, as a collector of a prometheus_client registry."""

import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from wsgiref.util import setup_testing_defaults

import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Metric,
    generate_latest,
    make_wsgi_app,
    start_http_server,
)
from prometheus_client.openmetrics import exposition as openmetrics
from tests.replay.daemons import Fault, ReplayedHost

from cephqos_base.errors import ConfigError
from cephqos_exporter.embedding import ExporterCollector, metrics_of
from cephqos_exporter.families import Family
from cephqos_exporter.labels import LabelText
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render

from .scraping import four_daemons


@contextmanager
def serving(host: ReplayedHost) -> Iterator[None]:
    """The daemons answer from a thread of their own, as other processes would."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(host.__aenter__(), loop).result(10)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(host.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[tuple[CollectorRegistry, ReplayedHost]]:
    """A registry with a foreign metric and the exporter."""
    host = four_daemons(tmp_path)
    collector = ExporterCollector(
        {"discovery.sockets": str(tmp_path), "scrape.timeout": "2", "scrape.timeout-offset": "1"}
    )
    registry = CollectorRegistry()
    Counter("foreign", "Of the process that embeds it.", registry=registry).inc()
    registry.register(collector)
    with serving(host):
        try:
            yield registry, host
        finally:
            collector.close()


def up(page: str) -> int:
    return page.count('reason=""} 1')


def test_it_is_scraped_beside_foreign_metrics_by_the_server_of_client_python(
    embedded: tuple[CollectorRegistry, ReplayedHost],
) -> None:
    registry, _ = embedded
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            page = answer.read().decode()
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
    assert up(page) == 4
    assert "foreign_total 1.0\n" in page
    assert "cephqos_exporter_build_info{" in page
    assert "process_" not in page and "python_gc" not in page, "these are the process's own"


def test_it_is_scraped_through_wsgi(embedded: tuple[CollectorRegistry, ReplayedHost]) -> None:
    environ: dict[str, object] = {}
    setup_testing_defaults(environ)
    started: list[str] = []
    app: Callable[..., Iterator[bytes]] = make_wsgi_app(embedded[0])
    body = b"".join(app(environ, lambda status, headers: started.append(status)))
    assert started == ["200 OK"]
    assert up(body.decode()) == 4


def test_a_daemon_that_hangs_costs_the_embedding_page_its_own_samples_and_one_deadline(
    embedded: tuple[CollectorRegistry, ReplayedHost],
) -> None:
    registry, host = embedded
    assert up(generate_latest(registry).decode()) == 4
    host.daemons[0].fault = Fault.HANG
    started = time.monotonic()
    assert up(generate_latest(registry).decode()) == 3
    took = time.monotonic() - started
    started = time.monotonic()
    assert up(generate_latest(registry).decode()) == 3
    assert time.monotonic() - started < took / 2, "it is known to hang"


def test_pages_at_the_same_time_share_what_is_asked_of_the_daemons(
    embedded: tuple[CollectorRegistry, ReplayedHost],
) -> None:
    registry, host = embedded
    generate_latest(registry)
    before = host.asked["version"]
    for daemon in host.daemons:
        daemon.delay = 0.2
    with ThreadPoolExecutor(8) as threads:
        pages = list(threads.map(lambda _: generate_latest(registry).decode(), range(8)))
    assert [up(page) for page in pages] == [4] * 8
    assert host.asked["version"] - before <= 8, "not eight times four"


def test_it_starts_again_after_it_was_closed(tmp_path: Path) -> None:
    host = four_daemons(tmp_path)
    collector = ExporterCollector({"discovery.sockets": str(tmp_path)})
    with serving(host):
        for _ in range(2):
            found = {metric.name: metric for metric in collector.collect()}
            assert [s.value for s in found["cephqos_daemon_up"].samples] == [1] * 4
            collector.close()
    assert not [one for one in threading.enumerate() if one.name == "cephqos-exporter"]


def test_options_that_are_not_allowed_are_refused_before_anything_is_scraped() -> None:
    with pytest.raises(ConfigError):
        ExporterCollector({"scrape.timeout": "soon"})


GOLDEN = Path(__file__).parents[2] / "golden/example_host.prom"


def golden_page() -> Page:
    """The golden host's page, from its samples."""
    text = GOLDEN.read_text(encoding="utf-8").replace(" VARIES\n", " 0.5\n")
    page = Page()
    for block in text.split("# HELP ")[1:]:
        head, typed, *lines = block.split("\n")[:-1]
        name, _, help_text = head.partition(" ")
        kind = {"untyped": "unknown"}.get(typed.split()[-1], typed.split()[-1])
        family = Family(name, kind, help_text)  # type: ignore[arg-type]
        for line in lines:
            series, _, number = line.rpartition(" ")
            sample, _, labels = series.partition("{")
            text_of = LabelText(labels.removesuffix("}"))
            value = int(number) if number.lstrip("-").isdecimal() else float(number)
            family.add(text_of, value, sample.removeprefix(name))
        page.add(render([family]))
    return page


class Fixed:
    def __init__(self, page: Page) -> None:
        self._page = page

    def collect(self) -> Iterator[Metric]:
        return metrics_of(self._page)


def lines_of(body: bytes) -> dict[str, float | str]:
    """Each series with its value, each family with its type and help."""
    found: dict[str, float | str] = {}
    for line in body.decode().split("\n"):
        if line.startswith("# "):
            kind, name, text = (*line.removeprefix("# ").split(" ", 2), "", "")[:3]
            found[f"{kind} {name}"] = text
        elif line:
            series, _, number = line.rpartition(" ")
            name, _, labels = series.partition("{")
            in_order = ",".join(sorted(labels.removesuffix("}").split('",'))).replace('"', "")
            found[f"{name}{{{in_order}}}"] = float(number)
    return found


def test_its_page_and_that_of_client_python_say_the_same_of_the_golden_host() -> None:
    page = golden_page()
    registry = CollectorRegistry()
    registry.register(Fixed(page))
    ours = lines_of(page.body(openmetrics=True))
    assert len(ours) > 3000
    assert ours == lines_of(openmetrics.generate_latest(registry))  # type: ignore[no-untyped-call]
    in_text, theirs = lines_of(page.body(openmetrics=False)), lines_of(generate_latest(registry))
    # client_python has no counter whose name does not end in _total: Ceph's are untyped there.
    types = {key: kind for key, kind in in_text.items() if theirs.get(key) != kind}
    assert {kind for kind in types.values()} == {"counter"}
    assert all(key.startswith("TYPE ceph_") and theirs[key] == "untyped" for key in types)
    assert in_text.keys() == theirs.keys()
