"""What no client of the daemons can beat: two replies of each read and thrown away."""

import select
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path

FLOOR_COMMANDS = ("counter dump", "perf histogram dump")


def floor(paths: Sequence[Path]) -> float:
    """Read the two replies of one daemon after the other, and throw them away."""
    started = time.perf_counter()
    for path in paths:
        _ask([path])
    return time.perf_counter() - started


def _ask(paths: Sequence[Path]) -> None:
    for command in FLOOR_COMMANDS:
        request = b'{"prefix":"%s","format":"json"}\0' % command.encode()
        waiting: dict[int, tuple[socket.socket, int]] = {}
        for path in paths:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(path))
            sock.sendall(request)
            waiting[sock.fileno()] = (sock, -1)
        _drain(waiting)


def _drain(waiting: dict[int, tuple[socket.socket, int]]) -> None:
    poll = select.epoll()
    for number in waiting:
        poll.register(number, select.EPOLLIN)
    while waiting:
        for number, _ in poll.poll():
            sock, left = waiting[number]
            data = sock.recv(1 << 18)
            if left < 0:
                (left,) = struct.unpack(">I", data[:4])
                data = data[4:]
            left -= len(data)
            waiting[number] = (sock, left)
            if not left:
                poll.unregister(number)
                sock.close()
                del waiting[number]
    poll.close()
