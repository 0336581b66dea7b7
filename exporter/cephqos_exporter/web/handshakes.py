"""Connections before they are any: accepted, and not through with TLS.

asyncio tells of a connection when its handshake is over, and gives a client that sends nothing a
minute for it. Meanwhile it holds a descriptor that nobody counts.
"""

import asyncio
import contextlib
import logging
import socket
import weakref
from typing import Any, Final, Protocol, Self

from cephqos_exporter.web.network import network_of
from cephqos_exporter.web.wire import Wire

log = logging.getLogger(__name__)

_AT_ONCE: Final = 128  # connections that are not welcome, as many as the kernel keeps waiting


class HandshakeWatch(Protocol):
    """Who counts the handshakes and says how long one may take."""

    header_seconds: float

    def welcomes(self, network: str) -> bool: ...
    def accepted(self, handshake: "Handshake") -> None: ...
    def gave_up(self, handshake: "Handshake") -> None: ...


class Listener(socket.socket):
    """A listening socket that tells of each connection at once."""

    watch: HandshakeWatch

    @classmethod
    def of(cls, sock: socket.socket, watch: HandshakeWatch) -> Self:
        """The same socket; the one given is empty afterwards."""
        found = cls(fileno=sock.detach())
        found.watch = watch
        return found

    def accept(self) -> tuple[socket.socket, Any]:
        # asyncio asks once in each pass of its loop after one that is not welcome: those who wait
        # behind a flood would wait for as many passes.
        for _ in range(_AT_ONCE):
            accepted, address = super().accept()
            peer = address[0] if isinstance(address, tuple) else ""
            if self.watch.welcomes(network_of(peer)):
                wire = Wire(accepted.family, accepted.type, accepted.proto, accepted.detach())
                self.watch.accepted(Handshake(self.watch, wire, peer))
                return wire, address
            accepted.close()
            log.info("closed a connection from %s: too many TLS handshakes", peer)
        raise ConnectionAbortedError  # which asyncio takes as nobody there


class Handshake:
    """A connection whose handshake goes on, for so long at most."""

    busy = False
    let_in = False

    def __init__(self, watch: HandshakeWatch, sock: Wire, address: str) -> None:
        self.descriptor = sock.fileno()
        self.address = address
        self.network = network_of(address)
        self._watch = watch
        # Weak, since asyncio forgets a connection that failed at once, and so closes it.
        self._sock = weakref.ref(sock)
        seconds = watch.header_seconds
        why = f"no TLS handshake within {seconds:g} s"
        self._timer = asyncio.get_running_loop().call_later(seconds, self.cut_off, why)

    @property
    def over(self) -> bool:
        """Whether it failed, of which nobody tells."""
        sock = self._sock()
        return sock is None or sock.fileno() < 0

    def end(self) -> Wire | None:
        """It is a connection now, on this socket, or has failed."""
        self._timer.cancel()
        return self._sock()

    def cut_off(self, why: str) -> None:
        """Close it; asyncio does, when it sees the end."""
        self.end()
        self._watch.gave_up(self)
        sock = self._sock()
        if sock is None or sock.fileno() < 0:
            return
        log.info("closed a connection from %s: %s", self.address, why)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
