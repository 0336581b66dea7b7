"""Writes what a Crimson OSD would answer, from the sources of Ceph 20.2: no daemon was recorded.

Packages of crimson-osd are not to be had everywhere. Names, labels, units and shape are those that
src/crimson/admin/osd_admin.cc prints of the metrics that Seastar and SeaStore register; the figures
are invented, and none is the same twice.

    python -m tests.replay.crimson DIRECTORY
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from tests.replay.daemons import Recording

VERSION = "20.2.4"
FSID = "5ea57a12-0000-4000-8000-000000000001"

Entry = dict[str, dict[str, Any]]


def replies(*, osd: int = 0, shards: int = 3) -> dict[str, Any]:
    """The replies by command, as parsed JSON."""
    return {
        "version": {"version": VERSION, "release": "tentacle", "release_type": "stable"},
        "status": {
            "cluster_fsid": FSID,
            "osd_fsid": f"5ea57a12-0000-4000-8000-0000000001{osd:02}",
            "whoami": osd,
            "state": "active",
            "maps": "[1~42]",
            "oldest_map": "1",
            "newest_map": "42",
            "cluster_osdmap_trim_lower_bound": 1,
            "num_pgs": 33,
        },
        "dump_metrics": {"metrics": [entry for shard in range(shards) for entry in _shard(shard)]},
    }


def _shard(shard: int) -> Iterator[Entry]:
    yield from _reactor(shard)
    yield from _io_queue(shard)
    yield from _seastore(shard)


def _entry(shard: int, name: str, value: object, **labels: str) -> Entry:
    return {name: {**labels, "shard": str(shard), "value": value}}


def _counted(shard: int, figures: dict[str, float], **labels: str) -> Iterator[Entry]:
    for name, value in figures.items():
        yield _entry(shard, name, value + shard, **labels)


def _reactor(shard: int) -> Iterator[Entry]:
    yield from _counted(
        shard,
        {
            "alien_receive_batch_queue_length": 0,
            "alien_total_received_messages": 7100,
            "alien_total_sent_messages": 7200,
            "memory_allocated_memory": 1_610_612_736,
            "memory_free_memory": 536_870_912,
            "memory_malloc_operations": 88_000_000,
            "memory_total_memory": 2_147_483_648,
            "reactor_aio_bytes_read": 600_000_000,
            "reactor_aio_bytes_write": 5_900_000_000,
            "reactor_aio_reads": 146_000,
            "reactor_aio_writes": 1_440_000,
            "reactor_awake_time_ms_total": 612_000,
            "reactor_cpu_busy_ms": 571_000,
            "reactor_cpu_steal_time_ms": 1200,
            "reactor_cpu_used_time_ms": 610_500,
            "reactor_polls": 951_000_000,
            "reactor_tasks_pending": 2,
            "reactor_tasks_processed": 743_000_000,
            "reactor_timers_pending": 14,
            "reactor_utilization": 93.25,
            "stall_detector_reported": 3,
        },
    )
    group = {
        "network_bytes_received": 5_300_000_000.0,
        "network_bytes_sent": 2_100_000_000.0,
        "scheduler_queue_length": 0.0,
        "scheduler_runtime_ms": 570_000.0,
        "scheduler_starvetime_ms": 210.0,
        "scheduler_waittime_ms": 4300.0,
    }
    yield from _counted(shard, group, group="main")


def _io_queue(shard: int) -> Iterator[Entry]:
    labels = {"class": "default", "iogroup": "0", "mountpoint": "none"}
    figures = {
        "io_queue_delay": 0.0001,
        "io_queue_disk_queue_length": 4,
        "io_queue_queue_length": 1,
        "io_queue_shares": 1,
        "io_queue_total_bytes": 6_500_000_000,
        "io_queue_total_delay_sec": 12.5,
        "io_queue_total_exec_sec": 311.25,
        "io_queue_total_operations": 1_586_000,
        "io_queue_total_read_bytes": 600_000_000,
        "io_queue_total_read_ops": 146_000,
        "io_queue_total_write_bytes": 5_900_000_000,
        "io_queue_total_write_ops": 1_440_000,
    }
    for name, value in figures.items():
        yield _entry(shard, name, value + shard, **labels)
    # A float that is not finite is printed as null.
    yield _entry(shard, "io_queue_flow_ratio", None, iogroup="0", mountpoint="none")


def _seastore(shard: int) -> Iterator[Entry]:
    yield from _counted(
        shard,
        {
            "LBA_alloc_extents": 910_000,
            "background_process_io_blocked_count": 61,
            "background_process_io_blocked_count_clean": 41,
            "background_process_io_blocked_count_trim": 21,
            "background_process_io_count": 1_300_000,
            "cache_cache_access": 44_000_000,
            "cache_cache_hit": 43_100_000,
            "seastore_concurrent_transactions": 17,
            "seastore_pending_transactions": 5,
            "segment_cleaner_available_bytes": 700_000_000_000,
            "segment_cleaner_reclaimed_bytes": 31_000_000_000,
            "segment_cleaner_segments_open": 6,
            "segment_cleaner_total_bytes": 900_000_000_000,
        },
    )
    for source in ("MUTATE", "READ"):
        yield _entry(shard, "cache_trans_created", 650_000 + shard, src=source)
    for submitter in ("SEGMENTED_JOURNAL", "MD_GEN_0"):
        figures = {
            "journal_io_num": 1_100_000.0,
            "journal_record_group_data_bytes": 5_100_000_000.0,
            "journal_record_group_metadata_bytes": 410_000_000.0,
            "journal_record_group_padding_bytes": 95_000_000.0,
        }
        yield from _counted(shard, figures, submitter=submitter)
    for number, operation in enumerate(("DO_TRANSACTION", "READ", "OMAP_GET_VALUES")):
        count = 400_000 + 100 * number + shard
        histogram = {
            "sum": 1_234_567.0 + number,
            "count": count,
            "buckets": [{"le": "+Inf", "count": count}],
        }
        yield _entry(shard, "seastore_op_lat", histogram, latency=operation)


def write(directory: Path) -> None:
    """Write the replies as a recording that the replay server serves."""
    Recording({prefix: orjson.dumps(reply) for prefix, reply in replies().items()}).save(directory)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
