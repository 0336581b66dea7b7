"""Work under way in BlueStore, behind the scheduler, where no class is known any more."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import Labels, LabelText


def store_families(bluestore: Mapping[str, Any], labels: Labels) -> Iterable[Family]:
    """Work under way behind the scheduler, where BlueStore takes it without making it wait."""
    # Renamed in 17.x.
    commits = bluestore.get("txc_commit_lat") or bluestore.get("commit_lat")
    if commits is None:
        return
    text = (
        "Time that transactions of all classes took in BlueStore, summed over "
        "transactions. Its rate is how many were in progress on average (Little's law)."
    )
    base = labels.base
    yield single("cephqos_qos_store_seconds_total", "counter", text, base, commits["sum"])
    text = "Transactions of all classes that BlueStore committed."
    yield single("cephqos_qos_store_transactions_total", "counter", text, base, commits["avgcount"])
    yield from _reads(bluestore, base)
    yield from _slow(bluestore, labels)
    # The counters below are Ceph's own too, which not every setup keeps; rules need them.
    batches = bluestore.get("kv_commit_lat")
    if batches is not None:
        text = "Time that BlueStore's key-value commits took. Each commits a batch of transactions."
        yield single(
            "cephqos_qos_store_kv_commit_seconds_total", "counter", text, base, batches["sum"]
        )
        text = "Key-value commits of BlueStore."
        yield single(
            "cephqos_qos_store_kv_commits_total", "counter", text, base, batches["avgcount"]
        )


def _reads(bluestore: Mapping[str, Any], base: LabelText) -> Iterable[Family]:
    """How long reads wait for the device; what the caches answer does not come here."""
    waits = bluestore.get("read_wait_aio_lat")
    if waits is None:
        return
    text = "Time that BlueStore's reads waited for the device, summed over reads."
    name = "cephqos_qos_store_read_wait_seconds_total"
    yield single(name, "counter", text, base, waits["sum"])
    text = "Reads of BlueStore that waited for the device."
    yield single("cephqos_qos_store_read_waits_total", "counter", text, base, waits["avgcount"])


# Operations of BlueStore that took longer than its own bound, and their counters.
_SLOW: Final = (
    ("commit", "slow_committed_kv_count"),
    ("write", "slow_aio_wait_count"),
    ("read", "slow_read_wait_aio_count"),
)


def _slow(bluestore: Mapping[str, Any], labels: Labels) -> Iterable[Family]:
    family = Family(
        "cephqos_qos_store_slow_total",
        "counter",
        "Operations of BlueStore that took longer than its bound (bluestore_log_op_age, 5 s): "
        "commit, in the key-value store; write and read, on the device. Absent before 18.2.",
    )
    for op, counter in _SLOW:
        if counter in bluestore:
            family.add(labels.of("op", op), bluestore[counter])
    if family.samples:
        yield family
