"""Where the exporter listens: written addresses, and sockets that systemd hands over."""

import os
import socket
from collections.abc import Sequence
from typing import Any, Final

from cephqos_exporter.daemon_errors import ExporterError

_FIRST_SYSTEMD_FD: Final = 3
_BACKLOG: Final = 128


class AddressMissing(ExporterError):
    """An address of the right form that cannot be had."""

    def __init__(self, address: str, reason: Exception) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


def listen_on(addresses: Sequence[str]) -> list[socket.socket]:
    """Bound, listening sockets; AddressMissing, or ValueError if an address is none."""
    sockets: list[socket.socket] = []
    try:
        for address in addresses:
            place = split_address(address)
            try:
                sockets.append(bind_to(*place))
                sockets[-1].listen(_BACKLOG)
            except (OSError, UnicodeError) as exc:
                raise AddressMissing(address, exc) from exc
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def split_address(address: str) -> tuple[str, int]:
    """Host (empty: all addresses) and port of `[host]:port`; ValueError if it is not that."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or "/" in host:
        raise ValueError(address)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(address)
    return host, int(port)


def bind_to(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet; OSError or UnicodeError where there is none."""
    both = not host and socket.has_dualstack_ipv6()
    if host:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, place = addresses[0][0], addresses[0][4]
    else:
        family, place = socket.AF_INET6 if both else socket.AF_INET, ("", port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not both))
        sock.bind(place)
    except BaseException:
        sock.close()
        raise
    return sock


def systemd_sockets() -> list[socket.socket]:
    """The sockets that systemd handed over (LISTEN_FDS), if they are for this process."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = int(os.environ.get("LISTEN_FDS", "0"))
    return [socket.socket(fileno=_FIRST_SYSTEMD_FD + i) for i in range(count)]


def shown(name: Any) -> str:
    """A name that getsockname() gives, as `host:port`."""
    if isinstance(name, str):
        return name
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"
