"""Scrubbing per OSD, on recordings of three releases."""

import json
from pathlib import Path

import pytest
from tests.recorded import RECORDINGS, RELEASES

from cephqos_exporter.collectors.scrub import ScrubCollector

from ..osd_views import OSD, RecordedOsd, by_name, value, values

CLUSTER = RECORDINGS / "cluster"


def scrubbing_osd(release: str, osd: int = 1) -> RecordedOsd:
    """An OSD in the middle of the deep scrub of a pool that someone asked for."""
    recorded = RecordedOsd(release)
    for command in ("dump_scrubs", "dump_scrub_reservations"):
        path: Path = CLUSTER / release / "scrub" / f"osd{osd}_{command}.json"
        recorded.replies[command] = json.loads(path.read_text())
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
def test_before_20_x_the_queue_has_one_undecided_entry_per_placement_group(release: str) -> None:
    osd = scrubbing_osd(release)
    entries = osd.replies["dump_scrubs"]
    requested = sum(entry["forced"] for entry in entries)
    assert requested >= 5
    found = values(osd.scrape(ScrubCollector()), "cephqos_scrub_queue_pgs")
    assert all('level="either"' in labels for labels in found)
    assert sum(found.values()) == len(entries)
    assert value(osd.scrape(ScrubCollector()), "cephqos_scrub_queue_pgs", state="requested") == (
        requested
    )


def test_from_20_x_on_the_queue_tells_shallow_from_deep() -> None:
    osd = scrubbing_osd("tentacle")
    families = osd.scrape(ScrubCollector())
    deep = [e for e in osd.replies["dump_scrubs"] if e["level"] == "deep"]
    asked_for = sum(entry["urgency"] == "operator-requested" for entry in deep)
    assert asked_for >= 3
    found = value(families, "cephqos_scrub_queue_pgs", level="deep", state="requested")
    assert found == asked_for
    assert sum(values(families, "cephqos_scrub_queue_pgs", {"level": "deep"}).values()) == len(deep)


def test_an_entry_is_waiting_then_due_then_late() -> None:
    osd = RecordedOsd("reef")
    osd.replies["dump_scrubs"] = [
        {
            "pgid": "1.0",
            "sched_time": "2026-11-22T00:00:00.000000+0000",
            "deadline": "2026-11-28T00:00:00.000000+0000",
            "forced": False,
        }
    ]
    sched = 1795305600.0
    for now, state in ((sched - 1, "waiting"), (sched, "due"), (sched + 6 * 86400, "late")):
        osd.time = now
        found = values(osd.scrape(ScrubCollector()), "cephqos_scrub_queue_pgs")
        assert [labels for labels, count in found.items() if count] == [
            label for label in found if f'state="{state}"' in label
        ]


def test_an_empty_queue_is_zeros_and_not_absent() -> None:
    for release, levels in (("reef", 1), ("tentacle", 2)):
        osd = scrubbing_osd(release)
        osd.replies["dump_scrubs"] = []
        found = values(osd.scrape(ScrubCollector()), "cephqos_scrub_queue_pgs")
        states = 4 if release == "reef" else 3  # 20.2 does not say what is late
        assert len(found) == states * levels
        assert set(found.values()) == {0}


@pytest.mark.parametrize("release", ["pacific", "reef"])
def test_what_an_osd_scrubs_is_absent_where_nothing_counts_it(release: str) -> None:
    families = by_name(RecordedOsd(release).scrape(ScrubCollector()))
    assert set(families) == {
        "cephqos_scrub_slots",
        "cephqos_scrub_slots_max",
        "cephqos_scrub_queue_pgs",
    }


def test_20_x_counts_scrub_work_and_what_it_cost_clients() -> None:
    osd = RecordedOsd("tentacle")
    counters = osd.counters("osd")
    counters["scrub_replicated_read_bytes"] = 331612208
    counters["successful_scrubs_replicated_elapsed"] = {"avgcount": 2, "sum": 23.2, "avgtime": 11.6}
    for entry in osd.replies["counter dump"]["osd_scrub_dp_repl"]:
        entry["counters"]["write_blocked_by_scrub"] = 7
    families = osd.scrape(ScrubCollector())
    assert value(families, "cephqos_scrub_read_bytes_total", pool_type="replicated") == 331612208
    assert value(families, "cephqos_scrub_duration_seconds_sum", result="success") == 23.2
    assert value(families, "cephqos_scrub_duration_seconds_count", result="success") == 2
    assert value(families, "cephqos_scrub_writes_blocked_total", level="deep") == 7
    assert value(families, "cephqos_scrub_writes_blocked_total", level="shallow") == 0


def test_erasure_coded_pools_show_once_one_was_scrubbed() -> None:
    osd = RecordedOsd("tentacle")
    before = osd.scrape(ScrubCollector())
    assert not values(before, "cephqos_scrub_started_total", {"pool_type": "ec"})
    osd.counters("osd")["num_scrubs_started_ec"] = 3
    after = osd.scrape(ScrubCollector())
    assert value(after, "cephqos_scrub_started_total", pool_type="ec") == 3
    assert value(after, "cephqos_scrub_chunks_total", pool_type="ec", level="deep") == 0


SETS = ("osd_scrub_sh_repl", "osd_scrub_sh_ec", "osd_scrub_dp_repl", "osd_scrub_dp_ec")


def squid_osd() -> RecordedOsd:
    """As 19.2 counts: in labelled sets only, by the sources of 19.2."""
    osd = RecordedOsd("tentacle")
    counters = osd.counters("osd")
    for key in [key for key in counters if "scrub" in key]:
        del counters[key]
    average = {"avgcount": 2, "sum": 3.5, "avgtime": 1.75}
    for name in SETS:
        [entry] = osd.replies["counter dump"][name]
        entry["counters"] |= {
            "num_scrubs_started": 5,
            "successful_scrubs_elapsed": average,
            "failed_scrubs_elapsed": {"avgcount": 1, "sum": 0.5, "avgtime": 0.5},
            "reservation_process_failure": 4,
        }
    return osd


def test_19_2_counts_scrubs_in_labelled_sets_which_add_up() -> None:
    osd = squid_osd()
    families = osd.scrape(ScrubCollector())
    for pool_type in ("replicated", "ec"):
        of = {"pool_type": pool_type}
        assert value(families, "cephqos_scrub_started_total", **of) == 10
        assert value(families, "cephqos_scrub_slot_failures_total", **of) == 8
        duration = "cephqos_scrub_duration_seconds"
        assert value(families, f"{duration}_sum", result="success", **of) == 7
        assert value(families, f"{duration}_count", result="failure", **of) == 2
    assert not values(families, "cephqos_scrub_read_bytes_total")  # 19.2 does not count them
    assert not osd.not_understood


def test_a_part_of_a_sum_that_is_missing_makes_it_absent() -> None:
    osd = squid_osd()
    [entry] = osd.replies["counter dump"]["osd_scrub_dp_ec"]
    del entry["counters"]["num_scrubs_started"]
    families = osd.scrape(ScrubCollector())
    started = values(families, "cephqos_scrub_started_total")
    assert len(started) == 1 and sum(started.values()) == 10
    assert value(families, "cephqos_scrub_slot_failures_total", pool_type="replicated") == 8
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
    assert values(families, "cephqos_scrub_started_total")
    assert osd.not_understood == {"reply"}


@pytest.mark.parametrize("release", ["squid", "tentacle"])
def test_a_count_of_scrubs_that_is_renamed_costs_its_own_figure(release: str) -> None:
    osd = squid_osd() if release == "squid" else RecordedOsd(release)
    sets = [one["counters"] for name in SETS for one in osd.replies["counter dump"][name]]
    for counters in (osd.counters("osd"), *sets):
        for key in [key for key in counters if key.startswith("num_scrubs_started")]:
            counters[f"{key}_2"] = counters.pop(key)
    families = osd.scrape(ScrubCollector())
    assert not values(families, "cephqos_scrub_started_total")
    assert values(families, "cephqos_scrub_slot_failures_total")
    assert osd.not_understood == {"counter"}


@pytest.mark.parametrize("key", ["preemptions", "chunk_selected"])
def test_another_counter_of_a_labelled_set_that_is_missing_is_counted(key: str) -> None:
    osd = RecordedOsd("tentacle")
    for entry in osd.replies["counter dump"]["osd_scrub_dp_repl"]:
        del entry["counters"][key]
    families = osd.scrape(ScrubCollector())
    assert value(families, "cephqos_scrub_started_total", pool_type="replicated") == 0
    assert osd.not_understood == {"counter"}


@pytest.mark.parametrize(
    ("urgency", "state"),
    [
        ("operator-requested", "requested"),
        ("must-repair", "requested"),
        ("must-scrub", "must-scrub"),
        ("after-repair", "after-repair"),
        ("repairing", "repairing"),
    ],
)
def test_an_urgent_scrub_is_what_it_is(urgency: str, state: str) -> None:
    osd = RecordedOsd("tentacle")
    for forced in (True, False):
        osd.replies["dump_scrubs"] = [
            {"sched_time": "1.0", "forced": forced, "level": "deep", "urgency": urgency}
        ]
        found = values(osd.scrape(ScrubCollector()), "cephqos_scrub_queue_pgs")
        shown = [labels for labels, count in found.items() if count]
        assert len(shown) == 1 and f'level="deep",state="{state}"' in shown[0]
        assert not osd.not_understood


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        ({"urgency": "whenever"}, "state"),
        ({"level": "sideways"}, "state"),
        ({"sched_time": "soon"}, "reply"),
        ({"sched_time": None}, "reply"),
    ],
)
def test_an_entry_of_the_queue_that_is_not_understood_is_counted_and_not_shown(
    odd: dict[str, str], what: str
) -> None:
    osd = RecordedOsd("tentacle")
    known = {"sched_time": "1.0", "forced": False, "level": "deep", "urgency": "periodic-regular"}
    osd.replies["dump_scrubs"] = [known, known | odd]
    families = osd.scrape(ScrubCollector())
    assert sum(values(families, "cephqos_scrub_queue_pgs").values()) == 1
    assert values(families, "cephqos_scrub_started_total")
    assert osd.not_understood == {what}


def test_what_is_late_is_absent_where_no_deadline_is_told() -> None:
    families = scrubbing_osd("tentacle").scrape(ScrubCollector())
    assert not values(families, "cephqos_scrub_queue_pgs", {"state": "late"})
    families = scrubbing_osd("reef").scrape(ScrubCollector())
    assert values(families, "cephqos_scrub_queue_pgs", {"state": "late"})


@pytest.mark.parametrize("release", RELEASES)
def test_all_of_a_recorded_osd_is_understood(release: str) -> None:
    for osd in (RecordedOsd(release), scrubbing_osd(release)):
        osd.scrape(ScrubCollector())
        assert not osd.not_understood


def test_a_forgotten_daemon_leaves_nothing_behind() -> None:
    collector = ScrubCollector()
    RecordedOsd("reef").scrape(collector)
    collector.forget(OSD)
    assert not collector.states and not collector.counters._known
