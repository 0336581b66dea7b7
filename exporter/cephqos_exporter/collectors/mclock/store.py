"""Work under way in BlueStore, behind the scheduler, where no class is known any more."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cephqos_exporter.collectors.counters import Loggers, figure, timed
from cephqos_exporter.families import Family, counter
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
    yield from _slow(bluestore, labels, not_understood)


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
