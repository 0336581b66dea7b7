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
    seen="BlueStore completes no transaction. Or commits, reads or requests take longer than"
    " 40 ms (SSD), 150 ms (HDD) or six times their median of the day, and the OSD does"
    " less than 40 % of its best day in operations, bytes and requests. Or they take six"
    " times the median of three peers or more, and the OSD does less than 1.5 times as"
    " much as they do (beyond 0.24 s or 0.9 s: in any case). Not: a disk that serves 60"
    " requests per second, an SSD with half of the capacity of its peers, commits whose"
    ' threads lack CPU. `by="io_limit"`: it is at 90 % of its I/O limit',
    blind="slow since before the first scrape, with fewer than three peers; slow, and it does"
    " its usual work",
    by=True,
    other_ranks=f"{LIMITED_RANK} where the OSD is at its I/O limit and does its usual work",
    expr=_EXPR,
)
