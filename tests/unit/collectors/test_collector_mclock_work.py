"""The work of each class under mClock: done, queued, late."""

import pytest

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.daemon import ReplyMissing

from ..mclock_osds import (
    CAPACITY,
    DELIVERED,
    DONE,
    HDD_COST_PER_IO,
    HISTOGRAM_DUMP,
    LAG,
    MIB,
    RESERVED,
    info,
)
from ..osd_views import OSD, RecordedOsd, value, values


def test_reads_and_replica_writes_are_counted_for_their_classes() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    osd.scrape(collector)
    osd.add_ops("op_r", 4 * MIB, 50)
    osd.counters("osd")["subop_w"] += 30
    osd.counters("osd")["subop_w_in_bytes"] += 30 * 4096
    families = osd.scrape(collector)
    assert value(families, DONE, class_="client") == 50
    assert value(families, DONE, class_="immediate") == 30
    assert value(families, DELIVERED) == 80


def test_best_effort_is_absent_where_scrubs_are_not_counted() -> None:
    for release, known in (("pacific", False), ("reef", False), ("tentacle", True)):
        families = RecordedOsd(release).scrape(MclockCollector(interval=0))
        found = values(families, DONE, {"class": "background_best_effort"})
        assert bool(found) is known


def test_a_scrub_is_best_effort_where_it_is_counted() -> None:
    osd, collector = RecordedOsd("tentacle"), MclockCollector(interval=0)
    osd.scrape(collector)
    osd.counters("osd")["scrub_replicated_stats_cnt"] += 100
    osd.counters("osd")["scrub_ec_stats_cnt"] += 10
    osd.counters("osd")["scrub_replicated_read_bytes"] += 100 * MIB
    for logger in ("osd_scrub_dp_repl", "osd_scrub_sh_ec"):
        osd.replies["counter dump"][logger][0]["counters"]["chunk_selected"] += 2
    families = osd.scrape(collector)
    expected = 110 + 100 * MIB / HDD_COST_PER_IO + 4 * 6
    assert value(families, DONE, class_="background_best_effort") == pytest.approx(expected)


def recover(osd: RecordedOsd, *, starts: int, pushes: int, replies: int, pulls: int) -> None:
    """Dequeue recovery items as releases without a `break` count them: each for all that follow."""
    counters = osd.counters("osd")

    def add(kind: str, count: int) -> None:
        counters[f"l_osd_recovery_{kind}queue_latency"]["avgcount"] += count

    add("", starts)
    add("push_", pushes)
    add("push_reply_", pushes + replies)
    for kind in ("pull_", "backfill_", "backfill_remove_", "scan_"):
        add(kind, pushes + replies + pulls)


def test_recovery_goes_to_the_class_that_the_reservations_tell() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    reservations = osd.replies["dump_recovery_reservations"]["local_reservations"]
    reservations["in_progress"] = [{"item": "1.3", "prio": 190, "can_preempt": True}]
    osd.scrape(collector)
    recover(osd, starts=4, pushes=3, replies=2, pulls=0)
    families = osd.scrape(collector)
    assert value(families, DONE, class_="background_recovery") == 9
    reservations["in_progress"][0]["prio"] = 110
    recover(osd, starts=4, pushes=3, replies=2, pulls=1)
    families = osd.scrape(collector)
    assert value(families, DONE, class_="background_recovery") == 9
    assert value(families, DELIVERED) == pytest.approx(18 + 8 * MIB / HDD_COST_PER_IO)


def test_recovery_counters_that_are_read_while_they_change_make_no_work() -> None:
    """A push raises several counters, one after the other: a reply may have some of them only."""
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    recover(osd, starts=0, pushes=10**6, replies=10**6, pulls=10**6)
    osd.scrape(collector)
    counters = osd.counters("osd")
    later = ("push_reply", "pull", "backfill", "backfill_remove", "scan")
    for kind in later:  # a push was read before it was counted, what follows it after
        counters[f"l_osd_recovery_{kind}_queue_latency"]["avgcount"] += 1
    torn = value(osd.scrape(collector), DELIVERED)
    counters["l_osd_recovery_push_queue_latency"]["avgcount"] += 1
    whole = value(osd.scrape(collector), DELIVERED)
    assert torn <= whole <= torn + 1
    for kind in later[1:]:
        counters[f"l_osd_recovery_{kind}_queue_latency"]["avgcount"] += 1
    torn = value(osd.scrape(collector), DELIVERED)
    counters["l_osd_recovery_push_reply_queue_latency"]["avgcount"] += 1
    assert torn <= value(osd.scrape(collector), DELIVERED) <= torn + 8 * MIB / HDD_COST_PER_IO


def test_a_change_of_capacity_is_seen_at_once_and_no_counter_jumps() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    osd.scrape(collector)
    osd.add_ops("op_w", MIB, 100)
    before = osd.scrape(collector)
    osd.set_option("osd_mclock_max_capacity_iops_hdd", 630)
    after = osd.scrape(collector)
    assert "config show" not in osd.asked[-1]
    assert value(after, CAPACITY) == 630
    assert value(after, RESERVED, class_="client") == 315
    assert info(after)["capacity_origin"] == "mon"
    assert values(before, DONE) == values(after, DONE)
    osd.add_ops("op_w", MIB, 100)
    gained = value(osd.scrape(collector), DONE, class_="client") - value(
        after, DONE, class_="client"
    )
    assert gained == pytest.approx(100 * MIB / (HDD_COST_PER_IO / 2))


def test_a_change_of_profile_is_seen_at_once() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    osd.scrape(collector)
    osd.set_option("osd_mclock_profile", "high_client_ops")
    diff = osd.replies["config diff"]["diff"]
    diff["osd_mclock_scheduler_client_res"] = {"default": 0.6, "final": 0.6}
    families = osd.scrape(collector)
    assert info(families)["profile"] == "high_client_ops"
    assert value(families, RESERVED, class_="client") == pytest.approx(189)


def test_the_lag_is_the_overdue_time_of_the_head_at_the_moment_of_the_reply() -> None:
    osd = RecordedOsd("reef")
    who = "{ class_id: 3 client_id: 0 profile_id: 0 }"
    (body,) = osd.replies["dump_op_pq_state"].values()
    body["queue_sizes"]["scheduler"] = 119
    body["mClockClients"]["clients"] = (
        f"{{ PriorityQueue::  {{ client:{who}, record:{{ ClientRec:: client:{who} prev_tag:"
        "{ RequestTag:: ready:false r:229186.3301 p:704238.6 l:0.0 } req_count:119 top_req:"
        "{ ClientReq:: tag:{ RequestTag:: ready:false r:229186.3300 p:704238.6 l:min } "
        f"client:{who} }} }} }} }}"
    )
    osd.time = 1_795_229_186.65
    families = osd.scrape(MclockCollector(interval=0))
    assert value(families, LAG, class_="client", shard="0") == pytest.approx(0.32, abs=1e-3)
    assert value(families, LAG, class_="background_recovery", shard="0") == 0
    # Best effort has no reservation in this release: nothing to be behind of.
    assert not values(families, LAG, {"class": "background_best_effort"})


def test_queue_lengths_come_from_the_counters_of_each_shard() -> None:
    osd = RecordedOsd("tentacle")
    queue = osd.counters("mclock-shard-queue-0")
    queue |= {"mclock_client_queue_len": 119, "mclock_immediate_queue_len": 7}
    families = osd.scrape(MclockCollector(interval=0))
    name = "cephqos_qos_queue_length"
    assert value(families, name, class_="client", shard="0") == 119
    assert value(families, name, class_="immediate", shard="0") == 7
    assert len(values(families, name)) == 4


def test_a_queue_length_that_went_below_0_is_not_believed() -> None:
    """`perf reset` takes these counters for sums: what waits then makes them wrap when it goes."""
    osd = RecordedOsd("tentacle")
    queue = osd.counters("mclock-shard-queue-0")
    queue |= {"mclock_client_queue_len": 2**64 - 3, "mclock_immediate_queue_len": 7}
    families = osd.scrape(MclockCollector(interval=0))
    name = "cephqos_qos_queue_length"
    assert value(families, name, class_="client", shard="0") == 10, "as the queue itself says"
    assert not values(families, name, {"class": "immediate"}), "of which the queue says nothing"


def test_a_wait_that_shrinks_between_two_replies_is_no_restart() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    counters = osd.counters("osd")
    counters["op_latency"]["sum"], counters["op_process_latency"]["sum"] = 10.0, 4.0
    name = "cephqos_qos_client_wait_seconds_total"
    assert value(osd.scrape(collector), name) == 6.0
    counters["op_process_latency"]["sum"] = 4.001
    assert value(osd.scrape(collector), name) == 6.0
    counters["op_latency"]["sum"] = 10.5
    assert value(osd.scrape(collector), name) == pytest.approx(6.499)
    counters["op_latency"]["sum"], counters["op_process_latency"]["sum"] = 0.2, 0.1
    assert value(osd.scrape(collector), name) == pytest.approx(0.1)
    counters["op_latency"]["sum"], counters["op_process_latency"]["sum"] = 0.0, 0.1
    assert value(osd.scrape(collector), name) == 0


def test_throttles_tell_how_full_they_are_and_how_long_ops_waited() -> None:
    osd = RecordedOsd("reef")
    throttle = osd.counters("throttle-osd_client_messages")
    throttle |= {"val": 64, "max": 256, "wait": {"avgcount": 3, "sum": 1.5, "avgtime": 0.5}}
    osd.counters("throttle-osd_client_bytes")["max"] = 0
    families = osd.scrape(MclockCollector(interval=0))
    used, waited = "cephqos_qos_throttle_used_ratio", "cephqos_qos_throttle_wait_seconds_total"
    assert value(families, used, throttle="osd_client_messages") == 0.25
    assert value(families, waited, throttle="osd_client_messages") == 1.5
    assert not values(families, used, {"throttle": "osd_client_bytes"})


def test_a_restarted_daemon_starts_its_work_from_nothing() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    osd.scrape(collector)
    osd.add_ops("op_w", 4096, 10)
    assert value(osd.scrape(collector), DONE, class_="client") == 10
    collector.forget(OSD)
    assert value(osd.scrape(collector), DONE, class_="client") == 0
    assert "config show" in osd.asked[-1]


def test_work_is_counted_when_the_histograms_come_and_shown_until_the_next() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=5)
    shown = []
    for second in range(12):
        osd.time = 1000.0 + second
        shown.append(value(osd.scrape(collector), DONE, class_="client"))
        osd.add_ops("op_w", 4096, 10)
    read = [second for second, asked in enumerate(osd.asked) if HISTOGRAM_DUMP in asked]
    assert read == [0, 5, 10]
    assert shown == [0] * 5 + [50] * 5 + [100] * 2  # nothing is lost, and nothing counted twice


def test_histograms_that_were_due_and_did_not_come_are_asked_for_again() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=5)
    reply = osd.replies.pop(HISTOGRAM_DUMP)
    for _ in range(2):
        with pytest.raises(ReplyMissing, match=HISTOGRAM_DUMP):
            osd.scrape(collector)
    osd.replies[HISTOGRAM_DUMP] = reply
    assert value(osd.scrape(collector), DONE, class_="client") == 0


NAMES = {
    family.name
    for family in RecordedOsd("tentacle").scrape(MclockCollector(interval=0))
    if family.samples
}
WAITED = "cephqos_qos_client_wait_seconds_total"
OTHERS = (CLIENT, RECOVERY, IMMEDIATE, BEST_EFFORT)


@pytest.mark.parametrize(
    ("counter", "families", "classes"),
    [
        ("recovery_bytes", {DELIVERED}, {RECOVERY, BEST_EFFORT}),
        ("push_out_bytes", {DELIVERED}, {RECOVERY, BEST_EFFORT}),
        ("l_osd_recovery_pull_queue_latency", {DELIVERED}, {RECOVERY, BEST_EFFORT}),
        ("op_r", {DELIVERED}, {CLIENT}),
        ("op_w_in_bytes", {DELIVERED}, {CLIENT}),
        ("op_rw", {DELIVERED}, {CLIENT}),
        ("subop_w", {DELIVERED}, {IMMEDIATE}),
        ("scrub_ec_read_bytes", {DELIVERED}, {BEST_EFFORT}),
        ("op_latency", {WAITED}, set()),
        ("op_process_latency", {WAITED}, set()),
        ("op_wip", {"cephqos_qos_client_ops_in_progress"}, set()),
        (
            "subop_w_latency",
            {"cephqos_qos_replica_write_seconds_total", "cephqos_qos_replica_writes_total"},
            set(),
        ),
    ],
)
def test_a_counter_that_is_missing_costs_what_needs_it_and_nothing_else(
    counter: str, families: set[str], classes: set[str]
) -> None:
    osd, collector = RecordedOsd("tentacle"), MclockCollector(interval=0)
    del osd.counters("osd")[counter]
    for _ in range(3):
        found = osd.scrape(collector)
        assert osd.not_understood == {"counter"}
        osd.time += 6
    assert NAMES - {family.name for family in found if family.samples} == families
    shown = {cls for cls in OTHERS if values(found, DONE, {"class": cls})}
    assert shown == set(OTHERS) - classes
    assert len(values(found, "cephqos_qos_queue_length")) == 4 * len(queue_shards(osd))


def queue_shards(osd: RecordedOsd) -> list[str]:
    return list(osd.replies["dump_op_pq_state"])


def test_an_osd_that_counts_no_recovery_items_has_no_figure_of_recovery() -> None:
    """A release between 16.2 and 18.2 that has the bandwidth model: 0 would be no recovery."""
    osd = RecordedOsd("reef")
    counters = osd.counters("osd")
    for key in [key for key in counters if key.startswith("l_osd_recovery_")]:
        del counters[key]
    found = osd.scrape(MclockCollector(interval=0))
    assert not values(found, DONE, {"class": RECOVERY})
    assert values(found, DONE, {"class": CLIENT})
    assert not osd.not_understood  # it has none of them


def test_a_histogram_that_is_missing_costs_the_class_of_clients() -> None:
    for kind in ("op_w", "op_rw"):
        osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
        histogram = f"{kind}_latency_in_bytes_histogram"
        kept = osd.replies["perf histogram dump"]["osd"].pop(histogram)
        for _ in range(2):
            found = osd.scrape(collector)
            assert osd.not_understood == {"counter"}
            assert not values(found, DONE, {"class": CLIENT})
            assert values(found, DONE, {"class": RECOVERY})
            osd.time += 6
        osd.replies["perf histogram dump"]["osd"][histogram] = kept
        assert values(osd.scrape(collector), DONE, {"class": CLIENT})
        assert not osd.not_understood


def test_a_counter_that_was_missing_for_a_time_makes_no_jump() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    osd.counters("osd")["op_r"] = 1000
    osd.scrape(collector)
    osd.time += 6
    del osd.counters("osd")["op_r"]
    assert not values(osd.scrape(collector), DONE, {"class": CLIENT})
    osd.time += 6
    osd.counters("osd")["op_r"] = 1010
    assert value(osd.scrape(collector), DONE, class_=CLIENT) == pytest.approx(10)


@pytest.mark.parametrize("missing", ["perf histogram dump", "osd", "axes"])
def test_without_histograms_queues_and_reservations_are_there(missing: str) -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector(interval=0)
    if missing == "osd":
        osd.replies["perf histogram dump"] = {}
    elif missing == "axes":
        for histogram in osd.replies["perf histogram dump"]["osd"].values():
            del histogram["axes"]
    else:
        del osd.replies[missing]
        osd.errors[missing] = "timeout"
    with pytest.raises(ReplyMissing, match="perf histogram dump") as failure:
        osd.scrape(collector)
    for name in ("cephqos_qos_queue_length", RESERVED, WAITED):
        assert values(failure.value.families, name)


@pytest.mark.parametrize("counter", ["max", "val", "wait"])
def test_a_part_of_a_throttle_that_is_missing_costs_one_figure(counter: str) -> None:
    osd = RecordedOsd("reef")
    del osd.counters("throttle-osd_client_bytes")[counter]
    before, after = (one.scrape(MclockCollector(interval=0)) for one in (RecordedOsd("reef"), osd))
    throttles = ("cephqos_qos_throttle_used_ratio", "cephqos_qos_throttle_wait_seconds_total")
    count = [sum(len(values(found, name)) for name in throttles) for found in (before, after)]
    assert count[0] - count[1] == 1
    assert osd.not_understood == {"counter"}


@pytest.mark.parametrize("counter", ["txc_commit_lat", "kv_commit_lat", "read_wait_aio_lat"])
def test_a_counter_of_the_store_that_is_renamed_costs_its_own_figures(counter: str) -> None:
    osd = RecordedOsd("reef")
    counters = osd.counters("bluestore")
    counters[f"{counter}_2"] = counters.pop(counter)
    before, after = (one.scrape(MclockCollector(interval=0)) for one in (RecordedOsd("reef"), osd))
    lost = {f.name for f in before if f.samples} - {f.name for f in after if f.samples}
    assert len(lost) == 2 and all(name.startswith("cephqos_qos_store_") for name in lost)
    assert osd.not_understood == {"counter"}


def test_reservations_of_another_shape_cost_the_classes_that_recovery_may_belong_to() -> None:
    osd = RecordedOsd("tentacle")
    osd.replies["dump_recovery_reservations"] = {"local": []}
    found = osd.scrape(MclockCollector(interval=0))
    assert {c for c in OTHERS if values(found, DONE, {"class": c})} == {CLIENT, IMMEDIATE}
    assert osd.not_understood == {"reply"}


def test_a_queue_that_is_counted_no_more_costs_its_own_length() -> None:
    osd = RecordedOsd("reef")
    shards = queue_shards(osd)
    shard = shards[0].rpartition(":")[2]
    del osd.counters(f"mclock-shard-queue-{shard}")["mclock_client_queue_len"]
    found = values(osd.scrape(MclockCollector(interval=0)), "cephqos_qos_queue_length")
    assert len(found) == 4 * len(shards) - 1
    assert osd.not_understood == {"counter"}
