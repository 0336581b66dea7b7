"""Processes of a lab as the kernel shows them."""

import os
import signal
import subprocess
import sys

from tests.waiting import wait_until

from cephqos_loadgen.lab.isolation.namespaces import is_stopped

THREADS = """
import threading, time
for _ in range(3):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_process_is_stopped_when_all_its_threads_are() -> None:
    with subprocess.Popen([sys.executable, "-c", THREADS], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            assert not is_stopped(child.pid)
            os.kill(child.pid, signal.SIGSTOP)
            wait_until(lambda: is_stopped(child.pid), "it is stopped")
            os.kill(child.pid, signal.SIGCONT)
            wait_until(lambda: not is_stopped(child.pid), "it goes on")
        finally:
            child.kill()


def test_no_process_is_not_stopped() -> None:
    assert not is_stopped(None)
    assert not is_stopped(2**22 + 1)
