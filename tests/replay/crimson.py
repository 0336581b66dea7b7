"""Writes what Crimson OSDs answer to `dump_metrics`: invented figures in the real ones' shape.

Names, labels, units, bucket bounds and the two forms of histograms are those of three builds:
SeaStore on segments (spring 2026), SeaStore on random blocks with the
scheduler's figures (autumn 2026), and BlueStore through threads that are no reactors.

    python -m tests.replay.crimson DIRECTORY
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
from tests.replay.daemons import RecordedDaemon

FSID = "5ea57a12-0000-4000-8000-000000000001"

Entry = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Build:
    """What a build of Crimson, and its store, registers."""

    name: str
    version: str
    release: str
    store: str  # segments, random-blocks, bluestore
    autumn: bool
    shards: int


BUILDS = (
    Build("spring-segments", "20.3.0-6500", "umbrella", "segments", False, 1),
    Build("autumn-random-blocks", "21.0.0-2100", "umbrella", "random-blocks", True, 3),
    Build("spring-bluestore", "20.3.0-6500", "umbrella", "bluestore", False, 1),
)

SOURCES = ("CLEANER_COLD", "CLEANER_MAIN", "MUTATE", "TRIM_ALLOC", "TRIM_DIRTY")
EXTENTS = (
    "ALLOC_INFO",
    "BACKREF_INTERNAL",
    "BACKREF_LEAF",
    "COLL_BLOCK",
    "DINK_LADDR_LEAF",
    "JOURNAL_TAIL",
    "LADDR_INTERNAL",
    "LADDR_LEAF",
    "LOG_NODE",
    "OBJECT_DATA_BLOCK",
    "OMAP_INNER",
    "OMAP_LEAF",
    "ONODE_BLOCK_STAGED",
    "ROOT",
    "ROOT_META",
    "TEST_BLOCK",
    "TEST_BLOCK_PHYSICAL",
)
GENERATIONS = ("DATA_G2", "DATA_G3", "DATA_G4", "MD_G1", "MD_G2", "MD_G3", "MD_G4")
# Which transaction made which one start again.
CONFLICTS = (
    *(f"UNKNOWN,{source}" for source in (*SOURCES, "READ")),
    *(f"{source},MUTATE" for source in (*SOURCES, "READ")),
    *(f"{source},READ" for source in SOURCES if source != "MUTATE"),
    "CLEANER_COLD,CLEANER_MAIN",
    *(f"{one},{two}" for one in SOURCES[:2] for two in SOURCES[3:]),
    "TRIM_ALLOC,TRIM_DIRTY",
)
TREE_SOURCES = {"BACKREF": SOURCES, "LBA": SOURCES, "OMAP": ("MUTATE",), "ONODE": ("MUTATE",)}
COMMITTED = ("FRESH_INLINE", "FRESH_INVALID", "FRESH_OOL", "MUTATE", "READ", "RETIRE")
INVALIDATED = ("FRESH", "FRESH_OOL_WRITTEN", "MUTATE", "READ", "RETIRE")
OPERATIONS = (
    "DO_TRANSACTION",
    "GET_ATTR",
    "GET_ATTRS",
    "OMAP_GET_VALUES",
    "OMAP_ITERATE",
    "READ",
    "STAT",
)
STAGES = (
    "build",
    "build_get_onode",
    "collock_hold",
    "collock_wait",
    "submit_journal",
    "submit_lba_update",
    "submit_ool_write",
    "submit_prepare_enter",
    "submit_prepare_record",
    "submit_reserve",
    "submit_total",
    "throttler_wait",
)
OP_CLASSES = ("background_best_effort", "background_recovery", "client", "immediate", "repop")
OP_TYPES = ("client_request", "replicated_request", "peering_event")

LATENCY_BOUNDS = (1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 100)
WAIT_BOUNDS = (1, 5, 10, 50, 100, 500, 1000)
# Four steps for each doubling.
STALL_BOUNDS = tuple(512 * 2**power * step // 4 for power in range(16) for step in range(4, 8))[1:]

PLAIN: dict[str, str] = {
    "reactor": "abandoned_failed_futures aio_bytes_read aio_bytes_write aio_errors aio_outsizes "
    "aio_reads aio_retries aio_writes awake_time_ms_total cpp_exceptions cpu_busy_ms "
    "cpu_steal_time_ms cpu_used_time_ms fstream_read_bytes fstream_read_bytes_blocked "
    "fstream_reads fstream_reads_ahead_bytes_discarded fstream_reads_aheads_discarded "
    "fstream_reads_blocked fsyncs internal_errors logging_failures polls sleep_time_ms_total "
    "tasks_pending tasks_processed timers_pending utilization",
    "memory": "allocated_memory cross_cpu_free_operations free_memory free_operations "
    "malloc_failed malloc_live_objects malloc_operations oversized_allocs reclaims_operations "
    "total_memory",
    "alien": "receive_batch_queue_length total_received_messages total_sent_messages",
    "stall_detector": "reported",
}
GROUPED: dict[str, str] = {
    "network": "bytes_received bytes_sent",
    "scheduler": "queue_length runtime_ms shares starvetime_ms tasks_processed "
    "time_spent_on_task_quota_violations_ms waittime_ms",
}
IO_QUEUE = (
    "delay disk_queue_length queue_length shares starvation_time_sec total_bytes total_delay_sec "
    "total_exec_sec total_operations total_read_bytes total_read_ops total_split_bytes "
    "total_split_ops total_write_bytes total_write_ops"
)
INTEGRATED = ("integrated_disk_queue_length", "integrated_queue_length")
SEASTORE: dict[str, str] = {
    "LBA": "alloc_extents alloc_extents_iter_nexts",
    "background_process": "io_blocked_count io_blocked_count_clean io_blocked_count_trim "
    "io_blocked_sum io_blocked_time io_count io_retried_blocked_count_clean "
    "io_retried_blocked_count_trim",
    "cache": "cache_access cache_hit cached_extent_bytes cached_extents dirty_extent_bytes "
    "dirty_extents lru_hit lru_miss lru_num_extents lru_size_bytes refresh_invalid_parent "
    "refresh_modified_viewable_parent refresh_parent_total refresh_unviewable_parent "
    "successful_read_extent_bytes successful_read_extents trans_read_successful "
    "version_count_dirty version_count_reclaim version_sum_dirty version_sum_reclaim",
    "journal_trimmer": "alloc_journal_bytes dirty_journal_bytes",
    "seastore": "concurrent_transactions pending_transactions",
}
SEGMENTS: dict[str, str] = {
    "segment_cleaner": "available_bytes available_ratio closed_journal_total_bytes "
    "closed_journal_used_bytes closed_ool_total_bytes closed_ool_used_bytes projected_count "
    "projected_used_bytes_sum reclaim_ratio reclaimed_bytes reclaimed_segment_bytes segment_size "
    "segments_closed segments_count_close_journal segments_count_close_ool "
    "segments_count_open_journal segments_count_open_ool segments_count_release_journal "
    "segments_count_release_ool segments_empty segments_in_journal segments_number segments_open "
    "segments_type_journal segments_type_ool total_bytes unavailable_reclaimable_bytes "
    "unavailable_unreclaimable_bytes unavailable_unused_bytes used_bytes",
}
SEGMENT_MANAGER = (
    "closed_segments closed_segments_unused_bytes data_read_bytes data_read_num data_write_bytes "
    "data_write_num metadata_write_bytes metadata_write_num opened_segments released_segments"
)
ONODE_TREE = "erases extents_delta inserts lookup_nodes lookup_str_cmp_count lookups updates"
CIRCULAR_JOURNAL = (
    "count latency_average latency_total roll_count roll_latency_average roll_latency_total size "
    "size_average wait_count wait_latency_average wait_latency_total"
)


def replies(build: Build, *, osd: int = 0) -> dict[str, Any]:
    """The replies by command, as parsed JSON."""
    version = {"version": build.version, "release": build.release, "release_type": "dev"}
    status = {
        "cluster_fsid": FSID,
        "osd_fsid": f"5ea57a12-0000-4000-8000-0000000001{osd:02}",
        "whoami": osd,
        "state": "active",
        "maps": "[1~42]",
        "oldest_map": "1",
        "newest_map": "42",
        "cluster_osdmap_trim_lower_bound": 1,
        "num_pgs": 33,
    }
    metrics = [entry for n in range(build.shards) for entry in _Shard(build, n).entries()]
    return {"version": version, "status": status, "dump_metrics": {"metrics": metrics}}


@dataclass(frozen=True)
class _Shard:
    build: Build
    number: int

    def entries(self) -> Iterator[Entry]:
        yield from self._seastar()
        if self.build.autumn:
            yield from self._osd()
        if self.build.store != "bluestore":
            yield from self._seastore()
            yield from self._transactions()
            yield from self._segments() if self.build.store == "segments" else self._blocks()

    def _one(self, name: str, value: object = None, **labels: str) -> Entry:
        if value is None:
            value = self._figure(name, labels)
        return {name: {**labels, "shard": str(self.number), "value": value}}

    def _stored(self, name: str, value: object = None, **labels: str) -> Entry:
        """Newer builds can have more than one store for each reactor."""
        index = {"shard_store_index": "0"} if self.build.autumn else {}
        return self._one(name, value, **labels, **index)

    def _figure(self, name: str, labels: dict[str, str]) -> float:
        """The same at every run, another one for every series."""
        seed = crc32("/".join((name, *labels.values())).encode()) % 1_000_000
        if name.endswith(("_ratio", "utilization", "_delay", "_sec", "_average", "_latency_total")):
            return (seed % 90_000 + self.number) / 1000
        return seed + self.number

    def _seastar(self) -> Iterator[Entry]:
        for prefix, names in PLAIN.items():
            for name in names.split():
                yield self._one(f"{prefix}_{name}")
        for prefix, names in GROUPED.items():
            for name, group in product(names.split(), ("atexit", "main")):
                idle = 0 if group == "atexit" else None
                yield self._one(f"{prefix}_{name}", idle, group=group)
        for reason in ("aio_fallback", "file_operation", "process_operation"):
            yield self._one("reactor_io_threaded_fallbacks", reason=reason)
        stalls = [3 if 8 < n < 13 else 0 for n in range(len(STALL_BOUNDS))]
        yield self._one("reactor_stalls", _histogram(STALL_BOUNDS, stalls, cumulative=True))
        queue = {"iogroup": "0", "mountpoint": ""}
        for name in IO_QUEUE.split():
            yield self._one(f"io_queue_{name}", **{"class": "main"}, **queue)
        for name in INTEGRATED if self.build.autumn else ():
            yield self._one(f"io_queue_{name}", **{"class": "main"}, **queue)
        for name in ("activations", "adjusted_consumption", "consumption"):
            yield self._one(f"io_queue_{name}", **{"class": "main"}, **queue, stream="rw")
        # A float that is not finite is written as null.
        yield {"io_queue_flow_ratio": {**queue, "shard": str(self.number), "value": None}}

    def _osd(self) -> Iterator[Entry]:
        for number, op_class in enumerate(OP_CLASSES):
            waits = [number * n + self.number for n in range(len(WAIT_BOUNDS))]
            histogram = _histogram(WAIT_BOUNDS, waits, cumulative=True, beyond=number)
            labels = {"op_class": op_class}
            yield self._one("osd_mclock_max_wait_ms", 1200 * number, **labels)
            yield self._one("osd_mclock_throttle_wait_latency", histogram, **labels)
            yield self._one("osd_mclock_throttled_ops", histogram["count"], **labels)
            yield self._one("osd_mclock_total_wait_ms", histogram["sum"], **labels)
        for name, op_type in product(("local", "remote"), OP_TYPES):
            yield self._one(f"osd_pg_shard_op_{name}", op_type=op_type)

    def _seastore(self) -> Iterator[Entry]:
        for prefix, names in SEASTORE.items():
            for name in names.split():
                yield self._stored(f"{prefix}_{name}")
        for tree, sources in TREE_SOURCES.items():
            yield self._stored("cache_tree_depth", tree=tree)
            yield self._stored("cache_tree_extents_num", tree=tree)
            for change, fate in product(("erases", "inserts", "updates"), TRANSACTION_FATES):
                for source in sources:
                    yield self._stored(f"cache_tree_{change}_{fate}", tree=tree, src=source)
        parts = "io_depth_num io_num record_group_data_bytes record_group_metadata_bytes "
        parts += "record_group_padding_bytes record_num"
        submitters: tuple[str, ...] = ("Dev(0x80)",)
        if self.build.store == "segments":
            submitters = tuple(f"Dev(0x0)_{generation}" for generation in GENERATIONS)
        for part, submitter in product(parts.split(), submitters):
            yield self._stored(f"journal_{part}", submitter=submitter)
        bounds = LATENCY_BOUNDS if self.build.autumn else ()
        for number, operation in enumerate(OPERATIONS):
            counts = [40 * (number + 1), 3, 0, *range(len(bounds) - 3)][: len(bounds)]
            histogram = _histogram(bounds, counts, cumulative=False, beyond=number)
            yield self._stored("seastore_op_lat", histogram, latency=operation)

    def _transactions(self) -> Iterator[Entry]:
        for source in (*SOURCES, "READ"):
            yield self._stored("cache_trans_created", src=source)
            for extent in EXTENTS:
                yield self._stored("cache_trans_invalidated_by_extent", src=source, ext=extent)
            for effort in INVALIDATED if source != "READ" else ("READ",):
                yield self._stored("cache_invalidated_extents", src=source, effort=effort)
                yield self._stored("cache_invalidated_extent_bytes", src=source, effort=effort)
        parts = "committed_inline_record_metadata_bytes committed_ool_record_data_bytes "
        parts += "committed_ool_record_metadata_bytes committed_ool_records trans_committed "
        parts += "invalidated_delta_bytes invalidated_ool_record_bytes invalidated_ool_records "
        parts += "trans_invalidated"
        for part, source in product(parts.split(), SOURCES):
            yield self._stored(f"cache_{part}", src=source)
        for source, extent in product(SOURCES, EXTENTS):
            yield self._stored("cache_committed_delta_bytes", src=source, ext=extent)
            for part, effort in product(("extents", "extent_bytes"), COMMITTED):
                labels = {"src": source, "ext": extent, "effort": effort}
                yield self._stored(f"cache_committed_{part}", **labels)
        for pair in CONFLICTS:
            yield self._stored("cache_trans_srcs_invalidated", srcs=pair)

    def _segments(self) -> Iterator[Entry]:
        for prefix, names in SEGMENTS.items():
            for name in names.split():
                yield self._stored(f"{prefix}_{name}")
        for name in SEGMENT_MANAGER.split():
            yield self._stored(f"segment_manager_{name}", device_id="0")
        # How many segments there are, not samples: neither sum nor count is kept.
        bounds = tuple(n / 10 for n in range(1, 13))
        shares = _histogram(bounds, [21, *[0] * 9, 7, 114_435], cumulative=False)
        name = "segment_cleaner_segment_utilization_distribution"
        yield self._stored(name, {**shares, "sum": 0, "count": 0})

    def _blocks(self) -> Iterator[Entry]:
        for state in ("available", "total", "used"):
            yield self._stored(f"rbm_cleaner_{state}_bytes")
        for name in ONODE_TREE.split():
            yield self._stored(f"onode_tree_onode_{name}")
        for name in CIRCULAR_JOURNAL.split():
            yield self._one(f"seastore_cbj_submit_record_{name}")
        for stage, tail in product(STAGES, ("all", "slow", "very_slow")):
            counts = [500, 20, *[1] * 10] if tail == "all" else [0] * 11 + [len(tail)]
            histogram = _histogram(LATENCY_BOUNDS, counts, cumulative=False)
            labels = {"stage": stage, "tail": tail}
            yield self._stored("seastore_do_transaction_stage_lat", histogram, **labels)
        replays = _histogram(range(16), [400, 30, 5, *[0] * 13], cumulative=False)
        yield self._stored("seastore_conflict_replay_distribution", replays)


TRANSACTION_FATES = ("committed", "invalidated")


def _histogram(
    bounds: Sequence[float], counts: Sequence[int], *, cumulative: bool, beyond: int = 0
) -> dict[str, Any]:
    """As the daemon writes it: the last bucket is the number of samples in both forms."""
    count = sum(counts) + beyond
    shown = accumulate(counts) if cumulative else counts
    buckets: list[dict[str, Any]] = [
        {"le": bound, "count": inside} for bound, inside in zip(bounds, shown, strict=True)
    ]
    total = sum(bound * inside for bound, inside in zip(bounds, counts, strict=True))
    total += beyond * (2 * bounds[-1] if bounds else 3)
    return {"sum": total, "count": count, "buckets": [*buckets, {"le": "+Inf", "count": count}]}


def write(directory: Path) -> None:
    """Write the replies of every build as recordings that the replay server serves."""
    for build in BUILDS:
        found = {prefix: orjson.dumps(reply) for prefix, reply in replies(build).items()}
        RecordedDaemon(found).save(directory / build.name)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
