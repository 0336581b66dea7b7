"""Clusters on which `cephqos advise` is put to the test, and what it is asked there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, SCHEDULED

# About what an OSD of the lab does: replica writes and recovery together, and reads.
_CAPACITY: Final = 150
_READS: Final = 300
# Recovery let loose, as in the published studies.
_LOOSE: Final = {
    "osd_mclock_override_recovery_settings": "true",
    "osd_max_backfills": "1000",
    "osd_recovery_max_active": "1000",
    "osd_async_recovery_min_cost": "1",
}
_CUSTOM: Final = "custom"
_FOR_SCRUB: Final = {CLIENT: 0.1, RECOVERY: 0.05, BEST_EFFORT: 0.8}


@dataclass(frozen=True)
class Situation:
    """A cluster with clients beside a load, and whose figure is to become better."""

    name: str
    release: str
    media: Literal["ssd", "hdd"]
    start: str  # the profile at first; custom: nearly all for scrub
    better: Literal["client", "recovery"]
    load: Literal["recovery", "scrub"] = "recovery"  # the scenario beside this file
    capacity: int = _CAPACITY
    clients: Literal["randwrite", "randrw", "randread"] = "randwrite"

    @property
    def settings(self) -> Mapping[str, str]:
        """What is set at first, for all OSDs."""
        found = {f"osd_mclock_max_capacity_iops_{self.media}": str(self.capacity)}
        found |= _LOOSE if self.load == "recovery" else {}
        if self.start == _CUSTOM:
            for cls in SCHEDULED:
                of_class = {"res": _FOR_SCRUB[cls], "wgt": 1, "lim": 0}
                found |= {
                    f"osd_mclock_scheduler_{cls}_{it}": f"{v:g}" for it, v in of_class.items()
                }
        return found | {"osd_mclock_profile": self.start}

    def goals(self, now: float) -> Iterator[str]:
        """What is asked, less each time, until something is advised."""
        if self.better == "client":
            yield from (f"client at least {now * part:.0f} ops/s" for part in (1.25, 1.15, 1.08))
        else:
            yield from (f"recovery within {now * part:.0f}s" for part in (0.7, 0.8, 0.9))


SITUATIONS: Final = (
    Situation("clients-18-ssd", "reef", "ssd", "high_recovery_ops", "client"),
    Situation("clients-18-hdd", "reef", "hdd", "balanced", "client"),
    Situation("clients-20-ssd", "tentacle", "ssd", "balanced", "client"),
    Situation("clients-20-hdd", "tentacle", "hdd", "high_recovery_ops", "client"),
    Situation("recovery-18-ssd", "reef", "ssd", "high_client_ops", "recovery"),
    Situation("recovery-20-hdd", "tentacle", "hdd", "high_client_ops", "recovery", capacity=300),
    Situation("scrub-18-hdd", "reef", "hdd", _CUSTOM, "client", "scrub", _READS, "randread"),
    Situation("scrub-20-ssd", "tentacle", "ssd", _CUSTOM, "client", "scrub", _READS, "randread"),
    Situation("mixed-20-ssd", "tentacle", "ssd", "high_recovery_ops", "client", clients="randrw"),
    Situation("mixed-18-hdd", "reef", "hdd", "high_recovery_ops", "client", clients="randrw"),
    Situation("too-high-20-hdd", "tentacle", "hdd", "high_recovery_ops", "client", capacity=1000),
    Situation("too-high-18-ssd", "reef", "ssd", "high_recovery_ops", "client", capacity=1000),
    Situation("too-low-20-hdd", "tentacle", "hdd", "balanced", "client", capacity=25),
)

# What a reader of the page has to know of the runs that are kept.
NOTES: Final = {
    "clients-18-ssd": (
        "its first run is replaced. osd.0 was said to keep its reservations, and did not: it had"
        " been busy with reads of recovery, which proved nothing for clients that write. Since then"
        " a reservation is called kept only where the class was seen to get as much."
    ),
    "clients-20-hdd": (
        "its first runs are thrown away. Clients had 65 ops/s before and 24 after, while other"
        " programs used three quarters of the host's CPUs and up to a third of its disk. They used"
        " the CPUs in other situations, too."
    ),
}
