"""The OSD's device is slow, or has stopped.

DEVICE_FAILING (recording/failing.py) decides that. An I/O limit of the OSD's container looks like a
slow device, so it is named in `by`.
"""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, percent, ranked, share, times, wanting
from cephqos_alerts.recording.conditions import DEVICE_FAILING
from cephqos_alerts.recording.limited import IO_LIMIT
from cephqos_base import causes
from cephqos_base.judge import BOUNDS
from cephqos_base.recorded import PerOsd
from cephqos_base.series import OSD, OSD_CLASS
from cephqos_base.thresholds import THRESHOLDS

# An OSD at its I/O limit that still does its usual work. The limit explains more than a capacity.
LIMITED_RANK: Final = 45

# At its I/O limit within the last minute: after a late scrape, a rate is too low for a moment.
_LIMITED: Final = f"max by ({OSD}) (max_over_time({PerOsd.IO_LIMIT_REACHED}[@sustained@]))"


def _by_limit(condition: str, rank: int) -> str:
    return f'label_replace({ranked(wanting(condition), rank)}, "by", "{IO_LIMIT}", "", "")'


_EXPR: Final = f"""
{_by_limit(f"{DEVICE_FAILING} and on ({OSD}) {_LIMITED}", causes.DEVICE.rank)}
or on ({OSD_CLASS}) {ranked(wanting(DEVICE_FAILING), causes.DEVICE.rank)}
or on ({OSD_CLASS}) {_by_limit(_LIMITED, LIMITED_RANK)}
"""

_SSD: Final = THRESHOLDS.device_latency_ssd
_HDD: Final = THRESHOLDS.device_latency_hdd
_FAR_ABOVE: Final = times(THRESHOLDS.far_above)

DEVICE: Final = CauseEvidence(
    cause=causes.DEVICE,
    means="The OSD's device has become slow or has stopped.",
    seen="BlueStore completes no transaction. Or commits, reads or requests take longer than"
    f" {_SSD * 1000:g} ms (SSD), {_HDD * 1000:g} ms (HDD) or {_FAR_ABOVE} times their median of the"
    f" day, and the OSD does less than {percent(THRESHOLDS.far_less)} of its best day in"
    f" operations, bytes and requests. Or they take {_FAR_ABOVE} times the median of three peers or"
    f" more, and the OSD does less than {times(THRESHOLDS.more)} times as much as they do (beyond"
    f" {THRESHOLDS.far_above * _SSD:g} s or {THRESHOLDS.far_above * _HDD:g} s: in any case). Not: a"
    f" disk that serves {THRESHOLDS.disk_requests:g} requests per second, an SSD with"
    f" {share(THRESHOLDS.half)} of the capacity of its peers, commits whose threads lack CPU."
    f' `by="io_limit"`: it is at {percent(BOUNDS.reached)} of its I/O limit',
    blind="slow since before the first scrape, with fewer than three peers; slow, and it does"
    " its usual work",
    by=True,
    other_ranks=f"{LIMITED_RANK} where the OSD is at its I/O limit and does its usual work",
    expr=_EXPR,
)
