"""Crimson's OSD: its mClock scheduler by class, and operations that change the reactor.

From src/crimson/osd/{osd_operation,pg_shard_manager}.cc. Only what waited for a millisecond or
longer is counted by the scheduler, in whole milliseconds.
"""

from collections.abc import Mapping
from typing import Final

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.collectors.crimson.shown import MILLI, Table, counter, gauge, histogram

# What other OSDs' primaries ask of this one is work of `immediate` wherever cephqos shows it.
CLASSES: Final[Mapping[str, str]] = {
    "client": CLIENT,
    "background_recovery": RECOVERY,
    "background_best_effort": BEST_EFFORT,
    "immediate": IMMEDIATE,
    "repop": IMMEDIATE,
}

_PG_OPS: Final = (
    "Operations by kind: local, taken up by the reactor that has their placement group; remote, "
    "handed over to another reactor first."
)
WAITS: Final = "osd_mclock_total_wait_ms"

OSD: Final[Table] = {
    "osd_mclock_throttled_ops": counter(
        "mclock_throttled_ops", "Operations that waited in Crimson's scheduler for 1 ms or longer."
    ),
    WAITS: counter(
        "mclock_waited_seconds",
        "Time that operations waited in Crimson's scheduler, summed over those that waited for "
        "1 ms or longer.",
        divisor=MILLI,
    ),
    "osd_mclock_max_wait_ms": gauge(
        "mclock_longest_wait_seconds",
        "The longest wait in Crimson's scheduler since the OSD started.",
        divisor=MILLI,
    ),
    "osd_mclock_throttle_wait_latency": histogram(
        "mclock_wait_seconds",
        "Waits in Crimson's scheduler of 1 ms and longer, all shards together.",
        divisor=MILLI,
    ),
    "osd_pg_shard_op_local": counter("pg_ops", _PG_OPS, "path", "local"),
    "osd_pg_shard_op_remote": counter("pg_ops", _PG_OPS, "path", "remote"),
}
