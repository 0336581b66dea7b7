"""Its device is slow, or has stopped."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked, wanting
from cephqos_alerts.recording.conditions import DEVICE_FAILING
from cephqos_alerts.recording.limited import IO_LIMIT
from cephqos_base import causes
from cephqos_base.recorded import PerOsd
from cephqos_base.series import OSD, OSD_CLASS

# An OSD at its I/O limit that still does its usual work. The limit explains more than a capacity.
LIMITED_RANK: Final = 45

# Where a scrape is late, a rate is too low for a moment.
_LIMITED: Final = f"max by ({OSD}) (max_over_time({PerOsd.IO_LIMIT_REACHED}[@sustained@]))"


def _by_limit(condition: str, rank: int) -> str:
    return f'label_replace({ranked(wanting(condition), rank)}, "by", "{IO_LIMIT}", "", "")'


_EXPR: Final = f"""
{_by_limit(f"{DEVICE_FAILING} and on ({OSD}) {_LIMITED}", causes.DEVICE.rank)}
or on ({OSD_CLASS}) {ranked(wanting(DEVICE_FAILING), causes.DEVICE.rank)}
or on ({OSD_CLASS}) {_by_limit(_LIMITED, LIMITED_RANK)}
"""

DEVICE: Final = CauseEvidence(
    cause=causes.DEVICE,
    means="The OSD's device has become slow or has stopped.",
    seen="BlueStore holds transactions and completes none, and no limit stops its threads. Or"
    " commits, reads or device requests are slow, and the OSD's work does not explain it. Slow"
    " against its own day: longer than 40 ms on SSD, 150 ms on HDD, or five times the median of"
    " the last day. The OSD then does"
    " less than 40 % of the most it did in a day, in operations, and in bytes and requests of"
    " its device. Slow against others: five times the median of the OSDs on the same media,"
    " of which there are at least three. The OSD then does at most 1.5 times their median, in"
    " operations and in bytes of its device. (No counter of operations has scrub, trimming and"
    " the removal of pools; the device shows them.) Beyond 0.24 s on SSD, or 0.9 s on HDD,"
    " the work no longer matters: peers that wait for a failing OSD do little. A disk that"
    " serves 60 requests per second, and at most 1,000 per second in a day, is healthy:"
    " earlier sequential work is no evidence. An SSD with less than half of the median"
    " capacity is of a slower kind, and is not compared with others below 0.24 s. Slow commits"
    " do not count while the threads that commit spend half of their time waiting for a CPU,"
    ' or are stopped by a limit. `by="io_limit"` if the OSD\'s container or unit is at 90 % of'
    " its I/O limit",
    blind="a device that was slow since before the first scrape, in a cluster of fewer than three"
    " such OSDs; a device that is slow but still does its usual work. Flash of a slower kind whose"
    " capacity was never measured looks like a failing device while its reservation is violated",
    by=True,
    other_ranks=f"{LIMITED_RANK} where the OSD is at its I/O limit and does its usual work",
    expr=_EXPR,
)
