"""Scrubbing of one OSD: reservations, its queue, and from 20.x on the work itself.

What an OSD scrubs cannot be told from its counters before 20.x: those series are absent there, and
the cluster's own figures (`--role cluster`) tell what placement groups do.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.counters import LABELLED
from cephqos_exporter.collectors.interval import SLOWLY
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family
from cephqos_exporter.labels import Labels

RESERVATIONS: Final = "dump_scrub_reservations"
QUEUE: Final = "dump_scrubs"

# One entry per placement group: the schedule moves by days, not seconds.
QUEUE_TTL_SECONDS: Final = 15.0

_UNDECIDED: Final = "either"

# Erasure-coded pools show from the OSD's first scrub of one on: most OSDs hold none.
_REPLICATED: Final = "replicated"
_ERASURE_CODED: Final = "ec"
_TOTALS: Final = (
    (
        "scrub_{}_read_bytes",
        "cephqos_scrub_read_bytes_total",
        "Bytes read by deep scrubs, as the primary and as a replica.",
    ),
    (
        "scrub_{}_read_cnt",
        "cephqos_scrub_reads_total",
        "Reads by deep scrubs, as the primary and as a replica.",
    ),
    (
        "num_scrubs_started_{}",
        "cephqos_scrub_started_total",
        "Scrubs that this OSD began as the primary; some end without a reservation.",
    ),
    (
        "scrub_{}_reservation_process_failure",
        "cephqos_scrub_reservation_failures_total",
        "Scrubs put off because a replica had no reservation to give.",
    ),
)
_RESULTS: Final = (
    ("successful_scrubs_{}_elapsed", "success"),
    ("failed_scrubs_{}_elapsed", "failure"),
)

# The labelled sets, and what of them tells how scrubs and clients got in each other's way.
_SETS: Final = ("osd_scrub_sh_repl", "osd_scrub_sh_ec", "osd_scrub_dp_repl", "osd_scrub_dp_ec")
_LEVELLED: Final = (
    (
        "write_blocked_by_scrub",
        "cephqos_scrub_writes_blocked_total",
        "Client writes that waited because a scrub held their objects.",
    ),
    (
        "preemptions",
        "cephqos_scrub_preemptions_total",
        "Chunks that a scrub gave up because a client needed their objects.",
    ),
    ("chunk_selected", "cephqos_scrub_chunks_total", "Chunks of objects that scrubs began with."),
)


class ScrubCollector(
    DaemonCollector[Labels],
    name="scrub",
    help="Scrubbing by each OSD: reservations, queue, and the work where it is counted.",
):
    """Scrubbing as one OSD does it, from its reservations, its queue and its counters."""

    def needed(self, daemon: Daemon, state: Labels | None) -> Sequence[Command]:
        queue = Command(QUEUE, ttl=QUEUE_TTL_SECONDS)
        return [Command(RESERVATIONS, SLOWLY), queue, *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> Labels:
        return Labels(view.labels)

    def families(self, view: DaemonView, state: Labels) -> Iterable[Family]:
        reservations, entries = view.reply(RESERVATIONS), view.reply(QUEUE)
        old = (entries and "level" not in entries[0]) or "scrubs_remote" in reservations
        levels = (_UNDECIDED,) if old else ("shallow", "deep")
        families = [*_reservations(reservations, state)]
        families.append(_queue(entries, levels, state, view.time))
        osd = self.counters.loggers(view).required("osd")
        ec = osd.get(f"num_scrubs_started_{_ERASURE_CODED}") or osd.get("scrub_ec_read_cnt")
        pool_types = (_REPLICATED, _ERASURE_CODED) if ec else (_REPLICATED,)
        families += _totals(osd, pool_types, state)
        if self.counters.kind(view) == LABELLED:
            families += _levelled(view.reply("counter dump"), pool_types, state)
        return families


def _reservations(reply: Mapping[str, Any], labels: Labels) -> Iterable[Family]:
    held = Family(
        "cephqos_scrub_reservations",
        "gauge",
        ("Scrubs that this OSD takes part in. local: as the primary; remote: as a replica."),
    )
    remote = reply.get("scrubs_remote")
    if remote is None:  # 20.x keeps them as it keeps those of recovery
        remote = len(reply["remote_scrub_reservations"]["in_progress"])
    held.add(labels.of("side", "local"), reply["scrubs_local"])
    held.add(labels.of("side", "remote"), remote)
    most = Family(
        "cephqos_scrub_reservations_max",
        "gauge",
        ("Most scrubs that this OSD takes part in at once, on each side (osd_max_scrubs)."),
    )
    most.add(labels.base, reply["osd_max_scrubs"])
    return held, most


def _queue(
    entries: Sequence[Mapping[str, Any]], levels: Sequence[str], labels: Labels, now: float
) -> Family:
    family = Family(
        "cephqos_scrub_queue_pgs",
        "gauge",
        "Placement groups that this OSD has to scrub as the primary. state: requested "
        "by a user, due, late (past the deadline after which load and hours no longer "
        "matter), waiting until due. Before 20.x the level is decided when the scrub "
        "begins, and is either until then.",
    )
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = (str(entry.get("level", _UNDECIDED)), _queue_state(entry, now))
        counts[key] = counts.get(key, 0) + 1
    for level in levels:
        for state in ("requested", "late", "due", "waiting"):
            family.add(labels.of("level", level, "state", state), counts.get((level, state), 0))
    return family


def _queue_state(entry: Mapping[str, Any], now: float) -> str:
    if entry["forced"] or not entry.get("urgency", "periodic").startswith("periodic"):
        return "requested"
    if _seconds(entry["sched_time"]) > now:
        return "waiting"
    deadline = _seconds(entry["deadline"]) if "deadline" in entry else 0.0
    return "late" if 0 < deadline <= now else "due"


def _seconds(stamp: str) -> float:
    """Seconds since the epoch; Ceph writes the first ten years of it as a number."""
    if "T" not in stamp:
        return float(stamp)
    moment = datetime.fromisoformat(stamp)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _totals(
    counters: Mapping[str, Any], pool_types: Sequence[str], labels: Labels
) -> Iterable[Family]:
    for key, name, text in _TOTALS:
        family = Family(name, "counter", text)
        for pool_type in pool_types:
            value = counters.get(key.format(pool_type))
            if value is not None:
                family.add(labels.of("pool_type", pool_type), value)
        if family.samples:
            yield family
    family = Family(
        "cephqos_scrub_duration_seconds",
        "summary",
        "Scrubs that this OSD led as the primary, and how long they took.",
    )
    for key, result in _RESULTS:
        for pool_type in pool_types:
            value = counters.get(key.format(pool_type))
            if value is not None:
                label = labels.of("pool_type", pool_type, "result", result)
                family.add(label, value["sum"], "_sum")
                family.add(label, value["avgcount"], "_count")
    if family.samples:
        yield family


def _levelled(
    reply: Mapping[str, Any], pool_types: Sequence[str], labels: Labels
) -> Iterable[Family]:
    sets = [entry for name in _SETS for entry in reply.get(name, ())]
    if not sets:
        return
    for key, name, text in _LEVELLED:
        family = Family(name, "counter", text)
        for entry in sets:
            found = entry["labels"]
            if found["pooltype"] not in pool_types:
                continue
            label = labels.of("level", found["level"], "pool_type", found["pooltype"])
            family.add(label, entry["counters"][key])
        yield family
