"""What a reader does not understand is counted and logged, and becomes no label."""

import logging
from collections.abc import Iterable
from typing import Any

import pytest
from tests.replay.daemons import RecordedDaemon, ReplayedHost

from cephqos_exporter.daemon import DaemonView, ReplyMissing
from cephqos_exporter.families import Family, single
from cephqos_exporter.not_understood import NotUnderstood, NotUnderstoodTotals

from .scraping import FSID, REPLIES, StatusCollector, names, scraping, text
from .test_scrape import WaitingSource

SERIES = "cephqos_collector_not_understood_total"


class HalfCollector(StatusCollector):
    """Has something to show although a reply that it needs did not come."""

    name = "half"

    def collect(self, view: DaemonView) -> Iterable[Family]:
        raise ReplyMissing("status", "failed", list(super().collect(view)))


class HalfOddCollector(StatusCollector):
    """What it has without the reply that did not come is no number."""

    name = "half-odd"

    def collect(self, view: DaemonView) -> Iterable[Family]:
        odd: Any = "nine"
        raise ReplyMissing(
            "status", "failed", [single("cephqos_odd", "gauge", "Odd.", view.labels, odd)]
        )


class PuzzledCollector(StatusCollector):
    """Meets something in every reply that no release is known to say."""

    name = "puzzled"

    def collect(self, view: DaemonView) -> Iterable[Family]:
        view.not_understood.add("class", f"class number {self.collected}")
        view.not_understood.add("class", "another class")
        return super().collect(view)


def lines(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(SERIES)]


async def test_what_is_not_understood_is_counted_for_its_daemon_and_collector(
    host: ReplayedHost,
) -> None:
    async with scraping(host, [PuzzledCollector()]) as scraper:
        await text(scraper)
        page = await text(scraper)
    expected = [
        f'{SERIES}{{ceph_daemon="osd.{n}",cluster="{FSID}",collector="puzzled",what="class"}} 4'
        for n in range(4)
    ]
    assert lines(page) == expected
    assert "cephqos_test_pgs" in page  # the rest of what the collector gives is there


async def test_the_log_has_each_kind_once_whatever_the_number_of_scrapes_and_daemons(
    host: ReplayedHost, caplog: pytest.LogCaptureFixture
) -> None:
    async with scraping(host, [PuzzledCollector()]) as scraper:
        for _ in range(3):
            await text(scraper)
    told = [r.getMessage() for r in caplog.records if "does not understand" in r.getMessage()]
    assert len(told) == 1
    assert "puzzled does not understand this class: class number 0" in told[0]
    assert "newer than this cephqos" in told[0]


async def test_a_host_that_is_understood_has_no_such_series(host: ReplayedHost) -> None:
    async with scraping(host, [StatusCollector()], [WaitingSource()]) as scraper:
        assert not lines(await text(scraper))


async def test_a_reply_of_another_shape_that_fails_a_whole_collector_counts_too(
    host: ReplayedHost,
) -> None:
    odd = {**REPLIES, "status": b'{"pgs_by_another_name":9}'}
    host.daemons[2].recording = RecordedDaemon(odd)
    async with scraping(host, [StatusCollector()]) as scraper:
        page = await text(scraper)
    labels = f'ceph_daemon="osd.2",cluster="{FSID}",collector="status"'
    assert lines(page) == [f'{SERIES}{{{labels},what="reply"}} 1']
    assert f"cephqos_collector_success{{{labels}}} 0" in page


async def test_what_a_collector_has_without_a_missing_reply_is_shown_beside_its_failure(
    host: ReplayedHost,
) -> None:
    async with scraping(host, [HalfCollector()]) as scraper:
        page = await text(scraper)
    assert len(names(page, "cephqos_test_pgs", "9")) == 4
    assert len(names(page, "cephqos_collector_success", "0")) == 4
    assert not lines(page)


async def test_what_is_odd_beside_a_missing_reply_costs_no_other_collector(
    host: ReplayedHost,
) -> None:
    async with scraping(host, [HalfOddCollector(), StatusCollector()]) as scraper:
        page = await text(scraper)
    assert len(names(page, "cephqos_test_pgs", "9")) == 4
    assert "cephqos_odd" not in page


async def test_a_cluster_source_counts_as_well(host: ReplayedHost) -> None:
    source = WaitingSource()
    async with scraping(host, [], [source]) as scraper:
        source.not_understood.add("state", "hovering")
        await text(scraper)
        page = await text(scraper)
    assert lines(page) == [f'{SERIES}{{collector="cluster",what="state"}} 1']


def test_what_is_derived_once_can_be_said_at_every_scrape() -> None:
    kept, now = NotUnderstood(), NotUnderstood()
    kept.add("profile", "fast")
    kept.add("profile", "faster")
    now.add("profile", "first of all")
    now.include(kept)
    now.include(kept)
    assert now.found == {"profile": (5, "first of all")}


def test_what_a_daemon_said_is_cut_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    found = NotUnderstood()
    found.add("event", ["x" * 100_000])
    with caplog.at_level(logging.WARNING):
        NotUnderstoodTotals().take("ops", "osd.1", found)
    assert len(caplog.text) < 500


def test_daemons_that_say_something_new_every_time_make_no_new_series() -> None:
    totals = NotUnderstoodTotals()
    for number in range(1000):
        found = NotUnderstood()
        found.add("event", f"event {number}")
        totals.take("ops", "osd.1", found)
    assert list(totals) == [("ops", "event", 1000)]
