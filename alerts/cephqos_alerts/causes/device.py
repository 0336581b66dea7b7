"""Its device is slow, or has stopped."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked, wanting
from cephqos_base import causes
from cephqos_base.recorded import PerOsd

DEVICE: Final = CauseEvidence(
    cause=causes.DEVICE,
    means="The OSD's device has become slow or has stopped.",
    seen="BlueStore holds transactions and completes none; or commits, reads or device requests are"
    " slow (longer than 40 ms on SSD, 150 ms on HDD, or five times their median of the last day)"
    " **and** the OSD does less than 40 % of the most it did in a day, in operations, and in bytes"
    " and requests of its device; or they take five times the median of the OSDs on the same media,"
    " of which there are at least three, and the OSD does not do more than 1.5 times what the"
    " median of them does, neither in operations nor in bytes of its device. (Scrub, trimming and"
    " the removal of pools are in no counter of operations; the device shows them.) Beyond 0.24 s"
    " on SSD, or 0.9 s on HDD, doing more than the median explains nothing any more: peers that"
    " wait for a failing OSD do little. A disk that serves 60 requests per second, and served at"
    " most 1,000 in a day, does what disks do: that it did more in sequence is no evidence. An SSD"
    " with less than half of the median capacity is of a slower kind, and not compared below"
    " 0.24 s. Slow commits do not count while the threads that commit spend half of their time"
    " waiting for a CPU",
    blind="a device that was slow since before the first scrape, in a cluster of fewer than three"
    " such OSDs; a device that is slow but still does its usual work is not a finding; flash of a"
    " slower kind whose capacity was never measured looks like a failing device while its"
    " reservation is violated",
    expr=ranked(wanting(PerOsd.DEVICE_FAILING), causes.DEVICE.rank),
)
