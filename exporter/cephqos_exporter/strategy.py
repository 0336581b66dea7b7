"""Telling how the OSDs of a host were placed on its cores, from the CPUs that each may use."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cephqos_exporter.sysfs import Topology


def strategy_of(cpus: Mapping[str, frozenset[int]], topology: Topology) -> str:
    """`default`, `by_osd`, `by_socket`, `unpinned` or `other`, by OSD id and the CPUs it may use.

    On one socket the middle two cannot be told from anything else, so they never come out.
    """
    known = {osd: own & topology.core.keys() for osd, own in cpus.items()}
    homes = [known[osd] for osd in sorted(known, key=_by_number)]
    if not all(homes):
        return "other"
    if all(own == topology.core.keys() for own in homes):
        return "unpinned"
    if _consecutive(homes, topology):
        return "default"
    if topology.sockets > 1:
        if _alternating(homes, topology):
            return "by_osd"
        if all(_even(own, topology) for own in homes):
            return "by_socket"
    return "other"


def _by_number(osd: str) -> tuple[int, str]:
    return (int(osd), osd) if osd.isdigit() else (-1, osd)


def _consecutive(homes: Sequence[frozenset[int]], topology: Topology) -> bool:
    """Each OSD's cores are a run that starts where the one before ended."""
    following: int | None = None
    for own in homes:
        cores = {topology.core[cpu] for cpu in own}
        first, last = min(cores), max(cores)
        if last - first + 1 != len(cores) or following not in (None, first):
            return False
        following = last + 1
    return True


def _alternating(homes: Sequence[frozenset[int]], topology: Topology) -> bool:
    """Each OSD on one socket, its neighbour on another one."""
    sockets = [{topology.socket[cpu] for cpu in own} for own in homes]
    if len(homes) < 2 or any(len(own) > 1 for own in sockets):
        return False
    order = [own.pop() for own in sockets]
    return all(a != b for a, b in pairwise(order))


def _even(own: frozenset[int], topology: Topology) -> bool:
    """Spread over all sockets, none with more than one core above another."""
    per_socket = Counter(topology.socket[cpu] for cpu in own)
    figures = per_socket.values()
    return len(per_socket) == topology.sockets and max(figures) - min(figures) <= 1
