"""How one of Seastar's metrics is shown: its name, type and unit, by the words of its name.

The reply has no types, and Crimson registers many gauges as counters. Where no word of the name
shows the type, it is `unknown`, and the name stays Seastar's. Example: `shown`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cephqos_base.series import CrimsonSeries
from cephqos_exporter.families import FamilyType

PREFIX: Final = "cephqos_crimson_"

# Divisors to base units.
MILLI: Final = 1000.0
MICRO: Final = 1_000_000.0

# Shown by classic.py under the names that classic OSDs have for the same.
WAITS: Final = "osd_mclock_total_wait_ms"
STAGES: Final = "seastore_do_transaction_stage_lat"

# Patterns of the metrics that are shown unless an option chooses others.
USUAL: Final = (
    "osd_*",
    *("reactor_utilization", "reactor_*_ms*", "reactor_polls", "reactor_tasks_*", "reactor_aio_*"),
    *("reactor_stalls", "stall_detector_reported", "scheduler_*_ms", "alien_total_*"),
    *("memory_allocated_memory", "memory_free_memory", "memory_malloc_failed"),
    *("memory_cross_cpu_free_operations", "network_bytes_*"),
    *("io_queue_*_sec", "io_queue_queue_length", "io_queue_disk_queue_length"),
    *("io_queue_total_read_*", "io_queue_total_write_*"),
    *("seastore_op_lat", "seastore_*_transactions", "seastore_conflict_replay_distribution"),
    *("cache_trans_committed", "cache_trans_invalidated"),
    *("cache_*lru_hit", "cache_*lru_miss", "cache_*2q_hit", "cache_*2q_miss"),
    *("*_cleaner_total_bytes", "*_cleaner_used_bytes", "*_cleaner_available_bytes"),
    *("segment_cleaner_reclaimed_bytes", "journal_io_num", "journal_record_group_*"),
    *("journal_trimmer_*", "background_process_io_count", "background_process_io_blocked_count_*"),
    "background_process_io_blocked_time",
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The family that one of Seastar's metrics goes into."""

    name: str
    type: FamilyType
    help: str
    divisor: float = 1.0
    held: bool = False  # a counter that may fall at its source: shown at its highest so far


# Metrics that rules and dashboards read, counters that fall, and names that do not tell the type.
TABLE: Final[Mapping[str, Shown]] = {
    "reactor_utilization": Shown(
        CrimsonSeries.REACTOR_UTILIZATION_RATIO,
        "gauge",
        "Share of its time that a reactor was busy, by its own account of some seconds.",
        100,
    ),
    # Older Seastar subtracts two clocks: it can fall, and below zero it is written as 0.
    "reactor_cpu_steal_time_ms": Shown(
        CrimsonSeries.REACTOR_STEAL_SECONDS,
        "counter",
        "Time a reactor wanted to run and something else ran: what shares its core, or its own "
        "thread for blocking calls; also system calls that blocked.",
        MILLI,
        held=True,
    ),
    "reactor_stalls": Shown(
        f"{PREFIX}reactor_stall_seconds",
        "histogram",
        "How long reactors did not get back to their event loop.",
        MICRO,
    ),
    # What is cancelled takes back the time it has waited so far.
    "io_queue_starvation_time_sec": Shown(
        f"{PREFIX}io_queue_starvation_time_seconds_total",
        "counter",
        "Time that a class had operations in an I/O queue and none at the disk.",
        held=True,
    ),
    # Milliseconds of a wall clock, summed: it can fall where that clock is set back.
    "background_process_io_blocked_time": Shown(
        f"{PREFIX}background_process_io_blocked_time_seconds_total",
        "counter",
        "Time that I/O waited for SeaStore's background work, to the nearest few milliseconds.",
        MILLI,
        held=True,
    ),
}
# A count of segments, not of samples, in the form of a histogram.
LEFT_OUT: Final = frozenset({"segment_cleaner_segment_utilization_distribution"})

_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")

# The type by the words of the name, with an example. The first pattern that is found decides.
_TYPES: Final[tuple[tuple[FamilyType, str], ...]] = (
    # A length over time, in a unit that depends on the build: io_queue_integrated_queue_length
    ("unknown", r"_integrated_"),
    ("histogram", r"_(lat|latency|distribution)$"),  # seastore_op_lat
    ("gauge", r"^journal_trimmer_"),
    ("gauge", r"_max_"),  # osd_mclock_max_wait_ms
    ("gauge", r"_cleaner_(?!reclaimed).*_bytes$"),  # segment_cleaner_closed_ool_total_bytes
    ("gauge", r"_transactions$"),  # seastore_pending_transactions
    # io_queue_queue_length, memory_free_memory
    ("gauge", r"_(ratio|utilization|length|pending|shares|delay|depth|average|memory|objects)$"),
    # background_process_io_count
    ("counter", r"^(journal_io|journal_record|background_process_io|segment_manager)_"),
    ("counter", r"_reclaimed_"),  # segment_cleaner_reclaimed_bytes
    ("counter", r"_total_(?!bytes$|memory$)"),  # io_queue_total_delay_sec
    ("counter", r"bytes_(read|write|sent|received)$"),  # network_bytes_sent
    ("counter", r"_op_(local|remote)$"),
    # reactor_cpu_busy_ms, reactor_polls, cache_lru_hit
    ("counter", r"_(ms|sec|total|ops|operations|processed|reported|polls|reads|writes)$"),
    ("counter", r"_(hit|miss|committed|invalidated|created|failed|errors|exceptions)$"),
    ("counter", r"_(failures|fallbacks|fsyncs|retries|outsizes)$"),
)
_UNITS: Final[tuple[tuple[re.Pattern[str], float], ...]] = (
    (re.compile(r"_ms(?=$|_total$)"), MILLI),
    (re.compile(r"_sec(?=$|_total$)"), 1.0),
)
_LATENCY: Final = re.compile(r"_(lat|latency)$")


@lru_cache(maxsize=4096)
def shown(source: str) -> Shown:
    """How a metric is shown: by TABLE, else by the words of its name.

    io_queue_total_delay_sec: counter cephqos_crimson_io_queue_delay_seconds_total, divisor 1
    seastore_op_lat: histogram cephqos_crimson_seastore_op_seconds, divisor 1000
    """
    if source in TABLE:
        return TABLE[source]
    kinds = (kind for kind, pattern in _TYPES if re.search(pattern, source))
    kind: FamilyType = next(kinds, "unknown")
    name, divisor = _UNSAFE.sub("_", source), 1.0
    if kind == "histogram" and _LATENCY.search(name):
        name, divisor = _LATENCY.sub("_seconds", name), MILLI
    elif kind != "unknown":
        for pattern, of_unit in _UNITS:
            if pattern.search(name):
                name, divisor = pattern.sub("_seconds", name), of_unit
    if kind == "counter":
        name = re.sub(r"_total(?=_|$)", "", name) + "_total"
    unit = ", in seconds" if name.endswith(("_seconds", "_seconds_total")) else ""
    return Shown(f"{PREFIX}{name}", kind, f"Seastar's {_UNSAFE.sub('_', source)}{unit}.", divisor)
