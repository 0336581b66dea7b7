"""Why a class gets no more: the values of the label `cause`, with their words, ranks and colours.

Rules give the label and dashboards colour it, and neither imports the other: so this table is on
the lowest floor. What each cause rests on is in cephqos_alerts/causes/, one file each.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Cause:
    """A cause. Where several hold, the one of the highest rank leads.

    A failure that can be mended now goes before a state that needs a decision. Evidence for a cause
    goes before the absence of evidence for others.
    """

    name: str  # value of the label `cause`
    rank: int
    words: str  # on maps and in tables
    colour: str  # dashboards/cephqos_dashboards/theme.py says what it has to be

    def __str__(self) -> str:
        return self.name


DEVICE: Final = Cause("device", 90, "device", "#DB2B4E")
CPU: Final = Cause("cpu", 85, "CPU", "#B4527A")
LIMIT: Final = Cause("limit", 80, "limit", "#B58900")
ONE_SHARD: Final = Cause("one_shard", 75, "one shard", "#C265C4")
OTHER_CLASS: Final = Cause("other_class", 70, "other class", "#D6741C")
# Who waits for another OSD is not held up by the replica writes that fill its own.
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
