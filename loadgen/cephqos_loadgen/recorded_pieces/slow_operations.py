"""The slowest operations of recorded pieces, for an archive: what Ceph itself says of each."""

import re
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from cephqos_loadgen.recorded_pieces.redact import Redaction
from cephqos_loadgen.run_recording.files import JsonLines

MOST: Final = 1000
# A description reads `osd_op(client.4123.0:77 2.1f 2:f8000000:::name:head [write 0~4096] ...)`: who
# sent it, its placement group, and, once it is decoded, `pool:hash:namespace:key:object:`.
_HEAD: Final = re.compile(
    r"(\w+)\(((?:client|osd|mds|mgr|mon)\.[0-9]+)\.[0-9]+:[0-9]+ ([0-9]+\.[0-9a-f]+(?:s[0-9]+)?)"
)
_OBJECT: Final = re.compile(r" (?:e[0-9]+/[0-9]+ )?-?[0-9]+:[0-9a-f]+:([^ ]*):[^: ]*(?: |\Z)")
# What a redaction keeps of operations: a closed list of their kinds and events. Others may hold
# names.
_KIND_WORDS: Final = """
    osd_op osd_op_reply osd_repop osd_repop_reply osd_backoff osd_pg_create pg_scan pg_backfill
    backfill_remove backfill_reserve recovery_reserve pg_update_log_missing
    pg_update_log_missing_reply pg_pct pg_trim replica_scrub rep_scrub rep_scrubmap MOSDECSubOpRead
    MOSDECSubOpReadReply MOSDECSubOpWrite MOSDECSubOpWriteReply MOSDPGPush MOSDPGPushReply
    MOSDPGPull MOSDPGScan MOSDPGBackfill MOSDPGBackfillRemove MOSDPGRecoveryDelete
    MOSDPGRecoveryDeleteReply
    """
_KINDS: Final = frozenset(_KIND_WORDS.split())
_EVENT: Final = re.compile(
    r"initiated|header_read|throttled|all_read|dispatched|queued_for_pg|reached_pg|started|done"
    r"|commit_sent|op_commit|op_applied|sub_op_(started|applied|committed|done)"
    r"|commit_queued_for_journal_write|write_thread_in_journal_buffer|journaled_completion_queued"
    r"|(waiting for subops|sub_op_(commit|applied)_rec|sub_op_reply)( from (osd\.)?[0-9,]+)?"
    r"|waiting for (rw locks|readable|scrub|degraded object|missing object|blocked object|peered"
    r"|active|flush|map|clean to primary|ondisk|unreadable object|cache not full|backoff)|delayed"
    r"|no_rw_locks|retry|queued for pg|reached pg"
)
_OTHER: Final = "other"


class SlowOperations:
    """Each operation once, as it was seen last."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, ...], dict[str, Any]] = {}

    def add(self, op: Any, behind: float, redaction: Redaction | None) -> None:
        """Add an operation as an exporter wrote it; one of another shape is left out. `behind`: the
        seconds that its host's clock was behind."""
        try:
            record = _record(op, behind, redaction)
            names = ("cluster", "ceph_daemon", "description", "initiated_at")
            key = tuple(str(op[name]) for name in names)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            return
        if key not in self._records or self._records[key]["seconds"] <= record["seconds"]:
            self._records[key] = record
        if len(self._records) > 2 * MOST:
            self._records = dict(self._slowest())

    def _slowest(self) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
        return sorted(self._records.items(), key=lambda item: -item[1]["seconds"])[:MOST]

    def write(self, path: Path) -> None:
        """The slowest first; no file where there are none."""
        if self._records:
            lines = JsonLines(path)
            for _, op in self._slowest():
                lines.write(op)
            lines.close()


def longest_wait(op: Mapping[str, Any]) -> tuple[str, float]:
    """The event after which an operation waited longest, and how long."""
    events = [*op["events"], (op["seconds"], "")]  # (seconds since its start, event)
    waits = [(after - before, str(event)) for (before, event), (after, _) in pairwise(events)]
    seconds, event = max(waits, default=(0.0, "unknown"))
    return event, seconds


def _record(op: Any, behind: float, redaction: Redaction | None) -> dict[str, Any]:
    """A line of operations.jsonl."""
    began = datetime.fromisoformat(op["initiated_at"]).timestamp()
    times = [datetime.fromisoformat(at).timestamp() - began for at, _ in op["events"]]
    events = [str(event) for _, event in op["events"]]
    description = str(op["description"])
    if redaction:
        description = _redacted(description, redaction)
        events = [event if _EVENT.fullmatch(event) else _OTHER for event in events]
    daemon, cluster = str(op["ceph_daemon"]), str(op["cluster"])
    if redaction:
        daemon, cluster = redaction.daemon(daemon), redaction.cluster(cluster)
    return {
        "ceph_daemon": daemon,
        "cluster": cluster,
        "started_unix_seconds": round(began + behind, 6),
        "seconds": float(op["seconds"]),
        "finished": bool(op["finished"]),
        "description": description,
        "events": [[round(at, 6), event] for at, event in zip(times, events, strict=True)],
    }


def _redacted(description: str, redaction: Redaction) -> str:
    """The kind of operation, its client and placement group, and its object's pseudonym. All else
    may hold names, and is left out."""
    head = _HEAD.match(description)
    kind = description.partition("(")[0]
    kind = kind if kind in _KINDS else _OTHER
    if head is None:
        return f"{kind}(…)"
    name = _OBJECT.match(description, head.end())
    pseudonym = f" {redaction.pseudonym('object', name[1])}" if name else ""
    return f"{kind}({head[2]} {head[3]}{pseudonym} …)"
