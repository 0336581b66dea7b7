"""Daemons that hang: from their start, so that they never say who they are, or later."""

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.replay.daemons import Fault, ReplayedHost

from cephqos_exporter.daemon import DaemonView
from cephqos_exporter.families import Family
from cephqos_exporter.scrape import fetch

from .scraping import FSID, StatusCollector, names, scraping, text, up


async def test_a_daemon_that_hangs_from_the_start_is_reported_in_its_neighbours_cluster(
    host: ReplayedHost,
) -> None:
    host.daemons[2].fault = Fault.HANG
    async with scraping(host, [StatusCollector()]) as scraper:
        await text(scraper, 0.2)
        page = await text(scraper, 0.2)
    line = f'cephqos_daemon_up{{ceph_daemon="osd.2",cluster="{FSID}",reason="timeout"}} 0'
    assert line in page


class PidCollector(StatusCollector):
    """Needs no reply, only the process."""

    name = "host"

    def collect(self, view: DaemonView) -> Iterable[Family]:
        family = Family("cephqos_test_pid", "gauge", "The process.")
        family.add(view.labels, view.daemon.pid or 0)
        return [family]


async def test_the_host_shows_what_it_knows_of_a_daemon_that_hangs_from_the_start(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cluster is that of its neighbours, its process the peer of its socket: ours here."""
    monkeypatch.setattr(fetch, "PROBE_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(fetch, "_PROBE_PAUSE_SECONDS", 0.01)
    comm = Path("/proc/self/comm")
    ours = comm.read_text()
    host.daemons[2].fault = Fault.HANG
    collector = PidCollector()
    try:
        comm.write_text("ceph-osd")
        async with scraping(host, [collector]) as scraper:
            await text(scraper, 0.2)
            page = await text(scraper, 0.2)
            assert names(page, "cephqos_daemon_up", "0") == ["osd.2"]
            assert len(names(page, "cephqos_test_pid", str(os.getpid()))) == 4
            host.daemons[2].fault = Fault.NONE
            async with asyncio.timeout(10):
                while len(up(await text(scraper))) < 4:
                    await asyncio.sleep(0.1)
            assert not collector.forgotten, "it is the same daemon"
    finally:
        comm.write_text(ours)


async def test_a_daemon_that_never_said_its_cluster_has_no_figures_of_the_host(
    host: ReplayedHost,
) -> None:
    for daemon in host.daemons:
        daemon.fault = Fault.HANG
    async with scraping(host, [PidCollector()]) as scraper:
        await text(scraper, 0.2)
        page = await text(scraper, 0.2)
    assert len(names(page, "cephqos_daemon_up", "0")) == 4
    assert "cephqos_test_pid" not in page


async def test_a_daemon_known_to_hang_costs_the_next_scrapes_nothing(host: ReplayedHost) -> None:
    async with scraping(host, [StatusCollector()]) as scraper:
        await text(scraper)
        host.daemons[0].fault = Fault.HANG
        await text(scraper, 0.3)
        started = time.monotonic()
        for _ in range(20):
            page = await text(scraper, 5)
        assert time.monotonic() - started < 5, "not once"
        assert names(page, "cephqos_daemon_up", "0") == ["osd.0"]
        assert host.daemons[0].open_connections == 1  # the probe, waiting


async def test_a_daemon_that_answers_again_is_asked_again(
    host: ReplayedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "PROBE_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(fetch, "PROMPT_SECONDS", 0.05)
    monkeypatch.setattr(fetch, "_PROBE_PAUSE_SECONDS", 0.01)
    async with scraping(host, [StatusCollector()]) as scraper:
        await text(scraper)
        host.daemons[0].fault = Fault.HANG
        assert len(up(await text(scraper, 0.1))) == 3
        host.daemons[0].fault = Fault.NONE
        await asyncio.sleep(0.4)
        assert len(up(await text(scraper))) == 4
