"""SeaStore: operations, transactions and their conflicts, cache, journal, cleaner, trees.

From src/crimson/os/seastore/. Many a gauge is registered there as a counter.
"""

from typing import Final

from cephqos_exporter.collectors.crimson.shown import (
    MILLI,
    PREFIX,
    Shown,
    Table,
    counter,
    gauge,
    histogram,
)

STAGES: Final = "seastore_do_transaction_stage_lat"

_TRANSACTIONS: Final = "Transactions in SeaStore."
_STAGE_TIME: Final = "Time that transactions spent in each stage; stages contain others."
_LOOKUPS: Final = "Extents asked of SeaStore's cache that were in its list of kept ones, or not."
_CACHE_EXTENTS: Final = "Extents in SeaStore's cache; one can be in several states."
_CACHE_BYTES: Final = "Bytes in SeaStore's cache; they can be in several states."
_BUCKETS: Final = (
    "Reads and writes of data that the logical bucket cache had on the fast device, or not."
)
_TIERS: Final = (
    "Bytes promoted to the fast device, demoted to the slow one, and evicted from the fast one."
)
_LISTS: Final = tuple(
    f"{of}{kept}" for of in ("", "onode_") for kept in ("lru", "2q_warm_in", "2q_hot")
)
_REFRESHES: Final = "Cursors into SeaStore's trees that had to be looked up again, by reason."
_VERSIONS: Final = "Versions of the extents that were rewritten, summed, by why."
_REWRITES: Final = "Extents that were rewritten, by why."

OPERATIONS: Final[Table] = {
    "seastore_op_lat": histogram(
        "seastore_op_seconds",
        "Time that SeaStore's operations took, all shards together. Builds whose only bucket is "
        "+Inf cut each to whole milliseconds: what takes less than one counts as none.",
        divisor=MILLI,
    ),
    "seastore_concurrent_transactions": gauge(
        "seastore_transactions", _TRANSACTIONS, "state", "running"
    ),
    "seastore_pending_transactions": gauge(
        "seastore_transactions", _TRANSACTIONS, "state", "throttled"
    ),
    "cache_trans_committed": counter("seastore_commits", "Transactions committed, by source."),
    "cache_trans_invalidated": counter(
        "seastore_conflicts",
        "Times that a transaction met a conflict and started again, by its source.",
    ),
    "seastore_conflict_replay_distribution": histogram(
        "seastore_conflict_replays",
        "How often a transaction started again before it was committed, all shards together.",
    ),
    # Sums and counts for all; with the group, the parts of writing out-of-line records, buckets and
    # the slow ones too.
    STAGES: (
        Shown(
            f"{PREFIX}seastore_stage_seconds",
            "summary",
            _STAGE_TIME,
            MILLI,
            only=("tail", "all"),
            without=("stage", "submit_ool_write_"),
            apart=False,
        ),
        *histogram(
            "seastore_stage_latency_seconds",
            _STAGE_TIME + " By tail: all of them, the slow ones, the very slow ones.",
            divisor=MILLI,
            group="transactions",
        ),
    ),
    "cache_trans_created": counter(
        "seastore_transactions_created", "Transactions started.", group="transactions"
    ),
    "cache_trans_read_successful": counter(
        "seastore_read_transactions", "Reading transactions that succeeded.", group="transactions"
    ),
    "cache_successful_read_extents": counter(
        "seastore_read_extents", "Extents read by them.", group="transactions"
    ),
    "cache_successful_read_extent_bytes": counter(
        "seastore_read_extent_bytes", "Bytes of extents read by them.", group="transactions"
    ),
    **{
        f"cache_{fate}_{source}": counter(f"seastore_{fate}_{name}", text, group="transactions")
        for fate, source, name, text in (
            ("invalidated", "extents", "extents", "Extents of transactions that met a conflict."),
            ("invalidated", "extent_bytes", "extent_bytes", "Bytes of those extents."),
            ("invalidated", "delta_bytes", "delta_bytes", "Bytes of their deltas."),
            ("invalidated", "ool_records", "ool_records", "Their out-of-line records."),
            ("invalidated", "ool_record_bytes", "ool_record_bytes", "Bytes of those records."),
            ("committed", "ool_records", "ool_records", "Out-of-line records committed."),
            ("committed", "ool_record_data_bytes", "ool_data_bytes", "Data in those records."),
            (
                "committed",
                "ool_record_metadata_bytes",
                "ool_metadata_bytes",
                "Metadata in those records.",
            ),
            (
                "committed",
                "inline_record_metadata_bytes",
                "inline_metadata_bytes",
                "Metadata in records of the journal.",
            ),
        )
    },
}

CACHE: Final[Table] = {
    **{
        f"cache_{policy}_{result}": counter(
            "seastore_cache_lookups", _LOOKUPS, "policy", policy, "result", result
        )
        for policy in ("lru", "2q", "onode_lru", "onode_2q")  # onodes: builds that keep them apart
        for result in ("hit", "miss")
    },
    **{
        f"cache_pinboard_{result}": counter(
            "seastore_cache_kind_lookups",
            _LOOKUPS + " By kind of extent.",
            "result",
            result,
            group="cache",
        )
        for result in ("hit", "miss")
    },
    **{
        f"cache_{op}_hit_{place}": counter(
            "seastore_bucket_lookups", _BUCKETS, "op", op, "result", result, group="cache"
        )
        for op in ("read", "write")
        for place, result in (("hot", "hit"), ("cold", "miss"))
    },
    "cache_non_volatile_cache_buckets_count": gauge(
        "seastore_buckets", "Buckets in the logical bucket cache.", group="cache"
    ),
    "cache_non_volatile_cache_demoted_bucket_count": counter(
        "seastore_demoted_buckets", "Buckets moved to the slow device.", group="cache"
    ),
    **{
        f"cache_{source}": counter("seastore_tier_bytes", _TIERS, "fate", fate, group="cache")
        for source, fate in (
            ("promoted_size", "promoted"),
            ("non_volatile_cache_demoted_size", "demoted"),
            ("non_volatile_cache_evicted_size", "evicted"),
        )
    },
    "cache_promoted_count": counter(
        "seastore_promoted_extents", "Extents copied to the fast device.", group="cache"
    ),
    # An extent that a transaction found by its parent was in the cache already: nearly all are.
    "cache_cache_access": counter(
        "seastore_cache_accesses",
        "Extents looked for in SeaStore's index of extents; see seastore_cache_lookups for hits.",
        group="cache",
    ),
    "cache_cache_hit": counter(
        "seastore_cache_hits", "Extents found in SeaStore's index of extents.", group="cache"
    ),
    **{
        f"cache_{source}": gauge(f"seastore_cache_{what}", text, "state", state, group="cache")
        for source, what, text, state in (
            ("cached_extents", "extents", _CACHE_EXTENTS, "cached"),
            ("dirty_extents", "extents", _CACHE_EXTENTS, "dirty"),
            ("cached_extent_bytes", "bytes", _CACHE_BYTES, "cached"),
            ("dirty_extent_bytes", "bytes", _CACHE_BYTES, "dirty"),
            *(
                (f"{kept}_{source}", what, text, kept)
                for source, what, text in (
                    ("num_extents", "extents", _CACHE_EXTENTS),
                    ("size_bytes", "bytes", _CACHE_BYTES),
                )
                for kept in _LISTS
            ),
        )
    },
    "cache_refresh_parent_total": counter(
        "seastore_cache_cursors_checked", "Cursors into SeaStore's trees checked.", group="cache"
    ),
    **{
        f"cache_refresh_{reason}": counter(
            "seastore_cache_refreshes", _REFRESHES, "reason", reason, group="cache"
        )
        for reason in ("invalid_parent", "unviewable_parent", "modified_viewable_parent")
    },
    **{
        f"cache_version_{what}_{why}": counter(name, text, "by", why, group="cache")
        for what, name, text in (
            ("count", "seastore_cache_rewrites", _REWRITES),
            ("sum", "seastore_cache_rewritten_versions", _VERSIONS),
        )
        for why in ("dirty", "reclaim")
    },
}
