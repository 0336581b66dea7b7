"""Recovery and backfill of one OSD: work done, slots held and awaited, time spent waiting.

Recovery often waits not for the scheduler but for slots, which Ceph calls reservations. An OSD
has few of them (`osd_max_backfills`). In the scheduler alone such a class seems to have no demand.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.counters import figure
from cephqos_exporter.collectors.interval import SLOWLY
from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.families import Family, gauge, single
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.reservations import SIDES, reservation_kind

RESERVATIONS: Final = "dump_recovery_reservations"

_COUNTERS: Final = (
    (
        "recovery_ops",
        "cephqos_recovery_ops_total",
        "Recovery operations that this OSD started as the primary.",
    ),
    (
        "recovery_bytes",
        "cephqos_recovery_bytes_total",
        "Bytes recovered by this OSD as the primary; replicated pools only.",
    ),
    (
        "push",
        "cephqos_recovery_pushes_total",
        "Objects pushed to other OSDs; replicated pools only.",
    ),
    (
        "push_out_bytes",
        "cephqos_recovery_push_bytes_total",
        "Bytes pushed to other OSDs; replicated pools only. What an OSD receives is not counted.",
    ),
    (
        "pull",
        "cephqos_recovery_pulls_total",
        "Objects that this OSD asked others to push to it; replicated pools only.",
    ),
)

# Times of the peering state machine, each added when a placement group leaves the state.
_STATES: Final = (
    ("waitlocalrecoveryreserved_latency", "recovery_wait_local"),
    ("waitremoterecoveryreserved_latency", "recovery_wait_remote"),
    ("recovering_latency", "recovering"),
    ("waitlocalbackfillreserved_latency", "backfill_wait_local"),
    ("waitremotebackfillreserved_latency", "backfill_wait_remote"),
    ("backfilling_latency", "backfilling"),
)

# Shown from the start; the rarer kinds show from the first time they are seen.
_USUAL_KINDS: Final = ("recovery", "degraded_backfill", "backfill")


@dataclass(slots=True)
class _RecoveryOsd:
    labels: Labels
    seen: set[str] = field(default_factory=lambda: set(_USUAL_KINDS))  # kinds of slots


class RecoveryCollector(
    DaemonCollector[_RecoveryOsd],
    name="recovery",
    help="Recovery by each OSD: work done, slots held and awaited.",
):
    """Recovery as one OSD does it, from its counters and its slots."""

    def needed(self, daemon: Daemon, state: _RecoveryOsd | None) -> Sequence[Command]:
        return [Command(RESERVATIONS, SLOWLY), *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> _RecoveryOsd:
        return _RecoveryOsd(Labels(view.labels))

    def families(self, view: DaemonView, state: _RecoveryOsd) -> Iterable[Family]:
        not_understood = view.not_understood
        loggers = self.counters.loggers(view)
        osd = loggers.required("osd")
        families: list[Family] = []
        for key, name, text in _COUNTERS:
            value = figure(osd, key, not_understood)
            if value is not None:
                families.append(single(name, "counter", text, state.labels.base, value))
        states = loggers.get("recoverystate_perf")
        if states is None:
            not_understood.add("counter", "recoverystate_perf")
        else:
            families.append(_states(state.labels, states, not_understood))
        try:
            reply = view.reply(RESERVATIONS)
        except ReplyMissing as exc:
            raise ReplyMissing(exc.command, exc.reason, families) from exc
        families += _slots(reply, state, not_understood)
        return families


def _slots(
    reply: Mapping[str, Any], osd: _RecoveryOsd, not_understood: NotUnderstood
) -> Iterable[Family]:
    held = gauge(
        "cephqos_recovery_slots",
        "Placement groups that hold (in_progress) or wait for (queued) a slot of"
        " this OSD, by purpose. local: this OSD is the primary; remote: another OSD is.",
    )
    most = gauge(
        "cephqos_recovery_slots_max",
        "Most slots that this OSD grants at once on each side (osd_max_backfills).",
    )
    for side in SIDES:
        try:
            reserver = reply[f"{side}_reservations"]
            counts, allowed = _count(reserver), int(reserver["max_allowed"])
        except (LookupError, TypeError, ValueError) as exc:
            not_understood.add("reply", f"{RESERVATIONS}: {side}: {exc!r}")
            continue
        most.add(osd.labels.of("side", side), allowed)
        osd.seen.update(kind for _, kind in counts)
        for state in ("in_progress", "queued"):
            for kind in sorted(osd.seen):
                text = osd.labels.of("side", side, "state", state, "kind", kind)
                held.add(text, counts.get((state, kind), 0))
    return held, most


def _states(labels: Labels, counters: Mapping[str, Any], not_understood: NotUnderstood) -> Family:
    family = Family(
        "cephqos_recovery_state_seconds",
        "summary",
        "Time that placement groups spent in a state of recovery, added when they leave"
        " it. local: waiting for a slot of this OSD; remote: waiting for those "
        "of other OSDs.",
    )
    for key, state in _STATES:
        seconds = figure(counters, key, not_understood, "sum")
        times = figure(counters, key, not_understood, "avgcount")
        if seconds is not None and times is not None:
            text = labels.of("state", state)
            family.add(text, seconds, "_sum")
            family.add(text, times, "_count")
    return family


def _count(reserver: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Slots by (state, kind)."""
    counts: dict[tuple[str, str], int] = {}
    queued = (item for queue in reserver["queues"] for item in queue["items"])
    for state, items in (("in_progress", reserver["in_progress"]), ("queued", queued)):
        for item in items:
            key = (state, reservation_kind(int(item["prio"])))
            counts[key] = counts.get(key, 0) + 1
    return counts
