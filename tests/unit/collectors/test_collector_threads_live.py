"""The threads collector on processes of this machine."""

import ctypes
import subprocess
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from cephqos_exporter.collectors.threads import ThreadsCollector
from cephqos_exporter.daemon import Host, ReplyMissing
from cephqos_exporter.procfs import Descriptors
from cephqos_exporter.sampler import ThreadSamples

from .host_views import view


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "120"]) as process:
        yield process
        process.kill()


def test_a_daemon_that_ends_between_two_scrapes_is_reported(
    sleeper: subprocess.Popen[bytes],
) -> None:
    descriptors = Descriptors(100)
    collector = ThreadsCollector(samples=ThreadSamples(descriptors=descriptors))
    list(collector.collect(view(Host(), 1, pid=sleeper.pid)))
    assert descriptors.used > 0
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(ReplyMissing, match="gone"):
        list(collector.collect(view(Host(), 2, pid=sleeper.pid)))
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
