"""Seastar's own metrics: reactors, scheduling groups, memory, I/O queues, network.

From src/core/{reactor,memory,io_queue,alien,scollectd}.cc and src/net/stack.cc of the Seastar that
Ceph is built with.
"""

from typing import Final

from cephqos_exporter.collectors.crimson.shown import (
    MICRO,
    MILLI,
    PREFIX,
    Shown,
    Table,
    counter,
    gauge,
    histogram,
)

_AIO_OPS: Final = "Asynchronous I/O operations of a reactor."
_AIO_BYTES: Final = "Bytes of a reactor's asynchronous I/O."
_FAULTS: Final = "What a reactor counts of things that went wrong, by kind."
_STALLS: Final = "Times a reactor did not get back to its event loop for a while."
_SCHEDULER: Final = (
    "Time of a scheduling group: run, its tasks ran; wait, it had none ready; starve, it had and "
    "the reactor ran others'."
)
_MEMORY: Final = "A shard's memory as Seastar's allocator divides it."
_MEMORY_OPS: Final = "Calls of Seastar's allocator."
_IO_OPS: Final = "Operations that went through an I/O queue."
_IO_BYTES: Final = "Bytes that went through an I/O queue."
_NETWORK: Final = "Bytes a shard sent or received."

REACTOR: Final[Table] = {
    "reactor_utilization": gauge(
        "reactor_utilization_ratio",
        "Share of its time that a reactor was busy, by its own account of some seconds.",
        divisor=100,
    ),
    "reactor_cpu_busy_ms": counter(
        "reactor_busy_seconds", "Time a reactor was busy.", divisor=MILLI
    ),
    "reactor_awake_time_ms_total": counter(
        "reactor_awake_seconds", "Time a reactor did not sleep.", divisor=MILLI
    ),
    "reactor_cpu_used_time_ms": counter(
        "reactor_cpu_seconds", "CPU time of a reactor's thread.", divisor=MILLI
    ),
    # Older Seastar subtracts two clocks: it can fall, and below zero it is written as 0.
    "reactor_cpu_steal_time_ms": counter(
        "reactor_steal_seconds",
        "Time a reactor wanted to run and something else ran: what shares its core, or its own "
        "thread for blocking calls; also system calls that blocked.",
        divisor=MILLI,
        held=True,
    ),
    "reactor_tasks_pending": gauge("reactor_tasks_pending", "Tasks waiting in a reactor's queues."),
    "reactor_tasks_processed": counter("reactor_tasks", "Tasks a reactor has run."),
    "reactor_polls": counter("reactor_polls", "Rounds of polling."),
    "reactor_aio_reads": counter("reactor_aio_ops", _AIO_OPS, "op", "read"),
    "reactor_aio_writes": counter("reactor_aio_ops", _AIO_OPS, "op", "write"),
    "reactor_aio_bytes_read": counter("reactor_aio_bytes", _AIO_BYTES, "op", "read"),
    "reactor_aio_bytes_write": counter("reactor_aio_bytes", _AIO_BYTES, "op", "write"),
    # The stall detector reports only some of the stalls that the histogram counts, often none.
    "reactor_stalls": (
        *counter("reactor_stalls", _STALLS),
        *histogram(
            "reactor_stall_seconds",
            "How long reactors did not get back to their event loop.",
            divisor=MICRO,
        ),
    ),
    "stall_detector_reported": (
        *counter("reactor_stall_reports", "Stalls that the stall detector wrote to the log."),
        Shown(f"{PREFIX}reactor_stalls_total", "counter", _STALLS, unless="reactor_stalls"),
    ),
    "reactor_sleep_time_ms_total": counter(
        "reactor_sleep_seconds", "Time a reactor slept.", divisor=MILLI, group="reactor"
    ),
    "reactor_timers_pending": gauge("reactor_timers_pending", "Timers set.", group="reactor"),
    "reactor_fsyncs": counter("reactor_fsyncs", "Calls of fsync.", group="reactor"),
    "reactor_io_threaded_fallbacks": counter(
        "reactor_threaded_fallbacks",
        "Operations that a reactor handed to its thread for blocking calls.",
        group="reactor",
    ),
    **{
        f"reactor_{source}": counter("reactor_faults", _FAULTS, "kind", kind, group="reactor")
        for source, kind in (
            ("aio_errors", "aio_error"),
            ("aio_outsizes", "aio_outsize"),
            ("aio_retries", "aio_retry"),
            ("abandoned_failed_futures", "abandoned_future"),
            ("cpp_exceptions", "exception"),
            ("internal_errors", "internal_error"),
            ("logging_failures", "logging_failure"),
        )
    },
    **{
        f"reactor_fstream_{source}": counter(f"reactor_fstream_{name}", text, group="reactor")
        for source, name, text in (
            ("reads", "reads", "Reads of file streams."),
            ("reads_blocked", "blocked_reads", "Reads of file streams that had to wait."),
            ("reads_aheads_discarded", "discarded_reads", "Reads ahead that nobody used."),
            ("read_bytes", "read_bytes", "Bytes read by file streams."),
            ("read_bytes_blocked", "blocked_read_bytes", "Bytes that file streams waited for."),
            ("reads_ahead_bytes_discarded", "discarded_bytes", "Bytes read ahead and not used."),
        )
    },
    "alien_total_received_messages": counter(
        "alien_received", "Messages a shard received from threads that are no reactors."
    ),
    "alien_total_sent_messages": counter(
        "alien_sent", "Messages sent to a shard by threads that are no reactors."
    ),
    "alien_receive_batch_queue_length": gauge(
        "alien_queue_length", "Messages from other threads in the last batch.", group="reactor"
    ),
    "network_bytes_sent": counter("network_bytes", _NETWORK, "direction", "sent"),
    "network_bytes_received": counter("network_bytes", _NETWORK, "direction", "received"),
}

SCHEDULER: Final[Table] = {
    "scheduler_runtime_ms": counter("scheduler_seconds", _SCHEDULER, "state", "run", divisor=MILLI),
    "scheduler_waittime_ms": counter(
        "scheduler_seconds", _SCHEDULER, "state", "wait", divisor=MILLI
    ),
    "scheduler_starvetime_ms": counter(
        "scheduler_seconds", _SCHEDULER, "state", "starve", divisor=MILLI
    ),
    "scheduler_time_spent_on_task_quota_violations_ms": counter(
        "scheduler_quota_violation_seconds",
        "Time that tasks of a scheduling group ran on after their quota ended.",
        divisor=MILLI,
    ),
    "scheduler_tasks_processed": counter(
        "scheduler_tasks", "Tasks of a scheduling group that have run.", group="scheduler"
    ),
    "scheduler_shares": gauge(
        "scheduler_shares", "Shares of a scheduling group.", group="scheduler"
    ),
    "scheduler_queue_length": gauge(
        "scheduler_queue_length", "Tasks of a scheduling group that wait.", group="scheduler"
    ),
}

MEMORY: Final[Table] = {
    "memory_allocated_memory": gauge("memory_bytes", _MEMORY, "state", "allocated"),
    "memory_free_memory": gauge("memory_bytes", _MEMORY, "state", "free"),
    "memory_malloc_failed": counter("memory_failures", "Allocations that failed."),
    "memory_cross_cpu_free_operations": counter(
        "memory_cross_cpu_frees", "Objects freed by another shard than allocated them."
    ),
    "memory_malloc_operations": counter(
        "memory_operations", _MEMORY_OPS, "op", "malloc", group="memory"
    ),
    "memory_free_operations": counter(
        "memory_operations", _MEMORY_OPS, "op", "free", group="memory"
    ),
    "memory_reclaims_operations": counter(
        "memory_operations", _MEMORY_OPS, "op", "reclaim", group="memory"
    ),
    "memory_malloc_live_objects": gauge("memory_objects", "Allocated objects.", group="memory"),
    "memory_oversized_allocs": counter(
        "memory_oversized_allocations", "Allocations above the warning size.", group="memory"
    ),
    "memory_total_memory": gauge("memory_size_bytes", "All memory of a shard.", group="memory"),
}

IO_QUEUE: Final[Table] = {
    "io_queue_total_read_ops": counter("io_queue_ops", _IO_OPS, "op", "read"),
    "io_queue_total_write_ops": counter("io_queue_ops", _IO_OPS, "op", "write"),
    "io_queue_total_read_bytes": counter("io_queue_bytes", _IO_BYTES, "op", "read"),
    "io_queue_total_write_bytes": counter("io_queue_bytes", _IO_BYTES, "op", "write"),
    "io_queue_total_delay_sec": counter(
        "io_queue_delay_seconds", "Time that operations spent in an I/O queue, summed."
    ),
    "io_queue_total_exec_sec": counter(
        "io_queue_exec_seconds", "Time that operations spent in the disk, summed."
    ),
    # What is cancelled takes back the time it has waited so far.
    "io_queue_starvation_time_sec": counter(
        "io_queue_starvation_seconds",
        "Time that a class had operations in an I/O queue and none at the disk.",
        held=True,
    ),
    "io_queue_queue_length": gauge("io_queue_length", "Operations in an I/O queue."),
    "io_queue_disk_queue_length": gauge("io_queue_disk_length", "Operations handed to the disk."),
    "io_queue_shares": gauge("io_queue_shares", "Shares of an I/O class.", group="io-queue"),
    "io_queue_delay": gauge(
        "io_queue_last_delay_seconds", "Time the last operation was queued.", group="io-queue"
    ),
    "io_queue_flow_ratio": gauge(
        "io_queue_flow_ratio",
        "Operations handed to the disk for one that it completed; absent while there are none.",
        group="io-queue",
    ),
    "io_queue_activations": counter(
        "io_queue_activations", "Times a class woke up in an I/O queue.", group="io-queue"
    ),
    "io_queue_consumption": counter(
        "io_queue_consumption", "Share of the disk that a class consumed, summed.", group="io-queue"
    ),
    "io_queue_adjusted_consumption": gauge(
        "io_queue_adjusted_consumption",
        "Consumption of a class as the queue weighs it, which is set back at times.",
        group="io-queue",
    ),
    "io_queue_total_split_ops": counter(
        "io_queue_split_ops", "Operations split before the queue.", group="io-queue"
    ),
    "io_queue_total_split_bytes": counter(
        "io_queue_split_bytes", "Bytes of operations split before the queue.", group="io-queue"
    ),
}
