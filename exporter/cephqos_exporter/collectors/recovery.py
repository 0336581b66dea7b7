"""Recovery and backfill of one OSD: work done, reservations held and awaited, time spent waiting.

Recovery often waits not for the scheduler but for reservations, of which an OSD grants few
(`osd_max_backfills`): who looks at the scheduler alone finds a class that asks for nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cephqos_exporter.collectors._counters import CounterCommands
from cephqos_exporter.labels import Labels
from cephqos_exporter.model import Command, Daemon, DaemonView, Family, ReplyMissing
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


class RecoveryCollector:
    """Recovery as one OSD does it, from its counters and its reservations."""

    name = "recovery"

    def __init__(self) -> None:
        self._counters = CounterCommands()
        self._labels: dict[Daemon, Labels] = {}
        self._seen: dict[Daemon, set[str]] = {}

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        if daemon.kind != "osd":
            return ()
        return [Command(RESERVATIONS), *self._counters.commands(daemon)]

    def collect(self, view: DaemonView) -> Iterable[Family]:
        if view.daemon.kind != "osd":
            return ()
        loggers = self._counters.loggers(view)
        labels = self._labels.setdefault(view.daemon, Labels(view.labels))
        osd = loggers.get("osd")
        if osd is None:
            raise ReplyMissing("osd counters", "not there")  # Crimson has names of its own
        families = [_counter(labels, osd, *row) for row in _COUNTERS if row[0] in osd]
        states = loggers.get("recoverystate_perf")
        if states is not None:
            families.append(_states(labels, states))
        families += self._reservations(view, labels)
        return families

    def finish(self) -> Iterable[Family]:
        return ()

    def forget(self, daemon: Daemon) -> None:
        self._counters.forget(daemon)
        self._labels.pop(daemon, None)
        self._seen.pop(daemon, None)

    def _reservations(self, view: DaemonView, labels: Labels) -> Iterable[Family]:
        held = Family(
            "cephqos_recovery_reservations",
            "gauge",
            "Placement groups that hold (in_progress) or await (queued) a reservation of this "
            "OSD, for itself as the primary (local) or for another (remote), by what for.",
        )
        most = Family(
            "cephqos_recovery_reservations_max",
            "gauge",
            "Reservations that this OSD grants at once on each side (osd_max_backfills).",
        )
        seen = self._seen.setdefault(view.daemon, set(_USUAL_KINDS))
        reply = view.reply(RESERVATIONS)
        for side in SIDES:
            reserver = reply[f"{side}_reservations"]
            most.add(labels.of("side", side), reserver["max_allowed"])
            counts = _count(reserver)
            seen.update(kind for _, kind in counts)
            for state in ("in_progress", "queued"):
                for kind in sorted(seen):
                    text = labels.of("side", side, "state", state, "kind", kind)
                    held.add(text, counts.get((state, kind), 0))
        return held, most


def _counter(labels: Labels, counters: Mapping[str, Any], key: str, name: str, text: str) -> Family:
    family = Family(name, "counter", text)
    family.add(labels.base, counters[key])
    return family


def _states(labels: Labels, counters: Mapping[str, Any]) -> Family:
    family = Family(
        "cephqos_recovery_state_seconds",
        "summary",
        "Time that placement groups spent in a state of recovery, local waits for this OSD's own "
        "reservation, remote ones for those of the others; added when they leave the state.",
    )
    for key, state in _STATES:
        value = counters.get(key)
        if value is not None:
            text = labels.of("state", state)
            family.add(text, value["sum"], "_sum")
            family.add(text, value["avgcount"], "_count")
    return family


def _count(reserver: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Reservations by (state, kind)."""
    counts: dict[tuple[str, str], int] = {}
    queued = (item for queue in reserver["queues"] for item in queue["items"])
    for state, items in (("in_progress", reserver["in_progress"]), ("queued", queued)):
        for item in items:
            key = (state, reservation_kind(int(item["prio"])))
            counts[key] = counts.get(key, 0) + 1
    return counts
