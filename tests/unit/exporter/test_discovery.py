"""Finding sockets of every layout, and the process behind a socket."""

import asyncio
import errno
import os
import socket as sockets
from pathlib import Path

import pytest
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedDaemon, ReplayedHost
from tests.replay.host_tree import HostTree

from cephqos_exporter.ceph.discovery import (
    DEFAULT_PATTERNS,
    Socket,
    find_sockets,
    fsid_in_path,
    identify,
)
from cephqos_exporter.ceph.pids import find_pid, process_start
from cephqos_exporter.daemon import Host
from cephqos_exporter.daemon_errors import Malformed, SocketGone, TimedOut

FSID = "b57be7fd-f103-4eb6-a252-ba6e212f166b"
OTHER = "0f8a1c9e-0000-4000-8000-000000000001"


def socket_at(path: Path) -> Path:
    """A socket's file; bound from its directory, as paths of sockets are short."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with sockets.socket(sockets.AF_UNIX) as sock:
            sock.bind(path.name)
    finally:
        os.chdir(before)
    return path


def found(root: Path, *patterns: str, kinds: tuple[str, ...] = ("osd",)) -> list[str]:
    below = [f"{root}{pattern}" for pattern in patterns or DEFAULT_PATTERNS]
    return [f"{s.kind}.{s.id}" for s in find_sockets(below, kinds)]


def test_packages_cephadm_and_rook_keep_their_sockets_where_we_look(tmp_path: Path) -> None:
    socket_at(tmp_path / "run/ceph/ceph-osd.0.asok")
    socket_at(tmp_path / f"run/ceph/{FSID}/ceph-osd.1.asok")
    socket_at(tmp_path / "var/lib/rook/rook-ceph/ceph-osd.2.asok")
    socket_at(tmp_path / f"var/lib/rook/rook-ceph/{FSID}/ceph-osd.10.asok")
    assert found(tmp_path) == ["osd.0", "osd.1", "osd.2", "osd.10"]


def test_only_the_kinds_wanted_are_found_and_names_are_read_in_every_form(tmp_path: Path) -> None:
    for name in (
        "ceph-osd.3.asok",
        "my-cluster-osd.4.asok",
        "osd.5.asok",
        "ceph-mon.node-1.asok",
        "ceph-mgr.node-1.abcdef.asok",
        "ceph-client.rgw.zone.node-1.xyz.7.94110.asok",
        "ceph-osd.asok",
        "something.asok",
    ):
        socket_at(tmp_path / name)
    assert found(tmp_path, "/*.asok") == ["osd.3", "osd.4", "osd.5"]
    kinds = ("mon", "mgr", "client")
    assert found(tmp_path, "/*.asok", kinds=kinds) == [
        "client.rgw.zone.node-1.xyz.7.94110",
        "mgr.node-1.abcdef",
        "mon.node-1",
    ]


def test_a_directory_stands_for_the_sockets_in_it(tmp_path: Path) -> None:
    socket_at(tmp_path / "lab" / "ceph-osd.0.asok")
    assert found(tmp_path, "/lab") == ["osd.0"]
    assert found(tmp_path, "/lab/ceph-osd.0.asok") == ["osd.0"]
    assert found(tmp_path, "/nowhere", "/nowhere/*.asok") == []


def test_a_directory_that_may_not_be_read_holds_nothing_for_us(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    socket_at(closed / "ceph" / "ceph-osd.0.asok")
    closed.chmod(0)
    root = os.geteuid() == 0
    if root:
        for directory in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            directory.chmod(0o755)
        os.seteuid(65534)
    try:
        assert found(tmp_path, "/closed/ceph", "/closed/*/*.asok", "/closed/ceph/*.asok") == []
    finally:
        if root:
            os.seteuid(0)
        closed.chmod(0o755)
    assert found(tmp_path, "/closed/ceph") == ["osd.0"]


def test_a_socket_under_two_names_is_found_once(tmp_path: Path) -> None:
    socket_at(tmp_path / "run/ceph/ceph-osd.0.asok")
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("../run")
    assert found(tmp_path, "/run/ceph/*.asok", "/var/run/ceph/*.asok") == ["osd.0"]


def test_what_is_no_socket_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "ceph-osd.0.asok").write_text("")
    (tmp_path / "ceph-osd.1.asok").symlink_to("nowhere")
    assert found(tmp_path, "/*.asok") == []


def test_a_socket_made_anew_is_another_one(tmp_path: Path) -> None:
    path = socket_at(tmp_path / "ceph-osd.0.asok")
    (before,) = find_sockets([str(tmp_path)], ["osd"])
    assert find_sockets([str(tmp_path)], ["osd"]) == [before]
    path.unlink()
    socket_at(path)
    (after,) = find_sockets([str(tmp_path)], ["osd"])
    assert after != before


def test_cephadms_paths_name_the_cluster() -> None:
    assert fsid_in_path(Path(f"/run/ceph/{FSID}/ceph-osd.1.asok")) == FSID
    assert fsid_in_path(Path("/run/ceph/ceph-osd.1.asok")) == ""


async def asked(daemon: ReplayedDaemon, seconds: float = 5.0) -> tuple[str, int | None]:
    (socket,) = find_sockets([str(daemon.path)], ["osd"])
    deadline = asyncio.get_running_loop().time() + seconds
    # An empty /proc: what runs on this machine is not the test's.
    nobody = Host(proc=daemon.path.parent / "proc")
    found = await identify(socket, nobody, deadline=deadline)
    return found.cluster, found.pid


@pytest.mark.parametrize(
    "replies",
    [
        {"config get": f'{{"fsid":"{FSID}"}}', "status": f'{{"cluster_fsid":"{OTHER}"}}'},
        {"status": f'{{"cluster_fsid":"{FSID}"}}'},
        {"config get": '{"fsid":""}', "status": f'{{"cluster_fsid":"{FSID}"}}'},
        {
            "config get": '{"fsid":"00000000-0000-0000-0000-000000000000"}',
            "status": f'{{"cluster_fsid":"{FSID}"}}',
        },
    ],
)
async def test_the_daemon_itself_says_which_cluster_it_is_of(
    tmp_path: Path, replies: dict[str, str]
) -> None:
    host = ReplayedHost(tmp_path)
    daemon = host.add(RecordedDaemon({key: value.encode() for key, value in replies.items()}))
    async with host:
        cluster, pid = await asked(daemon)
    assert cluster == FSID
    assert pid is None  # the peer is this process, which is no ceph-osd, and none runs as osd.0


async def test_a_daemon_that_does_not_say_is_an_error_of_its_kind(tmp_path: Path) -> None:
    host = ReplayedHost(tmp_path)
    daemon = host.add(RecordedDaemon({"config get": b"[]", "status": b'{"cluster_fsid":7}'}))
    async with host:
        with pytest.raises(Malformed):
            await asked(daemon)
        daemon.fault = Fault.HANG
        with pytest.raises(TimedOut):
            await asked(daemon, 0.1)
        socket = Socket(tmp_path / "gone.asok", "osd", "0", (0, 0))
        with pytest.raises(SocketGone):
            await identify(socket, Host(), deadline=asyncio.get_running_loop().time() + 1)


def test_the_peers_pid_counts_if_it_is_such_a_daemon(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)
    tree.classic_osd(100, 7)
    assert find_pid("osd", "7", 100, tree.host) == 100
    # A pid of another namespace may name anything in this one.
    (tree.host.proc / "200").mkdir()
    (tree.host.proc / "200/comm").write_text("bash\n")
    assert find_pid("osd", "7", 200, tree.host) == 100


def test_without_a_peer_the_process_whose_arguments_name_the_osd_is_taken(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)
    tree.classic_osd(100, 1)
    tree.classic_osd(200, 11)
    tree.crimson_osd(300, 2, (0, 1))
    assert find_pid("osd", "1", None, tree.host) == 100
    assert find_pid("osd", "11", None, tree.host) == 200
    assert find_pid("osd", "2", None, tree.host) == 300
    assert find_pid("osd", "3", None, tree.host) is None


def test_two_processes_that_could_be_the_osd_are_none(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)
    tree.classic_osd(100, 1)  # of one cluster
    tree.classic_osd(200, 1)  # of another
    assert find_pid("osd", "1", None, tree.host) is None


def test_the_start_of_a_process_stays_when_the_clock_is_set(tmp_path: Path) -> None:
    """`btime` is the time of day of the boot: it moves, and the process is still the same."""
    tree = HostTree(tmp_path)
    tree.classic_osd(100, 1)
    started = set()
    for boot in (1700000000, 1700003600):
        (tree.host.proc / "stat").write_text(f"cpu 1 2 3\nbtime {boot}\nprocesses 4\n")
        started.add(process_start(tree.host, 100))
    assert started == {1000}
    assert process_start(tree.host, 999) is None


def test_a_directory_that_cannot_be_read_costs_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one on a disk that died, or of a FUSE file system that has ended."""
    for name in ("a", "b", "c"):
        socket_at(tmp_path / name / f"ceph-osd.{ord(name)}.asok")
    scandir = os.scandir

    def scan(path: str) -> object:
        if str(path).endswith("/b"):
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    assert found(tmp_path, "/*/*.asok") == ["osd.97", "osd.99"]
    assert found(tmp_path, "/b", "/b/*.asok", "/a") == ["osd.97"]


def test_without_descriptors_the_search_says_so_instead_of_finding_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan(path: str) -> object:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(OSError, match="Too many open files"):
        found(tmp_path, "/*.asok")


def test_patterns_reach_below_hidden_and_linked_directories(tmp_path: Path) -> None:
    socket_at(tmp_path / "x/.y/ceph-osd.1.asok")
    socket_at(tmp_path / "x/z/ceph-osd.2.asok")
    (tmp_path / "link").symlink_to("x")
    assert found(tmp_path, "/x/*/ceph-osd.[12].asok") == ["osd.1", "osd.2"]
    assert found(tmp_path, "/l*/z/*.asok", "/link/z/ceph-osd.2.asok") == ["osd.2"]
    assert found(tmp_path, "/**/*.asok") == ["osd.1", "osd.2"]
    assert found(tmp_path, "/x**/z/*.asok", "/x/z/[.asok", "/x/z/*.nothing") == ["osd.2"]


@pytest.mark.timeout(20)
def test_links_that_lead_in_circles_hold_nobody_up(tmp_path: Path) -> None:
    """A search that followed them would try all ways through them: without end."""
    socket_at(tmp_path / "x" / "ceph-osd.1.asok")
    for name in "abc":
        (tmp_path / "x" / name).symlink_to(tmp_path / "x")
    assert found(tmp_path, "/**/*.asok") == ["osd.1"]
