"""Recognises how the OSDs of a host were placed on its cores, from the CPUs that each may use.

A socket here is a `topology.place`: a socket, or one NUMA node of it if it has several.

    two sockets with cores 0-3 and 4-7, four OSDs:   osd.0  osd.1  osd.2  osd.3
    default (consecutive cores)                      0,1    2,3    4,5    6,7
    by_osd (OSDs in turn on the sockets)             0,1    4,5    2,3    6,7
    by_socket (each over all sockets)                0,4    1,5    2,6    3,7
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from cephqos_base.units import osd_order
from cephqos_exporter.sysfs import Topology


def strategy_of(
    cpus: Mapping[str, frozenset[int]], topology: Topology, excluded: frozenset[int] = frozenset()
) -> str:
    """`default`, `by_osd`, `by_socket`, `unpinned` or `other`, by OSD id and the CPUs it may use.

    `excluded`: CPUs that no OSD is meant to use; cores on both sides of them are consecutive. On a
    host with one socket the result is never `by_osd` or `by_socket`: they look alike there.
    """
    usable = topology.core.keys() - excluded
    osds = sorted(cpus, key=osd_order)
    cpus_in_order = [cpus[osd] & usable for osd in osds]
    if not all(cpus_in_order):
        return "other"
    if all(of_osd == usable for of_osd in cpus_in_order):
        return "unpinned"
    if _are_consecutive(cpus_in_order, topology, usable):
        return "default"
    if topology.places > 1:
        if _take_turns(osds, cpus_in_order, topology):
            return "by_osd"
        if all(_is_spread(of_osd, topology) for of_osd in cpus_in_order):
            return "by_socket"
    return "other"


def _are_consecutive(
    cpus_in_order: Sequence[frozenset[int]], topology: Topology, usable: AbstractSet[int]
) -> bool:
    """Whether each OSD's cores are a run that starts where the run of the OSD before ends."""
    usable_cores = sorted({topology.core[cpu] for cpu in usable})
    position = {core: number for number, core in enumerate(usable_cores)}
    expected_first: int | None = None
    for cpus in cpus_in_order:
        positions = {position[topology.core[cpu]] for cpu in cpus}
        first, last = min(positions), max(positions)
        if last - first + 1 != len(positions) or expected_first not in (None, first):
            return False
        expected_first = last + 1
    return True


def _take_turns(
    osds: Sequence[str], cpus_in_order: Sequence[frozenset[int]], topology: Topology
) -> bool:
    """Whether each OSD is on one socket, and either the next OSD is always on another one, or the
    socket follows from the id: even ids on one, odd ids on the other."""
    sockets_in_order = [{topology.place(cpu) for cpu in cpus} for cpus in cpus_in_order]
    if len(osds) < 2 or any(len(sockets) > 1 for sockets in sockets_in_order):
        return False
    order = [sockets.pop() for sockets in sockets_in_order]
    if all(socket != following for socket, following in pairwise(order)):
        return True
    if not all(osd.isdigit() for osd in osds):
        return False
    pairs = {(int(osd) % topology.places, socket) for osd, socket in zip(osds, order, strict=True)}
    remainders = {remainder for remainder, _ in pairs}
    used = {socket for _, socket in pairs}
    return 1 < len(used) == len(remainders) == len(pairs)  # one remainder for each socket


def _is_spread(cpus: frozenset[int], topology: Topology) -> bool:
    """Whether an OSD's cores are spread evenly: over all sockets, or one core on each of some. No
    socket has two cores more than another.

    Cores, not CPUs: where five cores of two threads each are spread, one socket has six CPUs and
    the other four. A single core is not spread.
    """
    socket_of = {topology.core[cpu]: topology.place(cpu) for cpu in cpus}
    cores_on = Counter(socket_of.values())
    expected_sockets = min(topology.places, max(len(socket_of), 2))
    evenly = max(cores_on.values()) - min(cores_on.values()) <= 1
    return len(cores_on) == expected_sockets and evenly
