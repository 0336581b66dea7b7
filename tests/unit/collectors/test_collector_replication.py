"""Replica writes, erasure-coded pools and the store's reads, on recordings of three releases."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.daemon import ReplyMissing

from ..mclock_osds import MIB
from ..osd_views import OSD, RecordedOsd, by_name, value, values, waits

BOUND = "cephqos_qos_delivered_is_lower_bound"
HISTORY = "dump_pgstate_history"


def scrub_queue(osd: RecordedOsd, *groups: str) -> None:
    """Let the OSD be the primary of these placement groups and no others."""
    entry = osd.replies["dump_scrubs"][0]
    osd.replies["dump_scrubs"] = [{**entry, "pgid": group} for group in groups]


@pytest.mark.parametrize("release", RELEASES)
def test_replica_writes_are_counted_with_the_time_they_took(release: str) -> None:
    osd = RecordedOsd(release)
    latency = osd.counters("osd")["subop_w_latency"]
    latency.update(avgcount=500, sum=12.5)
    families = osd.scrape(MclockCollector())
    assert value(families, "cephqos_qos_replica_writes_total") == 500
    assert value(families, "cephqos_qos_replica_write_seconds_total") == 12.5


@pytest.mark.parametrize("release", RELEASES)
def test_reads_that_waited_for_the_device_are_counted(release: str) -> None:
    osd = RecordedOsd(release)
    osd.counters("bluestore")["read_wait_aio_lat"].update(avgcount=40, sum=0.5)
    families = osd.scrape(MclockCollector())
    assert value(families, "cephqos_qos_store_read_waits_total") == 40
    assert value(families, "cephqos_qos_store_read_wait_seconds_total") == 0.5
    slow = values(families, "cephqos_qos_store_slow_total")
    assert len(slow) == (0 if release == "pacific" else 3)


@pytest.mark.parametrize("release", RELEASES)
def test_what_the_store_writes_beside_its_database_is_counted_apart(release: str) -> None:
    osd = RecordedOsd(release)
    osd.counters("bluestore")["state_aio_wait_lat"].update(avgcount=40, sum=0.5)
    osd.counters("bluestore")["state_deferred_aio_wait_lat"].update(avgcount=8, sum=0.25)
    families = osd.scrape(MclockCollector())
    seconds = "cephqos_qos_store_own_write_seconds_total"
    assert value(families, seconds, write="direct") == 0.5
    assert value(families, seconds, write="deferred") == 0.25
    assert value(families, "cephqos_qos_store_own_writes_total", write="deferred") == 8


@pytest.mark.parametrize("release", RELEASES)
def test_a_database_that_has_spilled_or_finds_no_room_shows(release: str) -> None:
    osd = RecordedOsd(release)
    osd.counters("bluefs").update(
        slow_total_bytes=400 * MIB, slow_used_bytes=12 * MIB, alloc_slow_size_fallback=7
    )
    families = osd.scrape(MclockCollector())
    assert value(families, "cephqos_qos_store_spilled_bytes") == 12 * MIB
    assert value(families, "cephqos_qos_store_fragmented_allocations_total") == 7


@pytest.mark.parametrize("release", RELEASES)
def test_without_a_device_for_the_database_nothing_can_spill(release: str) -> None:
    families = by_name(RecordedOsd(release).scrape(MclockCollector()))
    assert "cephqos_qos_store_spilled_bytes" not in families
    assert "cephqos_qos_store_fragmented_allocations_total" in families


@pytest.mark.parametrize("release", RELEASES)
def test_an_osd_with_groups_of_an_erasure_coded_pool_delivers_an_unknown_more(release: str) -> None:
    osd, collector = RecordedOsd(release), MclockCollector()
    osd.replies["get_mapped_pools"] = [1, 3]
    scrub_queue(osd, "1.0", "3.1s0")
    assert value(osd.scrape(collector), BOUND) == 1
    osd.replies["get_mapped_pools"] = [1]
    assert value(osd.scrape(collector), BOUND) == 0


def test_an_osd_that_tells_of_pools_without_end_costs_its_own_figures() -> None:
    collector = MclockCollector()
    liar, good = RecordedOsd("reef", daemon=replace(OSD, id="4")), RecordedOsd("reef")
    for number in range(6):
        scrub_queue(liar, *(f"{number * 3000 + pool}.0" for pool in range(3000)))
        with suppress(ReplyMissing):
            liar.scrape(collector)
    assert len(collector._pools._types) <= 10_000
    with pytest.raises(ReplyMissing):
        liar.scrape(collector)
    good.replies["get_mapped_pools"] = [70_000]
    scrub_queue(good, "70000.1s0")
    assert value(good.scrape(collector), BOUND) == 1


def test_a_pool_is_known_by_any_osd_of_the_host_that_is_primary_of_one_of_its_groups() -> None:
    collector = MclockCollector()
    replica = RecordedOsd("reef")
    primary = RecordedOsd("reef", daemon=replace(OSD, id="4"))
    for osd in (replica, primary):
        osd.replies["get_mapped_pools"] = [7]
    scrub_queue(replica)
    scrub_queue(primary, "7.5s0")
    assert not values(replica.scrape(collector), BOUND)
    assert value(primary.scrape(collector), BOUND) == 1
    assert value(replica.scrape(collector), BOUND) == 1
    assert not any(HISTORY in asked for asked in replica.asked)


@pytest.mark.parametrize("release", ["pacific", "tentacle"])
def test_the_history_of_all_groups_is_asked_for_once_where_nothing_else_tells(release: str) -> None:
    osd, collector = RecordedOsd(release), MclockCollector()
    osd.replies["get_mapped_pools"] = [1, 2, 3]
    osd.replies[HISTORY] = json.loads(waits(release).replies[HISTORY])
    scrub_queue(osd)
    found = [values(osd.scrape(collector), BOUND) for _ in range(5)]
    assert [HISTORY in asked for asked in osd.asked] == [False, False, True, False, False]
    assert [list(samples.values()) for samples in found] == [[], [], [1], [1], [1]]


def test_a_pool_that_stays_unknown_is_asked_for_once() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector()
    osd.replies["get_mapped_pools"] = [1, 9]
    scrub_queue(osd, "1.0")
    for _ in range(6):
        assert not values(osd.scrape(collector), BOUND)
    assert sum(HISTORY in asked for asked in osd.asked) == 1


def test_pools_of_two_clusters_with_one_number_are_not_mixed_up() -> None:
    collector = MclockCollector()
    here, there = RecordedOsd("reef"), RecordedOsd("reef", daemon=replace(OSD, cluster="other"))
    for osd, group in ((here, "5.0s0"), (there, "5.0")):
        osd.replies["get_mapped_pools"] = [5]
        scrub_queue(osd, group)
    assert value(here.scrape(collector), BOUND) == 1
    assert value(there.scrape(collector), BOUND) == 0


def test_without_the_list_of_pools_nothing_is_said() -> None:
    osd = RecordedOsd("reef")
    del osd.replies["get_mapped_pools"]
    assert BOUND not in by_name(osd.scrape(MclockCollector()))
