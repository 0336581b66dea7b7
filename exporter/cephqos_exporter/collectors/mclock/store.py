"""Work under way in BlueStore, behind the scheduler, where no class is known any more."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cephqos_exporter.collectors.counters import Loggers, average, figure, timed
from cephqos_exporter.families import Family, counter, single
from cephqos_exporter.labels import Labels
from cephqos_exporter.not_understood import NotUnderstood

# Of each average: the family of its sum, and that of its count.
_TIMED: Final = {
    "txc_commit_lat": (
        (
            "cephqos_qos_store_seconds_total",
            "Time that transactions of all classes took in BlueStore, summed over "
            "transactions. Its rate is how many were in progress on average (Little's law).",
        ),
        (
            "cephqos_qos_store_transactions_total",
            "Transactions of all classes that BlueStore committed.",
        ),
    ),
    # How long reads wait for the device; what the caches answer does not come here.
    "read_wait_aio_lat": (
        (
            "cephqos_qos_store_read_wait_seconds_total",
            "Time that BlueStore's reads waited for the device, summed over reads.",
        ),
        (
            "cephqos_qos_store_read_waits_total",
            "Reads of BlueStore that waited for the device.",
        ),
    ),
    # Ceph's own counters too, which not every setup keeps; rules need them.
    "kv_commit_lat": (
        (
            "cephqos_qos_store_kv_commit_seconds_total",
            "Time that BlueStore's key-value commits took. Each commits a batch of transactions.",
        ),
        ("cephqos_qos_store_kv_commits_total", "Key-value commits of BlueStore."),
    ),
}


def store_families(
    loggers: Loggers, labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    """Work under way behind the scheduler, where BlueStore takes it without making it wait."""
    bluestore = loggers.get("bluestore")
    if bluestore is None:
        if loggers.get("filestore") is None:
            not_understood.add("counter", "bluestore")
        return
    for key, families in _TIMED.items():
        # Renamed in 17.x.
        which = "commit_lat" if key == "txc_commit_lat" and "commit_lat" in bluestore else key
        yield from timed(bluestore, which, families, labels.base, not_understood)
    yield from _own_writes(bluestore, labels, not_understood)
    yield from _slow(bluestore, labels, not_understood)
    bluefs = loggers.get("bluefs")
    if bluefs is None:
        not_understood.add("counter", "bluefs")
    else:
        yield from _space_of_the_db(bluefs, labels, not_understood)


# What BlueStore itself writes to the device, beside the key-value store, and its counters.
_OWN_WRITES: Final = (
    ("direct", "state_aio_wait_lat"),
    ("deferred", "state_deferred_aio_wait_lat"),
)


def _own_writes(
    bluestore: Mapping[str, Any], labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    seconds = counter(
        "cephqos_qos_store_own_write_seconds_total",
        "Time that transactions waited for data that BlueStore writes to the device itself, beside "
        "its key-value store: direct, before the commit; deferred, after it. A device that is slow "
        "is slow for these, too.",
    )
    waits = counter(
        "cephqos_qos_store_own_writes_total",
        "Transactions that waited for such writes. Those without direct writes count as direct, "
        "with a time near 0.",
    )
    for write, key in _OWN_WRITES:
        found = average(bluestore, key, not_understood)
        if found is not None:
            text = labels.of("write", write)
            seconds.add(text, found[0])
            waits.add(text, found[1])
    yield from (seconds, waits)


def _space_of_the_db(
    bluefs: Mapping[str, Any], labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    """Where the database of the key-value store lies, and whether it finds room there."""
    slow_total = figure(bluefs, "slow_total_bytes", not_understood)
    if slow_total:  # only with a device for the DB
        for key, (name, text) in _DB_BYTES.items():
            value = figure(bluefs, key, not_understood)
            if value is not None:
                yield single(name, "gauge", text, labels.base, value)
    fallbacks = figure(bluefs, "alloc_slow_size_fallback", not_understood)
    if fallbacks is not None:
        yield single(*_FALLBACKS, labels.base, fallbacks)


_DB_BYTES: Final = {
    "slow_used_bytes": (
        "cephqos_qos_store_spilled_bytes",
        "Bytes of the database that lie on the slow device, as its own device had no room for "
        "them (spillover). Absent without a device for the DB.",
    ),
    "db_used_bytes": (
        "cephqos_qos_store_db_used_bytes",
        "Bytes of the database on the device for the DB. Absent without such a device.",
    ),
}
_FALLBACKS: Final = (
    "cephqos_qos_store_fragmented_allocations_total",
    "counter",
    "Allocations of the database that found no free piece of its usual size (64 KiB) on the "
    "device it shares with data, and took many small ones: the free space is fragmented.",
)


# Operations of BlueStore that took longer than its own bound, and their counters.
_SLOW: Final = (
    ("commit", "slow_committed_kv_count"),
    ("write", "slow_aio_wait_count"),
    ("read", "slow_read_wait_aio_count"),
)


def _slow(
    bluestore: Mapping[str, Any], labels: Labels, not_understood: NotUnderstood
) -> Iterable[Family]:
    family = counter(
        "cephqos_qos_store_slow_total",
        "Operations of BlueStore that took longer than its bound (bluestore_log_op_age, 5 s): "
        "commit, in the key-value store; write and read, on the device. Absent before 18.2.",
    )
    if not any(key in bluestore for _, key in _SLOW):
        return
    for op, key in _SLOW:
        value = figure(bluestore, key, not_understood)
        if value is not None:
            family.add(labels.of("op", op), value)
    yield family
