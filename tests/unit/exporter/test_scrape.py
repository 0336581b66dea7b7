"""The scrape loop: isolation, deadlines, sharing, restarts; with replayed daemons."""

import asyncio
import gc
import re
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedHost

from cephqos_exporter.daemon import Collector, Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.scrape import fetch, rounds
from cephqos_exporter.scrape.rendering import Rendered
from cephqos_exporter.scrape.scraper import Scraper

from .scraping import (
    FSID,
    REPLIES,
    RaisingCollector,
    SchemaCollector,
    StatusCollector,
    names,
    scraping,
    text,
    up,
)


async def test_every_daemon_is_up_and_has_its_samples(host: ReplayedHost) -> None:
    async with scraping(host, [StatusCollector()]) as scraper:
        page = await text(scraper)
    assert up(page) == names(page, "cephqos_test_pgs", "9") == ["osd.0", "osd.1", "osd.2", "osd.3"]
    assert f'cephqos_daemon_up{{ceph_daemon="osd.0",cluster="{FSID}",reason=""}} 1' in page


@pytest.mark.parametrize("fault", [f for f in Fault if f not in (Fault.NONE, Fault.SLOW)])
async def test_a_faulty_daemon_costs_only_its_own_samples(host: ReplayedHost, fault: Fault) -> None:
    async with scraping(host, [StatusCollector()]) as scraper:
        await text(scraper)
        host.daemons[1].fault = fault
        page = await text(scraper, 0.5)
    assert up(page) == names(page, "cephqos_test_pgs", "9") == ["osd.0", "osd.2", "osd.3"]
    assert names(page, "cephqos_daemon_up", "0") == ["osd.1"]
    assert re.search(r'cephqos_daemon_up{ceph_daemon="osd.1",[^}]*reason="\w+"} 0', page)
    assert names(page, "cephqos_collector_success", "0") == ["osd.1"]


async def test_a_daemon_too_slow_for_the_deadline_does_not_slow_every_second_scrape(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "PROMPT_SECONDS", 0.1)
    monkeypatch.setattr(fetch, "_PROBE_PAUSE_SECONDS", 0.01)
    async with scraping(host, [StatusCollector()]) as scraper:
        await text(scraper)
        host.daemons[0].delay = 1.2  # answers the probe, but late
        await text(scraper, 1.0)
        took = []
        for _ in range(8):
            await asyncio.sleep(0.2)
            started = time.monotonic()
            page = await text(scraper, 1.0)
            took.append(time.monotonic() - started)
        assert sorted(took)[5] < 0.9, "every second one would be four of them"
        assert names(page, "cephqos_daemon_up", "0") == ["osd.0"]


async def test_one_command_that_hangs_leaves_the_daemons_others(host: ReplayedHost) -> None:
    async with scraping(host, [StatusCollector(), SchemaCollector()]) as scraper:
        host.daemons[0].fault, host.daemons[0].only = Fault.HANG, {"perf schema"}
        await text(scraper, 1.0)  # the others have time enough, however busy the machine
        async with asyncio.timeout(10):  # by now it is known that the daemon itself answers
            while host.daemons[0].asked["perf schema"] < 2:
                await asyncio.sleep(0.01)
        started = time.monotonic()
        page = await text(scraper, 10)
        assert time.monotonic() - started < 5, "it did not wait for the command"
    assert len(up(page)) == len(names(page, "cephqos_test_pgs", "9")) == 4
    failed = re.findall(r"cephqos_collector_success{(.*)} 0", page)
    assert failed == [f'ceph_daemon="osd.0",cluster="{FSID}",collector="schema"']


async def test_a_deadline_that_no_daemon_could_keep_marks_none(host: ReplayedHost) -> None:
    async with scraping(host, [StatusCollector()], patience=5) as scraper:
        await text(scraper)
        for daemon in host.daemons:
            daemon.delay = 0.3
        assert not up(await text(scraper, 0.02))
        page = await text(scraper, 10)  # at once: none of them is left out
        assert len(up(page)) == len(names(page, "cephqos_test_pgs", "9")) == 4


async def test_a_daemon_that_hangs_is_found_by_scrapes_of_too_little_time_as_well(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "PROMPT_SECONDS", 0.2)
    async with scraping(host, [StatusCollector()], patience=0.3) as scraper:
        await text(scraper)
        host.daemons[0].fault = Fault.HANG
        await text(scraper, 0.05)
        await asyncio.sleep(1.0)  # its round goes on without those who asked
        started = time.monotonic()
        page = await text(scraper, 10)
        assert time.monotonic() - started < 5, "it was known to hang"
        assert names(page, "cephqos_daemon_up", "0") == ["osd.0"]
        assert host.daemons[0].open_connections == 1


@asynccontextmanager
async def one_waits_for_osd_0(
    host: ReplayedHost, collector: Collector
) -> AsyncIterator[tuple[Scraper, asyncio.Task[str]]]:
    """A scraper, and a patient request that waits for the OSD, which hangs."""
    async with scraping(host, [collector]) as scraper:
        await text(scraper)
        host.daemons[0].fault = Fault.HANG
        patient = asyncio.create_task(text(scraper, 30))
        await asyncio.sleep(0.1)
        yield scraper, patient


async def test_every_request_has_its_own_deadline_whatever_others_are_ready_to_wait(
    host: ReplayedHost,
) -> None:
    async with one_waits_for_osd_0(host, StatusCollector()) as (scraper, patient):
        for seconds in (0.5, 0.2):  # joins that round; came when it was older than this
            started = time.monotonic()
            page = await text(scraper, seconds)
            assert time.monotonic() - started < 5, "it did not wait as long as the other"
            assert len(up(page)) == len(names(page, "cephqos_test_pgs", "9")) == 3
            assert names(page, "cephqos_daemon_up", "0") == ["osd.0"]
        assert not patient.done()
        host.daemons[0].stop(unlink=False)
        assert len(up(await patient)) == 3


class HostCollector(StatusCollector):
    """Reads the host's files about a daemon, whether it answers or not; needs a reply as well."""

    name = "host_files"

    def collect(self, view: DaemonView) -> Iterable[Family]:
        family = Family("cephqos_test_threads", "gauge", "Threads.")
        family.add(view.labels, 1)
        if "status" not in view.replies:
            raise ReplyMissing("status", view.errors["status"], [family])
        return [family]


async def test_each_request_gets_the_hosts_figures_of_a_daemon_that_another_one_waits_for(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with one_waits_for_osd_0(host, HostCollector()) as (scraper, patient):
        monkeypatch.setattr(rounds, "_FRESH_SECONDS", 0.0)
        page = await text(scraper, 0.2)
        assert names(page, "cephqos_daemon_up", "0") == ["osd.0"]
        assert len(names(page, "cephqos_test_threads")) == 4
        scraper.hurry()
        await patient


async def test_what_one_waits_for_is_fresh_for_the_others(host: ReplayedHost) -> None:
    async with one_waits_for_osd_0(host, StatusCollector()) as (scraper, patient):
        host.daemons[1].recording = RecordedDaemon(REPLIES | {"status": b'{"num_pgs":10}'})
        assert names(await text(scraper, 0.2), "cephqos_test_pgs", "10") == ["osd.1"]
        scraper.hurry()
        assert len(up(await patient)) == 3, "what has answered by then is its page"


async def test_a_short_deadline_costs_nobody_else_a_daemon_that_is_slow(host: ReplayedHost) -> None:
    for daemon in host.daemons:
        daemon.delay = 0.4
    async with scraping(host, [StatusCollector()], patience=5) as scraper:
        hasty = asyncio.create_task(text(scraper, 0.02))
        await asyncio.sleep(0)
        pages = await asyncio.gather(text(scraper, 10), text(scraper, 10))
        assert not up(await hasty)
        assert [len(up(page)) for page in pages] == [4, 4]


class CostlyCollector(StatusCollector):
    """Needs long for what one daemon says."""

    readings = 0

    def collect(self, view: DaemonView) -> Iterable[Family]:
        if view.daemon.id == "1":
            self.readings += 1
            until = time.thread_time() + 0.1
            while time.thread_time() < until:
                pass
        return super().collect(view)


async def test_a_daemon_that_costs_too_much_to_read_is_left_out_for_a_while(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread reads for all: a daemon with a second's work for it would delay every page."""
    monkeypatch.setattr(rounds, "COSTLY_SECONDS", 0.05)
    collector = CostlyCollector()
    async with scraping(host, [collector]) as scraper:
        for _ in range(2):
            assert len(up(await text(scraper, 30))) == 4
        assert collector.readings == 2
        for _ in range(5):
            page = await text(scraper, 30)
            assert up(page) == names(page, "cephqos_test_pgs", "9") == ["osd.0", "osd.2", "osd.3"]
            assert re.search(r'cephqos_daemon_up{ceph_daemon="osd.1",[^}]*"costly"} 0', page)
        assert collector.readings == 2
        scraper._tracked[next(s for s in scraper._tracked if s.id == "1")]._budget.rests_until = 0.0
        assert len(up(await text(scraper, 30))) == 4
        assert len(up(await text(scraper, 30))) == 3


class ManyCommands(StatusCollector):
    """Asks so much that a daemon can stop in the middle."""

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        return [Command(p) for p in ("status", "version", "ops", "dump_mempools", "perf dump")]


@pytest.mark.parametrize("answered", [1, 2, 3, 4])
async def test_a_daemon_that_stops_in_the_middle_of_a_scrape_is_down_and_costs_one_deadline(
    host: ReplayedHost, answered: int
) -> None:
    stopping = host.daemons[0]
    more = dict.fromkeys(("ops", "dump_mempools", "perf dump"), b"{}")
    stopping.recording = RecordedDaemon(REPLIES | more)
    async with scraping(host, [ManyCommands()]) as scraper:
        await text(scraper)
        left = answered

        def stop(framed: bytes) -> bytes:
            nonlocal left
            left -= 1
            if left < 0:
                stopping.fault = Fault.HANG
            return framed

        stopping.mutate = stop
        page = await text(scraper, 1.0)
        assert names(page, "cephqos_daemon_up", "0") == ["osd.0"]
        assert len(up(page)) == 3
        assert 'reason="timeout"} 0' in page
        started = time.monotonic()
        assert names(await text(scraper, 5), "cephqos_daemon_up", "0") == ["osd.0"]
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("where", ["commands", "collect", "value", "finish", "forget"])
async def test_a_collector_that_raises_costs_its_own_samples_only(
    host: ReplayedHost, where: str
) -> None:
    async with scraping(host, [RaisingCollector(where), StatusCollector()]) as scraper:
        page = await text(scraper)
        host.daemons[3].stop()
        await text(scraper)  # forgets osd.3
    assert len(names(page, "cephqos_test_pgs", "9")) == 4
    whole = where in ("finish", "forget", "commands")
    assert len(names(page, "cephqos_test_raising")) == (4 if whole else 0)
    failures = re.findall(r'cephqos_collector_(?:host_)?success{.*collector="raising"} 0', page)
    assert len(failures) == {"collect": 4, "value": 4, "finish": 1}.get(where, 0)


async def test_two_scrapes_at_once_share_one_collection(host: ReplayedHost) -> None:
    for daemon in host.daemons:
        daemon.delay = 0.05
    async with scraping(host, [StatusCollector()]) as scraper:
        one, two = await asyncio.gather(text(scraper), text(scraper))
        assert len(up(one)) == len(up(two)) == 4
        assert host.asked["status"] == 4
        await text(scraper)
        assert host.asked["status"] == 8


class OtherDaemonsCollector(StatusCollector):
    """Needs a command that these daemons do not have."""

    name = "other"

    def collect(self, view: DaemonView) -> Iterable[Family]:
        view.reply("dump_metrics")
        return ()


@pytest.mark.parametrize("collector", [StatusCollector(), OtherDaemonsCollector()])
async def test_nothing_of_a_page_is_kept_until_the_next_scrape(
    host: ReplayedHost, collector: StatusCollector
) -> None:
    """Nor until garbage is collected: to look for it took a third of a scrape's CPU."""

    def parts() -> int:
        return sum(type(one) in (Rendered, DaemonView) for one in gc.get_objects())

    async with scraping(host, [collector]) as scraper:
        gc.collect()
        gc.disable()
        try:
            before = parts()
            page = await scraper.page(2)
            assert up(page.body(openmetrics=False).decode())
            del page
            await asyncio.sleep(0)
            assert parts() == before
        finally:
            gc.enable()


async def test_a_stale_socket_beside_the_living_one_hides_nothing(host: ReplayedHost) -> None:
    stale = host.add(RecordedDaemon(REPLIES), "x-osd.0")
    stale.path = host.directory / "a-osd.0.asok"  # found before the living one
    async with scraping(host, [StatusCollector()]) as scraper:
        stale.stop(unlink=False)
        page = await text(scraper)
        assert names(page, "cephqos_daemon_up", "[01]") == ["osd.0", "osd.1", "osd.2", "osd.3"]
        assert len(up(page)) == len(names(page, "cephqos_test_pgs", "9")) == 4


async def test_a_socket_that_is_replaced_by_another_of_the_same_daemon_hands_over(
    host: ReplayedHost,
) -> None:
    other = host.add(RecordedDaemon(REPLIES), "x-osd.0")
    other.path = host.directory / "z-osd.0.asok"
    async with scraping(host, [StatusCollector()]) as scraper:
        assert len(names(await text(scraper), "cephqos_test_pgs", "9")) == 4  # each one once
        host.daemons[0].stop(unlink=False)
        await text(scraper)
        page = await text(scraper)
        assert len(up(page)) == len(names(page, "cephqos_test_pgs", "9")) == 4


class WaitingSource:
    """A cluster source that is quick, late or broken."""

    name = "cluster"

    def __init__(self, seconds: float = 0.0, error: Exception | None = None) -> None:
        self.not_understood = NotUnderstood()
        self._seconds = seconds
        self._error = error
        self.closed = self.started = False

    def start(self) -> None:
        self.started = True

    async def collect(self, deadline: float) -> Iterable[Family]:
        await asyncio.sleep(self._seconds)
        if self._error is not None:
            raise self._error
        family = Family("cephqos_test_cluster", "gauge", "Of the cluster.")
        family.add(render_labels({"cluster": FSID}), 1)
        return [family]

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("source", "good"),
    [
        (WaitingSource(), 1),
        (WaitingSource(seconds=30), 0),
        (WaitingSource(error=RuntimeError("no monitors")), 0),
    ],
)
async def test_the_cluster_costs_the_daemons_nothing(
    host: ReplayedHost, source: WaitingSource, good: int
) -> None:
    async with scraping(host, [StatusCollector()], [source]) as scraper:
        page = await text(scraper, 0.3)
    assert len(up(page)) == 4
    assert page.count("cephqos_test_cluster{") == good
    assert f'cephqos_collector_host_success{{collector="cluster"}} {good}' in page
    assert source.closed


async def test_sources_begin_before_the_first_scrape(host: ReplayedHost) -> None:
    source = WaitingSource()
    async with scraping(host, [], [source]) as scraper:
        scraper.start()
        assert source.started
