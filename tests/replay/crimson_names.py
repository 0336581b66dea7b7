"""Names and bounds of what Crimson and its Seastar register, by build."""

SOURCES = ("CLEANER_COLD", "CLEANER_MAIN", "MUTATE", "TRIM_ALLOC", "TRIM_DIRTY")
NEWEST_SOURCES = ("DEMOTE", "PROMOTE", "REBALANCE")
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
REBALANCE_CONFLICTS = (
    "UNKNOWN,REBALANCE",
    "REBALANCE,MUTATE",
    "REBALANCE,READ",
    "REBALANCE,REBALANCE",
    *(f"{source},REBALANCE" for source in SOURCES if source != "MUTATE"),
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
# What writing out-of-line records consists of, on segments and on random blocks.
NESTED_STAGES = (
    *(
        f"submit_ool_write_seg_delayed{part}"
        for part in (
            "",
            "_io",
            "_io_device",
            "_io_queue",
            "_roll",
            "_roll_close",
            "_roll_close_advance_wp",
            "_roll_close_provider",
            "_roll_close_seg_close",
            "_roll_close_write_tail",
            "_roll_flush",
            "_roll_open",
            "_roll_open_alloc",
            "_roll_open_header",
            "_roll_open_sm_open",
            "_wait",
            "_wait_full",
            "_wait_roll",
        )
    ),
    *(
        f"submit_ool_write_rbm{part}"
        for part in (
            "",
            "_gate",
            "_io",
            "_io_device",
            "_io_dma",
            "_io_queue",
            "_io_reactor",
            "_prep",
        )
    ),
)
OP_CLASSES = ("background_best_effort", "background_recovery", "client", "immediate", "repop")
OP_TYPES = ("client_request", "replicated_request", "peering_event")

LATENCY_BOUNDS = (1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 100)
WAIT_BOUNDS = (1, 5, 10, 50, 100, 500, 1000)
FINE_BOUNDS = (0.1, 0.25, 0.5, *LATENCY_BOUNDS[:-1], 75, 100)
# Four steps for each doubling.
STALL_BOUNDS = tuple(512 * 2**n * step // 4 for n in range(17) for step in range(4, 8))[1:65]

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
NEWEST_CACHE = (
    "non_volatile_cache_buckets_count non_volatile_cache_demoted_bucket_count "
    "non_volatile_cache_demoted_size non_volatile_cache_evicted_size promoted_count promoted_size"
)
