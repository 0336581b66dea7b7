"""What operations in progress wait for, on lists recorded from clusters of three OSDs.

In `slow_replica` and `ec_slow` the device of osd.1 was held to 150 and 100 writes per second.
"""

from collections import Counter
from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.qos.waits import OperationWait, WaitMeter, WorstPeers, wait_of

from ..osd_views import recorded_ops


def op(description: str, *events: str) -> dict[str, Any]:
    return {"description": description, "type_data": {"events": [{"event": e} for e in events]}}


WRITE = "osd_op(client.4128.0:3 2.2 2:5aff13c0:::object:head [write 0~4096] ondisk+write)"
EC_WRITE = "osd_op(client.4143.0:458 3.3s0 3:c2cabe05:::object:head [write 0~8192] ondisk+write)"
EC_READ = "osd_op(client.4143.0:458 3.3s0 3:c2cabe05:::object:head [read 0~8192] ondisk+read)"


def waits(release: str, moment: str, osd: int) -> Counter[OperationWait]:
    found = map(wait_of, recorded_ops(release, moment, osd)["ops"])
    return Counter(OperationWait(w.kind, w.event, tuple(w.peers)) for w in found)


@pytest.mark.parametrize("release", RELEASES)
def test_who_waits_for_a_slow_replica_is_told_from_the_slow_one(release: str) -> None:
    waiting = waits(release, "slow_replica", 0)
    assert set(waiting) == {OperationWait("client", "subops", ("osd.1", "osd.2"))}
    culprit = waits(release, "slow_replica", 1)
    assert {wait[:2] for wait in culprit} == {("client", "commit"), ("replica", "commit")}


@pytest.mark.parametrize("release", RELEASES)
def test_the_same_shows_in_erasure_coded_pools(release: str) -> None:
    assert set(waits(release, "ec_slow", 0)) == {OperationWait("client", "subops", ("unknown",))}
    culprit = waits(release, "ec_slow", 1)
    assert {wait[:2] for wait in culprit} == {("client", "commit"), ("ec", "commit")}


@pytest.mark.parametrize("release", RELEASES)
def test_reads_of_erasure_coded_pools_wait_for_other_osds(release: str) -> None:
    reads = waits(release, "ec_read", 0)
    assert reads[OperationWait("client", "subops", ("unknown",))]
    assert {wait.kind for wait in reads} == {"client", "ec"}
    assert "other" not in {wait.event for wait in reads}


@pytest.mark.parametrize(
    ("events", "event", "peers"),
    [
        (("initiated", "header_read"), "receive", ()),
        (("dispatched", "queued_for_pg"), "queue", ()),
        (("queued_for_pg", "reached_pg"), "execute", ()),
        (("reached_pg", "waiting for peered"), "blocked", ()),
        (("reached_pg", "op must wait for map"), "blocked", ()),
        (("reached_pg", "delayed"), "blocked", ()),
        (("started", "waiting for subops from 1,2"), "commit", ()),
        (("waiting for subops from 1,2", "sub_op_commit_rec", "sub_op_commit_rec"), "commit", ()),
        (("waiting for subops from 1,2", "op_commit"), "subops", ("osd.1", "osd.2")),
        (
            ("waiting for subops from 1,2", "sub_op_commit_rec from osd.1", "op_commit"),
            "subops",
            ("osd.2",),
        ),
        (
            ("waiting for subops from 1", "sub_op_commit_rec", "op_commit"),
            "reply",
            (),
        ),
        (("waiting for subops from 1", "op_commit", "commit_sent"), "reply", ()),
        (("a word of a later release",), "other", ()),
    ],
)
def test_the_events_of_a_write_tell_what_it_waits_for(
    events: tuple[str, ...], event: str, peers: tuple[str, ...]
) -> None:
    wait = wait_of(op(WRITE, *events))
    assert (wait.kind, wait.event, tuple(wait.peers)) == ("client", event, peers)


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        (WRITE, "client"),
        ("osd_repop(client.4128.0:1014 2.2 e28/19 2:5443e2d5:::object:head)", "replica"),
        ("MOSDECSubOpWrite(3.5s1 28/25 ECSubWrite(tid=7710))", "ec"),
        ("MOSDPGPush(2.3 31/30 [PushOp(2:cf5f4b46)])", "recovery"),
        ("pg_backfill(progress 2.3 e 31/31 lb MAX)", "recovery"),
        ("rep_scrub(chunky:1,pg:2.1,from:0'0)", "scrub"),
        ("osd_pg_create(e9 1.0:9)", "other"),
    ],
)
def test_the_kind_is_told_by_the_description(description: str, kind: str) -> None:
    assert wait_of(op(description, "initiated")).kind == kind


def test_an_operation_on_an_erasure_coded_pool_waits_for_its_own_shard_first() -> None:
    started = ("reached_pg", "started", "sub_op_started")
    assert wait_of(op(EC_WRITE, *started)).event == "commit"
    assert wait_of(op(EC_WRITE, *started, "sub_op_committed")).event == "subops"
    assert wait_of(op(EC_READ, "reached_pg", "started")).event == "subops"
    assert wait_of(op(EC_WRITE, "reached_pg", "started")).event == "execute"
    assert wait_of({"description": WRITE, "type_data": {"events": []}}) == OperationWait(
        "client", "other"
    )


def test_the_time_between_samples_is_what_each_operation_waited() -> None:
    meter = WaitMeter()
    waiting = op(WRITE, "waiting for subops from 1,2", "op_commit")
    queued = op(WRITE, "queued_for_pg")
    meter.sample([waiting, queued], 100.0)
    assert sum(meter.seconds.values()) == 0.0
    meter.sample([waiting, waiting, queued], 110.0)
    assert meter.seconds["client", "subops", "osd.1"] == 10.0
    assert meter.seconds["client", "subops", "osd.2"] == 10.0
    assert meter.seconds["client", "queue", ""] == 10.0
    assert meter.sampled == {"client": 5}
    meter.idle(200.0)
    meter.sample([queued], 205.0)
    assert meter.seconds["client", "queue", ""] == 15.0


def test_a_time_without_samples_is_counted_for_a_minute_at_most() -> None:
    meter = WaitMeter()
    meter.sample([], 0.0)
    meter.sample([op(WRITE, "queued_for_pg")], 3600.0)
    assert meter.seconds["client", "queue", ""] == 60.0
    meter.sample([op(WRITE, "queued_for_pg")], 3000.0)  # a clock that was set back
    assert meter.seconds["client", "queue", ""] == 60.0


def test_only_the_worst_peers_have_series() -> None:
    meter = WaitMeter(peers=2)
    meter.sample([], 0.0)
    peers = [op(WRITE, f"waiting for subops from {n}", "op_commit") for n in range(10)]
    meter.sample([*peers, peers[3], peers[3], peers[7]], 10.0)
    shown = {key[2]: value for key, value in meter.seconds.items()}
    assert shown == {"osd.3": 30.0, "osd.7": 20.0, "other": 80.0}
    assert sum(shown.values()) == 130.0


def test_a_peer_that_becomes_much_worse_takes_the_place_of_the_least() -> None:
    worst = WorstPeers(2)
    assert not worst.add({"osd.1": 10.0, "osd.2": 9.0, "osd.3": 8.0})
    assert not worst.add({"osd.1": 10.0, "osd.2": 9.0, "osd.3": 12.0})
    assert list(worst.shown) == ["osd.1", "osd.2"]
    assert worst.add({"osd.1": 10.0, "osd.3": 60.0}) == ["osd.2"]
    assert list(worst.shown) == ["osd.1", "osd.3"]
