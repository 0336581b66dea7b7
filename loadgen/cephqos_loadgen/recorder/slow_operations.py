"""The slowest operations of recorded pieces, for an archive: what Ceph itself says of each."""

import re
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from cephqos_loadgen.record.files import JsonLines
from cephqos_loadgen.recorder.redact import Redaction

MOST: Final = 1000
# Who sent it, its placement group, and, once it is decoded, `pool:hash:namespace:key:object:`.
_HEAD: Final = re.compile(r"(\w+)\(([a-z]+\.[0-9]+)\.[0-9]+:[0-9]+ ([0-9]+\.[0-9a-f]+(?:s[0-9]+)?)")
_OBJECT: Final = re.compile(r" (?:e[0-9]+/[0-9]+ )?-?[0-9]+:[0-9a-f]+:([^ ]*):[^: ]*(?: |\Z)")
_KIND: Final = re.compile(r"\w*")
# Events without a name in them.
_EVENT: Final = re.compile(r"[a-z_ :]*(?: from (?:osd\.)?[0-9,]+)?")


class SlowOperations:
    """Each operation once, as it was seen last."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], dict[str, Any]] = {}

    def add(self, op: Any, behind: float, redaction: Redaction | None) -> None:
        """An operation as an exporter wrote it; one of another shape is left out."""
        try:
            made = _made(op, behind, redaction)
            key = tuple(str(op[name]) for name in ("cluster", "ceph_daemon", "description"))
            key = (*key, str(op["initiated_at"]))
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            return
        if key not in self._found or self._found[key]["seconds"] <= made["seconds"]:
            self._found[key] = made
        if len(self._found) > 2 * MOST:
            self._found = {key: op for key, op in self._slowest() if op}

    def _slowest(self) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
        return sorted(self._found.items(), key=lambda one: -one[1]["seconds"])[:MOST]

    def write(self, path: Path) -> None:
        """The slowest first; no file where there are none."""
        if self._found:
            lines = JsonLines(path)
            for _, op in self._slowest():
                lines.write(op)
            lines.close()


def longest_wait(op: Mapping[str, Any]) -> tuple[str, float]:
    """The event after which an operation waited longest, and how long."""
    events = [*op["events"], (op["seconds"], "")]
    waits = [(later[0] - one[0], str(one[1])) for one, later in pairwise(events)]
    seconds, event = max(waits, default=(0.0, "unknown"))
    return event, seconds


def _made(op: Any, behind: float, redaction: Redaction | None) -> dict[str, Any]:
    began = datetime.fromisoformat(op["initiated_at"]).timestamp()
    times = [datetime.fromisoformat(at).timestamp() - began for at, _ in op["events"]]
    events = [str(event) for _, event in op["events"]]
    description = str(op["description"])
    if redaction:
        description = _redacted(description, redaction)
        events = [it if _EVENT.fullmatch(it) else _KIND.match(it)[0] for it in events]  # type: ignore[index]
    return {
        "ceph_daemon": str(op["ceph_daemon"]),
        "cluster": str(op["cluster"]),
        "started_unix_seconds": round(began + behind, 6),
        "seconds": float(op["seconds"]),
        "finished": bool(op["finished"]),
        "description": description,
        "events": [[round(at, 6), event] for at, event in zip(times, events, strict=True)],
    }


def _redacted(description: str, redaction: Redaction) -> str:
    """What it is, of whom, and for which object: a pseudonym. All else may hold names."""
    head = _HEAD.match(description)
    if head is None:
        match = _KIND.match(description)
        return f"{match[0] if match else ''}(…)"
    name = _OBJECT.match(description, head.end())
    shown = f" {redaction.pseudonym('object', name[1])}" if name else ""
    return f"{head[1]}({head[2]} {head[3]}{shown} …)"
