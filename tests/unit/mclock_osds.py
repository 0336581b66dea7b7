"""OSDs under mClock and WPQ, policies for them, and the names of what is shown of them."""

from typing import Any

import yaml

from cephqos_base import yamlfile
from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.families import Family
from cephqos_exporter.qos.policy import parse_policy

from .osd_views import OSD, RecordedOsd, values

MIB = 1024 * 1024
HISTOGRAM_DUMP = "perf histogram dump"
DONE = "cephqos_qos_normalised_ops_total"
DELIVERED = "cephqos_qos_delivered_normalised_ops_total"
RESERVED = "cephqos_qos_reservation_normalised_ops_per_second"
LIMITED = "cephqos_qos_limit_normalised_ops_per_second"
CAPACITY = "cephqos_qos_capacity_normalised_ops_per_second"
LAG = "cephqos_qos_reservation_lag_seconds"
HDD_COST_PER_IO = 150 * MIB / 315


def info(families: list[Family]) -> dict[str, str]:
    """The labels of the info series that are not every series'."""
    (text,) = values(families, "cephqos_qos_scheduler_info")
    pairs = [pair.split("=", 1) for pair in text.split(",")]
    return {key: quoted.strip('"') for key, quoted in pairs if key not in OSD.labels}


def pacific_mclock() -> RecordedOsd:
    """A 16.2 OSD under mClock, with the options as one printed them, and its empty queue dump."""
    osd = RecordedOsd("pacific")
    osd.replies["dump_op_pq_state"] = {f"OSD:ShardedOpWQ:{i}": {} for i in range(5)}
    osd.set_option("osd_op_queue", "mclock_scheduler", "file")
    osd.set_option("osd_mclock_max_capacity_iops_hdd", 32940.204799)
    for cls, res, wgt, lim in (
        ("client", 3294, 2, 999999),
        ("background_recovery", 1647, 1, 6588),
        ("background_best_effort", 1647, 2, 999999),
    ):
        option = f"osd_mclock_scheduler_{cls}"
        for suffix, number in (("res", res), ("wgt", wgt), ("lim", lim)):
            osd.set_option(f"{option}_{suffix}", number, "override")
    return osd


def four_shards(osd: RecordedOsd) -> RecordedOsd:
    """Set by hand, so that their number tells nothing of the device."""
    (body,) = osd.replies["dump_op_pq_state"].values()
    osd.replies["dump_op_pq_state"] = {f"OSD:ShardedOpWQ:{i}": body for i in range(4)}
    osd.set_option("osd_op_num_shards", 4, "file")
    return osd


def policy(*targets: dict[str, Any]) -> MclockCollector:
    return MclockCollector(
        policy=parse_policy(
            yamlfile.parse(yaml.safe_dump({"version": 1, "targets": [*targets]}), "p.yml")
        )
    )


OSD_TARGET = {"class": "client", "scope": "osd", "reservation": 0.5, "limit": 0.9}
CLUSTER_TARGET = {"class": "client", "scope": "cluster", "reservation": 0.5, "baseline": 60000}
