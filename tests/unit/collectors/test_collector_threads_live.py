"""The threads collector on processes of this machine."""

import ctypes
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from cephqos_exporter.collectors.threads import ThreadsCollector
from cephqos_exporter.daemon import Host, ReplyMissing
from cephqos_exporter.procfs import Descriptors
from cephqos_exporter.sampler import ThreadSamples

from .host_views import cpu, samples, view

SPIN = """
import ctypes, sys, threading, time
def work(name, busy):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    while True:
        end = time.monotonic() + 0.02
        while busy and time.monotonic() < end:
            pass
        time.sleep(0.02 if busy else 0.2)
for name, busy in (("tp_osd_tp", True), ("tp_osd_tp", False), ("msgr-worker-0", False)):
    threading.Thread(target=work, args=(name, busy), daemon=True).start()
time.sleep(0.3)
print("ready", flush=True)
time.sleep(120)
"""


@pytest.fixture
def spinner() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def _cpu_of_threads(pid: int) -> float:
    return sum(it.user_time + it.system_time for it in psutil.Process(pid).threads())


def test_cpu_time_agrees_with_what_psutil_sums(spinner: subprocess.Popen[bytes]) -> None:
    collector = ThreadsCollector(samples=ThreadSamples(switches_interval=0.1))
    started = time.monotonic()
    first = samples(collector.collect(view(Host(), 1, pid=spinner.pid)))
    at_first = _cpu_of_threads(spinner.pid)
    while _cpu_of_threads(spinner.pid) < at_first + 0.3:  # on a busy machine it takes its time
        time.sleep(0.1)
        assert time.monotonic() < started + 30
    before = _cpu_of_threads(spinner.pid)
    found = samples(collector.collect(view(Host(), 2, pid=spinner.pid)))
    after = _cpu_of_threads(spinner.pid)
    elapsed = time.monotonic() - started
    groups = ("tp_osd_tp", "msgr-worker", "other")
    ours = sum(sum(cpu(found, group)) for group in groups)
    assert before - 0.05 <= ours <= after + 0.05  # each is cut to 10 ms, for user and for system
    assert found['cephqos_threads{group="tp_osd_tp"}'] == 2
    busiest = found['cephqos_threads_busiest_cpu_seconds_total{group="tp_osd_tp"}']
    used = sum(cpu(found, "tp_osd_tp")) - sum(cpu(first, "tp_osd_tp"))
    assert busiest == pytest.approx(used, abs=0.05)  # the other one sleeps
    assert 0.1 < busiest < elapsed
    switches = 'cephqos_threads_switches_total{group="tp_osd_tp",kind="voluntary"}'
    assert found[switches] > first[switches]


def test_a_daemon_that_ends_between_two_scrapes_is_reported(
    spinner: subprocess.Popen[bytes],
) -> None:
    descriptors = Descriptors(100)
    collector = ThreadsCollector(samples=ThreadSamples(descriptors=descriptors))
    list(collector.collect(view(Host(), 1, pid=spinner.pid)))
    assert descriptors.used > 3
    spinner.kill()
    spinner.wait()
    with pytest.raises(ReplyMissing, match="gone"):
        list(collector.collect(view(Host(), 2, pid=spinner.pid)))
    assert descriptors.used == 0


def test_threads_that_come_and_go_leave_no_descriptors_behind() -> None:
    descriptors = Descriptors(100)
    shared = ThreadSamples(descriptors=descriptors, groups=None)
    me = psutil.Process().pid
    sample = shared.of(view(Host(), 1, pid=me))
    before = descriptors.used
    named, release = threading.Barrier(6), threading.Event()

    def work() -> None:
        ctypes.CDLL(None).prctl(15, b"passing-by", 0, 0, 0)
        named.wait()
        release.wait()

    workers = [threading.Thread(target=work, daemon=True) for _ in range(5)]
    for worker in workers:
        worker.start()
    named.wait(60)
    sample = shared.of(view(Host(), time.monotonic(), pid=me))
    assert sample.groups["passing-by"].threads == 5
    release.set()
    for worker in workers:
        worker.join()
    time.sleep(0.05)
    sample = shared.of(view(Host(), time.monotonic() + 100, pid=me))
    assert sample.groups["passing-by"].threads == 0
    # Threads of this process that run again may keep one more each.
    assert descriptors.used <= before + len(sample.threads)
