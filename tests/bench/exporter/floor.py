"""What no client of the daemons can beat: their replies read, and at most parsed."""

import socket
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from tests.replay.daemons import ASKED

FLOOR_COMMANDS = ("counter dump", "perf histogram dump")

Requests = Mapping[Path, Counter[str]]


def floor(paths: Sequence[Path]) -> float:
    """Read two replies of one daemon after the other, and throw them away."""
    started = time.perf_counter()
    for path in paths:
        for command in FLOOR_COMMANDS:
            _ask(path, command)
    return time.perf_counter() - started


def same_requests(requests: Requests) -> float:
    """Make these requests of one daemon after the other, and parse what is JSON."""
    started = time.perf_counter()
    for path, commands in requests.items():
        for command in commands.elements():
            reply = _ask(path, command)
            if reply[:1] in (b"{", b"["):
                orjson.loads(reply)
    return time.perf_counter() - started


def requests_so_far(paths: Sequence[Path]) -> Requests:
    """How often each replayed daemon was asked for what; this question is not counted."""
    return {path: Counter(orjson.loads(_ask(path, ASKED))) for path in paths}


def requests_since(before: Requests, now: Requests) -> Requests:
    return {path: now[path] - before[path] for path in now}


def _ask(path: Path, command: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(b'{"prefix":"%s","format":"json"}\0' % command.encode())
        (left,) = struct.unpack(">I", sock.recv(4))
        parts = []
        while left and (data := sock.recv(min(left, 1 << 18))):
            parts.append(data)
            left -= len(data)
    return b"".join(parts)
