"""What operations in progress wait for, on lists recorded from clusters of three OSDs.

In `slow_replica` and `ec_slow` the device of osd.1 was held to 150 and 100 writes per second.
"""

from collections import Counter
from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.waits import (
    OperationWait,
    WaitMeter,
    completed,
    in_progress,
)

from ..osd_views import recorded_history, recorded_ops


def op(description: str, *events: str) -> dict[str, Any]:
    return {
        "description": description,
        "age": 1.0,
        "type_data": {"events": [{"event": e} for e in events]},
    }


_GROUP = "osd_op(client.4128.0:3 2.2 2:5aff13c0:::object:head"
_EC_GROUP = "osd_op(client.4143.0:458 3.3s0 3:c2cabe05:::object:head"
WRITE = f"{_GROUP} [write 0~4096] snapc 0=[] ondisk+write+known_if_redirected e28)"
READ = f"{_GROUP} [read 0~4096] snapc 0=[] ondisk+read+known_if_redirected e28)"
EC_WRITE = f"{_EC_GROUP} [write 0~8192] snapc 0=[] ondisk+write+known_if_redirected e28)"
EC_READ = f"{_EC_GROUP} [read 0~8192] snapc 0=[] ondisk+read+known_if_redirected e28)"


def understood(operation: dict[str, Any]) -> OperationWait:
    odd = NotUnderstood()
    (sampled,) = in_progress([operation], 1.0, odd)
    assert not odd.found
    return sampled.spent[0][0]


def add(meter: WaitMeter, seconds: float, *operations: dict[str, Any]) -> None:
    meter.add(in_progress(operations, seconds, NotUnderstood()))


def waits(release: str, moment: str, osd: int) -> Counter[OperationWait]:
    found = map(understood, recorded_ops(release, moment, osd)["ops"])
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
    assert {wait.kind for wait in reads} >= {"client", "ec_read"}


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
        # It is begun again, as after a change of the placement group.
        (("waiting for subops from 1,2", "op_commit", "queued_for_pg"), "queue", ()),
        (("waiting for subops from 1,2", "op_commit", "reached_pg"), "execute", ()),
        # Without replicas there is nobody to wait for.
        (("reached_pg", "started"), "commit", ()),
        (("reached_pg", "started", "op_commit"), "commit", ()),
        # FileStore's journal, without replicas and with them.
        (("started", "commit_queued_for_journal_write"), "commit", ()),
        (("started", "write_thread_in_journal_buffer"), "commit", ()),
        (("started", "journaled_completion_queued"), "commit", ()),
        (("waiting for subops from 1,2", "write_thread_in_journal_buffer"), "commit", ()),
    ],
)
def test_the_events_of_a_write_tell_what_it_waits_for(
    events: tuple[str, ...], event: str, peers: tuple[str, ...]
) -> None:
    wait = understood(op(WRITE, *events))
    assert (wait.kind, wait.event, tuple(wait.peers)) == ("client", event, peers)


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        (WRITE, "client"),
        ("osd_repop(client.4128.0:1014 2.2 e28/19 2:5443e2d5:::object:head)", "replica"),
        ("MOSDECSubOpWrite(3.5s1 28/25 ECSubWrite(tid=7710))", "ec"),
        ("MOSDECSubOpRead(2.bs1 55/49 ECSubRead(tid=1829, to_read={}, attrs_to_read=))", "ec_read"),
        ("MOSDECSubOpReadReply(2.bs0 55/49 ECSubReadReply(tid=1829, attrs_read=0))", "ec"),
        ("MOSDPGPush(2.3 31/30 [PushOp(2:cf5f4b46)])", "recovery"),
        ("pg_backfill(progress 2.3 e 31/31 lb MAX)", "recovery"),
        ("rep_scrub(chunky:1,pg:2.1,from:0'0)", "scrub"),
        ("backfill_remove(2.3 e31 {2:cf5f4b46:::object:head=31'12})", "recovery"),
        ("pg_update_log_missing(2.3 epoch 31/30 rep_tid 7)", "other"),
        ("osd_backoff(2.3 block id 1 [2:cf5f4b46,2:cf5f4b47) e31)", "other"),
        ("osd_pg_create(e9 1.0:9)", "other"),
    ],
)
def test_the_kind_is_told_by_the_description(description: str, kind: str) -> None:
    assert understood(op(description, "initiated")).kind == kind


def test_an_operation_on_an_erasure_coded_pool_waits_for_its_own_shard_first() -> None:
    started = ("reached_pg", "started", "sub_op_started")
    assert understood(op(EC_WRITE, *started)).event == "commit"
    assert understood(op(EC_WRITE, *started, "sub_op_committed")).event == "subops"
    assert understood(op(EC_READ, "reached_pg", "started")).event == "subops"
    assert understood(op(EC_WRITE, "reached_pg", "started")).event == "execute"


def test_a_read_that_has_started_executes() -> None:
    assert understood(op(READ, "reached_pg", "started")).event == "execute"
    # Its object's name is up to a client.
    named = READ.replace(":object:", ":ondisk+write e1):")
    assert understood(op(named, "reached_pg", "started")).event == "execute"


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        (op(WRITE, "reached_pg", "a word of a later release"), "event"),
        (op(WRITE), "event"),
        (op("osd_dream(2.3 of a later release)", "started"), "operation"),
    ],
)
def test_what_a_later_release_says_is_counted_and_waits_nowhere(
    operation: dict[str, Any], what: str
) -> None:
    meter, odd = WaitMeter(), NotUnderstood()
    meter.add(in_progress([operation, op(WRITE, "queued_for_pg")], 10.0, odd))
    assert meter.seconds == {("client", "queue", ""): 10.0}
    assert meter.sampled == {"client": 1}
    assert list(odd.found) == [what]


def test_a_delay_that_a_later_release_names_is_a_delay() -> None:
    operation = op(WRITE, "reached_pg", "no osdmap yet")
    operation["type_data"]["flag_point"] = "no osdmap yet"
    assert understood(operation).event == "blocked"


def test_the_log_gets_no_name_of_a_clients_object() -> None:
    odd = NotUnderstood()
    assert not in_progress([op("osd_dream(2.3 secret)", "started")], 1.0, odd)
    assert odd.found == {"operation": (1, "osd_dream")}


def test_the_time_between_samples_is_what_each_operation_waited() -> None:
    meter = WaitMeter()
    waiting = op(WRITE, "waiting for subops from 1,2", "op_commit")
    queued = op(WRITE, "queued_for_pg")
    add(meter, 0.0, waiting, queued)
    assert sum(meter.seconds.values()) == 0.0
    add(meter, 10.0, waiting, waiting, queued)
    assert meter.seconds["client", "subops", "osd.1"] == 10.0
    assert meter.seconds["client", "subops", "osd.2"] == 10.0
    assert meter.seconds["client", "queue", ""] == 10.0
    assert meter.sampled == {"client": 5}


@pytest.mark.parametrize("release", RELEASES)
def test_a_completed_operation_spent_all_its_time_in_places_that_are_known(release: str) -> None:
    record, odd = recorded_history(release), NotUnderstood()
    found = completed(record, odd)
    assert len(found) == len(record) == 20 and not odd.found
    for op, sampled in zip(record, found, strict=True):
        # The last event comes at the end of an operation, or microseconds before.
        assert sampled.seconds == pytest.approx(op["duration"], abs=1e-3)
        assert sampled.spent[0][0].event == "receive"
    places = {wait.event for sampled in found for wait, _ in sampled.spent}
    assert {"queue", "commit"} <= places and "unknown" not in places


def test_only_the_worst_peers_have_series() -> None:
    meter = WaitMeter(peers=2)
    peers = [op(WRITE, f"waiting for subops from {n}", "op_commit") for n in range(10)]
    add(meter, 10.0, *peers, peers[3], peers[3], peers[7])
    shown = {key[2]: value for key, value in meter.seconds.items()}
    assert shown == {"osd.3": 30.0, "osd.7": 20.0, "other": 80.0}
    assert sum(shown.values()) == 130.0
