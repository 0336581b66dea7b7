"""The mclock collector on recordings of three releases, changed as daemons change."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.replay.host_tree import HostTree

from cephqos_base import yamlfile
from cephqos_exporter.collectors.mclock import MclockCollector
from cephqos_exporter.model import Daemon, Family, ReplyMissing
from cephqos_exporter.qos.policy import parse_policy

from .osd_views import OSD, RELEASES, RecordedOsd, by_name, value, values

MIB = 1024 * 1024
HISTOGRAM_DUMP = "perf histogram dump"
DONE = "cephqos_qos_normalised_ops_total"
DELIVERED = "cephqos_qos_delivered_normalised_ops_total"
RESERVED = "cephqos_qos_reservation_normalised_ops_per_second"
LIMITED = "cephqos_qos_limit_normalised_ops_per_second"
CAPACITY = "cephqos_qos_capacity_normalised_ops_per_second"
LAG = "cephqos_qos_reservation_lag_seconds"
HDD_COST_PER_IO = 150 * MIB / 315


def info(families: list[Family]) -> dict[str, str]:
    """The labels of the info series that are not every series'."""
    (text,) = values(families, "cephqos_qos_scheduler_info")
    pairs = [pair.split("=", 1) for pair in text.split(",")]
    return {key: quoted.strip('"') for key, quoted in pairs if key not in OSD.labels}


def pacific_mclock() -> RecordedOsd:
    """A 16.2 OSD under mClock, with the options as one printed them, and its empty queue dump."""
    osd = RecordedOsd("pacific")
    osd.replies["dump_op_pq_state"] = {f"OSD:ShardedOpWQ:{i}": {} for i in range(5)}
    osd.set_option("osd_op_queue", "mclock_scheduler", "file")
    osd.set_option("osd_mclock_max_capacity_iops_hdd", 32940.204799)
    for cls, res, wgt, lim in (
        ("client", 3294, 2, 999999),
        ("background_recovery", 1647, 1, 6588),
        ("background_best_effort", 1647, 2, 999999),
    ):
        option = f"osd_mclock_scheduler_{cls}"
        for suffix, number in (("res", res), ("wgt", wgt), ("lim", lim)):
            osd.set_option(f"{option}_{suffix}", number, "override")
    return osd


@pytest.mark.parametrize("release", ["reef", "tentacle"])
def test_a_recorded_osd_says_what_runs_and_what_it_promises(release: str) -> None:
    families = RecordedOsd(release).scrape(MclockCollector())
    assert info(families) == {
        "in_force": "mclock_scheduler",
        "configured": "mclock_scheduler",
        "profile": "balanced",
        "model": "bandwidth",
        "media": "hdd",
        "capacity_origin": "default",
        "promise": "config",
    }
    best_effort = 0.05 if release == "tentacle" else 0
    assert value(families, CAPACITY) == 315
    assert value(families, "cephqos_qos_cost_per_io_bytes") == pytest.approx(499_322, abs=1)
    assert value(families, RESERVED, class_="client") == 157.5
    assert value(families, RESERVED, class_="background_best_effort") == best_effort * 315
    assert value(families, "cephqos_qos_reservation_bytes_per_second", class_="client") == (
        75 * MIB
    )
    # 90 % for best effort; the others have no limit, so no series.
    assert list(values(families, LIMITED).values()) == [283.5]
    assert value(families, "cephqos_qos_shards") == 1


def four_shards(osd: RecordedOsd) -> RecordedOsd:
    """Set by hand, so that their number tells nothing of the device."""
    (body,) = osd.replies["dump_op_pq_state"].values()
    osd.replies["dump_op_pq_state"] = {f"OSD:ShardedOpWQ:{i}": body for i in range(4)}
    osd.set_option("osd_op_num_shards", 4, "file")
    return osd


@pytest.mark.parametrize(("rotational", "media"), [(True, "hdd"), (False, "ssd")])
def test_where_shards_and_capacity_tell_nothing_the_device_tells_once(
    rotational: bool, media: str, tmp_path: Path
) -> None:
    tree = HostTree(tmp_path)
    tree.disk("sda", "8:0", rotational=rotational)
    assert OSD.pid is not None
    osd = four_shards(RecordedOsd("reef", host=tree.host))
    data = osd.replies["config show"]["osd_data"]
    tree.data_directory(OSD.pid, data, {"block": "/dev/sda"})
    collector = MclockCollector()
    assert info(osd.scrape(collector))["media"] == media
    # What the OSD found at its start holds, and the device is not looked at for each new setting.
    queue = tree.host.sys / "class/block/sda/queue"
    assert (queue / "rotational").read_text().strip() == str(int(rotational))
    (queue / "rotational").write_text(str(int(not rotational)))
    osd.set_option("osd_mclock_max_sequential_bandwidth_hdd", 100 * MIB)
    assert info(osd.scrape(collector))["media"] == media


def test_where_the_device_cannot_be_seen_either_nothing_is_promised() -> None:
    osd = four_shards(RecordedOsd("reef"))
    families = osd.scrape(MclockCollector(data_dirs=()))
    assert "media" not in info(families) or not info(families)["media"]
    assert not values(families, CAPACITY)


def test_per_shard_values_are_an_eighth_on_eight_shards() -> None:
    osd = RecordedOsd("reef")
    (body,) = osd.replies["dump_op_pq_state"].values()
    osd.replies["dump_op_pq_state"] = {f"OSD:ShardedOpWQ:{i}": body for i in range(8)}
    families = osd.scrape(MclockCollector())
    assert info(families)["media"] == "ssd"
    assert value(families, RESERVED, class_="client") == 10_750
    per_shard = "cephqos_qos_reservation_per_shard_normalised_ops_per_second"
    assert value(families, per_shard, class_="client") == 10_750 / 8
    per_shard = "cephqos_qos_reservation_per_shard_bytes_per_second"
    assert value(families, per_shard, class_="client") == 600 * MIB / 8
    assert len(values(families, LAG)) == 16


def test_a_16_2_osd_under_mclock_promises_but_shows_no_queues() -> None:
    families = pacific_mclock().scrape(MclockCollector())
    about = info(families)
    assert (about["in_force"], about["model"], about["capacity_origin"]) == (
        "mclock_scheduler",
        "early",
        "mon",
    )
    assert value(families, RESERVED, class_="client") == 16_470
    assert list(values(families, LIMITED).values()) == [32_940]
    per_shard = "cephqos_qos_reservation_per_shard_normalised_ops_per_second"
    assert value(families, per_shard, class_="background_recovery") == 1647
    names = by_name(f for f in families if f.samples)
    for absent in (LAG, "cephqos_qos_queue_length", "cephqos_qos_reservation_bytes_per_second"):
        assert absent not in names


def test_under_wpq_nothing_is_promised_and_no_capacity_believed() -> None:
    families = RecordedOsd("pacific").scrape(MclockCollector())
    about = info(families)
    assert (about["in_force"], about["promise"], about["profile"]) == ("wpq", "none", "")
    names = by_name(f for f in families if f.samples)
    for absent in (RESERVED, LIMITED, CAPACITY, LAG, "cephqos_qos_weight"):
        assert absent not in names
    assert value(families, DONE, class_="client") == 0
    assert value(families, "cephqos_qos_client_wait_seconds_total") > 0


def policy(*targets: dict[str, Any]) -> MclockCollector:
    return MclockCollector(
        policy=parse_policy(
            yamlfile.parse(yaml.safe_dump({"version": 1, "targets": [*targets]}), "p.yml")
        )
    )


OSD_TARGET = {"class": "client", "scope": "osd", "reservation": 0.5, "limit": 0.9}
CLUSTER_TARGET = {"class": "client", "scope": "cluster", "reservation": 0.5, "baseline": 60000}


def test_under_wpq_a_policy_is_the_promise() -> None:
    families = RecordedOsd("pacific").scrape(policy({**OSD_TARGET, "baseline": 400}))
    assert info(families)["promise"] == "policy"
    assert values(families, RESERVED) == {
        f'ceph_daemon="osd.3",cluster="{OSD.cluster}",class="client"': 200
    }
    assert value(families, LIMITED, class_="client") == 360
    target = "cephqos_qos_target_reservation_normalised_ops_per_second"
    assert value(families, target, class_="client") == 200


def test_under_mclock_a_policy_is_a_target_beside_the_promise() -> None:
    families = RecordedOsd("reef").scrape(policy({**OSD_TARGET, "reservation": 0.8}))
    assert info(families)["promise"] == "config"
    assert value(families, RESERVED, class_="client") == 157.5
    target = "cephqos_qos_target_reservation_normalised_ops_per_second"
    assert value(families, target, class_="client") == pytest.approx(0.8 * 315)


def test_a_target_for_other_osds_changes_nothing() -> None:
    families = RecordedOsd("pacific").scrape(policy({**OSD_TARGET, "osds": [1, 2]}))
    assert info(families)["promise"] == "none"


def test_a_cluster_target_is_said_once_per_cluster() -> None:
    collector = policy(CLUSTER_TARGET)
    other = Daemon("osd", "4", OSD.cluster, OSD.socket)
    RecordedOsd("reef").scrape(collector)
    RecordedOsd("reef", daemon=other).scrape(collector)
    target = "cephqos_qos_cluster_target_reservation_normalised_ops_per_second"
    found = values(collector.finish(), target)
    assert found == {f'cluster="{OSD.cluster}",class="client"': 30_000}


@pytest.mark.parametrize("size", [4096, 65536, MIB])
@pytest.mark.parametrize("release", RELEASES)
def test_client_writes_are_worth_what_the_scheduler_charges(release: str, size: int) -> None:
    osd, collector = RecordedOsd(release), MclockCollector()
    assert value(osd.scrape(collector), DONE, class_="client") == 0
    osd.add_ops("op_w", size, 1000)
    families = osd.scrape(collector)
    charge = max(1, size / HDD_COST_PER_IO)
    if release == "pacific":
        charge = max(1, round(0.025 + 5.2e-6 * size))
    assert value(families, DONE, class_="client") == pytest.approx(1000 * charge)
    assert value(families, DELIVERED) == pytest.approx(1000 * charge)


def test_reads_and_replica_writes_are_counted_for_their_classes() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector()
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
        families = RecordedOsd(release).scrape(MclockCollector())
        found = values(families, DONE, {"class": "background_best_effort"})
        assert bool(found) is known


def test_a_scrub_is_best_effort_where_it_is_counted() -> None:
    osd, collector = RecordedOsd("tentacle"), MclockCollector()
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
    osd, collector = RecordedOsd("reef"), MclockCollector()
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


def test_a_change_of_capacity_is_seen_at_once_and_no_counter_jumps() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector()
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
    osd, collector = RecordedOsd("reef"), MclockCollector()
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
    osd.replies["dump_op_pq_state"]["OSD:ShardedOpWQ:0"]["mClockClients"]["clients"] = (
        f"{{ PriorityQueue::  {{ client:{who}, record:{{ ClientRec:: client:{who} prev_tag:"
        "{ RequestTag:: ready:false r:229186.3301 p:704238.6 l:0.0 } req_count:119 top_req:"
        "{ ClientReq:: tag:{ RequestTag:: ready:false r:229186.3300 p:704238.6 l:min } "
        f"client:{who} }} }} }} }}"
    )
    osd.time = 1_795_229_186.65
    families = osd.scrape(MclockCollector())
    assert value(families, LAG, class_="client", shard="0") == pytest.approx(0.32, abs=1e-3)
    assert value(families, LAG, class_="background_recovery", shard="0") == 0
    # Best effort has no reservation in this release: nothing to be behind of.
    assert not values(families, LAG, {"class": "background_best_effort"})


def test_queue_lengths_come_from_the_counters_of_each_shard() -> None:
    osd = RecordedOsd("tentacle")
    queue = osd.counters("mclock-shard-queue-0")
    queue |= {"mclock_client_queue_len": 119, "mclock_immediate_queue_len": 7}
    families = osd.scrape(MclockCollector())
    name = "cephqos_qos_queue_length"
    assert value(families, name, class_="client", shard="0") == 119
    assert value(families, name, class_="immediate", shard="0") == 7
    assert len(values(families, name)) == 4


def test_a_wait_that_shrinks_between_two_replies_is_no_restart() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector()
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
    families = osd.scrape(MclockCollector())
    used, waited = "cephqos_qos_throttle_used_ratio", "cephqos_qos_throttle_wait_seconds_total"
    assert value(families, used, throttle="osd_client_messages") == 0.25
    assert value(families, waited, throttle="osd_client_messages") == 1.5
    assert not values(families, used, {"throttle": "osd_client_bytes"})


def test_a_restarted_daemon_starts_its_work_from_nothing() -> None:
    osd, collector = RecordedOsd("reef"), MclockCollector()
    osd.scrape(collector)
    osd.add_ops("op_w", 4096, 10)
    assert value(osd.scrape(collector), DONE, class_="client") == 10
    collector.forget(OSD)
    assert value(osd.scrape(collector), DONE, class_="client") == 0
    assert "config show" in osd.asked[-1]


def test_the_full_configuration_is_read_once() -> None:
    osd, collector = RecordedOsd("tentacle"), MclockCollector()
    osd.scrape(collector)
    osd.scrape(collector)
    assert "config show" in osd.asked[0]
    assert sorted(osd.asked[1]) == [
        "config diff",
        "counter dump",
        "dump_op_pq_state",
        "dump_recovery_reservations",
        "dump_scrubs",
        "get_mapped_pools",
        "perf histogram dump",
    ]


def test_a_missing_reply_is_named() -> None:
    osd = RecordedOsd("reef")
    del osd.replies["config diff"]
    with pytest.raises(ReplyMissing, match="config diff"):
        osd.scrape(MclockCollector())


def test_without_recovery_reservations_the_rest_is_there() -> None:
    osd = RecordedOsd("reef")
    del osd.replies["dump_recovery_reservations"]
    assert value(osd.scrape(MclockCollector()), DONE, class_="client") == 0


@pytest.mark.parametrize(("release", "shards"), [("reef", 1), ("reef", 8), ("tentacle", 8)])
def test_the_series_stay_within_their_share_of_the_budget(release: str, shards: int) -> None:
    osd = RecordedOsd(release)
    (body,) = osd.replies["dump_op_pq_state"].values()
    osd.replies["dump_op_pq_state"] = {f"OSD:ShardedOpWQ:{i}": body for i in range(shards)}
    (queue,) = osd.replies["counter dump"]["mclock-shard-queue-0"]
    for i in range(shards):
        osd.replies["counter dump"][f"mclock-shard-queue-{i}"] = [queue]
    families = osd.scrape(MclockCollector())
    by_name(families)
    assert sum(len(family.samples) for family in families) <= (60 if shards == 1 else 120)


def test_a_daemon_that_is_no_osd_is_not_asked() -> None:
    osd = RecordedOsd("reef", daemon=Daemon("mon", "a", OSD.cluster, OSD.socket))
    assert osd.scrape(MclockCollector()) == []
    assert osd.asked == [[]]


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
