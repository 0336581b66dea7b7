"""The admin-socket client, against replayed daemons and every fault they know."""

import ast
import asyncio
import gc
import json
import os
import random
import socket
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedDaemon, ReplayedHost

from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS, encode_request
from cephqos_exporter.ceph.exchange import Exchange, Held
from cephqos_exporter.collectors.counters import CounterCommands
from cephqos_exporter.daemon import Daemon
from cephqos_exporter.daemon_errors import (
    ClosedEarly,
    CommandRefused,
    ConnectionRefused,
    DaemonError,
    ErrorReply,
    Malformed,
    PermissionMissing,
    SocketGone,
    TimedOut,
    TooLarge,
    UnknownCommand,
)

BIG = json.dumps({"text": "x" * 3_000_000}).encode()
REPLIES = {
    "version": b'{"version":"18.2.7"}',
    "status": b'{"whoami":0}',
    "config show": BIG,
    "ops": b"ERROR: (13) Permission denied\nnot today\n",
}


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[ReplayedDaemon]:
    host = ReplayedHost(tmp_path)
    daemon = host.add(RecordedDaemon(REPLIES))
    async with host:
        yield daemon


async def ask(daemon: ReplayedDaemon, prefix: str = "version", seconds: float = 5.0) -> object:
    return (await asok.ask(str(daemon.path), prefix, timeout=seconds)).value


async def ask_all(
    daemon: ReplayedDaemon, *prefixes: str, seconds: float = 5.0
) -> tuple[dict[str, object], asok.Answers]:
    deadline = asyncio.get_running_loop().time() + seconds
    answers = await asok.ask_all(str(daemon.path), prefixes, deadline=deadline)
    return answers.parse(), answers


async def test_a_reply_comes_parsed_and_with_the_pid_of_the_daemon(daemon: ReplayedDaemon) -> None:
    answer = await asok.ask(str(daemon.path), "version", timeout=5)
    assert answer.value == {"version": "18.2.7"}
    assert answer.pid == os.getpid()  # the replay server is this process


async def test_a_reply_larger_than_every_buffer_comes_whole(daemon: ReplayedDaemon) -> None:
    assert await ask(daemon, "config show") == {"text": "x" * 3_000_000}


async def test_a_reply_in_small_pieces_comes_whole(daemon: ReplayedDaemon) -> None:
    daemon.fault = Fault.SLOW
    assert await ask(daemon) == {"version": "18.2.7"}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.HANG, TimedOut),
        (Fault.HALF_THEN_HANG, TimedOut),
        (Fault.CLOSE_MID_REPLY, ClosedEarly),
        (Fault.CLOSE_AT_ONCE, ClosedEarly),
        (Fault.GARBAGE, Malformed),
        (Fault.GIBIBYTE, TooLarge),
        (Fault.EMPTY, Malformed),
        (Fault.TRAILING, Malformed),
    ],
)
async def test_every_fault_is_told_by_its_own_error(
    daemon: ReplayedDaemon, fault: Fault, error: type[DaemonError]
) -> None:
    daemon.fault = fault
    with pytest.raises(error):
        await ask(daemon, seconds=0.2)


async def test_a_reply_that_comes_byte_by_byte_at_full_speed_is_given_up(tmp_path: Path) -> None:
    """Each of them costs as much as a whole reply: a daemon may not keep a core busy with that."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "ceph-osd.0.asok"))
        listener.listen()
        exchange = Exchange(str(tmp_path / "ceph-osd.0.asok"), "status", b"{}\0", 1 << 20)
        held = Held(1 << 25)
        held.begin()
        daemon, _ = listener.accept()
        with daemon, exchange.sock, pytest.raises(Malformed, match="pieces"):
            daemon.sendall(struct.pack(">I", 1 << 24))
            for _ in range(10_000):
                assert exchange.receive(held) is None
                daemon.send(b"x")
        held.end()


async def test_a_slow_reply_is_given_up_at_the_deadline(daemon: ReplayedDaemon) -> None:
    daemon.fault = Fault.SLOW
    started = time.monotonic()
    with pytest.raises(TimedOut, match="bytes came"):
        await ask(daemon, "config show", seconds=0.3)
    assert time.monotonic() - started < 5


async def test_a_command_that_a_release_does_not_have_is_told_from_one_that_failed(
    daemon: ReplayedDaemon,
) -> None:
    with pytest.raises(UnknownCommand):
        await ask(daemon, "dump_metrics")
    with pytest.raises(ErrorReply, match="not today"):
        await ask(daemon, "ops")


async def test_a_command_outside_the_list_is_refused_before_anything_is_sent(
    daemon: ReplayedDaemon,
) -> None:
    for command in ("config set", "injectargs", "perf reset", "nonsense"):
        with pytest.raises(CommandRefused):
            await ask(daemon, command)
        with pytest.raises(CommandRefused):
            await ask_all(daemon, "version", command)
    assert daemon.accepted == 0


def test_the_list_names_no_command_that_changes_anything() -> None:
    reading = {"diff", "get", "show", "dump", "schema", "list", "ops", "status", "version"}
    for command in READ_ONLY_COMMANDS:
        assert reading & set(command.replace("_", " ").split()), command


def test_the_list_names_no_command_that_nothing_sends() -> None:
    root = Path(__file__).parents[3]
    rooms = ("exporter/cephqos_exporter", "deploy/cephqos_doctor", "deploy/cephqos_insight")
    folders = [root / room for room in rooms]
    files = {file for folder in folders for file in folder.rglob("*.py")}
    named = {
        node.value
        for file in files - {folders[0] / "ceph" / "commands.py"}
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    daemon, counters = Daemon("osd", "0", "c", Path("/nowhere")), CounterCommands()
    named |= {one.prefix for what in ("dump", "schema") for one in counters.commands(daemon, what)}
    assert sorted(READ_ONLY_COMMANDS - named) == []


async def test_no_socket_and_no_listener_are_told_apart(daemon: ReplayedDaemon) -> None:
    daemon.stop(unlink=False)  # killed: the file stays
    with pytest.raises(ConnectionRefused):
        await ask(daemon)
    daemon.path.unlink()
    with pytest.raises(SocketGone):
        await ask(daemon)


async def test_a_socket_removed_in_mid_reply_ends_that_reply_only(daemon: ReplayedDaemon) -> None:
    daemon.fault = Fault.HALF_THEN_HANG
    asking = asyncio.create_task(ask(daemon, seconds=5))
    while not daemon.open_connections:
        await asyncio.sleep(0.005)
    daemon.stop()
    with pytest.raises(ClosedEarly):
        await asking


async def test_a_missing_permission_is_told_as_such(daemon: ReplayedDaemon) -> None:
    daemon.path.chmod(0o555)
    root = os.geteuid() == 0
    if root:  # who is refused nowhere
        daemon.path.parent.chmod(0o755)
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionMissing, match=str(daemon.path)):
            await ask(daemon)
    finally:
        if root:
            os.seteuid(0)


async def test_a_batch_answers_what_it_can_and_says_what_hung(daemon: ReplayedDaemon) -> None:
    daemon.fault, daemon.only = Fault.HANG, {"status"}
    replies, answers = await ask_all(daemon, "version", "status", "dump_metrics", seconds=0.3)
    assert replies == {"version": {"version": "18.2.7"}}
    assert isinstance(answers.errors["status"], TimedOut)
    assert isinstance(answers.errors["dump_metrics"], UnknownCommand)
    assert answers.hung == ["status"]


async def test_a_batch_never_holds_more_than_two_connections(daemon: ReplayedDaemon) -> None:
    daemon.delay = 0.01
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, daemon.open_connections)
            await asyncio.sleep(0.001)

    watching = asyncio.create_task(watch())
    replies, answers = await ask_all(daemon, *sorted(READ_ONLY_COMMANDS))
    watching.cancel()
    assert most == 2
    assert len(replies) + len(answers.errors) == len(READ_ONLY_COMMANDS)


async def test_a_daemon_that_takes_no_connections_costs_the_deadline_and_nothing_more(
    daemon: ReplayedDaemon,
) -> None:
    daemon.fault = Fault.NEVER_ACCEPT
    for _ in range(8):  # more than its backlog holds
        started = time.monotonic()
        replies, answers = await ask_all(daemon, "version", "status", seconds=0.1)
        assert time.monotonic() - started < 5
        assert not replies
        assert answers.hung
    daemon.fault = Fault.NONE
    assert await ask(daemon) == {"version": "18.2.7"}


async def test_nothing_stays_open_after_errors_and_cancellation(daemon: ReplayedDaemon) -> None:
    await ask(daemon)  # what the event loop keeps for all connections is there from now on
    gc.collect()  # what other tests have left is closed before, not meanwhile
    daemon.fault = Fault.HANG
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    asking = [asyncio.create_task(ask_all(daemon, "version", "status")) for _ in range(2)]
    await asyncio.sleep(0.05)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await ask_all(daemon, "version", "status", seconds=0.05)
    await asyncio.sleep(0.05)  # the replay server notices that its clients left
    assert daemon.open_connections == 0
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def _mutated(framed: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert, duplicate or replace: at least one change, often a few."""
    data = bytearray(framed)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data)) if data else 0
        match rng.randrange(5):
            case 0 if data:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at : at + rng.randrange(1, 9)]
            case 2:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 3:
                del data[at:]
            case _:
                data[:4] = struct.pack(">I", rng.choice((0, 1, len(data), 1 << 31, 1 << 24)))
    return bytes(data)


def _oracle(sent: bytes) -> object:
    """What a correct client makes of these bytes followed by the end; None: an error."""
    if len(sent) < 4:
        return None
    length = int.from_bytes(sent[:4], "big")
    body = sent[4:]
    if not length or len(body) != length:
        return None
    try:
        return json.loads(body.decode("utf-8", "replace"), parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return None


async def test_ten_thousand_mutated_replies_never_crash_hang_or_succeed_wrongly(
    daemon: ReplayedDaemon,
) -> None:
    rng = random.Random(1)  # noqa: S311
    body = b'{"osd":{"op":12,"op_latency":{"avgcount":3,"sum":0.125},"name":"a\\u00e9b"},"l":[1,2]}'
    daemon.recording = RecordedDaemon({"version": body})
    sent = b""

    def mutate(framed: bytes) -> bytes:
        nonlocal sent
        sent = _mutated(framed, rng)
        return sent

    daemon.mutate = mutate
    started = time.monotonic()
    wrong, good = [], 0
    for _ in range(10_000):
        try:
            came = await ask(daemon, seconds=2)
            good += 1
        except TimedOut:
            pytest.fail(f"hung on {sent!r}")
        except DaemonError:
            came = None
        if came != _oracle(sent):
            wrong.append((sent, came))
    assert not wrong
    assert good > 100  # some mutations leave a valid reply: the oracle says so too
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    "arguments",
    [(("prefix", "config set"),), (("format", "x"),), (("var", "fsid"), ("prefix", "injectargs"))],
)
@pytest.mark.parametrize("command", ["status", "config get"])
def test_an_argument_cannot_be_another_command(
    command: str, arguments: tuple[tuple[str, str], ...]
) -> None:
    with pytest.raises(CommandRefused):
        encode_request(command, arguments)
    assert encode_request("config get", (("var", "fsid"),))
