"""The mclock collector on recordings of three releases, changed as daemons change."""

from pathlib import Path

import pytest
from tests.recorded import RELEASES
from tests.replay.host_tree import HostTree

from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.daemon import Daemon, ReplyMissing

from ..mclock_osds import (
    CAPACITY,
    CLUSTER_TARGET,
    DELIVERED,
    DONE,
    HDD_COST_PER_IO,
    LAG,
    LIMITED,
    MIB,
    OSD_TARGET,
    RESERVED,
    four_shards,
    info,
    pacific_mclock,
    policy,
)
from ..osd_views import OSD, RecordedOsd, by_name, value, values


@pytest.mark.parametrize("release", ["reef", "tentacle"])
def test_a_recorded_osd_says_what_runs_and_what_it_reserves(release: str) -> None:
    families = RecordedOsd(release).scrape(MclockCollector(interval=0))
    assert info(families) == {
        "in_force": "mclock_scheduler",
        "configured": "mclock_scheduler",
        "profile": "balanced",
        "model": "bandwidth",
        "media": "hdd",
        "capacity_origin": "default",
        "reservations": "config",
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
    collector = MclockCollector(interval=0)
    assert info(osd.scrape(collector))["media"] == media
    # What the OSD found at its start holds, and the device is not looked at for each new setting.
    queue = tree.host.sys / "class/block/sda/queue"
    assert (queue / "rotational").read_text().strip() == str(int(rotational))
    (queue / "rotational").write_text(str(int(not rotational)))
    osd.set_option("osd_mclock_max_sequential_bandwidth_hdd", 100 * MIB)
    assert info(osd.scrape(collector))["media"] == media


def test_where_the_device_cannot_be_seen_either_nothing_is_reserved() -> None:
    osd = four_shards(RecordedOsd("reef"))
    families = osd.scrape(MclockCollector(data_dirs=()))
    assert "media" not in info(families) or not info(families)["media"]
    assert not values(families, CAPACITY)


def test_per_shard_values_are_an_eighth_on_eight_shards() -> None:
    osd = RecordedOsd("reef")
    (body,) = osd.replies["dump_op_pq_state"].values()
    osd.replies["dump_op_pq_state"] = {f"OSD:ShardedOpWQ:{i}": body for i in range(8)}
    families = osd.scrape(MclockCollector(interval=0))
    assert info(families)["media"] == "ssd"
    assert value(families, RESERVED, class_="client") == 10_750
    per_shard = "cephqos_qos_reservation_per_shard_normalised_ops_per_second"
    assert value(families, per_shard, class_="client") == 10_750 / 8
    per_shard = "cephqos_qos_reservation_per_shard_bytes_per_second"
    assert value(families, per_shard, class_="client") == 600 * MIB / 8
    assert len(values(families, LAG)) == 16


def test_of_the_mclock_of_16_2_nothing_is_shown_and_that_is_counted() -> None:
    osd, collector = pacific_mclock(), policy({**OSD_TARGET, "baseline": 400})
    for _ in range(2):
        families = osd.scrape(collector)
        osd.add_ops("op_w", 4096, 1000)
        about = info(families)
        assert (about["in_force"], about["reservations"]) == ("mclock_scheduler", "none")
        assert (about["model"], about["capacity_origin"]) == ("", "")
        names = by_name(f for f in families if f.samples)
        assert not {RESERVED, LIMITED, CAPACITY, LAG, DONE, DELIVERED} & set(names)
        assert "cephqos_qos_queue_length" not in names
        assert "cephqos_qos_client_wait_seconds_total" in names
        assert "option" in osd.not_understood


def test_under_wpq_nothing_is_reserved_and_no_capacity_believed() -> None:
    families = RecordedOsd("pacific").scrape(MclockCollector(interval=0))
    about = info(families)
    assert (about["in_force"], about["reservations"], about["profile"]) == ("wpq", "none", "")
    names = by_name(f for f in families if f.samples)
    for absent in (RESERVED, LIMITED, CAPACITY, LAG, "cephqos_qos_weight"):
        assert absent not in names
    assert value(families, DONE, class_="client") == 0
    assert value(families, "cephqos_qos_client_wait_seconds_total") > 0


def test_under_wpq_the_policy_counts() -> None:
    families = RecordedOsd("pacific").scrape(policy({**OSD_TARGET, "baseline": 400}))
    assert info(families)["reservations"] == "policy"
    assert values(families, RESERVED) == {
        f'ceph_daemon="osd.3",cluster="{OSD.cluster}",class="client"': 200
    }
    assert value(families, LIMITED, class_="client") == 360
    target = "cephqos_qos_target_reservation_normalised_ops_per_second"
    assert value(families, target, class_="client") == 200


def test_under_mclock_a_policy_is_a_target_beside_the_reservation() -> None:
    families = RecordedOsd("reef").scrape(policy({**OSD_TARGET, "reservation": 0.8}))
    assert info(families)["reservations"] == "config"
    assert value(families, RESERVED, class_="client") == 157.5
    target = "cephqos_qos_target_reservation_normalised_ops_per_second"
    assert value(families, target, class_="client") == pytest.approx(0.8 * 315)


def test_a_target_for_other_osds_changes_nothing() -> None:
    families = RecordedOsd("pacific").scrape(policy({**OSD_TARGET, "osds": [1, 2]}))
    assert info(families)["reservations"] == "none"


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
    osd, collector = RecordedOsd(release), MclockCollector(interval=0)
    assert value(osd.scrape(collector), DONE, class_="client") == 0
    osd.add_ops("op_w", size, 1000)
    families = osd.scrape(collector)
    charge = max(1, size / HDD_COST_PER_IO)
    assert value(families, DONE, class_="client") == pytest.approx(1000 * charge)
    assert value(families, DELIVERED) == pytest.approx(1000 * charge)


def test_the_full_configuration_is_read_once() -> None:
    osd, collector = RecordedOsd("tentacle"), MclockCollector(interval=0)
    for _ in range(3):
        osd.scrape(collector)
        osd.time += 5
    assert "config show" in osd.asked[0]
    assert sorted(osd.asked[2]) == [
        "config diff",
        "counter dump",
        "dump_op_pq_state",
        "dump_recovery_reservations",
        "dump_scrubs",
        "get_mapped_pools",
        "perf histogram dump",
    ]


def test_while_requests_wait_their_queues_are_read_every_two_seconds() -> None:
    """The lag is that of the time at which they were read."""
    osd, collector = RecordedOsd("reef-4-shards"), MclockCollector()
    asked, lags = [], []
    osd.time = 1_000_233_642.0902  # when the first falls due
    for _ in range(4):
        families = osd.scrape(collector)
        asked.append("dump_op_pq_state" in osd.asked[-1])
        lags.append(value(families, LAG, class_="client", shard="0"))
        osd.time += 1
    assert asked == [True, False] * 2
    assert lags == [pytest.approx(lag, abs=1e-3) for lag in (0, 0, 2, 2)]
    for body in osd.replies["dump_op_pq_state"].values():
        body["mClockClients"]["clients"] = ""
    for _ in range(3):
        osd.scrape(collector)
        assert "dump_op_pq_state" in osd.asked[-1], "nothing waits"
        osd.time += 1


def test_a_missing_reply_is_named() -> None:
    osd = RecordedOsd("reef")
    del osd.replies["config diff"]
    with pytest.raises(ReplyMissing, match="config diff"):
        osd.scrape(MclockCollector(interval=0))


def test_without_recovery_reservations_the_rest_is_there() -> None:
    osd = RecordedOsd("reef")
    del osd.replies["dump_recovery_reservations"]
    assert value(osd.scrape(MclockCollector(interval=0)), DONE, class_="client") == 0


def test_a_daemon_that_is_no_osd_is_not_asked() -> None:
    osd = RecordedOsd("reef", daemon=Daemon("mon", "a", OSD.cluster, OSD.socket))
    assert osd.scrape(MclockCollector(interval=0)) == []
    assert osd.asked == [[]]


def of_21(profile: str = "balanced", version: str = "21.1.0-5-gabc") -> RecordedOsd:
    """A 20.2 OSD whose options and class names are those of 21.x."""
    osd = RecordedOsd("tentacle")
    osd.replies["version"] = {"version": version}
    for cls in ("client", "background_recovery", "background_best_effort"):
        for suffix in ("res", "wgt", "lim"):
            option = f"osd_mclock_scheduler_{cls}_{suffix}"
            osd.replies["config show"][option] = "1" if suffix == "wgt" else "0.000000"
            osd.replies["config diff"]["diff"].pop(option, None)
    osd.set_option("osd_mclock_profile", profile)
    (body,) = osd.replies["dump_op_pq_state"].values()
    clients = body["mClockClients"]
    clients["clients"] = clients["clients"].replace("class_id: 3", "class_id: 3client")
    return osd


def test_a_21_osd_reserves_what_its_profile_stands_for_and_is_as_late_as_a_20_2_one() -> None:
    recorded, osd = RecordedOsd("tentacle"), of_21()
    recorded.time = osd.time = 230089.9926  # five seconds past the tag of the recording
    before = recorded.scrape(MclockCollector())
    found = osd.scrape(MclockCollector())
    capacity = value(found, CAPACITY)
    assert value(found, RESERVED, class_="client") == pytest.approx(0.5 * capacity)
    assert not values(found, RESERVED, {"class": "background_best_effort"})
    assert value(found, LAG, class_="client") == value(before, LAG, class_="client")
    assert value(found, LAG, class_="client") == pytest.approx(5.0)
    assert info(found)["reservations"] == "config"


def test_a_release_that_is_not_known_has_no_reservations_and_is_counted_in_every_scrape() -> None:
    osd = of_21(version="22.2.0")
    collector = MclockCollector()
    for _ in range(2):
        found = osd.scrape(collector)
        assert osd.not_understood == {"profile"}
    assert not values(found, RESERVED)
    assert not values(found, LAG)
    assert info(found)["reservations"] == "none"
    assert values(found, "cephqos_qos_queue_length")


def test_an_option_that_is_missing_costs_what_needs_it() -> None:
    osd, collector = RecordedOsd("tentacle"), MclockCollector()
    for options in (osd.replies["config show"], osd.replies["config diff"]["diff"]):
        options.pop("osd_mclock_scheduler_client_res", None)
    for _ in range(2):
        found = osd.scrape(collector)
        assert osd.not_understood == {"option"}
    assert not values(found, RESERVED)
    assert values(found, "cephqos_qos_queue_length")
    assert values(found, "cephqos_qos_client_ops_in_progress")


def test_the_release_is_asked_until_it_is_known() -> None:
    osd = RecordedOsd("tentacle")
    collector = MclockCollector()
    version = osd.replies.pop("version")
    osd.scrape(collector)
    osd.replies["version"] = version
    for _ in range(2):
        osd.scrape(collector)
    assert ["version" in asked for asked in osd.asked] == [True, True, False]


def test_a_class_that_is_not_known_takes_the_lag_of_those_without_a_head() -> None:
    osd = RecordedOsd("tentacle")
    (body,) = osd.replies["dump_op_pq_state"].values()
    clients = body["mClockClients"]
    clients["clients"] = clients["clients"].replace("class_id: 3", "class_id: 5")
    found = osd.scrape(MclockCollector())
    assert not values(found, LAG)
    assert not values(found, "cephqos_qos_limit_wait_seconds")
    assert osd.not_understood == {"class"}
    assert values(found, "cephqos_qos_queue_length")  # from counters
