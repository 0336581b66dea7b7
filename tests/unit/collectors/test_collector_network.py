"""Heartbeat ping times, on replies of three releases."""

from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.collectors.network import NetworkCollector

from ..osd_views import RecordedOsd, by_name, value, values

PREFIX = "cephqos_network_"


def ping(peer: int, interface: str, *means: float, stale: bool = False) -> dict[str, Any]:
    """A peer's entry; the means are in milliseconds as Ceph prints them."""
    average = dict(zip(("1min", "5min", "15min"), means, strict=True))
    return {
        "last update": "Sun Nov 22 00:05:41 2026",
        "stale": stale,
        "from osd": 3,
        "to osd": peer,
        "interface": interface,
        "average": average,
        "min": average,
        "max": average,
        "last": means[0],
    }


def osd_with(*entries: dict[str, Any]) -> RecordedOsd:
    osd = RecordedOsd("reef")
    osd.replies["dump_osd_network"] = {"threshold": 0, "entries": list(entries)}
    return osd


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_osd_sees_its_peers_on_both_networks(release: str) -> None:
    families = RecordedOsd(release).scrape(NetworkCollector())
    for interface in ("front", "back"):
        assert value(families, f"{PREFIX}peers", interface=interface) == 2
        assert value(families, f"{PREFIX}slow_peers", interface=interface) == 0
        assert value(families, f"{PREFIX}stale_peers", interface=interface) == 0
        for window in ("1m", "5m", "15m"):
            labels = {"interface": interface, "window": window}
            worst = value(families, f"{PREFIX}ping_worst_seconds", **labels)
            middle = value(families, f"{PREFIX}ping_median_seconds", **labels)
            assert 0.0001 < middle <= worst < 0.01
        assert value(families, f"{PREFIX}worst_peer_info", interface=interface) == 1


def test_an_osd_that_has_no_pings_yet_shows_none() -> None:
    families = osd_with().scrape(NetworkCollector())
    assert {f.name for f in families if f.samples} == {f"{PREFIX}slow_bound_seconds"}


def test_the_worst_peer_and_the_median_are_told_apart_by_network() -> None:
    families = osd_with(
        ping(0, "back", 1.0, 2.0, 3.0),
        ping(1, "back", 250.0, 60.0, 20.0),
        ping(2, "back", 3.0, 2.0, 1.0),
        ping(1, "front", 0.5, 0.5, 0.5),
        ping(2, "front", 0.7, 0.5, 0.5),
    ).scrape(NetworkCollector())
    times = {"interface": "back", "window": "1m"}
    assert value(families, f"{PREFIX}ping_worst_seconds", **times) == 0.25
    assert value(families, f"{PREFIX}ping_median_seconds", **times) == 0.003
    assert value(families, f"{PREFIX}slow_peers", interface="back") == 1
    assert value(families, f"{PREFIX}slow_peers", interface="front") == 0
    assert value(families, f"{PREFIX}worst_peer_info", interface="back", peer="osd.1") == 1
    assert value(families, f"{PREFIX}worst_peer_info", interface="front", peer="osd.2") == 1


def test_a_stale_entry_is_left_out_and_counted() -> None:
    families = osd_with(
        ping(0, "back", 1.0, 2.0, 3.0), ping(1, "back", 900.0, 900.0, 900.0, stale=True)
    ).scrape(NetworkCollector())
    assert value(families, f"{PREFIX}ping_worst_seconds", window="1m") == 0.001
    assert value(families, f"{PREFIX}peers", interface="back") == 1
    assert value(families, f"{PREFIX}stale_peers", interface="back") == 1


def test_the_bound_from_which_a_peer_is_slow_can_be_set() -> None:
    osd = osd_with(ping(0, "back", 30.0, 2.0, 3.0))
    families = osd.scrape(NetworkCollector(slow=0.03))
    assert value(families, f"{PREFIX}slow_peers", interface="back") == 1
    assert value(families, f"{PREFIX}slow_bound_seconds") == 0.03


def test_the_reply_is_read_at_intervals_and_shown_in_between() -> None:
    osd, collector = osd_with(ping(0, "back", 1.0, 2.0, 3.0)), NetworkCollector(interval=15)
    asked = []
    for _ in range(7):
        families = osd.scrape(collector)
        asked.append(bool(osd.asked[-1]))
        assert f"{PREFIX}peers" in by_name(families)
        osd.time += 5
    assert asked == [True, False, False, True, False, False, True]


def test_what_cannot_be_read_any_more_is_not_shown() -> None:
    osd, collector = osd_with(ping(0, "back", 1.0, 2.0, 3.0)), NetworkCollector(interval=0)
    assert values(osd.scrape(collector), f"{PREFIX}peers")
    del osd.replies["dump_osd_network"]
    osd.time += 15
    with pytest.raises(Exception, match="unknown_command"):
        osd.scrape(collector)


def test_a_network_of_a_later_release_is_counted_and_part_of_no_other() -> None:
    osd = osd_with(ping(1, "front", 1, 1, 1), ping(1, "side", 900, 900, 900))
    families = osd.scrape(NetworkCollector())
    assert osd.not_understood == {"reply"}
    assert value(families, f"{PREFIX}peers", interface="front") == 1
    assert value(families, f"{PREFIX}slow_peers", interface="front") == 0
