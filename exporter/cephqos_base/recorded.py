"""Names of recorded series that code reads, grouped by their labels: `PerOsd`, `PerClass`, ….

    f"{PerClass.SHORTFALL_OPS}{{class='client'}}"

The rules in cephqos_alerts/sources/ say what each series means; docs/reference/recorded.md lists
them. Two series of one figure differ by a suffix: `DELIVERED_OPS`, `DELIVERED_OPS_MAX1D`.
"""

from typing import Final


class PerOsd:
    """Recorded per OSD: cluster, ceph_daemon."""

    CAPACITY_OPS: Final = "osd:cephqos_capacity_ops"
    CONDITION: Final = "osd:cephqos_condition:bool"  # Labels: condition, peer (of slow_link)
    CPUS: Final = "osd:cephqos_cpus:rate"  # state="used", "waiting", "busiest_thread"
    DELIVERED_OPS: Final = "osd:cephqos_delivered_ops:rate"
    # Labels: when="ever", "saturated", or "sustained" (throughout a hold).
    DELIVERED_OPS_MAX1D: Final = "osd:cephqos_delivered_ops:max1d"
    DEVICE_DEPTH: Final = "osd:cephqos_device_depth:rate"
    DEVICE_WORK: Final = "osd:cephqos_device_work:rate"  # unit="bytes", "requests", "db_bytes"
    DEVICE_WORK_MAX1D: Final = "osd:cephqos_device_work:max1d"
    AT_LIMIT_WITH_ROOM: Final = "osd:cephqos_at_limit_with_room:ratio"
    CPU_DENIED: Final = "osd:cephqos_cpu_denied:bool"
    FINDING: Final = "osd:cephqos_finding:value"
    INSTANCE: Final = "osd:cephqos_instance:info"
    IO_LIMIT_REACHED: Final = "osd:cephqos_io_limit_reached:rate"
    MEDIA: Final = "osd:cephqos_media:info"
    REPLICA_SLOWNESS: Final = "osd:cephqos_replica_slowness:ratio"
    SATURATED_OPS: Final = "osd:cephqos_saturated_ops:rate"
    STORE_PILING_UP: Final = "osd:cephqos_store_piling_up:bool"
    WAITED_FOR: Final = "osd:cephqos_waited_for:count"


class PerOsdPlace:
    """Recorded per OSD and the label `at`, the place where time is spent: commit, read, device (a
    request to it), db_device (to one for the DB), store (a transaction), replica_write."""

    SECONDS: Final = "osd_at:cephqos_seconds:rate"  # mean of one commit, read, request ...
    SECONDS_MEDIAN1D: Final = "osd_at:cephqos_seconds:median1d"


class PerClass:
    """Recorded per OSD and class of work."""

    ATTAINED_OPS: Final = "osd_class:cephqos_attained_ops:rate"
    CAUSE: Final = "osd_class:cephqos_cause"
    DEMAND: Final = "osd_class:cephqos_demand:bool"
    EVIDENCE: Final = "osd_class:cephqos_evidence:rank"
    EFFECTIVE_ATTAINMENT: Final = "osd_class:cephqos_effective_attainment:ratio"
    LASTING_EVIDENCE: Final = "osd_class:cephqos_lasting_evidence:rank"
    MAIN_CAUSE: Final = "osd_class:cephqos_main_cause"
    EFFECTIVE_RESERVATION_OPS: Final = "osd_class:cephqos_effective_reservation_ops"
    QUEUE_LENGTH: Final = "osd_class:cephqos_queue_length:sum"
    RESERVATION_LAG_SECONDS: Final = "osd_class:cephqos_reservation_lag_seconds:max"
    RESERVED_OPS: Final = "osd_class:cephqos_reserved_ops"
    SHORTFALL_OPS: Final = "osd_class:cephqos_shortfall_ops:rate"
    VIOLATED: Final = "osd_class:cephqos_violated:bool"
    VIOLATED_LASTING: Final = "osd_class:cephqos_violated_lasting:bool"
    VIOLATED_SECONDS: Final = "osd_class:cephqos_violated_seconds:sum1h"


class PerCluster:
    """Recorded per cluster."""

    CAPACITY_OPS: Final = "cluster:cephqos_capacity_ops:sum"
    OSDS: Final = "cluster:cephqos_osds:count"
    RUN_FLAG: Final = "cluster:cephqos_run_flag:bool"  # Label: flag


class PerClusterClass:
    """Recorded per cluster and class."""

    MAIN_CAUSE: Final = "cluster_class:cephqos_main_cause"


class PerHost:
    """Recorded per host (scrape target)."""

    CPUS_TAKEN: Final = "instance:cephqos_cpus_taken:rate"
    RETRANSMITTED: Final = "instance:cephqos_retransmitted:ratio"  # only where it is much


class PerHostClass:
    """Recorded per host (scrape target) and class, as sums of its OSDs; label `figure`."""

    OPS: Final = "instance_class:cephqos_ops:sum"  # attained, reserved, shortfall
    OSDS: Final = "instance_class:cephqos_osds:sum"  # with demand, violated


class PerSlo:
    """Recorded per SLO."""

    BUDGET_LEFT: Final = "cephqos_slo:budget_left:ratio"
    BURN_BOUND: Final = "cephqos_slo:burn_bound:ratio"
    ERRORS: Final = "cephqos_slo:errors:ratio"
    GOOD: Final = "cephqos_slo:good:rate"
    OBJECTIVE: Final = "cephqos_slo:objective:ratio"
    TOTAL: Final = "cephqos_slo:total:rate"
