"""What slow OSDs have in common that the others have not: a host, a model, many groups, …

    model X (4 of 4 slow OSDs; 0 of 20 others)

An OSD is slow if clients wait at it far longer than at the median OSD. What slow ones share may be
chance: two of 24 OSDs are often on one host. So it is named only if as many of the same number,
drawn by lot, would share it in less than one case of twenty.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from math import comb
from statistics import median
from typing import Final

from cephqos_base.prometheus import OsdKey, Sample, of_osds, osd_of
from cephqos_base.series import DaemonSeries, DisksSeries
from cephqos_base.thresholds import THRESHOLDS

_LEAST_SLOW: Final = 2
_LEAST_OTHERS: Final = 3
_CHANCE: Final = 0.05
_MOST_NAMED: Final = 3

_OSDS_UP: Final = of_osds(f'{DaemonSeries.UP}{{ceph_daemon=~"osd.*"}}')
HOSTS: Final = f"max by (cluster, ceph_daemon, instance) {_OSDS_UP}"
# PromQL by name. `max`: several servers may scrape an OSD.
QUERIES: Final[Mapping[str, str]] = {
    "disks": of_osds(DisksSeries.INFO),
    "pgs": "max by (cluster, ceph_daemon) (ceph_osd_numpg)",
    "hosts": HOSTS,
}
# What is a trait of an OSD, by the label of its devices.
_OF_DEVICE: Final = {
    "model": "model",
    "firmware": "firmware",
    "write_cache": "write cache",
    "scheduler": "I/O scheduler",
}

# By OSD: what it has, such as ("host", "ceph3").
Traits = Mapping[OsdKey, Collection[tuple[str, str]]]


def traits_of(
    disks: Iterable[Sample],
    hosts: Iterable[Sample],
    pgs: Iterable[Sample] = (),
    places: Traits | None = None,
) -> Traits:
    """Traits by OSD. A device or controller is known by its host, as each has an sda."""
    host_of = {osd_of(labels): labels["instance"].rpartition(":")[0] for labels, _ in hosts}
    traits = defaultdict[OsdKey, set[tuple[str, str]]](set)
    for osd, host in host_of.items():
        traits[osd].add(("host", host))
    for labels, _ in disks:
        osd = osd_of(labels)
        host = host_of.get(osd, labels.get("instance", ""))
        for label, trait in _OF_DEVICE.items():
            if value := labels.get(label):
                traits[osd].add((trait, value))
        if value := labels.get("controller"):
            traits[osd].add(("controller", f"{host} {value}"))
        if labels.get("layer") == "disk" and labels.get("role") in ("db", "wal"):
            traits[osd].add((f"{labels['role'].upper()} device", f"{host} {labels['device']}"))
    for osd in _with_many({osd_of(labels): value for labels, value in pgs}):
        traits[osd].add(("placement groups", f"at least {THRESHOLDS.more:g} times the median"))
    for osd, own in (places or {}).items():
        traits[osd].update(own)
    return traits


def _with_many(groups: Mapping[OsdKey, float]) -> Collection[OsdKey]:
    """OSDs that have far more placement groups than the median one."""
    least = THRESHOLDS.more * median(groups.values()) if groups else 0.0
    return [osd for osd, count in groups.items() if count >= least > 0]


def slow_osds(seconds: Mapping[OsdKey, float]) -> Collection[OsdKey]:
    """OSDs at which clients wait far longer than at the median one, by seconds per second."""
    if not seconds:
        return ()
    usual = median(seconds.values())
    return {osd for osd, spent in seconds.items() if spent > THRESHOLDS.slower * usual}


def shared_by(slow: Collection[OsdKey], traits: Traits) -> str:
    """What they share, as one line; empty: nothing, or too little is known to say so."""
    known = {osd: set(own) for osd, own in traits.items()}
    ill = [osd for osd in known if osd in slow]
    others = [osd for osd in known if osd not in slow]
    if len(ill) < _LEAST_SLOW or len(others) < _LEAST_OTHERS:
        return ""
    found = []
    for trait in sorted(set.union(*(known[osd] for osd in ill))):
        of_ill = sum(trait in known[osd] for osd in ill)
        of_others = sum(trait in known[osd] for osd in others)
        if _by_chance(of_ill, len(ill), of_ill + of_others, len(known)) < _CHANCE:
            text = (
                f"{trait[0]} {trait[1]} ({of_ill} of {len(ill)} slow OSDs;"
                f" {of_others} of {len(others)} others)"
            )
            found.append((of_others / len(others) - of_ill / len(ill), text))
    return "; ".join(text for _, text in sorted(found)[:_MOST_NAMED])


def _by_chance(hits: int, drawn: int, marked: int, total: int) -> float:
    """The probability that as many or more of those drawn by lot are marked."""
    ways = sum(
        comb(marked, i) * comb(total - marked, drawn - i)
        for i in range(hits, min(drawn, marked) + 1)
    )
    return ways / comb(total, drawn)
