"""The commands that may be sent to a daemon, and their bytes."""

from collections.abc import Mapping
from functools import cache
from typing import Final

import orjson

from cephqos_exporter.daemon_errors import CommandRefused

# A program that can connect to an admin socket can also reconfigure the daemon. This list keeps
# the exporter from it: nothing else is ever written to a socket.
READ_ONLY_COMMANDS: Final = frozenset(
    {
        "config diff",
        "config get",
        "config show",
        "counter dump",
        "counter schema",
        "dump_blocked_ops_count",
        "dump_historic_ops",
        "dump_historic_slow_ops",
        "dump_mempools",
        "dump_metrics",
        "dump_op_pq_state",
        "dump_osd_network",
        "dump_pgstate_history",
        "dump_recovery_reservations",
        "dump_scrub_reservations",
        "dump_scrubs",
        "get_mapped_pools",
        "ops",
        "perf dump",
        "perf histogram dump",
        "perf schema",
        "status",
        "version",
    }
)

# Always sent along: without it the reply has only what Ceph itself warns of (pings of a second).
_FIXED: Final[Mapping[str, Mapping[str, object]]] = {"dump_osd_network": {"value": 0}}

ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {"config get": ("var",)}


@cache
def encode_request(prefix: str, arguments: tuple[tuple[str, str], ...] = ()) -> bytes:
    """The bytes of a command, or CommandRefused if it is not on the read-only list.

    An argument could be another `prefix`: the names of those that a command takes are listed too.
    """
    if prefix not in READ_ONLY_COMMANDS:
        raise CommandRefused(f"{prefix!r} is not on the list of read-only commands")
    for name, _ in arguments:
        if name not in ARGUMENTS.get(prefix, ()):
            raise CommandRefused(f"{prefix!r} takes no argument {name!r} here")
    request = {"prefix": prefix, "format": "json", **_FIXED.get(prefix, {}), **dict(arguments)}
    return orjson.dumps(request) + b"\0"
