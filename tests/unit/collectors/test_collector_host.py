"""The network and the memory of a host: what is lost, what TCP sends again, what is killed."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.replay.host_tree import HostTree

from cephqos_exporter.collectors.host import HostCollector
from cephqos_exporter.procfs import PAGE_SIZE

from .host_views import samples

_DEV: Final = """\
Inter-|   Receive                            |  Transmit
 face |bytes packets errs drop fifo frame    |bytes packets errs drop fifo colls
    lo: 5645823216 896792 0 0 0 0 0 0 5645823216 896792 0 0 0 0 0 0
  eth0: 2173516649  56410 7 3 0 0 0 0    3101451  31102 2 1 0 0 0 0
veth12: 2173516649  56410 9 9 0 0 0 0    3101451  31102 9 9 0 0 0 0
"""
_SNMP: Final = """\
Ip: Forwarding DefaultTTL
Ip: 2 64
Tcp: RtoAlgorithm ActiveOpens OutSegs RetransSegs InErrs
Tcp: 1 8606 926850 718 0
"""


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


def _interface(tree: HostTree, name: str, *, kind: str = "device", **files: object) -> None:
    place = tree.host.sys / "class/net" / name
    (place / kind).mkdir(parents=True)
    for file, value in files.items():
        (place / file).write_text(f"{value}\n")


def _network(tree: HostTree, dev: str = _DEV, snmp: str = _SNMP) -> None:
    place = tree.host.proc / "1/net"
    place.mkdir(parents=True)
    (place / "dev").write_text(dev)
    (place / "snmp").write_text(snmp)


def _scrape(tree: HostTree, clock: Callable[[], float] = lambda: 0.0) -> dict[str, float]:
    return samples(HostCollector(host=tree.host, clock=clock).finish())


def test_interfaces_with_hardware_show_what_they_carry_and_lose(tree: HostTree) -> None:
    _network(tree)
    _interface(tree, "eth0", speed=10000, mtu=9000, carrier_changes=4, carrier=1)
    _interface(tree, "veth12", kind="queues", speed=10000)
    found = _scrape(tree)
    lost = "cephqos_host_link_lost_packets_total"
    assert found[f'{lost}{{device="eth0",direction="receive",reason="errors"}}'] == 7
    assert found[f'{lost}{{device="eth0",direction="receive",reason="drops"}}'] == 3
    assert found[f'{lost}{{device="eth0",direction="transmit",reason="errors"}}'] == 2
    carried = "cephqos_host_link_bytes_total"
    assert found[f'{carried}{{device="eth0",direction="receive"}}'] == 2173516649
    assert found[f'{carried}{{device="eth0",direction="transmit"}}'] == 3101451
    assert found['cephqos_host_link_speed_bytes_per_second{device="eth0"}'] == 1.25e9
    assert found['cephqos_host_link_mtu_bytes{device="eth0"}'] == 9000
    assert found['cephqos_host_link_changes_total{device="eth0"}'] == 4
    assert found['cephqos_host_link_up{device="eth0"}'] == 1
    assert not [name for name in found if "veth12" in name or '"lo"' in name]


def test_packets_without_room_in_the_card_are_counted_wherever_the_driver_does(
    tree: HostTree,
) -> None:
    for name, missed, fifo in (("eth0", 40, 7), ("eth1", 0, 9)):
        _interface(tree, name)
        counts = tree.host.sys / "class/net" / name / "statistics"
        counts.mkdir()
        (counts / "rx_missed_errors").write_text(f"{missed}\n")
        (counts / "rx_fifo_errors").write_text(f"{fifo}\n")
    assert _scrape(tree) == {
        'cephqos_host_link_missed_packets_total{device="eth0"}': 40,
        'cephqos_host_link_missed_packets_total{device="eth1"}': 9,
    }


def test_a_bond_is_shown_and_a_link_that_is_down_has_no_speed(tree: HostTree) -> None:
    _interface(tree, "bond0", kind="bonding", speed=-1, mtu=1500, carrier=0)
    assert _scrape(tree) == {
        'cephqos_host_link_mtu_bytes{device="bond0"}': 1500,
        'cephqos_host_link_up{device="bond0"}': 0,
    }


def test_settings_of_links_are_read_every_half_minute(tree: HostTree) -> None:
    _interface(tree, "eth0", mtu=9000)
    now = 100.0
    collector = HostCollector(host=tree.host, clock=lambda: now)
    before = samples(collector.finish())
    (tree.host.sys / "class/net/eth0/mtu").write_text("1500\n")
    assert samples(collector.finish()) == before
    now += 31
    assert samples(collector.finish()) == {'cephqos_host_link_mtu_bytes{device="eth0"}': 1500}


def test_segments_that_were_sent_again_count_as_sent_too(tree: HostTree) -> None:
    _network(tree)
    assert _scrape(tree) == {
        'cephqos_host_tcp_segments_total{kind="sent"}': 926850 + 718,
        'cephqos_host_tcp_segments_total{kind="retransmitted"}': 718,
    }


@pytest.mark.parametrize("snmp", ["", "Tcp: OutSegs\nTcp: 5\n", "Tcp: a\nTcp: 1 2\n"])
def test_what_is_not_understood_of_tcp_is_absent(tree: HostTree, snmp: str) -> None:
    _network(tree, dev="eth0: 1 2\n", snmp=snmp)
    _interface(tree, "eth0")
    assert _scrape(tree) == {}


def test_processes_that_were_killed_for_memory_are_counted(tree: HostTree) -> None:
    (tree.host.proc / "vmstat").write_text("nr_free_pages 5\noom_kill 3\n")
    assert _scrape(tree) == {"cephqos_host_oom_kills_total{}": 3}


def test_what_goes_to_swap_and_comes_back_is_counted_in_bytes(tree: HostTree) -> None:
    (tree.host.proc / "vmstat").write_text("nr_free_pages 5\npswpin 2\npswpout 7\nswap_ra 1\n")
    name = "cephqos_host_swapped_bytes_total"
    assert _scrape(tree) == {
        f'{name}{{direction="in"}}': 2 * PAGE_SIZE,
        f'{name}{{direction="out"}}': 7 * PAGE_SIZE,
    }


def test_what_this_kernel_says_is_understood() -> None:
    """The host of the test itself: its kernel has these files, whatever they say."""
    found = samples(HostCollector().finish())
    sent = found['cephqos_host_tcp_segments_total{kind="sent"}']
    assert sent > 0
    assert "cephqos_host_oom_kills_total{}" in found
