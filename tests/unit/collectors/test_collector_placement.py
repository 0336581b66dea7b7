"""The placement collector and its guess at the strategy, on machines of one and two sockets."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil
import pytest
from tests.replay.host_tree import FakeThread, HostTree, example_host

from cephqos_base.units import parse_cpu_list
from cephqos_exporter.collectors.disks import DisksCollector
from cephqos_exporter.collectors.placement import PlacementCollector, node_memory
from cephqos_exporter.collectors.strategy import strategy_of
from cephqos_exporter.collectors.threads import ThreadsCollector
from cephqos_exporter.daemon import Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels
from cephqos_exporter.procfs import Descriptors
from cephqos_exporter.sampler import ThreadSamples
from cephqos_exporter.sysfs import Topology, read_topology

TWO_SOCKETS = "0-27,56-83"  # node 0 of two sockets of 28 cores with two threads each


@pytest.fixture(autouse=True)
def _every_scrape_looks_at_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cephqos_exporter.collectors.placement._SCAN_SECONDS", 0.0)


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    """Two sockets of 28 cores, two hardware threads each."""
    host = HostTree(tmp_path)
    host.cpus(sockets=2, cores=28, smt=2)
    host.process(1, [FakeThread(name="systemd", allowed="0-111")])
    return host


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> Topology:
    """That of the same two sockets."""
    host = HostTree(tmp_path_factory.mktemp("host"))
    host.cpus(sockets=2, cores=28, smt=2)
    return read_topology(host.host.sys)


def collector(*, excluded_cpus: Sequence[int] = (), **options: float) -> PlacementCollector:
    # Written files that stay open would be read as they were before they were rewritten.
    return PlacementCollector(
        samples=ThreadSamples(descriptors=Descriptors(0), switches_interval=0),
        memory_interval=options.pop("memory_interval", 0),
        per_cpu=bool(options.pop("per_cpu", 0)),
        excluded_cpus=excluded_cpus,
    )


def view(host: Host, osd: int = 0, time: float = 1000.0, *, pid: int | None = None) -> DaemonView:
    daemon = Daemon("osd", str(osd), "c", Path(f"/run/{osd}.asok"), pid or 4000 + 100 * osd)
    return DaemonView(daemon, render_labels(daemon.labels), {}, {}, time, host)


def samples(families: Iterable[Family]) -> dict[str, float]:
    return {
        f"{family.name}{{{labels}}}".replace(',cluster="c"', "").replace("ceph_daemon=", ""): value
        for family in families
        for _, labels, value in family.samples
    }


def scrape(
    placement: PlacementCollector, tree: HostTree, osds: Sequence[int], time: float = 1000.0
) -> dict[str, float]:
    found: dict[str, float] = {}
    for osd in osds:
        found |= samples(placement.collect(view(tree.host, osd, time)))
    return found | samples(placement.finish())


def test_the_cpus_of_an_osd_and_their_nodes(tree: HostTree) -> None:
    tree.process(
        4000,
        [
            FakeThread(name="ceph-osd", cpu=3, allowed=TWO_SOCKETS),
            FakeThread(name="tp_osd_tp", cpu=60, allowed=TWO_SOCKETS),
            FakeThread(name="tp_osd_tp", cpu=60, allowed=TWO_SOCKETS),
            FakeThread(name="tp_osd_tp", cpu=30, allowed=TWO_SOCKETS),
        ],
    )
    found = scrape(collector(), tree, [0])
    assert found['cephqos_placement_info{"osd.0",cpus="0-27,56-83",nodes="0"}'] == 1
    assert found['cephqos_placement_cpus_allowed{"osd.0"}'] == 56
    assert found['cephqos_placement_cpus_used{"osd.0"}'] == 3
    assert found['cephqos_placement_threads{"osd.0",node="0"}'] == 3
    assert found['cephqos_placement_threads{"osd.0",node="1"}'] == 1
    assert not [key for key in found if "reactor" in key or "memory" in key or "cpu=" in key]


def test_threads_by_cpu_on_request(tree: HostTree) -> None:
    tree.process(4000, [FakeThread(name="ceph-osd", cpu=3), FakeThread(name="log", cpu=3)])
    found = scrape(collector(per_cpu=1), tree, [0])
    assert found['cephqos_placement_cpu_threads{"osd.0",cpu="3"}'] == 2


def test_moving_an_osd_shows_in_the_next_scrape(tree: HostTree) -> None:
    placement = collector()
    tree.process(4000, [FakeThread(name="ceph-osd", allowed="0-111", user=1, run_ns=1)])
    scrape(placement, tree, [0])
    tree.process(4000, [FakeThread(name="ceph-osd", allowed="28-55", cpu=28, user=2, run_ns=2)])
    found = scrape(placement, tree, [0], 1015)
    assert found['cephqos_placement_info{"osd.0",cpus="28-55",nodes="1"}'] == 1
    assert found['cephqos_placement_threads{"osd.0",node="0"}'] == 0


def test_reactors_by_number_and_cpu(tree: HostTree) -> None:
    tree.crimson_osd(4000, 0, (0, 1, 28))
    found = scrape(collector(), tree, [0])
    cpus = [found[f'cephqos_placement_reactor_cpu{{"osd.0",reactor="{n}"}}'] for n in range(3)]
    assert cpus == [0, 1, 28]


def test_two_reactors_on_one_cpu_and_on_one_core(tree: HostTree) -> None:
    tree.crimson_osd(4000, 0, (0, 1, 2))
    tree.crimson_osd(4100, 1, (2, 57, 5))  # 2 is taken, 57 is the second thread of core 1
    found = scrape(collector(), tree, [0, 1])
    shared = 'cephqos_placement_reactors_shared{"osd.%d",by="%s"}'
    assert found[shared % (0, "reactor")] == 1
    assert found[shared % (1, "reactor")] == 1
    assert found[shared % (0, "sibling")] == 1
    assert found[shared % (1, "sibling")] == 1
    assert shared % (0, "thread") not in found  # one look at the host tells nothing yet


def test_a_foreign_thread_on_a_reactors_cpu_shows_from_the_second_look_on(tree: HostTree) -> None:
    def others(ticks: int) -> None:
        tree.process(900, [FakeThread(name="backup", cpu=1, user=ticks)])
        tree.process(901, [FakeThread(name="idle", cpu=0, user=5)])
        tree.process(902, [FakeThread(name="kworker/0:1", cpu=0, user=ticks, flags=0x00200040)])

    placement = collector()
    tree.crimson_osd(4000, 0, (0, 1, 2))
    others(5)
    scrape(placement, tree, [0])
    others(9)
    found = scrape(placement, tree, [0], 1060)
    assert found['cephqos_placement_reactors_shared{"osd.0",by="thread"}'] == 1
    others(9)
    found = scrape(placement, tree, [0], 1120)
    assert found['cephqos_placement_reactors_shared{"osd.0",by="thread"}'] == 0


def test_the_host_is_not_searched_without_reactors(
    tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid() -> list[int]:
        raise AssertionError("looked at every process")

    monkeypatch.setattr(psutil, "pids", forbid)
    tree.classic_osd(4000, 0)
    assert 'cephqos_placement_cpus_used{"osd.0"}' in scrape(collector(), tree, [0])


def test_memory_is_read_of_one_osd_per_scrape_and_only_on_request(tree: HostTree) -> None:
    maps = "7f0 default anon=30 dirty=30 N0=10 N1=20 kernelpagesize_kB=4\n"
    maps += "7f1 bind:0 file=/x\\040N0=1 huge anon=3 N1=3 kernelpagesize_kB=2048\n7f2 default\n"
    for osd in (0, 1):
        tree.classic_osd(4000 + 100 * osd, osd)
        (tree.host.proc / str(4000 + 100 * osd) / "numa_maps").write_text(maps)
    without = scrape(collector(), tree, [0, 1])
    assert not [key for key in without if "memory" in key]
    placement = collector(memory_interval=60)
    memory = 'cephqos_placement_memory_bytes{"osd.%d",node="%d"}'
    first = scrape(placement, tree, [0, 1])
    assert first[memory % (0, 0)] == 10 * 4096
    assert first[memory % (0, 1)] == 20 * 4096 + 3 * 2048 * 1024
    assert memory % (1, 0) not in first
    second = scrape(placement, tree, [0, 1], 1015)
    assert memory % (0, 0) in second
    assert second[memory % (1, 1)] == first[memory % (0, 1)]


def test_memory_that_may_not_be_read_is_absent(tree: HostTree) -> None:
    tree.classic_osd(4000, 0)
    found = scrape(collector(memory_interval=60), tree, [0])
    assert found['cephqos_placement_cpus_used{"osd.0"}'] == 2
    assert not [key for key in found if "memory" in key]


@pytest.mark.timeout(30)
def test_the_memory_of_a_process_that_hangs_holds_up_nobody(tree: HostTree) -> None:
    """Who reads numa_maps waits while the process holds its memory lock."""
    for osd in (0, 1):
        tree.classic_osd(4000 + 100 * osd, osd)
    hangs, well = (tree.host.proc / pid / "numa_maps" for pid in ("4000", "4100"))
    os.mkfifo(hangs)
    well.write_text("7f1 default N1=3 kernelpagesize_kB=4\n")
    placement = collector(memory_interval=60)
    memory = 'cephqos_placement_memory_bytes{"osd.%d",node="%d"}'
    for time in (1000, 1015, 1030):
        found = scrape(placement, tree, [0, 1], time)
        assert found['cephqos_placement_cpus_used{"osd.0"}'] == 2
        assert memory % (0, 1) not in found
    assert found[memory % (1, 1)] == 3 * 4096
    with hangs.open("w") as file:
        file.write("7f1 default N1=5 kernelpagesize_kB=4\n")
    while memory % (0, 1) not in found:
        found = scrape(placement, tree, [0, 1], 1045)
    assert found[memory % (0, 1)] == 5 * 4096


def test_memory_of_this_process_by_node_adds_up_to_its_resident_memory() -> None:
    path = Path("/proc/self/numa_maps")
    if not path.exists():
        pytest.skip("this kernel has no numa_maps")
    total = sum(node_memory(path.read_bytes()).values())
    assert total == pytest.approx(psutil.Process().memory_info().rss, rel=0.25)


def test_an_osd_that_went_is_not_counted_any_more(tree: HostTree) -> None:
    placement = collector()
    tree.crimson_osd(4000, 0, (0, 1))
    tree.crimson_osd(4100, 1, (1, 2))
    shared = 'cephqos_placement_reactors_shared{"osd.0",by="reactor"}'
    assert scrape(placement, tree, [0, 1])[shared] == 1
    assert scrape(placement, tree, [0], 1015)[shared] == 0
    placement.forget(view(tree.host, 0).daemon)
    assert scrape(placement, tree, [], 1030) == {}


def test_nothing_is_asked_and_nothing_shown_for_daemons_that_are_no_osds(tree: HostTree) -> None:
    mon = Daemon("mon", "a", "c", Path("/run/a.asok"), 4000)
    view = DaemonView(mon, render_labels(mon.labels), {}, {}, 1.0, tree.host)
    assert list(collector().collect(view)) == []
    assert collector().commands(mon) == ()


def test_the_topology_of_this_machine_agrees_with_psutil() -> None:
    topology = read_topology(Path("/sys"))
    assert len(topology.core) == psutil.cpu_count()
    assert len(set(topology.core.values())) == (psutil.cpu_count(logical=False) or 1)


def test_the_topology_of_two_sockets(topology: Topology) -> None:
    assert topology.places == 2
    assert (topology.node[27], topology.node[28], topology.node[56]) == (0, 1, 0)
    assert topology.siblings(3) == {59}
    assert topology.siblings(59) == {3}
    assert topology.core[27] + 1 == topology.core[28]


def test_a_machine_that_tells_nothing_has_no_cpus(tmp_path: Path) -> None:
    assert read_topology(tmp_path) == Topology({}, {}, {})
    assert strategy_of({"0": frozenset({0})}, read_topology(tmp_path)) == "other"


# Eight OSDs with five cores each on two sockets of 28, both threads of every core: the odd core
# comes from the sockets in turn.
FIVE_CORES_OF_TWO_THREADS = [
    "0-2,28-29,56-58,84-85",
    "3-4,30-32,59-60,86-88",
    "5-7,33-34,61-63,89-90",
    "8-9,35-37,64-65,91-93",
    "10-12,38-39,66-68,94-95",
    "13-14,40-42,69-70,96-98",
    "15-17,43-44,71-73,99-100",
    "18-19,45-47,74-75,101-103",
]


@pytest.mark.parametrize(
    ("strategy", "cpus"),
    [
        ("unpinned", ["0-111", "0-111"]),
        ("default", ["0-4", "5-9", "10-14", "15-19"]),
        ("default", ["0-4,56-60", "5-9,61-65"]),  # both threads of each core
        ("default", ["0-27", "28-55"]),  # crossing over is still one after the other
        ("default", ["0-4"]),
        ("by_osd", ["0-4", "28-32", "5-9", "33-37"]),
        ("default", ["0-27,56-83", "28-55,84-111"]),  # by_osd would look the same
        ("by_osd", ["0-27", "28-55", "0-27", "28-55"]),  # whole nodes, as osd_numa_node gives them
        ("by_socket", ["0-2,28-29", "3-4,30-32"]),
        ("by_socket", ["0-1,28-29"]),
        ("by_socket", FIVE_CORES_OF_TWO_THREADS),
        ("other", ["0-3,28,56-59,84"]),  # four cores and one
        ("other", ["0-4", "6-9", "20-24"]),
        ("other", ["0-4", "0-4"]),
        ("other", ["0-4", ""]),
        ("other", ["0-4", "200-204"]),
        ("other", ["0-4,28"]),
    ],
)
def test_the_strategy_that_a_placement_looks_like(
    topology: Topology, strategy: str, cpus: list[str]
) -> None:
    homes = {str(osd): frozenset(parse_cpu_list(text)) for osd, text in enumerate(cpus, 9)}
    assert strategy_of(homes, topology) == strategy


def test_osds_are_neighbours_across_cpus_that_nobody_is_meant_to_use(topology: Topology) -> None:
    without_the_first_two_cores = frozenset({0, 1, 56, 57})
    split = {"0": frozenset({2, 3}), "1": frozenset({4, 6}), "2": frozenset({7, 8})}
    assert strategy_of(split, topology) == "other"
    assert strategy_of(split, topology, frozenset({5, 61})) == "default"
    rest = frozenset(range(112)) - without_the_first_two_cores
    assert strategy_of({"0": rest, "1": rest}, topology) == "other"
    assert strategy_of({"0": rest, "1": rest}, topology, without_the_first_two_cores) == "unpinned"


def test_even_and_odd_ids_on_a_socket_each_are_by_osd_whatever_ids_are_missing(
    topology: Topology,
) -> None:
    even_and_odd = {"0": range(5), "2": range(5, 10), "4": range(10, 15), "7": range(28, 33)}
    homes = {osd: frozenset(cpus) for osd, cpus in even_and_odd.items()}
    assert strategy_of(homes, topology) == "by_osd"
    mixed = homes | {"9": frozenset(range(15, 20))}  # an odd one among the even ones
    assert strategy_of(mixed, topology) == "other"


def test_threads_that_seastar_starts_beside_a_reactor_do_not_share_its_cpu(tree: HostTree) -> None:
    def osd(ticks: int) -> None:
        names = ("crimson-osd", "reactor-1", "syscall-0", "syscall-1", "timer-0")
        cpus = (0, 1, 0, 1, 0)
        threads = [
            FakeThread(name=name, cpu=cpu, allowed=str(cpu), user=ticks, run_ns=ticks)
            for name, cpu in zip(names, cpus, strict=True)
        ]
        tree.process(4000, threads, command=("/usr/bin/crimson-osd", "-i", "0"))

    placement = collector()
    osd(5)
    scrape(placement, tree, [0])
    osd(9)
    found = scrape(placement, tree, [0], 1060)
    assert found['cephqos_placement_reactors_shared{"osd.0",by="thread"}'] == 0


def test_a_host_with_cpus_for_nobody_shows_its_strategy(tree: HostTree) -> None:
    tree.crimson_osd(4000, 0, (2, 3))
    tree.crimson_osd(4100, 1, (4, 6))
    found = scrape(collector(excluded_cpus=parse_cpu_list("5,61")), tree, [0, 1])
    assert found['cephqos_placement_strategy{strategy="default"}'] == 1


def test_on_one_socket_nothing_looks_like_by_osd_or_by_socket(tmp_path: Path) -> None:
    host = HostTree(tmp_path)
    host.cpus(cores=8)
    topology = read_topology(host.host.sys)
    apart = {"0": frozenset({0, 1}), "1": frozenset({4, 5})}
    assert strategy_of(apart, topology) == "other"
    assert strategy_of({"0": frozenset({0, 1}), "1": frozenset({2, 3})}, topology) == "default"


def test_the_example_host_shows_every_collector_something(tmp_path: Path) -> None:
    host = example_host(tmp_path).host
    shown = {}
    for collect in (ThreadsCollector(), DisksCollector(), PlacementCollector()):
        for osd in range(4):
            families = collect.collect(view(host, osd, pid=5000 + 100 * osd))
            shown[collect.name, osd] = sum(len(family.samples) for family in families)
        list(collect.finish())
    assert {pair: number for pair, number in shown.items() if pair[0] == "disks"} == {
        ("disks", 0): 4 * 18,
        ("disks", 1): (1 + 2 + 1 + 1) * 18,
        ("disks", 2): 2 * 18,
        ("disks", 3): 18,
    }
    assert all(number >= 5 for number in shown.values())


def test_the_strategy_of_crimson_osds_is_that_of_their_reactors(tree: HostTree) -> None:
    tree.crimson_osd(4000, 0, (0, 1, 2))
    tree.crimson_osd(4100, 1, (28, 29, 30))
    assert scrape(collector(), tree, [0, 1])['cephqos_placement_strategy{strategy="by_osd"}'] == 1
