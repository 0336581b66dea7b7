"""Processes of daemons behind sockets that do not tell them, while one of them hangs."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.replay.daemons import RecordedDaemon, ReplayedHost
from tests.replay.host_tree import HostTree

from cephqos_exporter import lookup
from cephqos_exporter.ceph.discovery import find_sockets
from cephqos_exporter.ceph.pids import find_pid, process_start
from cephqos_exporter.scrape import fetch
from cephqos_exporter.scrape.fetch import DaemonFetcher

FSID = "b57be7fd-f103-4eb6-a252-ba6e212f166b"
STATUS = f'{{"cluster_fsid":"{FSID}"}}'.encode()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the others' answers may take longer than they are given while one hangs."""
    monkeypatch.setattr(lookup, "_LESS_PATIENCE_SECONDS", 2.0)


@contextmanager
def hanging(tree: HostTree, pid: int) -> Iterator[None]:
    """Whoever reads the arguments of the process waits until the end of this."""
    file = tree.host.proc / str(pid) / "cmdline"
    arguments = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    try:
        yield
    finally:
        # Kept open: a reader that was about to come would wait for good.
        with os.fdopen(os.open(file, os.O_RDWR), "wb", buffering=0) as pipe:
            pipe.write(arguments)
            file.rename(file.with_name("was"))
            file.write_bytes(arguments)


@pytest.mark.timeout(20)
async def test_a_process_that_hangs_holds_up_no_other_daemon(tmp_path: Path) -> None:
    """More of them than threads that look for processes; all were waited for before, for good."""
    tree, host = HostTree(tmp_path / "tree"), ReplayedHost(tmp_path)
    numbers = range(12)
    for number in numbers:
        host.add(RecordedDaemon({"status": STATUS}))
        tree.classic_osd(100 + number, number)
    async with host:
        with hanging(tree, 100):
            sockets = find_sockets([str(tmp_path / "*.asok")], ["osd"])
            found = [DaemonFetcher(socket, tree.host) for socket in sockets]
            deadline = asyncio.get_running_loop().time() + 5
            await asyncio.wait_for(asyncio.gather(*(one.identify(deadline) for one in found)), 5)
    pids = [one.daemon.pid for one in found if one.daemon]
    assert pids == [None, *(100 + number for number in numbers if number)]


def test_one_thread_waits_for_a_process_that_hangs(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)
    tree.classic_osd(100, 0)
    tree.classic_osd(101, 1)
    with hanging(tree, 100):
        for _ in range(100):
            assert find_pid("osd", "0", None, tree.host) is None
            assert find_pid("osd", "1", None, tree.host) == 101


async def test_a_process_that_could_not_be_found_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the host's figures of the daemon were missing until it was restarted."""
    monkeypatch.setattr(fetch, "PROCESS_SECONDS", 0.0)
    tree, host = HostTree(tmp_path / "tree"), ReplayedHost(tmp_path)
    host.add(RecordedDaemon({"status": STATUS}))
    tree.classic_osd(100, 0)
    tree.classic_osd(101, 0)  # one that is about to end
    async with host:
        (socket,) = find_sockets([str(tmp_path / "*.asok")], ["osd"])
        fetcher = DaemonFetcher(socket, tree.host)
        deadline = asyncio.get_running_loop().time() + 5
        await fetcher.identify(deadline)
        assert fetcher.daemon and fetcher.daemon.pid is None
        (tree.host.proc / "101/comm").write_text("bash\n")
        await fetcher.identify(deadline)
        assert fetcher.daemon.pid == 100
        assert fetcher.daemon.start == process_start(tree.host, 100)
