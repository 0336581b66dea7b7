"""Reading the threads of a process, against psutil: why that path is the exporter's own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
from tests.bench.exporter.verdicts import Verdicts

from cephqos_exporter.sampler import ThreadSamples

_THREADS = 60
# A third of them run between two reads, as an OSD's do between two scrapes.
_PROCESS = f"""
import threading, time
def run(pause):
    while True:
        time.sleep(pause)
for number in range({_THREADS - 1}):
    threading.Thread(target=run, args=(3600 if number % 3 else 0.02,), daemon=True).start()
print(flush=True)
input()
"""


def bench_threads(verdicts: Verdicts, reads: int) -> None:
    print(f"CPU of reading a process of {_THREADS} threads, a third of which run between two reads")
    with _process() as pid:
        sample = ThreadSamples().open(Path("/proc"), pid)
        sample.update(0.0)
        process = psutil.Process(pid)
        own, peer = 0.0, 0.0
        for second in range(1, reads + 1):  # in turns: other work on the machine costs both
            time.sleep(0.05)
            own += _milliseconds(partial(sample.update, float(second)))
            peer += _milliseconds(process.threads)
        sample.close()
    verdicts.say("psutil's Process.threads(): CPU time of each", peer / reads, "ms")
    verdicts.say("ours: also names, waits, last CPU, switches", own / reads, "ms")
    verdicts.say("ours in parts of theirs", own / peer, "x", most=1 / 2)


@contextmanager
def _process() -> Iterator[int]:
    argv = [sys.executable, "-c", _PROCESS]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3
