"""Work under way in BlueStore, behind the scheduler, where no class is known any more."""

from collections.abc import Iterable, Mapping
from typing import Any

from cephqos_exporter.labels import Labels
from cephqos_exporter.model import Family, single


def store_families(bluestore: Mapping[str, Any], labels: Labels) -> Iterable[Family]:
    """Work under way behind the scheduler, where BlueStore takes it without making it wait."""
    # Renamed in 17.x.
    commits = bluestore.get("txc_commit_lat") or bluestore.get("commit_lat")
    if commits is None:
        return
    text = (
        "Time that transactions of all classes took in BlueStore, summed over transactions: its "
        "rate is how many were under way on average (Little's law)."
    )
    base = labels.base
    yield single("cephqos_qos_store_seconds_total", "counter", text, base, commits["sum"])
    text = "Transactions of all classes that BlueStore committed."
    yield single("cephqos_qos_store_transactions_total", "counter", text, base, commits["avgcount"])
    # The counters below are Ceph's own too, which not every setup keeps; rules need them.
    batches = bluestore.get("kv_commit_lat")
    if batches is not None:
        text = "Time that BlueStore's key-value commits took, each of a batch of transactions."
        yield single(
            "cephqos_qos_store_kv_commit_seconds_total", "counter", text, base, batches["sum"]
        )
        text = "Key-value commits of BlueStore."
        yield single(
            "cephqos_qos_store_kv_commits_total", "counter", text, base, batches["avgcount"]
        )
