"""Operations that take long, without ever listing many."""

from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.collectors.operation_samples import OperationSample, OperationSamples
from cephqos_exporter.collectors.ops import OpsCollector, longest_stage
from cephqos_exporter.daemon import Daemon, ReplyMissing

from ..osd_views import OSD, RecordedOsd, by_name, recorded_ops, value, values

OLDEST = "cephqos_ops_oldest_age_seconds"
BY_STAGE = "cephqos_ops_slow_by_stage_total"


def op(number: int, *events: tuple[str, float]) -> dict[str, Any]:
    """A completed operation; events with seconds since it began."""
    return {
        "description": f"osd_op(client.4105.0:{number} ...)",
        "initiated_at": "2026-11-21T02:57:38.000000+0000",
        "age": 60.0,
        "duration": events[-1][1],
        "type_data": {
            "events": [
                # The durations that some releases print are wrong; the times are right.
                {"event": name, "time": f"2026-11-21T02:57:{38 + at:09.6f}+0000", "duration": 4e9}
                for name, at in events
            ]
        },
    }


def slow(*ops: dict[str, Any]) -> dict[str, Any]:
    return {"num to keep": 20, "threshold to keep": 10, "Ops": list(ops)}


QUEUED = op(1, ("initiated", 0), ("queued_for_pg", 0.1), ("reached_pg", 12), ("done", 12.1))
SUBOPS = op(2, ("initiated", 0), ("waiting for subops from 2,5", 1), ("sub_op_commit_rec", 15))


def sampled(osd: RecordedOsd, samples: OperationSamples, now: float) -> Any:
    """The sample of a scrape at that time, as a collector asks for it."""
    osd.time = now
    return osd.sample(samples)


def idle(release: str = "reef") -> RecordedOsd:
    osd = RecordedOsd(release, "idle")
    osd.counters("osd")["op_wip"] = 0
    return osd


@pytest.mark.parametrize("release", RELEASES)
def test_an_idle_osd_has_nothing_in_progress_and_that_is_known(release: str) -> None:
    families = idle(release).scrape(OpsCollector())
    assert value(families, "cephqos_ops_in_progress") == 0
    assert value(families, OLDEST) == 0
    names = by_name(families)
    # 16.2 has neither the count of blocked operations nor that of slow ones.
    assert ("cephqos_ops_blocked" in names) is (release != "pacific")
    assert ("cephqos_ops_slow_total" in names) is (release != "pacific")


def test_few_operations_are_listed_to_find_the_oldest() -> None:
    osd, collector = idle(), OpsCollector()
    osd.counters("osd")["op_wip"] = 3
    listed = [{**op(1, ("initiated", 0)), "age": age} for age in (0.1, 7.5)]
    osd.replies["ops"] = {"ops": listed, "num_ops": 2}
    assert not values(osd.scrape(collector), OLDEST)
    assert value(osd.scrape(collector), OLDEST) == 7.5


def test_the_few_are_listed_every_five_seconds_and_the_age_is_that_of_the_last_list() -> None:
    osd, collector = idle(), OpsCollector(sample_at_most=0)
    osd.counters("osd")["op_wip"] = 3
    asked, shown = [], []
    for second in range(13):
        osd.time = 1000.0 + second
        osd.replies["ops"] = {"ops": [{**op(1, ("initiated", 0)), "age": second + 0.5}]}
        shown.append(list(values(osd.scrape(collector), OLDEST).values()))
        asked.append("ops" in osd.asked[-1])
    assert [second for second in range(13) if asked[second]] == [1, 6, 11]
    assert shown == [[]] + [[1.5]] * 5 + [[6.5]] * 5 + [[11.5]] * 2


def test_an_age_is_not_shown_any_longer_than_it_is_known() -> None:
    osd, collector = idle(), OpsCollector(list_at_most=32, sample_at_most=0)
    osd.replies["ops"] = {"ops": [{**op(1, ("initiated", 0)), "age": 7.5}]}

    def oldest(in_progress: int) -> list[float]:
        osd.counters("osd")["op_wip"] = in_progress
        osd.time += 1
        return list(values(osd.scrape(collector), OLDEST).values())

    assert [oldest(n) for n in (0, 3, 3, 3)] == [[0], [], [7.5], [7.5]]
    assert [oldest(n) for n in (0, 3)] == [[0], []], "those that it was of have ended"
    assert "ops" not in osd.asked[-1]
    assert oldest(3) == [7.5]
    assert oldest(33) == [7.5], "as of the last list"
    assert [oldest(n) for n in (33, 3, 3)] == [[], [], [7.5]]
    del osd.replies["ops"]
    assert [oldest(3) for _ in range(6)] == [[7.5]] * 4 + [[], []], "asked for in vain"
    assert "ops" in osd.asked[-1]


def test_many_operations_are_never_listed_and_their_age_is_absent() -> None:
    osd, collector = idle(), OpsCollector(list_at_most=32, sample_at_most=32)
    osd.counters("osd")["op_wip"] = 33
    for _ in range(3):
        families = osd.scrape(collector)
        assert not values(families, OLDEST)
        assert "ops" not in osd.asked[-1]
        assert value(families, "cephqos_ops_in_progress") == 33


def test_operations_in_the_queue_are_in_progress_too() -> None:
    """The OSD's own count has those only that were begun: 900 of 9,000 in a real storm."""
    osd, collector = idle(), OpsCollector()
    osd.replies["ops"] = {"ops": [{**op(1, ("initiated", 0)), "age": 7.5}]}
    queue = osd.counters("mclock-shard-queue-0")
    queue["mclock_client_queue_len"] = 1
    osd.scrape(collector)
    assert value(osd.scrape(collector), OLDEST) == 7.5
    osd.time += 10
    queue["mclock_client_queue_len"] = 5000
    osd.scrape(collector)
    assert not values(osd.scrape(collector), OLDEST)
    assert "ops" not in osd.asked[-1]
    assert "dump_historic_ops" in osd.asked[-1]


def test_a_list_longer_than_the_counters_said_is_paid_for_before_the_next_one() -> None:
    """5,000 times 16 us are 0.25 ms per second of 320 s."""
    osd, collector = idle("pacific"), OpsCollector()
    osd.counters("osd")["op_wip"] = 8
    osd.replies["ops"] = {"ops": recorded_ops("pacific", "ec_read", 0)["ops"][:1] * 5000}
    for _ in range(100):
        osd.scrape(collector)
        osd.time += 5
    at = [5 * scrape for scrape, asked in enumerate(osd.asked) if "ops" in asked]
    assert at == [5, 330]
    assert sum("dump_historic_ops" in asked for asked in osd.asked) > 10


def test_an_operation_that_came_while_the_list_was_made_has_no_age() -> None:
    """Its age is negative, and a release prints it as an unsigned number of 32 bits."""
    osd, collector = idle(), OpsCollector()
    osd.counters("osd")["op_wip"] = 16
    osd.replies["ops"] = recorded_ops("pacific", "ec_read", 0)
    assert max(o["age"] for o in osd.replies["ops"]["ops"]) > 4e9
    osd.scrape(collector)
    assert value(osd.scrape(collector), OLDEST) < 1


def test_where_operations_wait_is_sampled_at_intervals_while_they_are_many() -> None:
    osd, collector = idle(), OpsCollector(list_at_most=4, sample_interval=10)
    osd.counters("osd")["op_wip"] = 40
    osd.replies["ops"] = recorded_ops("reef", "slow_replica", 0)
    asked, series = [], "cephqos_ops_sampled_wait_seconds_total"
    for _ in range(9):
        families = osd.scrape(collector)
        asked.append("ops" in osd.asked[-1])
        osd.time += 5
    assert asked == [False, True, False, True, False, True, False, True, False]
    # Three intervals of 10 s between four samples, in each of which 8 operations wait.
    assert value(families, "cephqos_ops_sampled_total", kind="client") == 32
    assert sum(values(families, series).values()) == pytest.approx(3 * 10 * 8)


def seconds(sample: OperationSample | None) -> list[tuple[int, float]]:
    """How many were alike, and the seconds that each stands for."""
    assert sample is not None
    return [(len(those.descriptions), those.seconds) for those in sample.operations]


def test_a_time_without_samples_is_counted_for_a_minute_at_most() -> None:
    osd, samples = idle(), OperationSamples()
    osd.counters("osd")["op_wip"] = 8
    osd.replies["ops"] = recorded_ops("reef", "slow_replica", 0)
    assert sampled(osd, samples, 0) is None
    assert seconds(sampled(osd, samples, 5)) == [(8, 0.0)]
    assert sampled(osd, samples, 10) is None
    assert seconds(sampled(osd, samples, 3600)) == [(8, 60.0)]
    # A clock that was set back.
    assert seconds(sampled(osd, samples, -3600)) == [(8, 0.0)]


def test_a_sample_counts_once_although_the_next_scrape_has_no_counters() -> None:
    osd, samples = idle(), OperationSamples()
    osd.counters("osd")["op_wip"] = 8
    osd.replies["ops"] = recorded_ops("reef", "slow_replica", 0)
    sampled(osd, samples, 0)
    assert sampled(osd, samples, 5) is not None
    for dump in ("perf dump", "counter dump"):
        osd.replies.pop(dump, None)
        osd.errors[dump] = "timeout"
    osd.time = 10
    view = osd.view(samples.commands(osd.daemon))
    with pytest.raises(ReplyMissing):
        samples.of(view)
    assert samples.of(view) is None, "for the collector that asks next"


def test_who_wants_no_samples_gets_none_from_the_list_that_tells_the_oldest() -> None:
    osd, collector = idle(), OpsCollector(list_at_most=32, sample_at_most=0)
    osd.counters("osd")["op_wip"] = 8
    osd.replies["ops"] = recorded_ops("reef", "slow_replica", 0)
    for _ in range(4):
        families = osd.scrape(collector)
        osd.time += 15
    assert value(families, OLDEST) > 0
    assert "cephqos_ops_sampled_total" not in by_name(families)


def test_the_list_costs_an_osd_the_same_share_however_many_are_in_progress() -> None:
    """16 us of CPU for each operation: 0.25 ms per second at most, and 20 of them above 512."""
    for in_progress, seconds in ((1, 10), (156, 10), (300, 20), (512, 33), (513, 33), (5000, 33)):
        osd, samples = idle(), OperationSamples()
        osd.counters("osd")["op_wip"] = in_progress
        osd.replies["ops"] = {"ops": []}
        osd.replies["dump_historic_ops"] = {"ops": []}
        taken = (now for now in range(1000) if sampled(osd, samples, now) is not None)
        at = [next(taken) for _ in range(3)]
        assert at[2] - at[1] in range(seconds - 1, seconds + 2), in_progress
        assert ("ops" in osd.asked[at[1]]) is (in_progress <= 512)
        assert ("dump_historic_ops" in osd.asked[at[1]]) is (in_progress > 512)


def test_in_a_storm_the_operations_that_completed_since_the_last_look_are_the_sample() -> None:
    osd, samples = idle(), OperationSamples()
    osd.counters("osd")["op_wip"] = 5000
    osd.replies["dump_historic_ops"] = {"ops": [QUEUED]}
    assert sampled(osd, samples, 0) is None
    first = sampled(osd, samples, 60)
    assert not first.in_progress and not first.operations, "it ended before, at an unknown time"
    osd.replies["dump_historic_ops"] = {"ops": [QUEUED, SUBOPS]}
    (one,) = sampled(osd, samples, 120).operations
    assert (one.kind, one.seconds) == ("client", 15.0)
    assert [(w.event, s) for w, s in one.spent] == [("receive", 1.0), ("commit", 14.0)]


def test_an_osd_that_only_has_replica_writes_is_sampled_too() -> None:
    osd, collector = idle(), OpsCollector()
    osd.replies["ops"] = recorded_ops("reef", "slow_replica", 1)
    for _ in range(3):
        osd.counters("osd")["subop_w_latency"]["sum"] += 30.0
        families = osd.scrape(collector)
        osd.time += 15
    assert "ops" in osd.asked[-1]
    assert value(families, "cephqos_ops_sampled_total", kind="replica") == 27


def test_an_osd_without_operations_has_no_samples() -> None:
    osd, collector = idle(), OpsCollector()
    for _ in range(3):
        families = osd.scrape(collector)
        osd.time += 15
    assert "cephqos_ops_sampled_total" not in by_name(families)


def test_slow_operations_are_counted_once_by_the_stage_they_waited_in() -> None:
    osd, collector = idle(), OpsCollector()
    osd.replies["dump_historic_slow_ops"] = slow()
    osd.scrape(collector)
    counters = osd.counters("trackedop")
    counters["slow_ops_count"] = 2
    osd.time += 10
    osd.scrape(collector)
    osd.replies["dump_historic_slow_ops"] = slow(QUEUED, SUBOPS)
    families = osd.scrape(collector)
    assert value(families, "cephqos_ops_slow_total") == 2
    assert value(families, BY_STAGE, stage="queued_for_pg") == 1
    assert value(families, BY_STAGE, stage="waiting_for_subops") == 1
    counters["slow_ops_count"] = 3
    third = op(3, *[(e, t) for e, t in (("initiated", 0.0), ("queued_for_pg", 0.1), ("done", 20))])
    osd.time += 10
    osd.scrape(collector)
    osd.replies["dump_historic_slow_ops"] = slow(SUBOPS, third)
    assert value(osd.scrape(collector), BY_STAGE, stage="queued_for_pg") == 2


def test_what_was_slow_before_the_first_look_is_not_counted() -> None:
    osd, collector = idle(), OpsCollector()
    osd.replies["dump_historic_slow_ops"] = slow(QUEUED)
    osd.counters("trackedop")["slow_ops_count"] = 1
    for _ in range(3):
        assert not values(osd.scrape(collector), BY_STAGE)


def test_the_record_of_slow_operations_is_read_only_when_there_are_new_ones() -> None:
    osd, collector = idle(), OpsCollector()
    for second in range(33):
        osd.time = 1000.0 + second
        # In a storm there are new ones all the time: then it is read every ten seconds.
        osd.counters("trackedop")["slow_ops_count"] += second in (3, *range(15, 27))
        osd.scrape(collector)
    read = [second for second in range(33) if "dump_historic_slow_ops" in osd.asked[second]]
    assert read == [0, 10, 20, 30]


def test_a_record_of_slow_operations_that_is_not_understood_is_not_asked_for_at_every_scrape() -> (
    None
):
    osd, collector = idle(), OpsCollector()
    osd.replies["dump_historic_slow_ops"] = {"operations": []}
    for _ in range(3):
        osd.scrape(collector)
    assert ["dump_historic_slow_ops" in asked for asked in osd.asked] == [True, False, False]


def test_where_nothing_counts_slow_operations_their_record_is_read_now_and_then() -> None:
    osd, collector = idle("pacific"), OpsCollector()
    for _ in range(14):
        osd.scrape(collector)
        osd.time += 10
    read = [at for at, asked in enumerate(osd.asked) if "dump_historic_slow_ops" in asked]
    assert read == [0, 6, 12]


@pytest.mark.parametrize(
    ("event", "stage"),
    [
        ("waiting for subops from 2,5", "waiting_for_subops"),
        ("sub_op_commit_rec from 3", "sub_op_commit_rec"),
        ("commit_queued_for_journal_write", "commit_queued_for_journal_write"),
        ("waiting for rw locks", "waiting_for_rw_locks"),
        ("reached_pg", "reached_pg"),
        ("waiting for degraded object", "waiting_for_degraded_object"),
        ("42", "unknown"),
    ],
)
def test_a_stage_is_named_without_the_particulars_of_one_operation(event: str, stage: str) -> None:
    assert longest_stage(op(1, ("initiated", 0), (event, 1), ("done", 9))) == stage


def test_an_operation_with_no_events_waited_in_an_unknown_stage() -> None:
    assert longest_stage(op(1, ("initiated", 0))) == "unknown"


def test_stages_that_never_end_are_put_together_as_other() -> None:
    osd, collector = idle(), OpsCollector()
    osd.replies["dump_historic_slow_ops"] = slow()
    osd.scrape(collector)
    osd.counters("trackedop")["slow_ops_count"] += 1
    osd.time += 10
    osd.scrape(collector)
    letters = [a + b for a in "abcdefgh" for b in "abcdefgh"]
    osd.replies["dump_historic_slow_ops"] = slow(
        *(op(i, ("initiated", 0), (name, 1), ("done", 9)) for i, name in enumerate(letters))
    )
    found = values(osd.scrape(collector), BY_STAGE)
    assert len(found) == 41
    assert sum(found.values()) == len(letters)


def test_a_daemon_that_is_no_osd_is_not_asked() -> None:
    osd = RecordedOsd("reef", daemon=Daemon("mon", "a", OSD.cluster, OSD.socket))
    assert osd.scrape(OpsCollector()) == []
    assert osd.asked == [[]]


def test_an_osd_that_tracks_no_operations_is_a_failure_and_not_an_osd_without_slow_ones() -> None:
    """With osd_enable_op_tracker off it refuses the commands, and counts none as slow."""
    osd, collector = idle(), OpsCollector()
    osd.counters("osd")["op_wip"] = 15
    for command in ("ops", "dump_blocked_ops_count", "dump_historic_slow_ops"):
        osd.replies.pop(command, None)
        osd.errors[command] = "failed"
    for _ in range(3):
        with pytest.raises(ReplyMissing, match="osd_enable_op_tracker is off") as failure:
            osd.scrape(collector)
        assert value(failure.value.families, "cephqos_ops_in_progress") == 15
        assert len(failure.value.families) == 1
    for command in ("ops", "dump_blocked_ops_count", "dump_historic_slow_ops"):
        osd.replies[command] = idle().replies.get(command, {"ops": []})
    assert value(osd.scrape(collector), "cephqos_ops_slow_total") == 0


@pytest.mark.parametrize(
    ("logger", "counter", "lost"),
    [
        ("osd", "op_wip", {"cephqos_ops_in_progress", OLDEST}),
        ("osd", "subop_w_latency", set()),
        ("trackedop", "slow_ops_count", {"cephqos_ops_slow_total"}),
    ],
)
def test_a_counter_that_is_missing_costs_its_own_figure(
    logger: str, counter: str, lost: set[str]
) -> None:
    osd = idle()
    del osd.counters(logger)[counter]
    before, after = by_name(idle().scrape(OpsCollector())), by_name(osd.scrape(OpsCollector()))
    assert before.keys() - after.keys() == lost
    assert osd.not_understood == {"counter"}


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("dump_blocked_ops_count", {"blocked": 4, "complaint_time": 30}),
        ("dump_historic_slow_ops", {"num to keep": 20, "operations": [QUEUED]}),
    ],
)
def test_a_reply_with_another_shape_is_counted_and_not_taken_for_nothing(
    command: str, reply: dict[str, Any]
) -> None:
    osd = idle()
    osd.replies[command] = reply
    families = osd.scrape(OpsCollector())
    assert osd.not_understood in ({"reply"}, {"counter"})
    assert not values(families, "cephqos_ops_blocked") or command != "dump_blocked_ops_count"
    assert value(families, "cephqos_ops_in_progress") == 0


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("moment", ["slow_replica", "ec_slow", "ec_read"])
def test_all_of_a_recorded_osd_is_understood(release: str, moment: str) -> None:
    osd, collector = idle(release), OpsCollector()
    osd.counters("osd")["op_wip"] = 16
    osd.replies["ops"] = recorded_ops(release, moment, 0)
    for _ in range(3):
        osd.scrape(collector)
        osd.time += 15
        assert not osd.not_understood
