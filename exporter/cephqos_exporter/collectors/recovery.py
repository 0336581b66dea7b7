"""Recovery and backfill of one OSD: objects pushed, slots held and awaited.

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

_PUSHES: Final = (
    "cephqos_recovery_pushes_total",
    "counter",
    "Objects pushed to other OSDs; replicated pools only.",
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
    help="Recovery by each OSD: objects pushed, slots held and awaited.",
):
    """Recovery as one OSD does it; perf has its other counters under Ceph's own names."""

    def needed(self, daemon: Daemon, state: _RecoveryOsd | None) -> Sequence[Command]:
        return [Command(RESERVATIONS, SLOWLY), *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> _RecoveryOsd:
        return _RecoveryOsd(Labels(view.labels))

    def families(self, view: DaemonView, state: _RecoveryOsd) -> Iterable[Family]:
        odd = view.not_understood
        osd = self.counters.loggers(view).required("osd")
        pushes = figure(osd, "push", odd)
        families: list[Family] = []
        if pushes is not None:
            families.append(single(*_PUSHES, state.labels.base, pushes))
        try:
            reply = view.reply(RESERVATIONS)
        except ReplyMissing as exc:
            raise ReplyMissing(exc.command, exc.reason, families) from exc
        return [*families, *_slots(reply, state, odd)]


def _slots(reply: Mapping[str, Any], osd: _RecoveryOsd, odd: NotUnderstood) -> Iterable[Family]:
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
            odd.add("reply", f"{RESERVATIONS}: {side}: {exc!r}")
            continue
        most.add(osd.labels.of("side", side), allowed)
        osd.seen.update(kind for _, kind in counts)
        for state in ("in_progress", "queued"):
            for kind in sorted(osd.seen):
                text = osd.labels.of("side", side, "state", state, "kind", kind)
                held.add(text, counts.get((state, kind), 0))
    return held, most


def _count(reserver: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Slots by (state, kind)."""
    counts: dict[tuple[str, str], int] = {}
    queued = (item for queue in reserver["queues"] for item in queue["items"])
    for state, items in (("in_progress", reserver["in_progress"]), ("queued", queued)):
        for item in items:
            key = (state, reservation_kind(int(item["prio"])))
            counts[key] = counts.get(key, 0) + 1
    return counts
