"""Which commands a scrape sends, how often, and what is logged of those that fail."""

import asyncio
import time

import pytest
from tests.replay.daemons import RecordedDaemon, ReplayedHost

from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.scrape import fetch

from .scraping import (
    REPLIES,
    RaisingCollector,
    SchemaCollector,
    StatusCollector,
    names,
    scraping,
    text,
    up,
)


async def test_what_never_changes_is_fetched_once_until_the_daemon_restarts(
    host: ReplayedHost,
) -> None:
    collector = SchemaCollector()
    async with scraping(host, [collector]) as scraper:
        for _ in range(3):
            await text(scraper)
        assert host.asked["perf schema"] == 4
        host.daemons[0].stop()
        host.daemons[0].start()
        await text(scraper)
        assert host.daemons[0].asked["perf schema"] == 2
        assert host.asked["perf schema"] == 5
        assert collector.forgotten == ["osd.0"]
        host.daemons[0].stop()
        assert len(up(await text(scraper))) == 3
        assert collector.forgotten == ["osd.0", "osd.0"]


async def test_a_command_that_a_release_lacks_is_not_asked_every_time_and_costs_no_success(
    host: ReplayedHost,
) -> None:
    for daemon in host.daemons:
        daemon.recording = RecordedDaemon({k: v for k, v in REPLIES.items() if k != "status"})
    async with scraping(host, [StatusCollector()]) as scraper:
        for _ in range(3):
            page = await text(scraper)
    assert len(up(page)) == 4
    assert host.asked["status"] == 4
    assert "cephqos_collector_success{" not in page


async def test_a_command_that_a_starting_daemon_lacks_is_asked_again_later(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "UNKNOWN_SECONDS", 0.05)
    starting = RecordedDaemon({k: v for k, v in REPLIES.items() if k != "status"})
    whole, host.daemons[0].recording = host.daemons[0].recording, starting
    async with scraping(host, [StatusCollector()]) as scraper:
        assert len(names(await text(scraper), "cephqos_test_pgs", "9")) == 3
        host.daemons[0].recording = whole
        await asyncio.sleep(0.1)
        assert len(names(await text(scraper), "cephqos_test_pgs", "9")) == 4


async def test_nothing_outside_the_read_only_list_is_ever_asked(host: ReplayedHost) -> None:
    async with scraping(host, [StatusCollector(), SchemaCollector()]) as scraper:
        await text(scraper)
    assert host.asked.keys() <= READ_ONLY_COMMANDS


async def test_a_collector_that_keeps_failing_is_logged_once(
    host: ReplayedHost, caplog: pytest.LogCaptureFixture
) -> None:
    async with scraping(host, [RaisingCollector("collect")]) as scraper:
        for _ in range(5):
            await text(scraper)
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 4  # one for each daemon
    assert all(record.exc_info for record in errors)


async def test_a_socket_that_cannot_be_asked_is_logged_once_with_its_reason(
    host: ReplayedHost, caplog: pytest.LogCaptureFixture
) -> None:
    async with scraping(host, [StatusCollector()]) as scraper:
        host.daemons[0].stop(unlink=False)
        for _ in range(3):
            await text(scraper)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "ceph-osd.0.asok: Connection refused" in warnings[0]


async def test_a_command_that_a_daemon_lacks_is_asked_for_ever_more_seldom(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon writes a line to its log each time."""
    monkeypatch.setattr(fetch, "UNKNOWN_SECONDS", 0.05)
    lacking = host.daemons[0]
    lacking.recording = RecordedDaemon({k: v for k, v in REPLIES.items() if k != "status"})
    async with scraping(host, [StatusCollector()]) as scraper:
        ended = time.monotonic() + 1.5
        while time.monotonic() < ended:
            await text(scraper)
            await asyncio.sleep(0.01)
    # After 0.05, 0.15, 0.35 and 0.75 s; thirty times if the wait did not grow.
    assert 2 <= lacking.asked["status"] <= 6
