"""Names of our series and label sets, and the values of the labels class and cause.

Rules, dashboards, top, reports and the demo take names from here, so that a name that is misspelt
is an error and not an empty graph. recorded.py has those that our rules record.

    f"max by ({OSD}) ({Qos.CAPACITY_OPS})"
    f"rate({count(Op.LATENCY_SECONDS)}[5m])"

Constants leave out `_total`, and say `_OPS` for normalised operations per second. Histograms are
named without suffix: bucket(name), count(name), total(name).
"""

from typing import Final

# Labels, as `by (...)` and `on (...)` take them.
CLUSTER: Final = "cluster"
OSD: Final = "cluster, ceph_daemon"
OSD_CLASS: Final = "cluster, ceph_daemon, class"
POOL: Final = "cluster, pool"

# Classes of work, values of the label `class`.
CLIENT: Final = "client"
RECOVERY: Final = "background_recovery"
BEST_EFFORT: Final = "background_best_effort"
IMMEDIATE: Final = "immediate"
# The classes that mClock shares the OSD between; immediate work goes first and is charged to none.
SCHEDULED: Final = (CLIENT, RECOVERY, BEST_EFFORT)
CLASSES: Final = (*SCHEDULED, IMMEDIATE)

# Why a class gets no more, values of the label `cause`, most urgent first.
CAUSES: Final = (
    "device",
    "cpu",
    "limit",
    "skew",
    "interference",
    "replica",
    "network",
    "immediate",
    "capacity",
    "unknown",
)


def bucket(histogram: str) -> str:
    return f"{histogram}_bucket"


def count(histogram: str) -> str:
    return f"{histogram}_count"


def total(histogram: str) -> str:
    """The sum of what was observed."""
    return f"{histogram}_sum"


class ExporterSeries:
    """The exporter itself, and what it has found."""

    COLLECTOR_DURATION_SECONDS: Final = "cephqos_collector_duration_seconds"
    COLLECTOR_HOST_SUCCESS: Final = "cephqos_collector_host_success"
    COLLECTOR_SUCCESS: Final = "cephqos_collector_success"
    DISCOVERY_DAEMONS: Final = "cephqos_discovery_daemons"
    BUILD_INFO: Final = "cephqos_exporter_build_info"
    SCRAPE_DURATION_SECONDS: Final = "cephqos_exporter_scrape_duration_seconds"


class DaemonSeries:
    """Each Ceph daemon: whether it answers, what it costs."""

    CPU_SECONDS: Final = "cephqos_daemon_cpu_seconds_total"
    MEMPOOL_BYTES: Final = "cephqos_daemon_mempool_bytes"
    RESIDENT_BYTES: Final = "cephqos_daemon_resident_bytes"
    SCRAPE_DURATION_SECONDS: Final = "cephqos_daemon_scrape_duration_seconds"
    UP: Final = "cephqos_daemon_up"


class OpSeries:
    """Histograms of the OSDs' operations: use bucket(), count() and total()."""

    LATENCY_SECONDS: Final = "cephqos_osd_op_latency_seconds"
    SIZE_LATENCY_SECONDS: Final = "cephqos_osd_op_size_latency_seconds"


class OpsSeries:
    """Operations in progress and slow ones, per OSD."""

    BLOCKED: Final = "cephqos_ops_blocked"
    BLOCKED_AFTER_SECONDS: Final = "cephqos_ops_blocked_after_seconds"
    IN_PROGRESS: Final = "cephqos_ops_in_progress"
    OLDEST_AGE_SECONDS: Final = "cephqos_ops_oldest_age_seconds"
    SAMPLED: Final = "cephqos_ops_sampled_total"
    SAMPLED_WAIT_SECONDS: Final = "cephqos_ops_sampled_wait_seconds_total"
    SLOW_BY_STAGE: Final = "cephqos_ops_slow_by_stage_total"
    SLOW: Final = "cephqos_ops_slow_total"


class NetworkSeries:
    """Heartbeat pings between OSDs: labels interface (front, back), window (1m, 5m, 15m), peer."""

    PEERS: Final = "cephqos_network_peers"
    PING_MEDIAN_SECONDS: Final = "cephqos_network_ping_median_seconds"
    PING_WORST_SECONDS: Final = "cephqos_network_ping_worst_seconds"
    SLOW_BOUND_SECONDS: Final = "cephqos_network_slow_bound_seconds"
    SLOW_PEERS: Final = "cephqos_network_slow_peers"
    STALE_PEERS: Final = "cephqos_network_stale_peers"
    WORST_PEER_INFO: Final = "cephqos_network_worst_peer_info"


class QosSeries:
    """mClock: what each class is promised, wants and gets, per OSD."""

    CAPACITY_BYTES_PER_SECOND: Final = "cephqos_qos_capacity_bytes_per_second"
    CAPACITY_OPS: Final = "cephqos_qos_capacity_normalised_ops_per_second"
    CLIENT_OPS_IN_PROGRESS: Final = "cephqos_qos_client_ops_in_progress"
    CLIENT_WAIT_SECONDS: Final = "cephqos_qos_client_wait_seconds_total"
    CLUSTER_TARGET_RESERVATION_OPS: Final = (
        "cephqos_qos_cluster_target_reservation_normalised_ops_per_second"
    )
    COST_PER_BYTE_UNITS: Final = "cephqos_qos_cost_per_byte_units"
    COST_PER_IO_BYTES: Final = "cephqos_qos_cost_per_io_bytes"
    COST_PER_IO_UNITS: Final = "cephqos_qos_cost_per_io_units"
    DELIVERED_IS_LOWER_BOUND: Final = "cephqos_qos_delivered_is_lower_bound"
    DELIVERED_OPS: Final = "cephqos_qos_delivered_normalised_ops_total"
    LIMIT_BYTES_PER_SECOND: Final = "cephqos_qos_limit_bytes_per_second"
    LIMIT_HOLD_SECONDS: Final = "cephqos_qos_limit_hold_seconds"
    LIMIT_OPS: Final = "cephqos_qos_limit_normalised_ops_per_second"
    LIMIT_PER_SHARD_BYTES_PER_SECOND: Final = "cephqos_qos_limit_per_shard_bytes_per_second"
    LIMIT_PER_SHARD_OPS: Final = "cephqos_qos_limit_per_shard_normalised_ops_per_second"
    LIMIT_RATIO: Final = "cephqos_qos_limit_ratio"
    OPS: Final = "cephqos_qos_normalised_ops_total"
    QUEUE_LENGTH: Final = "cephqos_qos_queue_length"
    REPLICA_WRITE_SECONDS: Final = "cephqos_qos_replica_write_seconds_total"
    REPLICA_WRITES: Final = "cephqos_qos_replica_writes_total"
    RESERVATION_BYTES_PER_SECOND: Final = "cephqos_qos_reservation_bytes_per_second"
    RESERVATION_LAG_SECONDS: Final = "cephqos_qos_reservation_lag_seconds"
    RESERVATION_OPS: Final = "cephqos_qos_reservation_normalised_ops_per_second"
    RESERVATION_PER_SHARD_BYTES_PER_SECOND: Final = (
        "cephqos_qos_reservation_per_shard_bytes_per_second"
    )
    RESERVATION_PER_SHARD_OPS: Final = "cephqos_qos_reservation_per_shard_normalised_ops_per_second"
    RESERVATION_RATIO: Final = "cephqos_qos_reservation_ratio"
    SCHEDULER_INFO: Final = "cephqos_qos_scheduler_info"
    SHARDS: Final = "cephqos_qos_shards"
    STORE_KV_COMMIT_SECONDS: Final = "cephqos_qos_store_kv_commit_seconds_total"
    STORE_KV_COMMITS: Final = "cephqos_qos_store_kv_commits_total"
    STORE_READ_WAIT_SECONDS: Final = "cephqos_qos_store_read_wait_seconds_total"
    STORE_READ_WAITS: Final = "cephqos_qos_store_read_waits_total"
    STORE_SECONDS: Final = "cephqos_qos_store_seconds_total"
    STORE_SLOW: Final = "cephqos_qos_store_slow_total"
    STORE_TRANSACTIONS: Final = "cephqos_qos_store_transactions_total"
    TARGET_LIMIT_OPS: Final = "cephqos_qos_target_limit_normalised_ops_per_second"
    TARGET_RESERVATION_OPS: Final = "cephqos_qos_target_reservation_normalised_ops_per_second"
    THROTTLE_USED_RATIO: Final = "cephqos_qos_throttle_used_ratio"
    THROTTLE_WAIT_SECONDS: Final = "cephqos_qos_throttle_wait_seconds_total"
    WEIGHT: Final = "cephqos_qos_weight"


class RecoverySeries:
    """Recovery and backfill: per OSD, per pool, per cluster."""

    BYTES: Final = "cephqos_recovery_bytes_total"
    CLUSTER_ACTIVE_PGS: Final = "cephqos_recovery_cluster_active_pgs"
    CLUSTER_PGS: Final = "cephqos_recovery_cluster_pgs"
    OPS: Final = "cephqos_recovery_ops_total"
    POOL_BYTES_PER_SECOND: Final = "cephqos_recovery_pool_bytes_per_second"
    POOL_BYTES: Final = "cephqos_recovery_pool_bytes_total"
    POOL_DEGRADED_OBJECTS: Final = "cephqos_recovery_pool_degraded_objects"
    POOL_ETA_SECONDS: Final = "cephqos_recovery_pool_eta_seconds"
    POOL_KEYS: Final = "cephqos_recovery_pool_keys_total"
    POOL_MISPLACED_OBJECTS: Final = "cephqos_recovery_pool_misplaced_objects"
    POOL_OBJECT_COPIES: Final = "cephqos_recovery_pool_object_copies"
    POOL_OBJECTS_PER_SECOND: Final = "cephqos_recovery_pool_objects_per_second"
    POOL_OBJECTS: Final = "cephqos_recovery_pool_objects_total"
    POOL_PGS: Final = "cephqos_recovery_pool_pgs"
    POOL_UNFOUND_OBJECTS: Final = "cephqos_recovery_pool_unfound_objects"
    PULLS: Final = "cephqos_recovery_pulls_total"
    PUSH_BYTES: Final = "cephqos_recovery_push_bytes_total"
    PUSHES: Final = "cephqos_recovery_pushes_total"
    RESERVATIONS: Final = "cephqos_recovery_reservations"
    RESERVATIONS_MAX: Final = "cephqos_recovery_reservations_max"
    STATE_SECONDS: Final = "cephqos_recovery_state_seconds"


class ScrubSeries:
    """Scrubs: per OSD and per pool."""

    CHUNKS: Final = "cephqos_scrub_chunks_total"
    CLUSTER_PGS: Final = "cephqos_scrub_cluster_pgs"
    DURATION_SECONDS: Final = "cephqos_scrub_duration_seconds"
    POOL_ALLOWED: Final = "cephqos_scrub_pool_allowed"
    POOL_BACKLOG_ETA_SECONDS: Final = "cephqos_scrub_pool_backlog_eta_seconds"
    POOL_BACKLOG_OBJECTS: Final = "cephqos_scrub_pool_backlog_objects"
    POOL_BYTES: Final = "cephqos_scrub_pool_bytes_total"
    POOL_DURATION_SECONDS: Final = "cephqos_scrub_pool_duration_seconds"
    POOL_INTERVAL_SECONDS: Final = "cephqos_scrub_pool_interval_seconds"
    POOL_LAST_DURATION_SECONDS: Final = "cephqos_scrub_pool_last_duration_seconds"
    POOL_OBJECTS_PER_SECOND: Final = "cephqos_scrub_pool_objects_per_second"
    POOL_OBJECTS: Final = "cephqos_scrub_pool_objects_total"
    POOL_OLDEST_SECONDS: Final = "cephqos_scrub_pool_oldest_seconds"
    POOL_OVERDUE_AFTER_SECONDS: Final = "cephqos_scrub_pool_overdue_after_seconds"
    POOL_PGS: Final = "cephqos_scrub_pool_pgs_total"
    POOL_RUNNING_ETA_SECONDS: Final = "cephqos_scrub_pool_running_eta_seconds"
    POOL_RUNNING_OBJECTS: Final = "cephqos_scrub_pool_running_objects"
    POOL_RUNNING_OBJECTS_DONE: Final = "cephqos_scrub_pool_running_objects_done"
    POOL_RUNNING_OBJECTS_LEFT: Final = "cephqos_scrub_pool_running_objects_left"
    POOL_RUNNING_PGS: Final = "cephqos_scrub_pool_running_pgs"
    POOL_SCHEDULE_PGS: Final = "cephqos_scrub_pool_schedule_pgs"
    PREEMPTIONS: Final = "cephqos_scrub_preemptions_total"
    QUEUE_PGS: Final = "cephqos_scrub_queue_pgs"
    READ_BYTES: Final = "cephqos_scrub_read_bytes_total"
    READS: Final = "cephqos_scrub_reads_total"
    RESERVATION_FAILURES: Final = "cephqos_scrub_reservation_failures_total"
    RESERVATIONS: Final = "cephqos_scrub_reservations"
    RESERVATIONS_MAX: Final = "cephqos_scrub_reservations_max"
    STARTED: Final = "cephqos_scrub_started_total"
    WRITES_BLOCKED: Final = "cephqos_scrub_writes_blocked_total"


class ThreadsSeries:
    """CPU and waiting of OSD threads, per group of threads."""

    COUNT: Final = "cephqos_threads"
    BUSIEST_CPU_SECONDS: Final = "cephqos_threads_busiest_cpu_seconds_total"
    CPU_SECONDS: Final = "cephqos_threads_cpu_seconds_total"
    SWITCHES: Final = "cephqos_threads_switches_total"
    THREAD_CPU_SECONDS: Final = "cephqos_threads_thread_cpu_seconds_total"
    WAIT_SECONDS: Final = "cephqos_threads_wait_seconds_total"


class DisksSeries:
    """Block devices of OSDs: /proc/diskstats and /sys/block."""

    BUSY_SECONDS: Final = "cephqos_disks_busy_seconds_total"
    BYTES: Final = "cephqos_disks_bytes_total"
    IN_PROGRESS: Final = "cephqos_disks_in_progress"
    INFO: Final = "cephqos_disks_info"
    MERGED: Final = "cephqos_disks_merged_total"
    OPS: Final = "cephqos_disks_ops_total"
    TIME_SECONDS: Final = "cephqos_disks_time_seconds_total"
    WEIGHTED_SECONDS: Final = "cephqos_disks_weighted_seconds_total"


class PlacementSeries:
    """Which CPUs and NUMA nodes OSDs may use and do use."""

    CPU_THREADS: Final = "cephqos_placement_cpu_threads"
    CPUS_ALLOWED: Final = "cephqos_placement_cpus_allowed"
    CPUS_USED: Final = "cephqos_placement_cpus_used"
    INFO: Final = "cephqos_placement_info"
    MEMORY_BYTES: Final = "cephqos_placement_memory_bytes"
    REACTOR_CPU: Final = "cephqos_placement_reactor_cpu"
    REACTORS_SHARED: Final = "cephqos_placement_reactors_shared"
    STRATEGY: Final = "cephqos_placement_strategy"
    THREADS: Final = "cephqos_placement_threads"


class CrimsonSeries:
    """Reactors, scheduler, queues and SeaStore of Crimson OSDs; groups add more (CRIMSON.md)."""

    ALIEN_RECEIVED: Final = "cephqos_crimson_alien_received_total"
    ALIEN_SENT: Final = "cephqos_crimson_alien_sent_total"
    IO_QUEUE_BYTES: Final = "cephqos_crimson_io_queue_bytes_total"
    IO_QUEUE_DELAY_SECONDS: Final = "cephqos_crimson_io_queue_delay_seconds_total"
    IO_QUEUE_DISK_LENGTH: Final = "cephqos_crimson_io_queue_disk_length"
    IO_QUEUE_EXEC_SECONDS: Final = "cephqos_crimson_io_queue_exec_seconds_total"
    IO_QUEUE_LENGTH: Final = "cephqos_crimson_io_queue_length"
    IO_QUEUE_OPS: Final = "cephqos_crimson_io_queue_ops_total"
    IO_QUEUE_STARVATION_SECONDS: Final = "cephqos_crimson_io_queue_starvation_seconds_total"
    MCLOCK_LONGEST_WAIT_SECONDS: Final = "cephqos_crimson_mclock_longest_wait_seconds"
    MCLOCK_THROTTLED_OPS: Final = "cephqos_crimson_mclock_throttled_ops_total"
    MCLOCK_WAIT_SECONDS: Final = "cephqos_crimson_mclock_wait_seconds"
    MCLOCK_WAITED_SECONDS: Final = "cephqos_crimson_mclock_waited_seconds_total"
    MEMORY_BYTES: Final = "cephqos_crimson_memory_bytes"
    MEMORY_CROSS_CPU_FREES: Final = "cephqos_crimson_memory_cross_cpu_frees_total"
    MEMORY_FAILURES: Final = "cephqos_crimson_memory_failures_total"
    METRICS_UNREAD: Final = "cephqos_crimson_metrics_unread"
    NETWORK_BYTES: Final = "cephqos_crimson_network_bytes_total"
    PG_OPS: Final = "cephqos_crimson_pg_ops_total"
    REACTOR_AIO_BYTES: Final = "cephqos_crimson_reactor_aio_bytes_total"
    REACTOR_AIO_OPS: Final = "cephqos_crimson_reactor_aio_ops_total"
    REACTOR_AWAKE_SECONDS: Final = "cephqos_crimson_reactor_awake_seconds_total"
    REACTOR_BUSY_SECONDS: Final = "cephqos_crimson_reactor_busy_seconds_total"
    REACTOR_CPU_SECONDS: Final = "cephqos_crimson_reactor_cpu_seconds_total"
    REACTOR_POLLS: Final = "cephqos_crimson_reactor_polls_total"
    REACTOR_STALL_REPORTS: Final = "cephqos_crimson_reactor_stall_reports_total"
    REACTOR_STALL_SECONDS: Final = "cephqos_crimson_reactor_stall_seconds"
    REACTOR_STALLS: Final = "cephqos_crimson_reactor_stalls_total"
    REACTOR_STEAL_SECONDS: Final = "cephqos_crimson_reactor_steal_seconds_total"
    REACTOR_TASKS_PENDING: Final = "cephqos_crimson_reactor_tasks_pending"
    REACTOR_TASKS: Final = "cephqos_crimson_reactor_tasks_total"
    REACTOR_UTILIZATION_RATIO: Final = "cephqos_crimson_reactor_utilization_ratio"
    SCHEDULER_QUOTA_VIOLATION_SECONDS: Final = (
        "cephqos_crimson_scheduler_quota_violation_seconds_total"
    )
    SCHEDULER_SECONDS: Final = "cephqos_crimson_scheduler_seconds_total"
    SEASTORE_BACKGROUND_BLOCKED: Final = "cephqos_crimson_seastore_background_blocked_total"
    SEASTORE_BACKGROUND_BLOCKED_SECONDS: Final = (
        "cephqos_crimson_seastore_background_blocked_seconds_total"
    )
    SEASTORE_BACKGROUND_IO: Final = "cephqos_crimson_seastore_background_io_total"
    SEASTORE_BYTES: Final = "cephqos_crimson_seastore_bytes"
    SEASTORE_CACHE_LOOKUPS: Final = "cephqos_crimson_seastore_cache_lookups_total"
    SEASTORE_COMMITS: Final = "cephqos_crimson_seastore_commits_total"
    SEASTORE_CONFLICT_REPLAYS: Final = "cephqos_crimson_seastore_conflict_replays"
    SEASTORE_CONFLICTS: Final = "cephqos_crimson_seastore_conflicts_total"
    SEASTORE_JOURNAL_BYTES: Final = "cephqos_crimson_seastore_journal_bytes_total"
    SEASTORE_JOURNAL_IO: Final = "cephqos_crimson_seastore_journal_io_total"
    SEASTORE_JOURNAL_UNTRIMMED_BYTES: Final = "cephqos_crimson_seastore_journal_untrimmed_bytes"
    SEASTORE_OP_SECONDS: Final = "cephqos_crimson_seastore_op_seconds"
    SEASTORE_RECLAIMED_BYTES: Final = "cephqos_crimson_seastore_reclaimed_bytes_total"
    SEASTORE_STAGE_SECONDS: Final = "cephqos_crimson_seastore_stage_seconds"
    SEASTORE_TRANSACTIONS: Final = "cephqos_crimson_seastore_transactions"


class ClusterSeries:
    """The cluster role: flags, OSDs, how the poller fares."""

    CHILD_STARTS: Final = "cephqos_cluster_child_starts_total"
    COMMAND_BYTES: Final = "cephqos_cluster_command_bytes_total"
    COMMAND_SECONDS: Final = "cephqos_cluster_command_seconds_total"
    COMMANDS: Final = "cephqos_cluster_commands_total"
    DATA_AGE_SECONDS: Final = "cephqos_cluster_data_age_seconds"
    FLAG: Final = "cephqos_cluster_flag"
    OSD_UP: Final = "cephqos_cluster_osd_up"
    PGS: Final = "cephqos_cluster_pgs"
    POLL_DURATION_SECONDS: Final = "cephqos_cluster_poll_duration_seconds"
    SCHEDULE_PGS: Final = "cephqos_cluster_schedule_pgs"
    UP: Final = "cephqos_cluster_up"


class ProbeSeries:
    """Small operations of the probe role, as a client feels them."""

    FAILURES: Final = "cephqos_probe_failures_total"
    LATENCY_SECONDS: Final = "cephqos_probe_latency_seconds"
    UP: Final = "cephqos_probe_up"


class ClientSeries:
    """The load of a test run, as its engine (fio, rados bench) measures it."""

    BYTES_PER_SECOND: Final = "cephqos_client_bytes_per_second"
    BYTES: Final = "cephqos_client_bytes_total"
    IOPS: Final = "cephqos_client_iops"
    LATENCY_MEAN_SECONDS: Final = "cephqos_client_latency_mean_seconds"
    LATENCY_SECONDS: Final = "cephqos_client_latency_seconds"
    OPS: Final = "cephqos_client_ops_total"


class RunSeries:
    """A test run: phase, progress, time left."""

    FILL_RATIO: Final = "cephqos_run_fill_ratio"
    FILL_REMAINING_SECONDS: Final = "cephqos_run_fill_remaining_seconds"
    INFO: Final = "cephqos_run_info"
    RECOVERED_OBJECTS: Final = "cephqos_run_recovered_objects"
    RECOVERY_LEFT_OBJECTS: Final = "cephqos_run_recovery_left_objects"
    RECOVERY_REMAINING_SECONDS: Final = "cephqos_run_recovery_remaining_seconds"
    REMAINING_SECONDS: Final = "cephqos_run_remaining_seconds"
    REPEATS: Final = "cephqos_run_repeats"
    REPEATS_DONE: Final = "cephqos_run_repeats_done"
    START_TIMESTAMP_SECONDS: Final = "cephqos_run_start_timestamp_seconds"
    SCRUB_LEFT_OBJECTS: Final = "cephqos_run_scrub_left_objects"
    SCRUB_REMAINING_SECONDS: Final = "cephqos_run_scrub_remaining_seconds"
    SCRUBBED_OBJECTS: Final = "cephqos_run_scrubbed_objects"
