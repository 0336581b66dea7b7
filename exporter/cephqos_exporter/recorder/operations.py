"""The slowest operations of each daemon: of replies that collectors have asked for anyway."""

import heapq
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import orjson

from cephqos_exporter.daemon import Daemon, DaemonView

_Key = tuple[str, str]  # its description, and when it began
_Seen = tuple[float, str, Mapping[str, Any]]

OPERATIONS_HEAD: Final = "# cephqos operations\n"  # then a list as JSON
MOST: Final = 3  # of a daemon, on each page
# How an operation says its seconds.
_IN_PROGRESS: Final = "ops"
_SECONDS: Final[Mapping[str, str]] = {
    _IN_PROGRESS: "age",
    "dump_historic_ops": "duration",
    "dump_historic_slow_ops": "duration",
}
# Of each text: the name of an object is up to a client.
_LONGEST: Final = 400
_MOST_EVENTS: Final = 30
# Daemons come and go for years.
_MOST_DAEMONS: Final = 2000


class Operations:
    """Those that are seen since the last page."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Daemon, str], frozenset[_Key]] = {}
        self._found: dict[Daemon, dict[_Key, _Seen]] = {}

    def look(self, view: DaemonView) -> None:
        """Look at a daemon's replies."""
        found = dict(self._found.get(view.daemon, {}))
        for command, seconds in _SECONDS.items():
            if command in view.replies:
                slowest = heapq.nlargest(MOST, self._new(view, command), key=itemgetter(seconds))
                found |= {_key(op): (float(op[seconds]), command, op) for op in slowest}
        if found:
            slowest_of_all = heapq.nlargest(MOST, found.items(), key=lambda one: one[1][0])
            self._found[view.daemon] = dict(slowest_of_all)

    def _new(self, view: DaemonView, command: str) -> Sequence[Mapping[str, Any]]:
        """Those that were not in the reply before. What a record has at first is old."""
        reply = view.replies[command]
        ops: Sequence[Mapping[str, Any]] = reply["Ops"] if "Ops" in reply else reply["ops"]
        if command == _IN_PROGRESS:
            return ops
        if len(self._seen) > _MOST_DAEMONS:
            self._seen.clear()
        keys, place = [_key(op) for op in ops], (view.daemon, command)
        before = self._seen.get(place)
        self._seen[place] = frozenset(keys)
        if before is None:
            return ()
        return [op for op, key in zip(ops, keys, strict=True) if key not in before]

    def take(self) -> bytes:
        """As JSON behind a head; empty where there are none."""
        found, self._found = self._found, {}
        every = [_shown(daemon, *one) for daemon, ops in found.items() for one in ops.values()]
        shown = [op for op in every if op]
        return OPERATIONS_HEAD.encode() + orjson.dumps(shown) if shown else b""


def _key(op: Mapping[str, Any]) -> _Key:
    return op["description"], op["initiated_at"]


def _shown(
    daemon: Daemon, seconds: float, command: str, op: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What of it is kept; None where it has another shape."""
    try:
        events = op["type_data"]["events"][:_MOST_EVENTS]
        return {
            "ceph_daemon": _text(daemon.name),
            "cluster": _text(daemon.cluster),
            "seconds": seconds,
            "finished": command != _IN_PROGRESS,
            "description": _text(op["description"]),
            "initiated_at": _text(op["initiated_at"]),
            "events": [[_text(event["time"]), _text(event["event"])] for event in events],
        }
    except (LookupError, TypeError, AttributeError):
        return None


def _text(found: str) -> str:
    return found[:_LONGEST].encode(errors="replace").decode()
