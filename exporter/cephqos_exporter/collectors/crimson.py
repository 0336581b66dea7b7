"""crimson: Seastar's metrics of a Crimson OSD, in base units and with the types that are right.

The reply carries no types, and Crimson registers many a gauge as a counter; so what is shown under
a proper name and type stands in a table, and everything else, on request, is `unknown`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.config import flag
from cephqos_exporter.errors import Malformed
from cephqos_exporter.labels import Labels
from cephqos_exporter.model import Command, Daemon, DaemonView, Family, FamilyType

METRICS = "dump_metrics"
PREFIX = "cephqos_crimson_"

EVERYTHING = flag(
    "collector.crimson.everything",
    False,
    "Report Seastar's other metrics too: hundreds of series per shard.",
)

_UNSAFE = re.compile(r"[^a-zA-Z0-9_]")


class _Shown(NamedTuple):
    """How one of Seastar's metrics is shown."""

    name: str
    type: FamilyType
    help: str
    divisor: float = 1.0
    extra: tuple[str, ...] = ()  # a label that Seastar put into the name, and its value


def _c(name: str, text: str, divisor: float = 1.0, *extra: str) -> _Shown:
    return _Shown(f"{PREFIX}{name}_total", "counter", text, divisor, extra)


def _g(name: str, text: str, divisor: float = 1.0, *extra: str) -> _Shown:
    return _Shown(f"{PREFIX}{name}", "gauge", text, divisor, extra)


_AIO_OPS = "Asynchronous I/O operations of a reactor."
_AIO_BYTES = "Bytes of a reactor's asynchronous I/O."
_IO_OPS = "Operations that went through an I/O queue."
_IO_BYTES = "Bytes that went through an I/O queue."
_MEMORY = "A shard's memory as Seastar's allocator divides it."
_NETWORK = "Bytes a shard sent or received."
_BLOCKED = "I/O that waited for SeaStore's cleaner."
_JOURNAL = "Bytes in records written to SeaStore's journal."
_SEGMENTS = "Space of a shard's segments."
_SCHEDULER = (
    "Time of a scheduling group: run, its tasks ran; wait, it had none ready; starve, it had and "
    "the reactor ran others'."
)

# From the sources of Ceph 20.2 and the Seastar it is built with: src/seastar/src/core/
# {reactor,io_queue,alien}.cc, src/seastar/src/net/stack.cc, src/crimson/os/seastore/.
TABLE: Mapping[str, _Shown] = {
    "reactor_utilization": _g(
        "reactor_utilization_ratio",
        "Share of its time that a reactor was busy, by its own account of some seconds.",
        100,
    ),
    "reactor_cpu_busy_ms": _c("reactor_busy_seconds", "Time a reactor was busy.", 1000),
    "reactor_awake_time_ms_total": _c(
        "reactor_awake_seconds", "Time a reactor did not sleep.", 1000
    ),
    "reactor_cpu_used_time_ms": _c("reactor_cpu_seconds", "CPU time of a reactor's thread.", 1000),
    "reactor_cpu_steal_time_ms": _c(
        "reactor_steal_seconds",
        "Time a reactor wanted to run and something else ran: it shares its core.",
        1000,
    ),
    "reactor_tasks_pending": _g("reactor_tasks_pending", "Tasks waiting in a reactor's queues."),
    "reactor_tasks_processed": _c("reactor_tasks", "Tasks a reactor has run."),
    "reactor_polls": _c("reactor_polls", "Rounds of polling."),
    "reactor_aio_reads": _c("reactor_aio_ops", _AIO_OPS, 1, "op", "read"),
    "reactor_aio_writes": _c("reactor_aio_ops", _AIO_OPS, 1, "op", "write"),
    "reactor_aio_bytes_read": _c("reactor_aio_bytes", _AIO_BYTES, 1, "op", "read"),
    "reactor_aio_bytes_write": _c("reactor_aio_bytes", _AIO_BYTES, 1, "op", "write"),
    "scheduler_runtime_ms": _c("scheduler_seconds", _SCHEDULER, 1000, "state", "run"),
    "scheduler_waittime_ms": _c("scheduler_seconds", _SCHEDULER, 1000, "state", "wait"),
    "scheduler_starvetime_ms": _c("scheduler_seconds", _SCHEDULER, 1000, "state", "starve"),
    "stall_detector_reported": _c("reactor_stalls", "Stalls that the stall detector reported."),
    "memory_allocated_memory": _g("memory_bytes", _MEMORY, 1, "state", "allocated"),
    "memory_free_memory": _g("memory_bytes", _MEMORY, 1, "state", "free"),
    "io_queue_total_read_ops": _c("io_queue_ops", _IO_OPS, 1, "op", "read"),
    "io_queue_total_write_ops": _c("io_queue_ops", _IO_OPS, 1, "op", "write"),
    "io_queue_total_read_bytes": _c("io_queue_bytes", _IO_BYTES, 1, "op", "read"),
    "io_queue_total_write_bytes": _c("io_queue_bytes", _IO_BYTES, 1, "op", "write"),
    "io_queue_total_delay_sec": _c(
        "io_queue_delay_seconds", "Time that operations spent in an I/O queue, summed."
    ),
    "io_queue_total_exec_sec": _c(
        "io_queue_exec_seconds", "Time that operations spent in the disk, summed."
    ),
    "io_queue_queue_length": _g("io_queue_length", "Operations in an I/O queue."),
    "io_queue_disk_queue_length": _g("io_queue_disk_length", "Operations handed to the disk."),
    "network_bytes_sent": _c("network_bytes", _NETWORK, 1, "direction", "sent"),
    "network_bytes_received": _c("network_bytes", _NETWORK, 1, "direction", "received"),
    "alien_total_received_messages": _c(
        "alien_received", "Messages a shard received from threads that are no reactors."
    ),
    "alien_total_sent_messages": _c(
        "alien_sent", "Messages sent to a shard by threads that are no reactors."
    ),
    "seastore_op_lat": _Shown(
        f"{PREFIX}seastore_op_seconds",
        "summary",
        "Time that SeaStore's operations took; each is cut to whole milliseconds before it is "
        "added, so what takes less than one counts as none.",
        1000,
    ),
    "seastore_concurrent_transactions": _g(
        "seastore_transactions", "Transactions in SeaStore.", 1, "state", "running"
    ),
    "seastore_pending_transactions": _g(
        "seastore_transactions", "Transactions in SeaStore.", 1, "state", "throttled"
    ),
    "background_process_io_count": _c("seastore_background_io", "I/O admitted by the cleaner."),
    "background_process_io_blocked_count_trim": _c(
        "seastore_background_blocked", _BLOCKED, 1, "by", "trim"
    ),
    "background_process_io_blocked_count_clean": _c(
        "seastore_background_blocked", _BLOCKED, 1, "by", "clean"
    ),
    "journal_record_group_data_bytes": _c("seastore_journal_bytes", _JOURNAL, 1, "part", "data"),
    "journal_record_group_metadata_bytes": _c(
        "seastore_journal_bytes", _JOURNAL, 1, "part", "metadata"
    ),
    "journal_record_group_padding_bytes": _c(
        "seastore_journal_bytes", _JOURNAL, 1, "part", "padding"
    ),
    "journal_io_num": _c("seastore_journal_io", "Writes to SeaStore's journal."),
    "cache_cache_access": _c("seastore_cache_accesses", "Extents looked for in SeaStore's cache."),
    "cache_cache_hit": _c("seastore_cache_hits", "Extents found in SeaStore's cache."),
    "segment_cleaner_available_bytes": _g("seastore_bytes", _SEGMENTS, 1, "state", "available"),
    "segment_cleaner_total_bytes": _g("seastore_bytes", _SEGMENTS, 1, "state", "total"),
    "segment_cleaner_reclaimed_bytes": _c(
        "seastore_reclaimed_bytes", "Bytes rewritten to reclaim."
    ),
}


class CrimsonCollector(DaemonCollector[Labels]):
    """Metrics of Crimson OSDs; nothing for classic ones, which do not know the command.

    Option: `everything`, what the table leaves out too, as `unknown` under Seastar's names (some
    hundreds of series per shard).
    """

    name = "crimson"
    help = "Seastar's metrics of Crimson OSDs."
    options = (EVERYTHING,)

    def __init__(self, *, everything: bool = False) -> None:
        super().__init__()
        self._everything = everything

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(everything=inputs.settings[EVERYTHING])

    def needed(self, daemon: Daemon, state: Labels | None) -> Sequence[Command]:
        return (Command(METRICS),)

    def first_seen(self, view: DaemonView) -> Labels:
        return Labels(view.labels)

    def families(self, view: DaemonView, state: Labels) -> Iterable[Family]:
        families: dict[str, Family] = {}
        for name, pairs, value in parse_metrics(view.reply(METRICS)):
            shown = TABLE.get(name)
            if shown is None:
                if not self._everything:
                    continue
                shown = _Shown(f"{PREFIX}{_UNSAFE.sub('_', name)}", "unknown", "As Seastar has it.")
            family = families.get(shown.name)
            if family is None:
                family = families[shown.name] = Family(shown.name, shown.type, shown.help)
            _add(family, shown, state, pairs, value)
        return families.values()


def parse_metrics(reply: Any) -> Iterator[tuple[str, dict[str, str], Any]]:
    """(name, labels, value) of each metric: a number, or a histogram's `{sum, count, buckets}`.

    The reply is `{"metrics": [{NAME: {LABEL: text, ..., "value": value}}, ...]}`.
    """
    try:
        for entry in reply["metrics"]:
            for name, body in entry.items():
                pairs = {key: str(text) for key, text in body.items() if key != "value"}
                yield str(name), pairs, body["value"]
    except (KeyError, TypeError, AttributeError) as exc:
        raise Malformed(f"{METRICS}: not a list of named metrics") from exc


def _add(
    family: Family, shown: _Shown, labels: Labels, pairs: Mapping[str, str], value: Any
) -> None:
    flat = [text for pair in pairs.items() for text in _renamed(*pair)]
    own = labels.of(*flat, *shown.extra)
    if shown.type == "summary" and isinstance(value, dict):
        family.add(own, _number(value.get("sum")) / shown.divisor, "_sum")
        family.add(own, _number(value.get("count")), "_count")
    elif value is not None and not isinstance(value, dict):  # null: a float that was not finite
        family.add(own, _number(value) / shown.divisor)


def _renamed(label: str, text: str) -> tuple[str, str]:
    """SeaStore calls the operation of a latency `latency`."""
    return ("op", text.lower()) if label == "latency" else (_UNSAFE.sub("_", label), text)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Malformed(f"{METRICS}: {value!r} is not a number")
    return float(value)
