"""Telling how the OSDs of a host were placed on its cores, from the CPUs that each may use."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from cephqos_base.units import osd_order
from cephqos_exporter.sysfs import Topology


def strategy_of(
    cpus: Mapping[str, frozenset[int]],
    topology: Topology,
    excluded: frozenset[int] = frozenset(),
) -> str:
    """`default`, `by_osd`, `by_socket`, `unpinned` or `other`, by OSD id and the CPUs it may use.

    `excluded` are CPUs that no OSD is meant to use: OSDs are neighbours across them. On one socket
    `by_osd` and `by_socket` look like any other placement, so they are never the result. Where a
    socket has several NUMA nodes, each counts as a socket.
    """
    usable = topology.core.keys() - excluded
    known = {osd: own & usable for osd, own in cpus.items()}
    osds = sorted(known, key=osd_order)
    homes = [known[osd] for osd in osds]
    if not all(homes):
        return "other"
    if all(own == usable for own in homes):
        return "unpinned"
    if _consecutive(homes, topology, usable):
        return "default"
    if topology.places > 1:
        if _by_turns(osds, homes, topology):
            return "by_osd"
        if all(_even(own, topology) for own in homes):
            return "by_socket"
    return "other"


def _consecutive(
    homes: Sequence[frozenset[int]], topology: Topology, usable: AbstractSet[int]
) -> bool:
    """Each OSD's cores are a run that starts where the one before ended."""
    place = {core: n for n, core in enumerate(sorted({topology.core[cpu] for cpu in usable}))}
    following: int | None = None
    for own in homes:
        cores = {place[topology.core[cpu]] for cpu in own}
        first, last = min(cores), max(cores)
        if last - first + 1 != len(cores) or following not in (None, first):
            return False
        following = last + 1
    return True


def _by_turns(osds: Sequence[str], homes: Sequence[frozenset[int]], topology: Topology) -> bool:
    """Each OSD on one socket: its neighbour on another one, or even and odd ids on their own."""
    sockets = [{topology.place(cpu) for cpu in own} for own in homes]
    if len(homes) < 2 or any(len(own) > 1 for own in sockets):
        return False
    order = [own.pop() for own in sockets]
    if all(a != b for a, b in pairwise(order)):
        return True
    if not all(osd.isdigit() for osd in osds):
        return False
    pairs = {(int(osd) % topology.places, socket) for osd, socket in zip(osds, order, strict=True)}
    remainders = {remainder for remainder, _ in pairs}
    used = {socket for _, socket in pairs}
    return 1 < len(used) == len(remainders) == len(pairs)


def _even(own: frozenset[int], topology: Topology) -> bool:
    """Spread over all sockets, or one core on each of some; none has two cores more than another.

    Cores, not CPUs: where five cores of two threads each are spread, one socket has six CPUs and
    the other four. A single core is spread over nothing.
    """
    socket_of = {topology.core[cpu]: topology.place(cpu) for cpu in own}
    per_socket = Counter(socket_of.values())
    figures = per_socket.values()
    spread = min(topology.places, max(len(socket_of), 2))
    return len(per_socket) == spread and max(figures) - min(figures) <= 1
