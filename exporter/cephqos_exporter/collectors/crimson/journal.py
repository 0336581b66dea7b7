"""SeaStore's journal, its cleaner and trimmer on segments and on random blocks, and its trees."""

from typing import Final

from cephqos_exporter.collectors.crimson.shown import MILLI, PREFIX, Shown, Table, counter, gauge

_JOURNAL: Final = "Bytes in records written to SeaStore's journal."
_SUBMITS: Final = (
    "Records submitted to the circular journal: all; wait, had to wait; roll, began a new round."
)
_SUBMIT_TIME: Final = "Time that records spent so."
_BLOCKED: Final = (
    "I/O that waited for SeaStore's background work, by what it waited for: one can wait for both."
)
_RETRIED: Final = (
    "I/O that waited for SeaStore's background work again. Known builds write the figures of "
    "seastore_background_blocked here."
)
_SPACE: Final = (
    "Space of a shard: total, used by live extents, available. On segments, what is neither used "
    "nor available can be reclaimed."
)
_UNTRIMMED: Final = (
    "Journal that is kept for what is not yet written elsewhere: dirty extents, allocations."
)
_SEGMENTS: Final = "Segments by state."
_KINDS: Final = "Segments in use, by what they hold."
_CHANGES: Final = "Segments opened, closed and released, by what they hold."
_CLOSED: Final = "Bytes in closed segments."
_UNAVAILABLE: Final = "Bytes that are not available, by why."
_DEVICE_OPS: Final = "Reads and writes by a segment manager."
_DEVICE_BYTES: Final = "Bytes read and written by a segment manager."
_DEVICE_SEGMENTS: Final = "Segments that a segment manager opened, closed and released."
_TREE: Final = "Changes of SeaStore's trees in transactions that were committed, or met a conflict."
_ONODES: Final = "Operations of the onode tree."

_CBJ: Final = "seastore_cbj_submit_record"

JOURNAL: Final[Table] = {
    **{
        f"journal_record_group_{part}_bytes": counter(
            "seastore_journal_bytes", _JOURNAL, "part", part
        )
        for part in ("data", "metadata", "padding")
    },
    "journal_io_num": counter("seastore_journal_io", "Writes to SeaStore's journal."),
    "journal_record_num": counter(
        "seastore_journal_records", "Records written to SeaStore's journal.", group="journal"
    ),
    "journal_io_depth_num": counter(
        "seastore_journal_io_depth",
        "Writes to the journal under way, summed over writes.",
        group="journal",
    ),
    f"{_CBJ}_size": counter(
        "seastore_circular_journal_bytes", "Metadata in those records.", group="journal"
    ),
    **{
        f"{_CBJ}{infix}_count": counter(
            "seastore_circular_journal_records", _SUBMITS, "state", state, group="journal"
        )
        for infix, state in (("", "all"), ("_wait", "wait"), ("_roll", "roll"))
    },
    **{
        f"{_CBJ}{infix}_latency_total": counter(
            "seastore_circular_journal_seconds", _SUBMIT_TIME, "state", state, group="journal"
        )
        for infix, state in (("", "all"), ("_wait", "wait"), ("_roll", "roll"))
    },
}

CLEANER: Final[Table] = {
    "background_process_io_count": counter(
        "seastore_background_io", "I/O admitted by the cleaner."
    ),
    **{
        f"background_process_io_blocked_count_{by}": counter(
            "seastore_background_blocked", _BLOCKED, "by", by
        )
        for by in ("trim", "clean")
    },
    # Milliseconds of a wall clock, summed: it can fall where that clock is set back.
    "background_process_io_blocked_time": counter(
        "seastore_background_blocked_seconds",
        "Time that I/O waited for SeaStore's background work, to the nearest few milliseconds.",
        divisor=MILLI,
        held=True,
    ),
    **{
        f"background_process_io_retried_blocked_count_{by}": counter(
            "seastore_background_blocked_again", _RETRIED, "by", by, group="cleaner"
        )
        for by in ("trim", "clean")
    },
    **{
        f"{cleaner}_cleaner_{state}_bytes": gauge(
            "seastore_bytes", _SPACE, "cleaner", cleaner, "state", state
        )
        for cleaner in ("segment", "rbm")
        for state in ("available", "total", "used")
    },
    "segment_cleaner_reclaimed_bytes": (
        Shown(
            "cephqos_crimson_seastore_reclaimed_bytes_total",
            "counter",
            "Bytes rewritten to reclaim.",
        ),
    ),
    **{
        f"journal_trimmer_{what}_journal_bytes": gauge(
            "seastore_journal_untrimmed_bytes", _UNTRIMMED, "for", what
        )
        for what in ("dirty", "alloc")
    },
    **{
        f"segment_cleaner_{source}": gauge(f"seastore_{name}", text, group="cleaner")
        for source, name, text in (
            ("available_ratio", "available_ratio", "Share of the space that is available."),
            ("reclaim_ratio", "reclaim_ratio", "Share of what is unavailable to be reclaimed."),
            ("segment_size", "segment_size_bytes", "The size of a segment."),
            ("segments_number", "segments_number", "All segments."),
        )
    },
    "segment_cleaner_reclaimed_segment_bytes": counter(
        "seastore_reclaimed_segment_bytes", "Bytes of the segments reclaimed.", group="cleaner"
    ),
    **{
        f"segment_cleaner_segments_{state}": gauge(
            "seastore_segments", _SEGMENTS, "state", state, group="cleaner"
        )
        for state in ("open", "closed", "empty", "in_journal")
    },
    "segment_cleaner_segment_utilization_distribution": (
        Shown(
            f"{PREFIX}seastore_segments_by_utilization",
            "gauge",
            "Segments with a share of live data up to that of the label; above 1, open and empty.",
            group="cleaner",
        ),
    ),
    **{
        f"segment_cleaner_segments_type_{kind}": gauge(
            "seastore_used_segments", _KINDS, "kind", kind, group="cleaner"
        )
        for kind in ("journal", "ool")
    },
    **{
        f"segment_cleaner_segments_count_{change}_{kind}": counter(
            "seastore_segment_changes", _CHANGES, "change", change, "kind", kind, group="cleaner"
        )
        for change in ("open", "close", "release")
        for kind in ("journal", "ool")
    },
    **{
        f"segment_cleaner_closed_{kind}_{part}_bytes": gauge(
            "seastore_closed_bytes", _CLOSED, "kind", kind, "part", part, group="cleaner"
        )
        for kind in ("journal", "ool")
        for part in ("total", "used")
    },
    **{
        f"segment_cleaner_unavailable_{why}_bytes": gauge(
            "seastore_unavailable_bytes", _UNAVAILABLE, "why", why, group="cleaner"
        )
        for why in ("reclaimable", "unreclaimable", "unused")
    },
    **{
        f"segment_manager_{what}_{unit}": counter(name, text, "op", op, group="cleaner")
        for unit, name, text in (
            ("num", "seastore_device_ops", _DEVICE_OPS),
            ("bytes", "seastore_device_bytes", _DEVICE_BYTES),
        )
        for what, op in (
            ("data_read", "data_read"),
            ("data_write", "data_write"),
            ("metadata_write", "metadata_write"),
        )
    },
    **{
        f"segment_manager_{change}_segments": counter(
            "seastore_device_segments", _DEVICE_SEGMENTS, "change", change, group="cleaner"
        )
        for change in ("opened", "closed", "released")
    },
    "segment_manager_closed_segments_unused_bytes": counter(
        "seastore_device_unused_bytes", "Bytes left empty in closed segments.", group="cleaner"
    ),
}

TREES: Final[Table] = {
    "LBA_alloc_extents": counter(
        "seastore_lba_allocations", "Extents given a logical address.", group="trees"
    ),
    "LBA_alloc_extents_iter_nexts": counter(
        "seastore_lba_allocation_steps", "Steps to find those addresses.", group="trees"
    ),
    "cache_tree_depth": gauge("seastore_tree_depth", "Depth of a tree.", group="trees"),
    "cache_tree_extents_num": gauge("seastore_tree_extents", "Extents of a tree.", group="trees"),
    **{
        f"cache_tree_{change}s_{fate}": counter(
            "seastore_tree_changes", _TREE, "change", change, "fate", fate, group="trees"
        )
        for change in ("insert", "update", "erase", "split", "merge")
        for fate in ("committed", "invalidated")
    },
    **{
        f"onode_tree_onode_{op}s": counter("seastore_onode_ops", _ONODES, "op", op, group="trees")
        for op in ("lookup", "insert", "update", "erase")
    },
    "onode_tree_onode_extents_delta": gauge(
        "seastore_onode_extents_delta", "Extents that the onode tree grew by.", group="trees"
    ),
}
