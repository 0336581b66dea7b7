"""Checks of the disks below the OSDs of a host: their write cache, and discards."""

from collections.abc import Iterator
from typing import Final

from cephqos_base.terminal import first_names
from cephqos_base.thresholds import THRESHOLDS
from cephqos_doctor.finding import Check, Finding, then_restart
from cephqos_doctor.host_facts import HostFacts, OsdFacts, Osds, of_each

_DISCARDS: Final = "bdev_enable_discard"


def _write_caches(facts: HostFacts) -> Iterator[Finding]:
    """One finding for a host: most disks come with their cache on, and many do well with it."""
    cached = {osd.osd: osd.cached_disks for osd in facts.osds if osd.cached_disks}
    if not cached:
        return
    osd, (disk, *_) = next(iter(cached.items()))
    disks = sorted({disk for disks in cached.values() for disk in disks})
    shown = first_names(disks)
    yield Finding(
        "this host",
        f"rotating disks keep writes in a volatile cache ({shown}): each commit waits until it is"
        " emptied, which takes some models long",
        f"echo 'write through' | tee /sys/block/{disk}/device/scsi_disk/*/cache_type   # on one"
        f" disk, of {osd}: if its commits in `ceph osd perf` get no shorter than those of the"
        " others, undo it with 'write back'",
    )


def _no_disk_known(facts: HostFacts) -> str:
    known = any(osd.cached_disks is not None for osd in facts.osds)
    return "" if known else "no rotating disk is known; SSDs do not say if a power cut loses writes"


def _discards_on(osd: OsdFacts) -> bool:
    return osd.options.get(_DISCARDS) == "true"


def _slow_discards(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    seconds = osd.discard_seconds
    if _discards_on(osd) and seconds is not None and seconds > THRESHOLDS.device_latency_ssd:
        yield Finding(
            osd.osd,
            f"discards are on, and since its host started one has taken {seconds * 1000:.0f} ms on"
            " average: reads and writes may wait for them",
            f"ceph config set {osd.osd} {_DISCARDS} false{then_restart(osd.osd)}. Compare it with"
            " the others for a day",
        )


def _no_discard_timed(facts: HostFacts) -> str:
    if not facts.osds or any(_DISCARDS not in osd.options for osd in facts.osds):
        return f"{_DISCARDS} is not known"
    on = [osd for osd in facts.osds if _discards_on(osd)]
    timed = not on or any(osd.discard_seconds is not None for osd in on)
    return "" if timed else "the kernel has counted no discards of these OSDs"


HOST_CHECKS: Final[tuple[Check[HostFacts], ...]] = (
    Check("write-cache", _write_caches, _no_disk_known),
    Check("discards", of_each(_slow_discards), _no_discard_timed),
)
