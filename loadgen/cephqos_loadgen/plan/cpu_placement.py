"""Which CPUs each OSD gets, by a strategy."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cephqos_base.errors import UsageError

STRATEGIES = ("default", "by_osd", "by_socket")


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU as lscpu has it."""

    cpu: int
    core: int
    socket: int


def parse_lscpu(text: str) -> list[Cpu]:
    """The output of `lscpu --parse=CPU,CORE,SOCKET`."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            cpu, core, socket = line.split(",")
            found.append(Cpu(int(cpu), int(core), int(socket or 0)))
    return found


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
    by_socket: each OSD's cores are spread evenly over the sockets, and the id says which socket
    comes first. A core with an excluded CPU is given to nobody.
    """
    excluded = frozenset(excluded)
    threads: dict[tuple[int, int], list[int]] = {}
    for entry in sorted(cpus, key=lambda c: c.cpu):
        threads.setdefault((entry.socket, entry.core), []).append(entry.cpu)
    threads = {core: own for core, own in threads.items() if excluded.isdisjoint(own)}
    free = {
        socket: [own for (s, _), own in sorted(threads.items()) if s == socket]
        for socket in sorted({socket for socket, _ in threads})
    }
    total = len(threads)
    if cores * len(osds) > total:
        raise UsageError(
            f"{len(osds)} OSDs with {cores} cores each need {cores * len(osds)} cores;"
            f" this host has {total}{' that are not excluded' if excluded else ''}"
        )
    sockets = list(free)
    found: dict[int, tuple[int, ...]] = {}
    for osd in osds:
        own: list[int] = []
        for n in range(cores):
            socket = _socket(strategy, sockets, free, osd, n)
            own += free[socket].pop(0)
        found[osd] = tuple(sorted(own))
    return found


def _socket(
    strategy: str, sockets: list[int], free: dict[int, list[list[int]]], osd: int, n: int
) -> int:
    wanted = 0
    if strategy == "by_osd":
        wanted = osd
    elif strategy == "by_socket":
        wanted = osd + n
    for offset in range(len(sockets)):
        socket = sockets[(wanted + offset) % len(sockets)]
        if free[socket]:
            return socket
    raise AssertionError("the caller has counted the cores")
