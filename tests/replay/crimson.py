"""Writes what Crimson OSDs answer to `dump_metrics`: invented figures in the real ones' shape.

Names, labels, units, bucket bounds and the two forms of histograms are those of four builds:
SeaStore on segments (spring 2026), SeaStore on random blocks with the scheduler's figures (summer
2026), SeaStore on segments of two devices with what the sources of autumn 2026 add, and BlueStore
through threads that are no reactors.

    python -m tests.replay.crimson DIRECTORY
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
from tests.replay.crimson_names import (
    CIRCULAR_JOURNAL,
    COMMITTED,
    CONFLICTS,
    EXTENTS,
    FINE_BOUNDS,
    GENERATIONS,
    GROUPED,
    INTEGRATED,
    INVALIDATED,
    IO_QUEUE,
    LATENCY_BOUNDS,
    NESTED_STAGES,
    NEWEST_CACHE,
    NEWEST_SOURCES,
    ONODE_TREE,
    OP_CLASSES,
    OP_TYPES,
    OPERATIONS,
    PLAIN,
    REBALANCE_CONFLICTS,
    SEASTORE,
    SEGMENT_MANAGER,
    SEGMENTS,
    SOURCES,
    STAGES,
    STALL_BOUNDS,
    TREE_SOURCES,
    WAIT_BOUNDS,
)
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
    newest: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """What transactions are for, without those that only read."""
        return (*SOURCES, *NEWEST_SOURCES) if self.newest else SOURCES

    @property
    def extents(self) -> tuple[str, ...]:
        if self.autumn:
            return EXTENTS
        return tuple("RETIRED_PLACEHOLDER" if one == "LOG_NODE" else one for one in EXTENTS)

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores of each reactor: newer builds number them."""
        return ("0", "1") if self.newest else ("0",)


BUILDS = (
    Build("spring-segments", "20.3.0-6500", "umbrella", "segments", False, 1),
    Build("autumn-random-blocks", "21.0.0-2100", "umbrella", "random-blocks", True, 3),
    Build("autumn-segments", "21.0.0-4700", "umbrella", "segments", True, 2, newest=True),
    Build("spring-bluestore", "20.3.0-6500", "umbrella", "bluestore", False, 1),
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
    store: str = "0"

    def entries(self) -> Iterator[Entry]:
        yield from self._seastar()
        if self.build.autumn:
            yield from self._osd()
        if self.build.store != "bluestore":
            for store in self.build.stores:
                yield from replace(self, store=store)._of_a_store()
        if self.build.store == "random-blocks":
            for name in CIRCULAR_JOURNAL.split():
                yield self._one(f"seastore_cbj_submit_record_{name}")

    def _of_a_store(self) -> Iterator[Entry]:
        yield from self._seastore()
        yield from self._transactions()
        yield from self._segments() if self.build.store == "segments" else self._blocks()
        if self.build.autumn:
            yield from self._conflicts_and_stages()
        if self.build.newest:
            yield from self._newest()

    def _one(self, name: str, value: object = None, **labels: str) -> Entry:
        if value is None:
            value = self._figure(name, labels)
        return {name: {**labels, "shard": str(self.number), "value": value}}

    def _stored(self, name: str, value: object = None, **labels: str) -> Entry:
        """Newer builds can have more than one store for each reactor."""
        index = {"shard_store_index": self.store} if self.build.autumn else {}
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
        # Where the disk is described to Seastar, it has a name, and streams that do not share.
        queue = {"iogroup": "0", "mountpoint": "/dev/nvme0n1" if self.build.newest else ""}
        streams = ("read", "write") if self.build.newest else ("rw",)
        for name in IO_QUEUE.split():
            yield self._one(f"io_queue_{name}", **{"class": "main"}, **queue)
        for name in INTEGRATED if self.build.autumn else ():
            yield self._one(f"io_queue_{name}", **{"class": "main"}, **queue)
        shares = ("activations", "adjusted_consumption", "consumption")
        for name, stream in product(shares, streams):
            yield self._one(f"io_queue_{name}", **{"class": "main"}, **queue, stream=stream)
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
        changes = ["erases", "inserts", "updates"] + ["merges", "splits"] * self.build.newest
        for tree, only in TREE_SOURCES.items():
            yield self._stored("cache_tree_depth", tree=tree)
            yield self._stored("cache_tree_extents_num", tree=tree)
            sources = self.build.sources if only is SOURCES else only
            for change, fate, source in product(changes, TRANSACTION_FATES, sources):
                yield self._stored(f"cache_tree_{change}_{fate}", tree=tree, src=source)
        parts = "io_depth_num io_num record_group_data_bytes record_group_metadata_bytes "
        parts += "record_group_padding_bytes record_num"
        submitters: tuple[str, ...] = ("Dev(0x80)",)
        if self.build.store == "segments":
            devices = ("Dev(0x0)", "Dev(0x1)") if self.build.newest else ("Dev(0x0)",)
            submitters = tuple("_".join(pair) for pair in product(devices, GENERATIONS))
        for part, submitter in product(parts.split(), submitters):
            yield self._stored(f"journal_{part}", submitter=submitter)
        bounds: tuple[float, ...] = LATENCY_BOUNDS if self.build.autumn else ()
        bounds = FINE_BOUNDS if self.build.newest else bounds
        for number, operation in enumerate(OPERATIONS):
            counts = [40 * (number + 1), 3, 0, *range(len(bounds) - 3)][: len(bounds)]
            histogram = _histogram(bounds, counts, cumulative=False, beyond=number)
            yield self._stored("seastore_op_lat", histogram, latency=operation)

    def _transactions(self) -> Iterator[Entry]:
        for source in (*self.build.sources, "READ"):
            yield self._stored("cache_trans_created", src=source)
            for extent in self.build.extents:
                yield self._stored("cache_trans_invalidated_by_extent", src=source, ext=extent)
            for effort in INVALIDATED if source != "READ" else ("READ",):
                yield self._stored("cache_invalidated_extents", src=source, effort=effort)
                yield self._stored("cache_invalidated_extent_bytes", src=source, effort=effort)
        parts = "committed_inline_record_metadata_bytes committed_ool_record_data_bytes "
        parts += "committed_ool_record_metadata_bytes committed_ool_records trans_committed "
        parts += "invalidated_delta_bytes invalidated_ool_record_bytes invalidated_ool_records "
        parts += "trans_invalidated"
        for part, source in product(parts.split(), self.build.sources):
            yield self._stored(f"cache_{part}", src=source)
        for source, extent in product(self.build.sources, self.build.extents):
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
        for device, name in product("01" if self.build.newest else "0", SEGMENT_MANAGER.split()):
            yield self._stored(f"segment_manager_{name}", device_id=device)
        # How many segments there are, not samples: neither sum nor count is kept.
        bounds = tuple(n / 10 for n in range(1, 13))
        shares = _histogram(bounds, [21, *[0] * 9, 7, 114_435], cumulative=False)
        name = "segment_cleaner_segment_utilization_distribution"
        yield self._stored(name, {**shares, "sum": 0, "count": 0})

    def _blocks(self) -> Iterator[Entry]:
        for state in ("available", "total", "used"):
            yield self._stored(f"rbm_cleaner_{state}_bytes")

    def _conflicts_and_stages(self) -> Iterator[Entry]:
        for name in ONODE_TREE.split():
            yield self._stored(f"onode_tree_onode_{name}")
        stages = (*STAGES, *NESTED_STAGES) if self.build.newest else STAGES
        for stage, tail in product(stages, ("all", "slow", "very_slow")):
            counts = [500, 20, *[1] * 10] if tail == "all" else [0] * 11 + [len(tail)]
            histogram = _histogram(LATENCY_BOUNDS, counts, cumulative=False)
            labels = {"stage": stage, "tail": tail}
            yield self._stored("seastore_do_transaction_stage_lat", histogram, **labels)
        replays = _histogram(range(16), [400, 30, 5, *[0] * 13], cumulative=False)
        yield self._stored("seastore_conflict_replay_distribution", replays)

    def _newest(self) -> Iterator[Entry]:
        """Data on a fast device before a slow one, a list of kept onodes, rebalanced trees."""
        for op, place in product(("read", "write"), ("hot", "cold")):
            yield self._stored(f"cache_{op}_hit_{place}")
        for name in ("hit", "miss", "num_extents", "size_bytes"):
            yield self._stored(f"cache_onode_lru_{name}")
        for name in NEWEST_CACHE.split():
            yield self._stored(f"cache_{name}")
        for extent, result in product(self.build.extents, ("hit", "miss")):
            yield self._stored(f"cache_pinboard_{result}", ext=extent)
        for pair in REBALANCE_CONFLICTS:
            yield self._stored("cache_trans_srcs_invalidated", srcs=pair)


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
