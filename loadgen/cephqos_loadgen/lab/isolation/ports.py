"""A block of ports for each lab of a machine. The kernel frees it when the lab ends."""

import contextlib
import errno
import socket

from cephqos_base.errors import UsageError

# An OSD listens on up to 16 ports: 4 messengers with 2 protocols each, and as many again while it
# restarts.
PORTS_PER_LAB = 400
FIRST_PORT = 20000
LAST_PORT = 32000


def reserve_ports(wanted: int | None) -> tuple[int, socket.socket]:
    """The first port of a free block, and the socket whose life is the reservation.

    The reservation is an abstract Unix socket named after the block: like ports, such names are
    unique per network namespace, and they vanish with the last process that holds them.
    """
    candidates = [wanted] if wanted is not None else range(FIRST_PORT, LAST_PORT, PORTS_PER_LAB)
    for port in candidates:
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            reservation.bind(f"\0cephqos-lab-ports-{port}")
        except OSError as error:
            reservation.close()
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        if _is_free(port) and _is_free(port + 1):
            return port, reservation
        reservation.close()
    if wanted is not None:
        raise UsageError(
            f"port {wanted} or {wanted + 1} is in use: give another --port, or leave --port out"
        )
    raise UsageError(f"no free block of {PORTS_PER_LAB} ports from {FIRST_PORT} to {LAST_PORT}")


def _is_free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
