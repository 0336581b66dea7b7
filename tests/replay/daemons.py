"""Replays recorded daemons on admin sockets, with faults; records real ones.

For tests and benchmarks: many daemons in one process, each command answered with what a real
daemon answered, or with one of the faults that real ones show. A recording is a directory with one
file per command (`counter_dump.json`, gzipped when large) of one daemon at one moment.

    python -m tests.replay.daemons record SOCKET DIRECTORY
    python -m tests.replay.daemons serve DIRECTORY --recording RECORDING --count 60
"""

import argparse
import asyncio
import gzip
import json
import random
import signal
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, Self

import orjson

from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.daemon_errors import DaemonError, ErrorReply, ExporterError, UnknownCommand

_HEADER: Final = struct.Struct(">I")
_GZIP_FROM_BYTES: Final = 8192
_BACKLOG: Final = 5  # as the real ones have
_SEND_BUFFER: Final = 1 << 20
_DRIP_SECONDS: Final = 0.05
ASKED: Final = "replay asked"  # a question of benchmarks: how often was what asked?


class Fault(Enum):
    """What a daemon does instead of answering."""

    NONE = "none"
    HANG = "hang"  # takes the request and never answers
    NEVER_ACCEPT = "never-accept"  # as a stopped process: the backlog fills
    HALF_THEN_HANG = "half-then-hang"
    CLOSE_MID_REPLY = "close-mid-reply"
    CLOSE_AT_ONCE = "close-at-once"
    GARBAGE = "garbage"  # a body of the announced length that is not JSON
    GIBIBYTE = "gibibyte"  # announces 1 GiB and begins to send
    EMPTY = "empty"
    TRAILING = "trailing"  # more than was announced
    SLOW = "slow"  # a few bytes at a time


class RecordedDaemon:
    """A daemon's replies by command."""

    def __init__(self, replies: dict[str, bytes]) -> None:
        self.replies = replies

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read a recording; ExporterError if there is none."""
        replies = {}
        for path in sorted(directory.glob("*.json*")):
            data = path.read_bytes()
            name = path.name.removesuffix(".gz").removesuffix(".json")
            replies[name.replace("+", " ")] = (
                gzip.decompress(data) if path.suffix == ".gz" else data
            )
        if not replies:
            raise ExporterError(f"{directory}: no recorded replies there")
        return cls(replies)

    def save(self, directory: Path) -> None:
        """Write one file per command; the same replies always give the same files."""
        directory.mkdir(parents=True, exist_ok=True)
        for prefix, body in self.replies.items():
            name = prefix.replace(" ", "+")
            if len(body) < _GZIP_FROM_BYTES:
                (directory / f"{name}.json").write_bytes(body)
            else:
                (directory / f"{name}.json.gz").write_bytes(gzip.compress(body, 9, mtime=0))

    def answer(self, prefix: str) -> bytes:
        """The recorded reply, or the error that a daemon without this command gives."""
        unknown = f"ERROR: (22) Invalid argument\nunknown command prefix {prefix}\n"
        return self.replies.get(prefix, unknown.encode())


async def record(path: Path, *, seconds: float = 10.0) -> RecordedDaemon:
    """Ask a real daemon every read-only command it knows."""
    replies = {}
    for prefix in sorted(READ_ONLY_COMMANDS):
        arguments = {"var": "fsid"} if prefix == "config get" else None
        try:
            answer = await asok.ask(str(path), prefix, arguments, timeout=seconds)
        except (UnknownCommand, ErrorReply):
            continue
        replies[prefix] = orjson.dumps(answer.value)
    return RecordedDaemon(replies)


@dataclass(eq=False)
class ReplayedDaemon:
    """One admin socket. `fault`, `recording` and `only` may be changed while it serves."""

    path: Path
    recording: RecordedDaemon
    fault: Fault = Fault.NONE
    only: Collection[str] | None = None  # commands that the fault strikes; None: all
    # Turns the framed answer into what is sent before the connection is closed (for fuzzing).
    mutate: Callable[[bytes], bytes] | None = None
    delay: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    _listener: socket.socket | None = None
    _connections: dict[socket.socket, asyncio.TimerHandle | None] = field(default_factory=dict)

    def start(self) -> None:
        """Listen; the socket's file is made again."""
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listener.bind(str(self.path))
        self._listener.listen(_BACKLOG)
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept)

    def stop(self, *, unlink: bool = True) -> None:
        """End as a daemon does (the file removed), or as one that was killed (the file left)."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        for connection in list(self._connections):
            self._end(connection)
        if unlink:
            self.path.unlink(missing_ok=True)

    @property
    def open_connections(self) -> int:
        """Connections taken and not ended."""
        return len(self._connections)

    def _accept(self) -> None:
        if self._listener is None:
            return
        if self.fault is Fault.NEVER_ACCEPT:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listener.fileno())
            loop.call_later(_DRIP_SECONDS, self._listen_again)
            return
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        self.accepted += 1
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._connections[connection] = None
        self._request(connection)

    def _listen_again(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept)

    def _request(self, connection: socket.socket) -> None:
        """Read the request; small enough to come whole."""
        loop = asyncio.get_running_loop()
        try:
            data = connection.recv(4096)
        except BlockingIOError:
            loop.add_reader(connection.fileno(), self._request, connection)
            return
        except OSError:
            data = b""
        loop.remove_reader(connection.fileno())
        if not data:
            self._end(connection)
            return
        prefix = str(json.loads(data.rstrip(b"\0"))["prefix"])
        if prefix != ASKED:
            self.asked[prefix] += 1
        if self.delay:
            self._connections[connection] = loop.call_later(
                self.delay, self._reply, connection, prefix
            )
        else:
            self._reply(connection, prefix)

    def _reply(self, connection: socket.socket, prefix: str) -> None:
        body = orjson.dumps(self.asked) if prefix == ASKED else self.recording.answer(prefix)
        framed = _HEADER.pack(len(body)) + body
        if self.mutate is not None:
            framed = self.mutate(framed)
        fault = self.fault if self.only is None or prefix in self.only else Fault.NONE
        whole, ends = _under(fault, framed)
        if fault is Fault.SLOW:
            self._drip(connection, whole)
            return
        self._send(connection, whole, ends)

    def _send(self, connection: socket.socket, data: bytes, ends: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            sent = connection.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(connection)
            return
        if sent < len(data):
            loop.add_writer(connection.fileno(), self._send_rest, connection, data[sent:], ends)
        elif ends:
            self._end(connection)
        else:  # hold it, and notice when the client gives up
            loop.add_reader(connection.fileno(), self._end, connection)

    def _send_rest(self, connection: socket.socket, data: bytes, ends: bool) -> None:
        asyncio.get_running_loop().remove_writer(connection.fileno())
        self._send(connection, data, ends)

    def _drip(self, connection: socket.socket, data: bytes) -> None:
        try:
            connection.send(data[:16])
        except OSError:
            self._end(connection)
            return
        if len(data) <= 16:
            self._end(connection)
            return
        self._connections[connection] = asyncio.get_running_loop().call_later(
            _DRIP_SECONDS, self._drip, connection, data[16:]
        )

    def _end(self, connection: socket.socket) -> None:
        timer = self._connections.pop(connection, None)
        if timer is not None:
            timer.cancel()
        if connection.fileno() >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(connection.fileno())
            loop.remove_writer(connection.fileno())
            connection.close()


def _under(fault: Fault, framed: bytes) -> tuple[bytes, bool]:
    """What is sent of an answer under a fault, and whether the connection is then closed."""
    half = framed[: _HEADER.size + (len(framed) - _HEADER.size) // 2]
    random_bytes = random.Random(len(framed)).randbytes(64)  # noqa: S311 - garbage, not a secret
    table = {
        Fault.HANG: (b"", False),
        Fault.HALF_THEN_HANG: (half, False),
        Fault.CLOSE_MID_REPLY: (half, True),
        Fault.CLOSE_AT_ONCE: (b"", True),
        Fault.GARBAGE: (_HEADER.pack(64) + random_bytes, True),
        Fault.GIBIBYTE: (_HEADER.pack(1 << 30) + bytes(4096), False),
        Fault.EMPTY: (_HEADER.pack(0), True),
        Fault.TRAILING: (framed + b"}", True),
    }
    return table.get(fault, (framed, True))


class ReplayedHost:
    """Daemons in one directory; an async context manager."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.daemons: list[ReplayedDaemon] = []

    def add(self, recording: RecordedDaemon, name: str | None = None) -> ReplayedDaemon:
        """Add osd.N, N counting up, or a daemon of the name given; it serves once started."""
        name = name or f"osd.{len(self.daemons)}"
        daemon = ReplayedDaemon(self.directory / f"ceph-{name}.asok", recording)
        self.daemons.append(daemon)
        return daemon

    @property
    def asked(self) -> Counter[str]:
        """Every command that any of them was asked, and how often."""
        total: Counter[str] = Counter()
        for daemon in self.daemons:
            total.update(daemon.asked)
        return total

    async def __aenter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        for daemon in self.daemons:
            daemon.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for daemon in self.daemons:
            daemon.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.replay.daemons")
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="store a real daemon's replies")
    recording.add_argument("socket", type=Path)
    recording.add_argument("directory", type=Path)
    recording.add_argument(
        "--rename",
        nargs=2,
        action="append",
        default=[],
        metavar=("OLD", "NEW"),
        help="replace a text in all replies, such as a path of the recording host",
    )
    serving = verbs.add_parser("serve", help="replay recordings until a signal")
    serving.add_argument("directory", type=Path, help="where the sockets are made")
    serving.add_argument("--recording", type=Path, action="append", required=True)
    serving.add_argument("--count", type=int, default=1, help="daemons, the recordings in turn")
    serving.add_argument("--fault", choices=[f.value for f in Fault], default=Fault.HANG.value)
    serving.add_argument("--faulty", type=int, default=0, help="how many have the fault")
    return parser


async def _serve(arguments: argparse.Namespace) -> None:
    recordings = [RecordedDaemon.load(path) for path in arguments.recording]
    host = ReplayedHost(arguments.directory)
    for index in range(arguments.count):
        daemon = host.add(recordings[index % len(recordings)])
        if index < arguments.faulty:
            daemon.fault = Fault(arguments.fault)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with host:
        print(f"{arguments.count} daemons in {arguments.directory}", flush=True)
        await stop.wait()


async def _record(arguments: argparse.Namespace) -> None:
    recording = await record(arguments.socket)
    for old, new in arguments.rename:
        recording.replies = {
            prefix: body.replace(old.encode(), new.encode())
            for prefix, body in recording.replies.items()
        }
    recording.save(arguments.directory)
    print(f"{len(recording.replies)} replies in {arguments.directory}")


def main(argv: Sequence[str] | None = None) -> int:
    """Serve or record; 1 and a line on standard error when that cannot be done."""
    arguments = _parser().parse_args(argv)
    try:
        asyncio.run(_serve(arguments) if arguments.verb == "serve" else _record(arguments))
    except (DaemonError, ExporterError, OSError) as exc:
        print(f"fake: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
