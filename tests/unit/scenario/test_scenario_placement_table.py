"""CPU plans against the sets of the published balancing tools, worked out by hand and by rule.

The study's tool takes OSDs one after the other: `osd` gives OSD i the next cores of socket i mod S,
`socket` gives it R div S cores of every socket and the rest of socket i mod S. Ceph's tool of today
does the same for `osd`; for `socket` it deals out the cores of the sockets in turn, one after the
other, without starting again for the next OSD. Both give hardware threads with their core.
"""

from collections.abc import Iterator
from itertools import product

import pytest

from cephqos_base.units import format_cpu_list, parse_cpu_list
from cephqos_exporter.collectors.strategy import strategy_of
from cephqos_exporter.sysfs import Topology
from cephqos_loadgen.plan.cpu_placement import Cpu, parse_lscpu, place_osds

SOCKETS, CORES = (1, 2, 4), 28  # of each socket


def machine(
    sockets: int, cores: int, threads: int, *, nodes: int = 1, offline: str = ""
) -> list[Cpu]:
    """All first threads of socket 0, of socket 1, then the second threads, as most servers."""
    total = sockets * cores
    lines = []
    for thread, core in product(range(threads), range(total)):
        node = core * sockets * nodes // total
        lines.append(f"{thread * total + core},{core},{core // cores},{node}")
    gone = set(parse_cpu_list(offline)) if offline else set()
    return parse_lscpu("\n".join(line for n, line in enumerate(lines) if n not in gone))


def with_threads(cores: Iterator[int], threads: int, total: int) -> tuple[int, ...]:
    return tuple(sorted(core + total * thread for core in cores for thread in range(threads)))


def of_one_socket(osd: int, sockets: int, reactors: int) -> Iterator[int]:
    """`osd`, of both tools: OSDs before it on the same socket are osd div S."""
    first = osd % sockets * CORES + osd // sockets * reactors
    yield from range(first, first + reactors)


def of_all_sockets_in_turn(osd: int, sockets: int, reactors: int) -> Iterator[int]:
    """`socket`, of Ceph's tool of today: the cores are dealt out one by one."""
    for dealt in range(osd * reactors, (osd + 1) * reactors):
        yield dealt % sockets * CORES + dealt // sockets


def of_all_sockets_and_the_rest_of_one(osd: int, sockets: int, reactors: int) -> Iterator[int]:
    """`socket`, of the study's tool."""
    each, rest = divmod(reactors, sockets)
    for socket in range(sockets):
        with_the_rest = sum(1 for before in range(osd) if before % sockets == socket)
        first = socket * CORES + osd * each + with_the_rest * rest
        yield from range(first, first + each + (rest if osd % sockets == socket else 0))


def table() -> Iterator[tuple[int, int, int, int]]:
    """Sockets, threads, OSDs, reactors: where every socket has the cores that its OSDs need."""
    for sockets, threads, osds, reactors in product(SOCKETS, (1, 2), range(1, 17), range(1, 9)):
        if -(-osds // sockets) * reactors <= CORES:
            yield sockets, threads, osds, reactors


def test_plans_are_the_sets_of_the_tools_on_every_machine_with_room() -> None:
    compared = 0
    for sockets, threads, osds, reactors in table():
        cpus = machine(sockets, CORES, threads)
        total = sockets * CORES
        rules = [("by_osd", of_one_socket), ("by_socket", of_all_sockets_in_turn)]
        if reactors % sockets <= 1:  # where the study's tool spreads an OSD evenly
            rules.append(("by_socket", of_all_sockets_and_the_rest_of_one))
        for strategy, rule in rules:
            expected = {
                osd: with_threads(rule(osd, sockets, reactors), threads, total)
                for osd in range(osds)
            }
            row = (strategy, sockets, threads, osds, reactors)
            assert place_osds(cpus, range(osds), strategy, reactors) == expected, row
            compared += 1
    assert compared > 1000


@pytest.mark.parametrize(
    ("cpus", "strategy", "osds", "reactors", "excluded", "expected"),
    [
        # As study E: 8 OSDs of 5 reactors, two sockets of 56 CPUs, here 28 cores with two threads.
        (
            machine(2, 28, 2),
            "by_osd",
            8,
            5,
            "",
            "0-4,56-60 28-32,84-88 5-9,61-65 33-37,89-93 10-14,66-70 38-42,94-98 15-19,71-75"
            " 43-47,99-103",
        ),
        (
            machine(2, 28, 2),
            "by_socket",
            8,
            5,
            "",
            "0-2,28-29,56-58,84-85 3-4,30-32,59-60,86-88 5-7,33-34,61-63,89-90"
            " 8-9,35-37,64-65,91-93 10-12,38-39,66-68,94-95 13-14,40-42,69-70,96-98"
            " 15-17,43-44,71-73,99-100 18-19,45-47,74-75,101-103",
        ),
        # The examples of Ceph's tool: four logical CPUs are two cores of two threads.
        (machine(2, 4, 2), "by_osd", 3, 2, "", "0-1,8-9 4-5,12-13 2-3,10-11"),
        (machine(2, 4, 2), "by_socket", 3, 2, "", "0,4,8,12 1,5,9,13 2,6,10,14"),
        (machine(1, 8, 2), "by_socket", 3, 2, "", "0-1,8-9 2-3,10-11 4-5,12-13"),
        # CPUs that are kept free: both threads, or the first one only. fio has the last cores.
        (
            machine(2, 28, 2),
            "by_osd",
            4,
            3,
            "0,56,28,84",
            "1-3,57-59 29-31,85-87 4-6,60-62 32-34,88-90",
        ),
        (machine(2, 28, 2), "by_osd", 2, 3, "1", "0,2-3,56,58-59 28-30,84-86"),
        (machine(2, 28, 2), "by_socket", 2, 3, "0-1,56-57", "2-3,28,58-59,84 4,29-30,60,85-86"),
        (machine(2, 4, 1), "by_osd", 2, 3, "3,7", "0-2 4-6"),
        # CPUs that are offline: a whole core, a sibling.
        (machine(2, 4, 2, offline="1,9"), "by_osd", 2, 2, "", "0,2,8,10 4-5,12-13"),
        (machine(2, 4, 2, offline="8"), "by_osd", 2, 2, "", "0-1,9 4-5,12-13"),
        # NUMA nodes below a socket are what the tools call sockets.
        (machine(1, 16, 1, nodes=4), "by_osd", 4, 2, "", "0-1 4-5 8-9 12-13"),
        (machine(2, 8, 1, nodes=2), "by_socket", 2, 4, "", "0,4,8,12 1,5,9,13"),
        # Where a socket has not enough cores left, the next one gives them.
        (machine(2, 4, 1), "by_osd", 3, 2, "0-1", "2-3 4-5 6-7"),
    ],
)
def test_a_plan_is_the_set_that_was_worked_out_for_the_machine(
    cpus: list[Cpu], strategy: str, osds: int, reactors: int, excluded: str, expected: str
) -> None:
    without = parse_cpu_list(excluded) if excluded else ()
    placed = place_osds(cpus, range(osds), strategy, reactors, without)
    assert " ".join(format_cpu_list(own) for own in placed.values()) == expected


def test_a_plan_by_socket_is_even_where_the_studys_tool_gives_the_rest_to_one_socket() -> None:
    cpus = machine(4, CORES, 1)
    assert tuple(of_all_sockets_and_the_rest_of_one(0, 4, 3)) == (0, 1, 2)
    placed = place_osds(cpus, range(4), "by_socket", 3)
    assert placed == {0: (0, 28, 56), 1: (1, 29, 84), 2: (2, 57, 85), 3: (30, 58, 86)}


def recognised(cpus: list[Cpu], placed: dict[int, tuple[int, ...]]) -> str:
    topology = Topology(
        node={cpu.cpu: cpu.socket[1] for cpu in cpus},
        core={cpu.cpu: cpu.core for cpu in cpus},
        socket={cpu.cpu: cpu.socket[0] for cpu in cpus},
    )
    return strategy_of({str(osd): frozenset(own) for osd, own in placed.items()}, topology)


def test_the_exporter_recognises_every_plan_of_the_table() -> None:
    for sockets, threads, osds, reactors in table():
        if osds < 2 or sockets == 1:  # nothing tells the strategies apart
            continue
        cpus = machine(sockets, CORES, threads)
        for strategy in ("by_osd", "by_socket") if reactors > 1 else ("by_osd",):
            placed = place_osds(cpus, range(osds), strategy, reactors)
            row = (strategy, sockets, threads, osds, reactors)
            assert recognised(cpus, placed) == strategy, row


@pytest.mark.parametrize("strategy", ["by_osd", "by_socket"])
def test_the_exporter_recognises_plans_over_the_numa_nodes_of_one_socket(strategy: str) -> None:
    cpus = machine(1, 16, 2, nodes=4)
    placed = place_osds(cpus, range(4), strategy, 3)
    assert recognised(cpus, placed) == strategy
