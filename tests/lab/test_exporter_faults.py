"""The exporter on real OSDs that stop, die and come back."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.exporter_process import ExporterProcess, exporter
from tests.lab.conftest import LabPool
from tests.waiting import wait_until

from cephqos_loadgen.lab.lab import RunningLab


@pytest.fixture
def lab(labs: LabPool) -> RunningLab:
    """One release is enough: all of them serve their socket with one thread."""
    return labs.shared("reef")


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


def page_with(running: ExporterProcess, daemon: str, reason: str) -> str:
    """The first page on which the daemon is down for this reason, or up for an empty one."""

    def found() -> str:
        page = running.get()
        return page if up(page).get(daemon) == reason else ""

    return wait_until(found, lambda: f"{daemon} {reason!r}, but {up(running.get())}", 20)


def test_a_stopped_osd_costs_one_deadline_and_then_nothing_until_it_goes_on(
    labs: LabPool, lab: RunningLab
) -> None:
    pid = labs.call(lab.pids())["osd.1"]
    flags = (f"--discovery.sockets={lab.paths.sockets}", "--scrape.timeout=2")
    with exporter(*flags) as running:
        assert set(up(running.get()).values()) == {""}
        with stopped(pid):
            seconds, page = running.timed()
            assert 1.5 < seconds < 3
            assert up(page) == {"osd.0": "", "osd.1": "timeout", "osd.2": ""}
            for _ in range(20):
                seconds, page = running.timed()
                assert seconds < 0.5
                assert up(page)["osd.1"] == "timeout"
                assert 'ceph_osd_op{ceph_daemon="osd.1"' not in page
                assert 'ceph_osd_op{ceph_daemon="osd.2"' in page
                # What the host knows of it is still true.
                assert 'cephqos_threads{ceph_daemon="osd.1"' in page
        page_with(running, "osd.1", "")
        counters = 'ceph_osd_op{ceph_daemon="osd.1"'
        wait_until(lambda: counters in running.get(), "its counters, too, come back")


def test_an_osd_that_hangs_when_the_exporter_starts_is_named_and_taken_up_later(
    labs: LabPool, lab: RunningLab
) -> None:
    pid = labs.call(lab.pids())["osd.2"]
    flags = (f"--discovery.sockets={lab.paths.sockets}", "--scrape.timeout=1")
    with stopped(pid), exporter(*flags) as running:
        page = running.get()
        assert up(page) == {"osd.0": "", "osd.1": "", "osd.2": "timeout"}
        clusters = set(re.findall(r'^cephqos_daemon_up{.*cluster="([^"]*)"', page, re.MULTILINE))
        assert len(clusters) == 1
        os.kill(pid, signal.SIGCONT)
        page_with(running, "osd.2", "")


def test_an_osd_that_is_killed_is_refused_and_its_successor_is_a_new_daemon(
    labs: LabPool, lab: RunningLab
) -> None:
    before = labs.call(lab.pids())["osd.0"]
    with exporter(f"--discovery.sockets={lab.paths.sockets}") as running:
        assert up(running.get())["osd.0"] == ""
        labs.call(lab.faults.kill(0))
        page = page_with(running, "osd.0", "refused")  # it takes a moment to die
        assert 'ceph_osd_op{ceph_daemon="osd.0"' not in page
        labs.call(lab.faults.restart(0))
        page = page_with(running, "osd.0", "")
    assert labs.call(lab.pids())["osd.0"] != before
    # Its process is found again as well.
    assert 'cephqos_threads{ceph_daemon="osd.0"' in page
