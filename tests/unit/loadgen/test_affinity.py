"""CPUs of the threads of a process: pinned as a whole, but for those that pinned themselves."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cephqos_base.errors import UsageError
from cephqos_loadgen.cluster import affinity
from cephqos_loadgen.cluster.steps.host import CpusSet, cpus_step
from cephqos_loadgen.cluster.steps.registry import read_step, stored
from cephqos_loadgen.cluster.steps.step import StepBack

# One thread per argument, each with the CPUs that it names; with "all" it pins nothing.
THREADS = """
import os, sys, threading
every = os.sched_getaffinity(0)
def thread(cpus):
    if cpus != "all":
        os.sched_setaffinity(0, {int(c) for c in cpus.split(",")})
    ready.release()
    threading.Event().wait()
ready = threading.Semaphore(0)
for cpus in sys.argv[2:]:
    threading.Thread(target=thread, args=(cpus,), daemon=True).start()
    ready.acquire()
if sys.argv[1] != "all":
    os.sched_setaffinity(0, {int(c) for c in sys.argv[1].split(",")})
print("ready", flush=True)
sys.stdin.readline()
threading.Thread(target=thread, args=("all",), daemon=True).start()
ready.acquire()
print("one more", flush=True)
threading.Event().wait()
"""
A, B = sorted(os.sched_getaffinity(0))[:2]  # every machine that tests Ceph has two
BOTH = tuple(sorted(os.sched_getaffinity(0)))


class Process:
    """A process with threads of several affinities."""

    def __init__(self, *cpus: str) -> None:
        command = [sys.executable, "-c", THREADS, *cpus]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self._hear("ready")

    def _hear(self, word: str) -> None:
        assert self._process.stdout
        assert self._process.stdout.readline() == f"{word}\n"

    def start_another_thread(self) -> None:
        assert self._process.stdin
        print("go", file=self._process.stdin, flush=True)
        self._hear("one more")

    def cpus(self) -> list[tuple[int, ...]]:
        """By thread, in the order of their start."""
        return [cpus for _, cpus in sorted(affinity.read_threads(self.pid).items())]

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def classic() -> Iterator[Process]:
    """No thread of it pins itself."""
    process = Process("all", "all", "all")
    yield process
    process.end()


@pytest.fixture
def crimson() -> Iterator[Process]:
    """Two reactors on a CPU each, the first is the process itself; and an alien thread."""
    process = Process(str(A), str(B), "all")
    yield process
    process.end()


def pin(process: Process, *cpus: int) -> StepBack:
    """As the phase does it. The way back, as it comes back from the monitors' key."""
    threads = affinity.read_threads(process.pid)
    before = affinity.ProcessCpus.of(process.pid, threads)
    step = cpus_step(before, cpus)
    affinity.pin("osd.0", process.pid, threads, cpus)
    return read_step("key", stored(step))


async def roll_back(step: StepBack) -> None:
    cluster: Any = None
    assert await step.carry_out(cluster) == ""


async def test_all_threads_of_a_classic_osd_get_the_cpus_and_are_freed(classic: Process) -> None:
    entry = pin(classic, A)
    assert classic.cpus() == [(A,)] * 3
    classic.start_another_thread()
    await roll_back(entry)
    assert classic.cpus() == [BOTH] * 4, "also a thread that was started while it was pinned"


async def test_reactors_keep_the_cpus_that_they_have_chosen(crimson: Process) -> None:
    assert crimson.cpus() == [(A,), (B,), BOTH]
    entry = pin(crimson, A, B)
    assert crimson.cpus() == [(A,), (B,), tuple(sorted((A, B)))]
    await roll_back(entry)
    assert crimson.cpus() == [(A,), (B,), BOTH]


def test_a_reactor_outside_of_its_cpus_is_refused_and_nothing_is_pinned(crimson: Process) -> None:
    with pytest.raises(UsageError, match=rf"osd\.0: 2 of its threads .* to CPUs {B}, which") as e:
        pin(crimson, A)
    assert "set crimson_cpu_set" in str(e.value)
    assert crimson.cpus() == [(A,), (B,), BOTH]


async def test_every_thread_gets_its_own_cpus_back() -> None:
    process = Process("all", "all", str(A), "all", str(B))
    try:
        before = process.cpus()
        entry = pin(process, A, B)
        for tid in affinity.read_threads(process.pid):
            os.sched_setaffinity(tid, {A, B})
        await roll_back(entry)
        assert process.cpus() == before
    finally:
        process.end()


def test_the_way_back_can_be_typed_by_a_person(crimson: Process) -> None:
    before = crimson.cpus()
    entry = pin(crimson, A, B)
    for tid in affinity.read_threads(crimson.pid):
        os.sched_setaffinity(tid, {A})
    subprocess.run(["sh", "-ec", entry.shown], check=True, stdout=subprocess.DEVNULL)
    assert crimson.cpus() == before


async def test_another_process_with_the_same_pid_is_left_alone(classic: Process) -> None:
    """The OSD was restarted, and its pid is somebody else's by now."""
    entry = pin(classic, A)
    assert isinstance(entry, CpusSet)
    entry = replace(entry, started=entry.started - 1)
    await roll_back(entry)
    assert classic.cpus() == [(A,)] * 3


async def test_a_process_that_is_gone_needs_no_way_back(classic: Process) -> None:
    entry = pin(classic, A)
    classic.end()
    await roll_back(entry)
