"""The slowest operations of each daemon since the last page, for the recording.

They come from replies that collectors have asked for anyway: `look` sees each daemon's replies, and
`take` gives what was found, when a page is recorded.
"""

import heapq
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import orjson

from cephqos_exporter.daemon import Daemon, DaemonView

_Key = tuple[str, str]  # of an operation: its description, and when it began


class _Slow(NamedTuple):
    seconds: float
    command: str  # whose reply lists it
    op: Mapping[str, Any]


OPERATIONS_HEAD: Final = "# cephqos operations\n"  # then a list as JSON
MOST: Final = 3  # of a daemon, on each page
# The key of an operation's seconds, by command.
_IN_PROGRESS: Final = "ops"
_SECONDS: Final[Mapping[str, str]] = {
    _IN_PROGRESS: "age",
    "dump_historic_ops": "duration",
    "dump_historic_slow_ops": "duration",
}
_LONGEST: Final = 400  # characters of each text: clients choose names of objects
_MOST_EVENTS: Final = 30
# Daemons come and go for years.
_MOST_DAEMONS: Final = 2000


class Operations:
    """The slowest operations of each daemon since the last page."""

    def __init__(self) -> None:
        # What a daemon's record of completed operations had at the last look, by command.
        self._record: dict[tuple[Daemon, str], frozenset[_Key]] = {}
        self._slowest: dict[Daemon, dict[_Key, _Slow]] = {}

    def look(self, view: DaemonView) -> None:
        """Look at a daemon's replies."""
        slowest = dict(self._slowest.get(view.daemon, {}))
        for command, key in _SECONDS.items():
            if command in view.replies:
                for op in heapq.nlargest(MOST, self._new(view, command), key=itemgetter(key)):
                    slowest[_key(op)] = _Slow(float(op[key]), command, op)
        if slowest:
            by_seconds = heapq.nlargest(MOST, slowest.items(), key=lambda item: item[1].seconds)
            self._slowest[view.daemon] = dict(by_seconds)

    def _new(self, view: DaemonView, command: str) -> Sequence[Mapping[str, Any]]:
        """The operations that the reply before did not have. At the first look at a record, none:
        they may have ended at any time before."""
        reply = view.replies[command]
        ops: Sequence[Mapping[str, Any]] = reply["Ops"] if "Ops" in reply else reply["ops"]
        if command == _IN_PROGRESS:
            return ops
        if len(self._record) > _MOST_DAEMONS:
            self._record.clear()
        before = self._record.get((view.daemon, command))
        self._record[view.daemon, command] = frozenset(map(_key, ops))
        return [] if before is None else [op for op in ops if _key(op) not in before]

    def take(self) -> bytes:
        """The operations as JSON behind a head, once; empty if there are none."""
        slowest, self._slowest = self._slowest, {}
        shown = []
        for daemon, slow_ops in slowest.items():
            shown += [_shown(daemon, slow) for slow in slow_ops.values()]
        understood = [op for op in shown if op]
        return OPERATIONS_HEAD.encode() + orjson.dumps(understood) if understood else b""


def _key(op: Mapping[str, Any]) -> _Key:
    return op["description"], op["initiated_at"]


def _shown(daemon: Daemon, slow: _Slow) -> dict[str, Any] | None:
    """What is kept of an operation; None if it has another shape."""
    op = slow.op
    try:
        events = op["type_data"]["events"][:_MOST_EVENTS]
        return {
            "ceph_daemon": _text(daemon.name),
            "cluster": _text(daemon.cluster),
            "seconds": slow.seconds,
            "finished": slow.command != _IN_PROGRESS,
            "description": _text(op["description"]),
            "initiated_at": _text(op["initiated_at"]),
            "events": [[_text(event["time"]), _text(event["event"])] for event in events],
        }
    except (LookupError, TypeError, AttributeError):
        return None


def _text(value: str) -> str:
    return value[:_LONGEST].encode(errors="replace").decode()
