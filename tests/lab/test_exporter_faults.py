"""The exporter on real OSDs that stop, die and come back."""

import os
import re
import signal
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.exporter_process import ExporterProcess, exporter
from tests.lab.conftest import LabPool
from tests.waiting import until, wait_until

from cephqos_loadgen.lab.lab import RunningLab


@pytest.fixture
def lab(labs: LabPool) -> Iterator[RunningLab]:
    """One release is enough: all of them serve their socket with one thread."""
    shared = labs.shared("reef")
    yield shared
    labs.call(until(lambda: _all_up(shared), "all OSDs are up again"))


async def _all_up(lab: RunningLab) -> bool:
    async with lab.client() as client:
        return bool((await client.command("osd stat"))["num_up_osds"] == lab.spec.osds)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def up(page: str) -> dict[str, str]:
    """Daemons and their reasons; an empty one is up."""
    found = re.findall(
        r'^cephqos_daemon_up{ceph_daemon="([^"]+)".*reason="(\w*)"} ([01])$', page, re.MULTILINE
    )
    assert all((value == "1") == (reason == "") for _, reason, value in found)
    return {name: reason for name, reason, _ in found}


def page_with(running: ExporterProcess, **reasons: str) -> str:
    """The first page on which daemons are down for these reasons, or up for empty ones."""
    wanted = {name.replace("_", "."): reason for name, reason in reasons.items()}

    def found() -> str:
        page = running.get()
        return page if wanted.items() <= up(page).items() else ""

    return wait_until(found, lambda: f"{wanted}, but {up(running.get())}")


def test_a_stopped_osd_costs_one_deadline_and_then_nothing_until_it_goes_on(
    labs: LabPool, lab: RunningLab
) -> None:
    pid = labs.call(lab.pids())["osd.1"]
    flags = (f"--discovery.sockets={lab.paths.sockets}", "--scrape.timeout=3")
    with exporter(*flags) as running:
        page_with(running, osd_0="", osd_1="", osd_2="")
        with stopped(pid):
            seconds, page = running.timed()
            assert seconds > 2.5
            assert up(page) == {"osd.0": "", "osd.1": "timeout", "osd.2": ""}
            taken = []
            for _ in range(20):
                seconds, page = running.timed()
                taken.append(seconds)
                assert up(page)["osd.1"] == "timeout"
                assert 'ceph_osd_op{ceph_daemon="osd.1"' not in page
                assert 'ceph_osd_op{ceph_daemon="osd.2"' in page
                # What the host knows of it is still true.
                assert 'cephqos_threads{ceph_daemon="osd.1"' in page
            assert statistics.median(taken) < 1.5, "half of the deadline; a busy machine is slow"
        page_with(running, osd_1="")
        counters = 'ceph_osd_op{ceph_daemon="osd.1"'
        wait_until(lambda: counters in running.get(), "its counters, too, come back")


def test_an_osd_that_hangs_when_the_exporter_starts_is_named_and_taken_up_later(
    labs: LabPool, lab: RunningLab
) -> None:
    pid = labs.call(lab.pids())["osd.2"]
    flags = (f"--discovery.sockets={lab.paths.sockets}", "--scrape.timeout=1")
    with stopped(pid), exporter(*flags) as running:
        page = page_with(running, osd_0="", osd_1="", osd_2="timeout")
        clusters = set(re.findall(r'^cephqos_daemon_up{.*cluster="([^"]*)"', page, re.MULTILINE))
        assert len(clusters) == 1
        os.kill(pid, signal.SIGCONT)
        page_with(running, osd_2="")


def test_an_osd_that_is_killed_is_refused_and_its_successor_is_a_new_daemon(
    labs: LabPool, lab: RunningLab
) -> None:
    before = labs.call(lab.pids())["osd.0"]
    with exporter(f"--discovery.sockets={lab.paths.sockets}") as running:
        page_with(running, osd_0="")
        labs.call(lab.faults.kill(0))
        page = page_with(running, osd_0="refused")  # it takes a moment to die
        assert 'ceph_osd_op{ceph_daemon="osd.0"' not in page
        labs.call(lab.faults.restart(0))
        page_with(running, osd_0="")
        threads = 'cephqos_threads{ceph_daemon="osd.0"'
        wait_until(lambda: threads in running.get(), "its process, too, is found again")
    assert labs.call(lab.pids())["osd.0"] != before
