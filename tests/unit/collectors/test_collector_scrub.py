"""Scrubbing per OSD, on recordings of three releases."""

import json

import pytest
from tests.recorded import RECORDINGS, RELEASES

from cephqos_exporter.collectors.scrub import RESERVATIONS, ScrubCollector

from ..osd_views import OSD, RecordedOsd, by_name, value, values

CLUSTER = RECORDINGS / "cluster"


def scrubbing_osd(release: str, osd: int = 1) -> RecordedOsd:
    """An OSD in the middle of the deep scrub of a pool that someone asked for."""
    recorded = RecordedOsd(release)
    path = CLUSTER / release / "scrub" / f"osd{osd}_{RESERVATIONS}.json"
    recorded.replies[RESERVATIONS] = json.loads(path.read_text())
    return recorded


@pytest.mark.parametrize(
    ("release", "local", "remote", "most"),
    [("pacific", 0, 0, 1), ("reef", 2, 1, 3), ("tentacle", 4, 0, 3)],
)
def test_reservations_are_read_in_each_releases_form(
    release: str, local: int, remote: int, most: int
) -> None:
    families = scrubbing_osd(release).scrape(ScrubCollector())
    assert value(families, "cephqos_scrub_slots", side="local") == local
    assert value(families, "cephqos_scrub_slots", side="remote") == remote
    assert value(families, "cephqos_scrub_slots_max") == most


def test_remote_reservations_of_20_x_are_those_in_progress() -> None:
    osd = scrubbing_osd("tentacle")
    reserver = osd.replies["dump_scrub_reservations"]["remote_scrub_reservations"]
    reserver["in_progress"] = [{"item": "2.1", "prio": 1, "can_preempt": False}] * 2
    reserver["queues"] = [{"priority": 1, "items": [{"item": "2.2", "prio": 1}]}]
    families = osd.scrape(ScrubCollector())
    assert value(families, "cephqos_scrub_slots", side="remote") == 2


@pytest.mark.parametrize("release", ["pacific", "reef"])
def test_what_scrubs_cost_clients_is_absent_where_nothing_counts_it(release: str) -> None:
    families = by_name(RecordedOsd(release).scrape(ScrubCollector()))
    assert set(families) == {"cephqos_scrub_slots", "cephqos_scrub_slots_max"}


def test_20_x_counts_what_scrubs_and_clients_cost_each_other() -> None:
    osd = RecordedOsd("tentacle")
    osd.counters("osd")["scrub_replicated_reservation_process_failure"] = 3
    for entry in osd.replies["counter dump"]["osd_scrub_dp_repl"]:
        entry["counters"]["write_blocked_by_scrub"] = 7
    families = osd.scrape(ScrubCollector())
    assert value(families, "cephqos_scrub_slot_failures_total", pool_type="replicated") == 3
    deep = {"level": "deep", "pool_type": "replicated"}
    assert value(families, "cephqos_scrub_writes_blocked_total", **deep) == 7
    assert value(families, "cephqos_scrub_preemptions_total", **deep) == 0


SETS = ("osd_scrub_sh_repl", "osd_scrub_sh_ec", "osd_scrub_dp_repl", "osd_scrub_dp_ec")


def squid_osd() -> RecordedOsd:
    """As 19.2 counts: in labelled sets only, by the sources of 19.2."""
    osd = RecordedOsd("tentacle")
    counters = osd.counters("osd")
    for key in [key for key in counters if "scrub" in key]:
        del counters[key]
    for name in SETS:
        [entry] = osd.replies["counter dump"][name]
        entry["counters"]["reservation_process_failure"] = 4
    return osd


def test_19_2_counts_in_labelled_sets_which_add_up() -> None:
    osd = squid_osd()
    families = osd.scrape(ScrubCollector())
    for pool_type in ("replicated", "ec"):
        assert value(families, "cephqos_scrub_slot_failures_total", pool_type=pool_type) == 8
    assert not osd.not_understood


def test_a_part_of_a_sum_that_is_missing_makes_it_absent() -> None:
    osd = squid_osd()
    [entry] = osd.replies["counter dump"]["osd_scrub_dp_ec"]
    del entry["counters"]["reservation_process_failure"]
    failures = values(osd.scrape(ScrubCollector()), "cephqos_scrub_slot_failures_total")
    assert len(failures) == 1 and sum(failures.values()) == 8
    assert osd.not_understood == {"counter"}


def test_remote_reservations_of_19_2_0_are_the_fourth_of_an_array() -> None:
    osd = squid_osd()
    held = [{"item": "2.1", "prio": 1, "can_preempt": False}] * 2
    reply = {"scrubs_local": 1, "osd_max_scrubs": 3, "remote_scrub_reservations": [3, 0, [], held]}
    osd.replies["dump_scrub_reservations"] = reply
    families = osd.scrape(ScrubCollector())
    assert value(families, "cephqos_scrub_slots", side="remote") == 2
    assert value(families, "cephqos_scrub_slots", side="local") == 1
    assert not osd.not_understood


@pytest.mark.parametrize("remote", [[], [1, 2], {"held": []}, {"in_progress": 2}, None, "none"])
def test_reservations_of_an_unknown_shape_are_absent_and_the_rest_is_there(remote: object) -> None:
    osd = RecordedOsd("tentacle")
    reply = {"scrubs_local": 1, "osd_max_scrubs": 3, "remote_scrub_reservations": remote}
    osd.replies["dump_scrub_reservations"] = reply
    families = osd.scrape(ScrubCollector())
    assert not values(families, "cephqos_scrub_slots", {"side": "remote"})
    assert value(families, "cephqos_scrub_slots", side="local") == 1
    assert values(families, "cephqos_scrub_slot_failures_total")
    assert osd.not_understood == {"reply"}


def test_a_counter_of_a_labelled_set_that_is_missing_is_counted() -> None:
    osd = RecordedOsd("tentacle")
    for entry in osd.replies["counter dump"]["osd_scrub_dp_repl"]:
        del entry["counters"]["preemptions"]
    families = osd.scrape(ScrubCollector())
    assert value(families, "cephqos_scrub_slot_failures_total", pool_type="replicated") == 0
    assert osd.not_understood == {"counter"}


@pytest.mark.parametrize("release", RELEASES)
def test_all_of_a_recorded_osd_is_understood(release: str) -> None:
    for osd in (RecordedOsd(release), scrubbing_osd(release)):
        osd.scrape(ScrubCollector())
        assert not osd.not_understood


@pytest.mark.parametrize("release", RELEASES)
def test_scrub_costs_an_osd_few_series(release: str) -> None:
    families = RecordedOsd(release).scrape(ScrubCollector())
    assert sum(len(family.samples) for family in families) <= 30


def test_a_forgotten_daemon_leaves_nothing_behind() -> None:
    collector = ScrubCollector()
    RecordedOsd("reef").scrape(collector)
    collector.forget(OSD)
    assert not collector.states and not collector.counters._known
