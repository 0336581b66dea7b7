"""Scrubbing of one OSD: slots (Ceph: reservations), and how scrubs and clients hinder each other.

Before 19.2 an OSD does not count the latter: those series are absent there. What placement groups
have to scrub, and how far they are, are figures of the cluster (`--role cluster`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.counters import LABELLED, figure
from cephqos_exporter.collectors.interval import SLOWLY
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import MISREAD, NotUnderstood

RESERVATIONS: Final = "dump_scrub_reservations"

_POOL_TYPES: Final = ("replicated", "ec")

# The labelled sets, and what of them tells how scrubs and clients got in each other's way.
_SETS: Final = ("osd_scrub_sh_repl", "osd_scrub_sh_ec", "osd_scrub_dp_repl", "osd_scrub_dp_ec")
_GONE: Final = "write_blocked_by_scrub"  # 21.x does not count it by level any more
_LEVELLED: Final = (
    (
        _GONE,
        "cephqos_scrub_writes_blocked_total",
        "Client writes that waited because a scrub held their objects. Absent on 21.x.",
    ),
    (
        "preemptions",
        "cephqos_scrub_preemptions_total",
        "Chunks that a scrub gave up because a client needed their objects.",
    ),
)


class ScrubCollector(
    DaemonCollector[Labels],
    name="scrub",
    help="Scrubbing by each OSD: slots, and clients and scrubs that hold each other up.",
):
    """Scrubbing as one OSD does it; perf has its other counters under Ceph's own names."""

    def needed(self, daemon: Daemon, state: Labels | None) -> Sequence[Command]:
        return [Command(RESERVATIONS, SLOWLY), *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> Labels:
        return Labels(view.labels)

    def families(self, view: DaemonView, state: Labels) -> Iterable[Family]:
        odd = view.not_understood
        slots = view.reply(RESERVATIONS)
        families = odd.all_of(RESERVATIONS, lambda: _slots(slots, state, odd))
        osd = self.counters.loggers(view).required("osd")
        if self.counters.kind(view) != LABELLED:
            return families
        sets = _labelled_sets(view.reply("counter dump"), odd)
        if sets:
            families.append(_slot_failures(osd, sets, state, odd))
            families += _levelled(sets, state, odd)
        return families


def _slots(reply: Mapping[str, Any], labels: Labels, odd: NotUnderstood) -> Iterable[Family]:
    held = gauge(
        "cephqos_scrub_slots",
        "Scrubs that this OSD takes part in. local: as the primary; remote: as a replica.",
    )
    remote = reply.get("scrubs_remote")
    if remote is None:
        remote = _remote(reply.get("remote_scrub_reservations"))
    for side, count in (("local", reply.get("scrubs_local")), ("remote", remote)):
        if isinstance(count, int):
            held.add(labels.of("side", side), count)
        else:
            odd.add("reply", f"{RESERVATIONS}: {side}")
    most = gauge(
        "cephqos_scrub_slots_max",
        "Most scrubs that this OSD takes part in at once, on each side (osd_max_scrubs).",
    )
    allowed = figure(reply, "osd_max_scrubs", odd)
    if allowed is not None:
        most.add(labels.base, allowed)
    return held, most


def _remote(reserver: Any) -> int | None:
    """Those in progress of a reserver, as 19.2 and later keep them; None if it is no reserver.

    19.2.0 writes an array without names: most allowed, least priority, queues, in progress.
    """
    if isinstance(reserver, list) and len(reserver) == 4:
        reserver = {"in_progress": reserver[3]}
    held = reserver.get("in_progress") if isinstance(reserver, dict) else None
    return len(held) if isinstance(held, list) else None


LabelledSet = tuple[str, str, Mapping[str, Any]]  # level, pool type, counters


def _labelled_sets(reply: Mapping[str, Any], odd: NotUnderstood) -> Sequence[LabelledSet]:
    sets: list[LabelledSet] = []
    for name in _SETS:
        try:
            for entry in reply.get(name, ()):
                level, pool_type = (entry["labels"].get(key) for key in ("level", "pooltype"))
                if level in ("shallow", "deep") and pool_type in _POOL_TYPES:
                    sets.append((level, pool_type, dict(entry["counters"])))
                else:
                    odd.add("counter", f"{name}: {entry['labels']}")
        except MISREAD as exc:
            odd.add("counter", f"{name}: {exc!r}")
    if sets and len(sets) < len(_SETS):  # an OSD has all from its beginning, or none
        odd.add("counter", f"{len(sets)} sets of scrubs instead of {len(_SETS)}")
    return sets


def _slot_failures(
    osd: Mapping[str, Any], sets: Sequence[LabelledSet], labels: Labels, odd: NotUnderstood
) -> Family:
    family = counter(
        "cephqos_scrub_slot_failures_total",
        "Scrubs put off because a replica had no slot to give.",
    )
    for pool_type in _POOL_TYPES:
        key = f"scrub_{pool_type}_reservation_process_failure"
        counts = [figure(osd, key, odd)] if key in osd else []
        if not counts:  # 19.2 counts them in the sets
            key = "reservation_process_failure"
            counts = [figure(counters, key, odd) for _, of, counters in sets if of == pool_type]
        known = [count for count in counts if count is not None]
        if known and len(known) == len(counts):
            family.add(labels.of("pool_type", pool_type), sum(known))
    return family


def _levelled(sets: Sequence[LabelledSet], labels: Labels, odd: NotUnderstood) -> Iterable[Family]:
    for key, name, text in _LEVELLED:
        family = counter(name, text)
        for level, pool_type, counters in sets:
            if key == _GONE and key not in counters:
                continue
            count = figure(counters, key, odd)
            if count is not None:
                family.add(labels.of("level", level, "pool_type", pool_type), count)
        yield family
