"""The OSD cannot do what it is configured for."""

from typing import Final

from cephqos_alerts.causes.cause import COUNTED, CauseEvidence, ranked, wanting
from cephqos_alerts.recording.conditions import LARGE_OPS
from cephqos_base import causes
from cephqos_base.recorded import PerOsd
from cephqos_base.series import OSD, OSD_CLASS

_OVERSTATED: Final = wanting(f"{PerOsd.OVERSTATED} {COUNTED}")
# If operations are large, bandwidth is the bottleneck, and the capacity in IOPS proves nothing.
_EITHER: Final = f"""
label_replace(
  ({_OVERSTATED}) and on ({OSD}) {LARGE_OPS},
  "by", "bandwidth", "", ""
)
or on ({OSD_CLASS}) ({_OVERSTATED})
"""

CAPACITY: Final = CauseEvidence(
    cause=causes.CAPACITY,
    means="The capacity that reservations are made from is more than the OSD can do.",
    seen="it is more than 1.5 times the most that was delivered in a day while clients had"
    ' demand and no limit held. `by="bandwidth"`: operations cost more than two'
    " normalised ops, or requests are larger than 32 KiB",
    blind="an OSD that was slow all day",
    expr=ranked(_EITHER, causes.CAPACITY.rank),
)
