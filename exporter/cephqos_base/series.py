"""Names of our series and label sets, and the values of the label class.

Rules, dashboards, top, reports and the demo take names from here, so that a name that is misspelt
is an error and not an empty graph. Series that nothing of ours reads have no name here. recorded.py
has those that our rules record.

    f"max by ({OSD}) ({QosSeries.CAPACITY_OPS})"
    f"rate({count(OpSeries.LATENCY_SECONDS)}[5m])"

Constants leave out `_total`, and say `_OPS` for normalised operations per second. Histograms are
named without suffix: bucket(name), count(name), total(name).
"""

from typing import Final

# Labels, as `by (...)` and `on (...)` take them.
CLUSTER: Final = "cluster"
OSD: Final = "cluster, ceph_daemon"
OSD_CLASS: Final = "cluster, ceph_daemon, class"
POOL: Final = "cluster, pool"
TENANT: Final = "kind, pool_id, tenant"

# What operations of a tenant do, values of the label `state`.
WAITING: Final = "waiting"
WORKING: Final = "working"
TENANT_STATES: Final = (WAITING, WORKING)

# Classes of work, values of the label `class`.
CLIENT: Final = "client"
RECOVERY: Final = "background_recovery"
BEST_EFFORT: Final = "background_best_effort"
IMMEDIATE: Final = "immediate"
# The classes that mClock shares the OSD between; immediate work goes first and is charged to none.
SCHEDULED: Final = (CLIENT, RECOVERY, BEST_EFFORT)
CLASSES: Final = (*SCHEDULED, IMMEDIATE)


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
    COLLECTOR_NOT_UNDERSTOOD: Final = "cephqos_collector_not_understood_total"
    COLLECTOR_SUCCESS: Final = "cephqos_collector_success"
    BUILD_INFO: Final = "cephqos_exporter_build_info"
    RECORDER_LOST: Final = "cephqos_recorder_lost_total"
    RECORDER_PAGES: Final = "cephqos_recorder_pages_total"


class DaemonSeries:
    """Each Ceph daemon: whether it answers, what it costs."""

    CPU_SECONDS: Final = "cephqos_daemon_cpu_seconds_total"
    MEMPOOL_BYTES: Final = "cephqos_daemon_mempool_bytes"
    RESIDENT_BYTES: Final = "cephqos_daemon_resident_bytes"
    SCRAPE_DURATION_SECONDS: Final = "cephqos_daemon_scrape_duration_seconds"
    STOPPED: Final = "cephqos_daemon_stopped"
    UP: Final = "cephqos_daemon_up"


class OpSeries:
    """Histograms of the OSDs' operations: use bucket(), count() and total()."""

    LATENCY_SECONDS: Final = "cephqos_osd_op_latency_seconds"


class AccountSeries:
    """Where the time of operations goes, per OSD: labels state, by."""

    SECONDS: Final = "cephqos_account_seconds_total"
    REPLICA_SECONDS: Final = "cephqos_account_replica_seconds_total"


class OpsSeries:
    """Operations in progress and slow ones, per OSD."""

    BLOCKED: Final = "cephqos_ops_blocked"
    IN_PROGRESS: Final = "cephqos_ops_in_progress"
    OLDEST_AGE_SECONDS: Final = "cephqos_ops_oldest_age_seconds"
    SAMPLED_WAIT_SECONDS: Final = "cephqos_ops_sampled_wait_seconds_total"
    SLOW: Final = "cephqos_ops_slow_total"


class TenantsSeries:
    """Time of operations by tenant and state, per OSD, and how many were sampled."""

    SECONDS: Final = "cephqos_tenants_seconds_total"
    SQUARES: Final = "cephqos_tenants_squared_seconds_total"


class NetworkSeries:
    """Heartbeat pings between OSDs: labels interface (front, back), window (1m, 5m, 15m), peer."""

    PING_MEDIAN_SECONDS: Final = "cephqos_network_ping_median_seconds"
    PING_WORST_SECONDS: Final = "cephqos_network_ping_worst_seconds"
    SLOW_BOUND_SECONDS: Final = "cephqos_network_slow_bound_seconds"
    SLOW_PEERS: Final = "cephqos_network_slow_peers"
    WORST_PEER_INFO: Final = "cephqos_network_worst_peer_info"


class QosSeries:
    """mClock: what each class has reserved, asks for and gets, per OSD."""

    CAPACITY_OPS: Final = "cephqos_qos_capacity_normalised_ops_per_second"
    CLIENT_OPS_IN_PROGRESS: Final = "cephqos_qos_client_ops_in_progress"
    CLIENT_WAIT_SECONDS: Final = "cephqos_qos_client_wait_seconds_total"
    CLUSTER_TARGET_RESERVATION_OPS: Final = (
        "cephqos_qos_cluster_target_reservation_normalised_ops_per_second"
    )
    DELIVERED_IS_LOWER_BOUND: Final = "cephqos_qos_delivered_is_lower_bound"
    DELIVERED_OPS: Final = "cephqos_qos_delivered_normalised_ops_total"
    LIMIT_WAIT_SECONDS: Final = "cephqos_qos_limit_wait_seconds"
    LIMIT_OPS: Final = "cephqos_qos_limit_normalised_ops_per_second"
    LIMIT_RATIO: Final = "cephqos_qos_limit_ratio"
    OPS: Final = "cephqos_qos_normalised_ops_total"
    QUEUE_LENGTH: Final = "cephqos_qos_queue_length"
    REPLICA_WRITE_SECONDS: Final = "cephqos_qos_replica_write_seconds_total"
    REPLICA_WRITES: Final = "cephqos_qos_replica_writes_total"
    RESERVATION_LAG_SECONDS: Final = "cephqos_qos_reservation_lag_seconds"
    RESERVATION_OPS: Final = "cephqos_qos_reservation_normalised_ops_per_second"
    RESERVATION_RATIO: Final = "cephqos_qos_reservation_ratio"
    SCHEDULER_INFO: Final = "cephqos_qos_scheduler_info"
    SHARDS: Final = "cephqos_qos_shards"
    STORE_DB_USED_BYTES: Final = "cephqos_qos_store_db_used_bytes"
    STORE_FRAGMENTED: Final = "cephqos_qos_store_fragmented_allocations_total"
    STORE_KV_COMMIT_SECONDS: Final = "cephqos_qos_store_kv_commit_seconds_total"
    STORE_KV_COMMITS: Final = "cephqos_qos_store_kv_commits_total"
    STORE_OWN_WRITE_SECONDS: Final = "cephqos_qos_store_own_write_seconds_total"
    STORE_OWN_WRITES: Final = "cephqos_qos_store_own_writes_total"
    STORE_READ_WAIT_SECONDS: Final = "cephqos_qos_store_read_wait_seconds_total"
    STORE_READ_WAITS: Final = "cephqos_qos_store_read_waits_total"
    STORE_SECONDS: Final = "cephqos_qos_store_seconds_total"
    STORE_SLOW: Final = "cephqos_qos_store_slow_total"
    STORE_SPILLED_BYTES: Final = "cephqos_qos_store_spilled_bytes"
    STORE_TRANSACTIONS: Final = "cephqos_qos_store_transactions_total"
    TARGET_RESERVATION_OPS: Final = "cephqos_qos_target_reservation_normalised_ops_per_second"
    THROTTLE_USED_RATIO: Final = "cephqos_qos_throttle_used_ratio"
    THROTTLE_WAIT_SECONDS: Final = "cephqos_qos_throttle_wait_seconds_total"


class RecoverySeries:
    """Recovery and backfill: per OSD, per pool, per cluster."""

    CLUSTER_ETA_SECONDS: Final = "cephqos_recovery_cluster_eta_seconds"  # label bound
    CLUSTER_PGS: Final = "cephqos_recovery_cluster_pgs"
    POOL_BYTES_PER_SECOND: Final = "cephqos_recovery_pool_bytes_per_second"
    POOL_DEGRADED_OBJECTS: Final = "cephqos_recovery_pool_degraded_objects"
    POOL_ETA_SECONDS: Final = "cephqos_recovery_pool_eta_seconds"
    POOL_MISPLACED_OBJECTS: Final = "cephqos_recovery_pool_misplaced_objects"
    POOL_OBJECTS_PER_SECOND: Final = "cephqos_recovery_pool_objects_per_second"
    POOL_OBJECTS: Final = "cephqos_recovery_pool_objects_total"
    POOL_UNFOUND_OBJECTS: Final = "cephqos_recovery_pool_unfound_objects"
    SLOTS: Final = "cephqos_recovery_slots"
    SLOTS_MAX: Final = "cephqos_recovery_slots_max"


class ScrubSeries:
    """Scrubs: per OSD and per pool."""

    CLUSTER_PGS: Final = "cephqos_scrub_cluster_pgs"
    POOL_ALLOWED: Final = "cephqos_scrub_pool_allowed"
    POOL_BACKLOG_ETA_SECONDS: Final = "cephqos_scrub_pool_backlog_eta_seconds"
    POOL_BACKLOG_OBJECTS: Final = "cephqos_scrub_pool_backlog_objects"
    POOL_INTERVAL_SECONDS: Final = "cephqos_scrub_pool_interval_seconds"
    POOL_OBJECTS_PER_SECOND: Final = "cephqos_scrub_pool_objects_per_second"
    POOL_OBJECTS: Final = "cephqos_scrub_pool_objects_total"
    POOL_OLDEST_SECONDS: Final = "cephqos_scrub_pool_oldest_seconds"
    POOL_OVERDUE_AFTER_SECONDS: Final = "cephqos_scrub_pool_overdue_after_seconds"
    POOL_RUNNING_ETA_SECONDS: Final = "cephqos_scrub_pool_running_eta_seconds"
    POOL_RUNNING_OBJECTS_DONE: Final = "cephqos_scrub_pool_running_objects_done"
    POOL_RUNNING_OBJECTS_LEFT: Final = "cephqos_scrub_pool_running_objects_left"
    POOL_RUNNING_PGS: Final = "cephqos_scrub_pool_running_pgs"
    POOL_SCHEDULE_PGS: Final = "cephqos_scrub_pool_schedule_pgs"
    PREEMPTIONS: Final = "cephqos_scrub_preemptions_total"
    SLOT_FAILURES: Final = "cephqos_scrub_slot_failures_total"
    SLOTS: Final = "cephqos_scrub_slots"
    SLOTS_MAX: Final = "cephqos_scrub_slots_max"
    WRITES_BLOCKED: Final = "cephqos_scrub_writes_blocked_total"


class SnapTrimSeries:
    """Trimming of deleted snapshots: per pool and per OSD."""

    OSD_PGS: Final = "cephqos_snaptrim_osd_pgs"
    POOL_ETA_SECONDS: Final = "cephqos_snaptrim_pool_eta_seconds"
    POOL_SNAPSHOTS: Final = "cephqos_snaptrim_pool_snapshots"


class BalanceSeries:
    """How placement groups and data lie on the OSDs."""

    FULL_RATIO: Final = "cephqos_cluster_full_ratio"  # Label: level
    PGS: Final = "cephqos_balance_pgs"  # Labels: root, device_class
    PGS_RATIO: Final = "cephqos_balance_pgs_ratio"
    PRIMARIES: Final = "cephqos_balance_primaries"
    PG_SIZE: Final = "cephqos_balance_pool_pg_size_ratio"  # of a pool
    READ_SCORE: Final = "cephqos_balance_pool_read_score"  # of a pool
    USED_RATIO: Final = "cephqos_balance_used_ratio"


class ThreadsSeries:
    """CPU and waiting of OSD threads, per group of threads."""

    BUSIEST_CPU_SECONDS: Final = "cephqos_threads_busiest_cpu_seconds_total"
    CPU_SECONDS: Final = "cephqos_threads_cpu_seconds_total"
    SWITCHES: Final = "cephqos_threads_switches_total"
    WAIT_SECONDS: Final = "cephqos_threads_wait_seconds_total"


class DisksSeries:
    """Block devices of OSDs: /proc/diskstats and /sys/block."""

    BUSY_SECONDS: Final = "cephqos_disks_busy_seconds_total"
    BYTES: Final = "cephqos_disks_bytes_total"
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
    REACTOR_CPU: Final = "cephqos_placement_reactor_cpu"
    REACTORS_SHARED: Final = "cephqos_placement_reactors_shared"
    STRATEGY: Final = "cephqos_placement_strategy"
    THREADS: Final = "cephqos_placement_threads"


class CgroupSeries:
    """Limits of an OSD's container or unit, and what they hold back."""

    CPU_LIMIT: Final = "cephqos_cgroup_cpu_limit_cpus"
    CPU_PERIODS: Final = "cephqos_cgroup_cpu_periods_total"
    CPU_THROTTLED_PERIODS: Final = "cephqos_cgroup_cpu_throttled_periods_total"
    CPU_THROTTLED_SECONDS: Final = "cephqos_cgroup_cpu_throttled_seconds_total"
    IO_BYTES: Final = "cephqos_cgroup_io_bytes_total"
    IO_LIMIT_BYTES: Final = "cephqos_cgroup_io_limit_bytes_per_second"
    IO_LIMIT_OPS: Final = "cephqos_cgroup_io_limit_ops_per_second"
    IO_OPS: Final = "cephqos_cgroup_io_ops_total"
    MEMORY_LIMIT_BYTES: Final = "cephqos_cgroup_memory_limit_bytes"
    MEMORY_LIMIT_HITS: Final = "cephqos_cgroup_memory_limit_hits_total"
    MEMORY_OOM_KILLS: Final = "cephqos_cgroup_memory_oom_kills_total"
    MEMORY_USED_BYTES: Final = "cephqos_cgroup_memory_used_bytes"
    PRESSURE_SECONDS: Final = "cephqos_cgroup_pressure_seconds_total"


class HostSeries:
    """The whole host with all its processes. Without labels of a cluster or an OSD."""

    CPU_SECONDS: Final = "cephqos_host_cpu_seconds_total"
    CPUS: Final = "cephqos_host_cpus"
    LINK_BYTES: Final = "cephqos_host_link_bytes_total"
    LINK_CHANGES: Final = "cephqos_host_link_changes_total"
    LINK_LOST: Final = "cephqos_host_link_lost_packets_total"
    LINK_MISSED: Final = "cephqos_host_link_missed_packets_total"
    LINK_MTU: Final = "cephqos_host_link_mtu_bytes"
    LINK_SPEED: Final = "cephqos_host_link_speed_bytes_per_second"
    LINK_UP: Final = "cephqos_host_link_up"
    OOM_KILLS: Final = "cephqos_host_oom_kills_total"
    PRESSURE_SECONDS: Final = "cephqos_host_pressure_seconds_total"
    SWAPPED_BYTES: Final = "cephqos_host_swapped_bytes_total"
    TCP_SEGMENTS: Final = "cephqos_host_tcp_segments_total"


class CrimsonSeries:
    """Reactors of Crimson OSDs; docs/reference/metrics.md has all the others of their series."""

    REACTOR_STEAL_SECONDS: Final = "cephqos_crimson_reactor_steal_seconds_total"
    REACTOR_UTILIZATION_RATIO: Final = "cephqos_crimson_reactor_utilization_ratio"


class ClusterSeries:
    """The cluster role: flags, OSDs, how the poller works."""

    COMMAND_SECONDS: Final = "cephqos_cluster_command_seconds_total"
    DATA_AGE_SECONDS: Final = "cephqos_cluster_data_age_seconds"
    ELECTIONS: Final = "cephqos_cluster_elections_total"
    FLAG: Final = "cephqos_cluster_flag"
    HEALTH_CHECK: Final = "cephqos_cluster_health_check"  # Labels: check, severity
    OSD_UP: Final = "cephqos_cluster_osd_up"
    POOL_INFO: Final = "cephqos_cluster_pool_info"
    UP: Final = "cephqos_cluster_up"


class ProbeSeries:
    """Small operations of the probe role, as a client feels them."""

    FAILURES: Final = "cephqos_probe_failures_total"
    LATENCY_SECONDS: Final = "cephqos_probe_latency_seconds"


class ClientSeries:
    """The load of a test run, as its engine (fio, rados bench) measures it."""

    IOPS: Final = "cephqos_client_iops"
    LATENCY_MEAN_SECONDS: Final = "cephqos_client_latency_mean_seconds"
    LATENCY_SECONDS: Final = "cephqos_client_latency_seconds"


class RunSeries:
    """A test run: phase, progress, time left."""

    FILL_RATIO: Final = "cephqos_run_fill_ratio"
    INFO: Final = "cephqos_run_info"
    PHASE_START_TIMESTAMP_SECONDS: Final = "cephqos_run_phase_start_timestamp_seconds"
    RECOVERED_OBJECTS: Final = "cephqos_run_recovered_objects"
    RECOVERY_LEFT_OBJECTS: Final = "cephqos_run_recovery_left_objects"
    REMAINING_SECONDS: Final = "cephqos_run_remaining_seconds"
    REPEATS: Final = "cephqos_run_repeats"
    REPEATS_DONE: Final = "cephqos_run_repeats_done"
    START_TIMESTAMP_SECONDS: Final = "cephqos_run_start_timestamp_seconds"
    SCRUB_LEFT_OBJECTS: Final = "cephqos_run_scrub_left_objects"
    SCRUBBED_OBJECTS: Final = "cephqos_run_scrubbed_objects"
