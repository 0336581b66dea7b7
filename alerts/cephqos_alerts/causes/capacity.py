"""The OSD cannot do what it is configured for: its capacity is overstated."""

from typing import Final

from cephqos_alerts.causes.cause import COUNTED, CauseEvidence, ranked, times, wanting
from cephqos_alerts.recording.conditions import LARGE_OPS
from cephqos_base import causes
from cephqos_base.recorded import PerOsd
from cephqos_base.series import OSD, OSD_CLASS
from cephqos_base.thresholds import THRESHOLDS
from cephqos_base.units import KIB

_OVERSTATED: Final = wanting(f"{PerOsd.OVERSTATED} {COUNTED}")
# OVERSTATED is recorded in recording/wanting.py. If operations are large, bandwidth is the
# bottleneck, and the capacity in IOPS proves nothing.
_OVERSTATED_AND_WHY: Final = f"""
label_replace(
  ({_OVERSTATED}) and on ({OSD}) {LARGE_OPS},
  "by", "bandwidth", "", ""
)
or on ({OSD_CLASS}) ({_OVERSTATED})
"""

CAPACITY: Final = CauseEvidence(
    cause=causes.CAPACITY,
    means="The capacity that reservations are made from is more than the OSD can do.",
    seen=f"it is more than {times(THRESHOLDS.more)} times the most that was delivered in a day"
    ' while clients had demand and no limit held. `by="bandwidth"`: operations cost more than'
    f" {times(THRESHOLDS.twice)} normalised ops, or requests are larger than"
    f" {THRESHOLDS.large_requests / KIB:g} KiB",
    blind="an OSD that was slow all day",
    expr=ranked(_OVERSTATED_AND_WHY, causes.CAPACITY.rank),
)
