"""Why a class gets less than its reservation: the values of the label `cause`.

Rules set the label and dashboards colour it, and neither imports the other. So this table is in the
lowest package. The evidence for each cause is in cephqos_alerts/causes/, one file each.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Cause:
    """A cause. Where there is evidence for several, the one of the highest rank is shown first.

    Failures that can be mended now have the highest ranks (device, CPU). States that need a
    decision come below (capacity), and last the lack of evidence (unknown).
    """

    name: str  # value of the label `cause`
    rank: int
    words: str  # for people, on maps and in tables
    colour: str  # dashboards/cephqos_dashboards/theme.py says which colours will do

    def __str__(self) -> str:
        return self.name


DEVICE: Final = Cause("device", 90, "device", "#DB2B4E")
CPU: Final = Cause("cpu", 85, "CPU", "#B4527A")
LIMIT: Final = Cause("limit", 80, "limit", "#B58900")
ONE_SHARD: Final = Cause("one_shard", 75, "one shard", "#C265C4")
OTHER_CLASS: Final = Cause("other_class", 70, "other class", "#D6741C")
# Above REPLICA_WRITES: operations that wait for another OSD are not held up by the replica writes
# that fill this one.
OTHER_OSD: Final = Cause("other_osd", 65, "other OSD", "#7A6FF0")
NETWORK: Final = Cause("network", 62, "network", "#2E8BC0")
REPLICA_WRITES: Final = Cause("replica_writes", 60, "replica writes", "#767778")
CAPACITY: Final = Cause("capacity", 40, "capacity", "#4C8C2B")
UNKNOWN: Final = Cause("unknown", 1, "unknown", "#9A6A4B")

# Most urgent first.
CAUSES: Final = (
    *(DEVICE, CPU, LIMIT, ONE_SHARD, OTHER_CLASS),
    *(OTHER_OSD, NETWORK, REPLICA_WRITES, CAPACITY, UNKNOWN),
)
