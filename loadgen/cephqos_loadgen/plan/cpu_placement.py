"""Which CPUs each OSD gets, by a strategy."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_base.errors import UsageError

STRATEGIES = ("default", "by_osd", "by_socket")
Socket = tuple[int, int]  # the socket, and the NUMA node in it


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU as lscpu shows it."""

    cpu: int
    core: int
    socket: Socket


LSCPU: Final = ("lscpu", "--parse=CPU,CORE,SOCKET,NODE")


def parse_lscpu(text: str) -> list[Cpu]:
    """The output of `LSCPU`: CPUs that are online. A machine may tell no socket and no node."""
    cpus = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            cpu, core, socket, node = line.split(",")
            cpus.append(Cpu(int(cpu), int(core), (int(socket or 0), int(node or 0))))
    return cpus


def place_osds(
    cpus: Sequence[Cpu],
    osds: Sequence[int],
    strategy: str,
    cores: int,
    excluded: Collection[int] = (),
) -> dict[int, tuple[int, ...]]:
    """CPUs per OSD. An OSD gets whole cores: all hardware threads of one, so that no sibling is
    shared with another OSD. UsageError where the cores do not suffice.

    default: cores in order; by_osd: on two sockets, even ids on one and odd ids on the other;
    by_socket: each OSD's cores are spread evenly over the sockets. The sockets take turns core by
    core, so the id says which one comes first. Where a socket has several NUMA nodes, each counts
    as a socket. A core with an excluded CPU is given to no OSD.
    """
    excluded = frozenset(excluded)
    core_threads: dict[tuple[Socket, int], list[int]] = {}  # by socket and core
    for entry in sorted(cpus, key=lambda entry: entry.cpu):
        core_threads.setdefault((entry.socket, entry.core), []).append(entry.cpu)
    free: dict[Socket, list[list[int]]] = {}  # by socket: the threads of each core
    for (socket, _), threads in sorted(core_threads.items()):
        if excluded.isdisjoint(threads):
            free.setdefault(socket, []).append(threads)
    total = sum(map(len, free.values()))
    if cores * len(osds) > total:
        raise UsageError(
            f"{len(osds)} OSDs with {cores} cores each need {cores * len(osds)} cores;"
            f" this host has {total}{' that are not excluded' if excluded else ''}"
        )
    places: dict[int, tuple[int, ...]] = {}
    for osd in osds:
        place: list[int] = []
        for n in range(cores):
            first = {"by_osd": osd, "by_socket": osd * cores + n}.get(strategy, 0)
            place += _next_core(free, first)
        places[osd] = tuple(sorted(place))
    return places


def _next_core(free: Mapping[Socket, list[list[int]]], first: int) -> list[int]:
    """Take a core from the socket `first`, or from the next one that has a core left."""
    sockets = list(free)
    for offset in range(len(sockets)):
        cores = free[sockets[(first + offset) % len(sockets)]]
        if cores:
            return cores.pop(0)
    raise AssertionError("the caller has counted the cores")
