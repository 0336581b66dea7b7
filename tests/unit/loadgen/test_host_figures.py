"""What is recorded of this host while a phase runs: the real /proc, and a cluster that is asked."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.load import host_figures
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.run_recording import host_users

MIB = 1 << 20


class Cluster:
    """One OSD of this host, whose process is that of these tests, on sdz."""

    def __init__(self) -> None:
        self.access = SimpleNamespace(devices=frozenset({"loop7"}), disks=None)
        self.asked: list[str] = []

    async def pids(self) -> dict[str, int]:
        self.asked.append("pids")
        return {"osd.0": os.getpid(), "mon.a": os.getpid()}

    async def command(self, prefix: str) -> list[dict[str, Any]]:
        self.asked.append(prefix)
        return [{"id": 0, "devices": "sdz"}, {"id": 1, "devices": "sdy"}]


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(host_users, "disks_below", lambda names, folder: sorted(names))
    recorder = SimpleNamespace(children=[])
    return SimpleNamespace(cluster=Cluster(), osd_disks=None, recorder=recorder)


async def recorded(context: Any, file: Path) -> HostUse:
    """A phase in which this process writes 4 MiB."""
    found: dict[str, HostUse] = {}
    async with host_figures.recorded(context, "client", clients=False, uses=found):
        with file.open("wb") as out:
            out.write(b"x" * 4 * MIB)
            out.flush()
            os.fsync(out.fileno())
    return found["client"]


async def test_a_phase_has_the_users_of_disks_and_knows_which_are_the_osds(
    context: Any, tmp_path: Path
) -> None:
    use = await recorded(context, tmp_path / "file")
    assert use.cpu_users is not None and use.cpu_users.own_seconds >= 0
    users = use.disk_users
    assert users is not None
    assert users.osd_disks == ("loop7", "sdz"), "of OSDs here, and those that a lab names"
    assert users.own.written >= 4 * MIB, "or the folder of tests is not on a disk"
    assert not set(users.other_disks) & {"loop7", "sdz"}


async def test_the_osds_disks_are_looked_for_once_in_a_repeat(context: Any, tmp_path: Path) -> None:
    for _ in range(2):
        await recorded(context, tmp_path / "file")
    assert context.cluster.asked.count("osd metadata") == 1


@pytest.mark.parametrize("changed", [False, True])
async def test_the_cluster_is_asked_again_where_a_daemon_started_or_ended(
    context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    context.osd_disks = ["sdz"]
    monkeypatch.setattr(host_users, "daemons_changed", lambda before, after: changed)
    await recorded(context, tmp_path / "file")
    assert context.cluster.asked == ["pids"] * (2 if changed else 1)


SPIN = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); time.sleep(60)"


@pytest.mark.parametrize("whole", [True, False])
async def test_an_osd_that_was_restarted_has_the_cpu_that_it_used_since(
    context: Any, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """Of a phase, or of a step: without it OSDs would seem to have needed less."""
    context.osd_disks, context.steps = ["sdz"], {}
    monkeypatch.setattr(host_users, "daemons_changed", lambda before, after: True)
    running: list[subprocess.Popen[bytes]] = []

    def start() -> int:
        process = subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process.pid

    async def pids() -> dict[str, int]:
        return {"osd.0": running[-1].pid}

    start()
    context.cluster.pids = pids
    found: dict[str, HostUse] = {}
    phase = host_figures.recorded(context, "client", clients=False, uses=found)
    step = host_figures.of_step(context, "client", 4, 0.0)
    try:
        async with phase if whole else step:
            await asyncio.sleep(0.2)
            running[0].kill()
            running[0].wait()
            start()
        use = found["client"] if whole else context.steps["client depth 4"]
        threads = use.processes["osd.0"].threads.values()
        assert sum(thread.user_seconds + thread.system_seconds for thread in threads) >= 0.25
    finally:
        for process in running:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


FORKS = f"""
import os
if os.fork() == 0:
{"".join(f"    {line}" + chr(10) for line in SPIN.splitlines())}
os.wait()
"""
THREAD = """
import threading, time
def spin():
    while time.thread_time() < 0.4: pass
thread = threading.Thread(target=spin); thread.start(); print(flush=True); thread.join()
print(flush=True); time.sleep(60)
"""


@pytest.mark.parametrize("program", [FORKS, THREAD])
async def test_a_client_has_the_cpu_of_what_it_forked_and_of_threads_that_have_ended(
    context: Any, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """fio forks its jobs but for librbd's, and ends their threads before it closes the volumes."""
    monkeypatch.setattr(host_figures, "_CLIENT_LOOK_SECONDS", 0.05)
    context.osd_disks = ["sdz"]
    found: dict[str, HostUse] = {}
    argv = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdout=pipe, start_new_session=True) as process:
        try:
            launch = SimpleNamespace(name="client.client.0")
            child = SimpleNamespace(launch=launch, running=True, pid=process.pid)
            context.recorder.children.append(child)
            async with host_figures.recorded(context, "client", clients=True, uses=found):
                assert process.stdout is not None
                for _ in range(2 if program is THREAD else 1):
                    await asyncio.to_thread(process.stdout.readline)
                await asyncio.sleep(0.3)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    threads = found["client"].processes["client.client.0"].threads.values()
    assert sum(thread.user_seconds + thread.system_seconds for thread in threads) >= 0.25


@pytest.mark.parametrize("clients", [False, True])
async def test_a_phase_that_fails_leaves_no_task_behind(context: Any, clients: bool) -> None:
    before = asyncio.all_tasks()
    with pytest.raises(ZeroDivisionError):
        async with host_figures.recorded(context, "client", clients=clients, uses={}):
            raise ZeroDivisionError
    assert asyncio.all_tasks() == before
