"""The child that talks to the cluster, with a stand-in for the rados module: it must never stay."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent

import pytest
import pytest_asyncio
from tests.waiting import lives, wait_until

from cephqos_exporter.ceph.cluster import (
    STATUS,
    CephCommand,
    ClusterQuery,
    ClusterReader,
    pgs_of_primary,
)
from cephqos_exporter.ceph.monclient import (
    BindingsMissing,
    ClusterAccess,
    ClusterSilent,
    ClusterUnreachable,
    CommandFailed,
    MonClient,
    ReplyTooLarge,
    parse_reply,
)
from cephqos_exporter.daemon_errors import CommandRefused

# Does what the command's prefix says.
RADOS = '''
    """A stand-in for librados' bindings."""
    import json, os, sys, time

    class Rados:
        def __init__(self, conffile, name, conf):
            self.where = {"conf": conffile, "name": name, **conf}

        def connect(self, timeout):
            print("librados prints things")
            if "unreachable" in self.where["conf"]:
                raise Exception("[errno 110] RADOS timed out")
            if "silent" in self.where["conf"]:
                time.sleep(600)

        def mon_command(self, command, data):
            prefix = json.loads(command)["prefix"]
            if prefix == "hang":
                with open(os.environ["PIDS"], "a") as file:
                    file.write(f"{os.getpid()}\\n")
                time.sleep(600)
            if prefix == "die":
                os._exit(3)
            if prefix == "fail":
                return -22, b"", "no such thing"
            if prefix == "large":
                return 0, b"x" * 2_000_000, ""
            if prefix == "nan":
                return 0, b'{"ratio": NaN}', ""
            if prefix == "slow":
                time.sleep(0.3)
            return 0, json.dumps({"command": json.loads(command), **self.where}).encode(), ""

        def mgr_command(self, command, data):
            return 0, b'"from the manager"', b""
'''


@pytest.fixture
def bindings(tmp_path: Path) -> Path:
    """A directory with the stand-in, and a file of the pids of children that hang."""
    (tmp_path / "rados.py").write_text(dedent(RADOS))
    (tmp_path / "pids").touch()
    return tmp_path


def connection(bindings: Path, conf: str = "ceph.conf") -> ClusterAccess:
    python = ("env", f"PYTHONPATH={bindings}", f"PIDS={bindings}/pids", sys.executable)
    return ClusterAccess(conf=conf, python=python, name="client.test", keyring="/etc/keyring")


@pytest_asyncio.fixture(loop_scope="function")
async def client(bindings: Path) -> AsyncIterator[MonClient]:
    async with MonClient(connection(bindings), max_bytes=1_000_000) as found:
        yield found


async def gone(pid: int, within: float = 5.0) -> None:
    await asyncio.to_thread(wait_until, lambda: not lives(pid), f"process {pid} ends", within)


async def test_one_child_answers_command_after_command(client: MonClient) -> None:
    first = await client.command("status", who="me")
    assert first["command"] == {"prefix": "status", "format": "json", "who": "me"}
    assert await client.command("pg ls", target="mgr") == "from the manager"
    assert client.starts == 1


async def test_it_connects_as_told_and_leaves_no_socket_of_its_own(client: MonClient) -> None:
    where = await client.command("status")
    assert where["conf"] == "ceph.conf"
    assert where["name"] == "client.test"
    assert where["keyring"] == "/etc/keyring"
    assert where["admin_socket"] == ""


async def test_a_command_that_hangs_costs_its_deadline_and_the_child(
    client: MonClient, bindings: Path
) -> None:
    await client.command("status")
    started = time.monotonic()
    with pytest.raises(ClusterSilent):
        await client.command("hang", within=0.3)
    assert time.monotonic() - started < 5
    await gone(int((bindings / "pids").read_text()))
    assert (await client.command("status"))["name"] == "client.test"
    assert client.starts == 2


async def test_children_do_not_pile_up_when_every_command_hangs(
    client: MonClient, bindings: Path
) -> None:
    for _ in range(4):
        with pytest.raises(ClusterSilent):
            await client.command("hang", within=1.5)  # a child takes a while to start
    pids = [int(word) for word in (bindings / "pids").read_text().split()]
    assert len(set(pids)) == 4
    for pid in pids:
        await gone(pid, within=5)


async def test_a_cancelled_command_takes_its_child_along(client: MonClient, bindings: Path) -> None:
    task = asyncio.create_task(client.command("hang", within=60))
    while not (bindings / "pids").read_text():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(int((bindings / "pids").read_text()))


async def test_who_waits_for_another_command_gives_up_without_ending_it(client: MonClient) -> None:
    await client.command("status")
    slow = asyncio.create_task(client.command("slow", within=5))
    await asyncio.sleep(0.05)
    with pytest.raises(ClusterSilent, match="busy"):
        await client.command("status", within=0.1)
    assert (await slow)["command"]["prefix"] == "slow"
    assert client.starts == 1


async def test_an_answer_that_says_no_is_told_from_no_answer(client: MonClient) -> None:
    with pytest.raises(CommandFailed, match="no such thing") as caught:
        await client.command("fail")
    assert caught.value.code == -22
    with pytest.raises(ClusterUnreachable, match="ended"):
        await client.command("die")
    assert await client.command("status")


async def test_a_reply_above_the_cap_is_refused_before_it_is_read(client: MonClient) -> None:
    with pytest.raises(ReplyTooLarge):
        await client.command("large")
    assert await client.command("status")


async def test_numbers_that_json_does_not_have_are_taken_as_ceph_writes_them(
    client: MonClient,
) -> None:
    ratio = (await client.command("nan"))["ratio"]
    assert ratio != ratio


async def test_monitors_that_cannot_be_reached_are_told_in_librados_words(bindings: Path) -> None:
    async with MonClient(connection(bindings, "unreachable.conf")) as client:
        with pytest.raises(ClusterUnreachable, match="RADOS timed out"):
            await client.command("status", within=5)


async def test_a_connection_that_never_comes_about_costs_the_deadline(bindings: Path) -> None:
    async with MonClient(connection(bindings, "silent.conf")) as client:
        with pytest.raises(ClusterSilent):
            await client.command("status", within=0.5)


async def test_a_child_that_hangs_ends_when_its_parent_is_killed(bindings: Path) -> None:
    """No signal and no exit handler: the kernel closes what the parent held open."""
    where = connection(bindings)
    source = f"""
        import asyncio
        from cephqos_exporter.ceph.monclient import ClusterAccess, MonClient
        where = ClusterAccess(conf="ceph.conf", python={where.python!r})
        asyncio.run(MonClient(where).command("hang", within=600))
    """
    with subprocess.Popen([sys.executable, "-c", dedent(source)]) as parent:
        pids = wait_until((bindings / "pids").read_text, "no child has started").split()
        os.kill(parent.pid, signal.SIGKILL)
    await gone(int(pids[0]))


# -- without the bindings ------------------------------------------------------------------------


@pytest.fixture
def ceph(tmp_path: Path) -> Path:
    """A stand-in for the ceph command."""
    script = tmp_path / "ceph"
    script.write_text(
        dedent(f"""\
        #!{sys.executable}
        import json, os, sys, time
        with open("{tmp_path}/ceph-pids", "a") as file:
            file.write(f"{{os.getpid()}}\\n")
        if "hang" in sys.argv:
            time.sleep(600)
        if "fail" in sys.argv:
            sys.exit("Error EINVAL: no such thing")
        if "lost" in sys.argv:
            sys.exit("[errno 110] RADOS timed out (error connecting to the cluster)")
        print(json.dumps(sys.argv[1:]))
        """)
    )
    script.chmod(0o755)
    return script


def no_bindings() -> ClusterAccess:
    # -S and -I: no site-packages, so no rados module even where there is one.
    return ClusterAccess(conf="c", python=(sys.executable, "-IS"), name="client.t", keyring="k")


async def test_without_bindings_the_ceph_command_is_used_from_then_on(ceph: Path) -> None:
    reader = ClusterReader(no_bindings(), ceph=(str(ceph),), timeout=10)
    argv = await reader.ask(pgs_of_primary(7))
    assert argv[-2:] == ["ls-by-primary", "7"]
    assert argv[:6] == ["--conf", "c", "--name", "client.t", "--keyring", "k"]
    assert argv[6:10] == ["--connect-timeout", "9", "--format", "json"]
    assert (await reader.ask(ClusterQuery("pg dump", {"dumpcontents": ["pools"]})))[-3:] == [
        *("pg", "dump", "pools")
    ]
    assert reader.starts == 3, "one try of the bindings, two commands"
    await reader.close()


async def test_neither_bindings_nor_command_is_said_in_so_many_words(tmp_path: Path) -> None:
    reader = ClusterReader(no_bindings(), ceph=(str(tmp_path / "none"),), timeout=10)
    for _ in range(2):
        with pytest.raises(ClusterUnreachable) as caught:
            await reader.ask(STATUS)
        assert caught.value.reason == "no_command"
        assert "rados" in str(caught.value) and "none" in str(caught.value)


async def test_a_python_that_is_not_there_is_as_good_as_no_bindings(tmp_path: Path) -> None:
    async with MonClient(ClusterAccess(conf="c", python=(str(tmp_path / "none"),))) as client:
        with pytest.raises(BindingsMissing, match="none"):
            await client.command("status")


async def test_a_ceph_command_that_hangs_is_killed_at_the_deadline(
    ceph: Path, tmp_path: Path
) -> None:
    command = CephCommand(no_bindings(), (str(ceph),), max_bytes=1000)
    with pytest.raises(ClusterSilent):
        await command.command("hang", within=0.5)
    await gone(int((tmp_path / "ceph-pids").read_text()))


async def test_a_ceph_command_ends_when_its_parent_is_killed(ceph: Path, tmp_path: Path) -> None:
    source = f"""
        import asyncio
        from cephqos_exporter.ceph.cluster import CephCommand
        from cephqos_exporter.ceph.monclient import ClusterAccess
        command = CephCommand(ClusterAccess(conf="c"), ({str(ceph)!r},), max_bytes=1000)
        asyncio.run(command.command("hang", within=600))
    """
    with subprocess.Popen([sys.executable, "-c", dedent(source)]) as parent:
        there = tmp_path / "ceph-pids"
        wait_until(lambda: there.exists() and there.read_text(), "no command has started")
        os.kill(parent.pid, signal.SIGKILL)
    await gone(int(there.read_text()))


async def test_a_ceph_command_tells_refusal_loss_and_excess_apart(ceph: Path) -> None:
    command = CephCommand(no_bindings(), (str(ceph),), max_bytes=1000)
    with pytest.raises(CommandFailed, match="no such thing"):
        await command.command("fail")
    with pytest.raises(ClusterUnreachable, match="timed out"):
        await command.command("lost")
    with pytest.raises(ReplyTooLarge):
        await command.command("status", much=["x" * 2000])


async def test_nothing_outside_the_read_only_list_is_ever_asked(bindings: Path) -> None:
    reader = ClusterReader(connection(bindings), timeout=5)
    for prefix in ("osd out", "config set", "injectargs", "osd pool delete", "pg deep-scrub"):
        with pytest.raises(CommandRefused):
            await reader.ask(ClusterQuery(prefix))
    assert reader.starts == 0


@pytest.mark.parametrize("transport", ["rados", "ceph"])
async def test_a_child_that_cannot_be_killed_costs_the_deadline_and_has_no_other_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """A sudo that waits for a directory service: each poll waited for its end."""
    stuck = tmp_path / "stuck"
    stuck.write_text("#!/bin/sh\nexec sleep 5\n")
    stuck.chmod(0o755)

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr("cephqos_exporter.ceph.monclient.os.killpg", refuse)
    access = ClusterAccess("ceph.conf", python=(str(stuck),))
    client: MonClient | CephCommand = MonClient(access)
    if transport == "ceph":
        client = CephCommand(access, [str(stuck)], max_bytes=1000)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(ClusterSilent):
            await client.command("status", within=0.3)
    assert time.monotonic() - began < 15
    assert client.starts == 1
    await client.close()


async def test_a_child_of_another_user_ends_with_its_input(
    bindings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind sudo it is root's, whom nobody else may kill: one more would stay at each failure."""

    def refuse(*_: object) -> None:
        raise PermissionError

    client = MonClient(connection(bindings))
    monkeypatch.setattr(os, "killpg", refuse)
    with pytest.raises(ClusterSilent):
        await client.command("hang", within=3)
    await gone(int((bindings / "pids").read_text()))


async def test_what_commands_cost_is_counted(bindings: Path) -> None:
    reader = ClusterReader(connection(bindings), timeout=5)
    reply = await reader.ask(STATUS)
    await reader.ask(STATUS)
    cost = reader.costs["status"]
    assert cost.commands == 2
    assert cost.bytes == 2 * len(json.dumps(reply))
    assert 0 < cost.seconds < 5
    await reader.close()


@pytest.mark.parametrize(
    ("out", "means"),
    [
        (b'{"pool_name":"a\xff"}', {"pool_name": "a\N{REPLACEMENT CHARACTER}"}),
        (b'{"name":"\xc3\x28","of":[1]}', {"name": "\N{REPLACEMENT CHARACTER}(", "of": [1]}),
        (b"half \xff of it", "half \N{REPLACEMENT CHARACTER} of it"),
        (b"600.000000", 600.0),
        (b"", ""),
    ],
)
def test_one_name_that_is_no_text_does_not_hide_a_cluster(out: bytes, means: object) -> None:
    assert parse_reply(out) == means
