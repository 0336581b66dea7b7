"""What the queue dump says: the scheduler in force, queues, and how late they are served."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.tags import (
    TAG_MODULO,
    Head,
    class_of,
    limit_wait,
    read_queue_dump,
    reservation_lag,
    seconds_past,
)

NOW = 1_795_229_186.65  # modulo 1,000,000: 229186.65


def client(class_id: str, client_id: int = 0) -> str:
    return f"{{ class_id: {class_id} client_id: {client_id} profile_id: 0 }}"


def record(class_id: str, count: int, head: str, client_id: int = 0) -> str:
    """A record as dmClock prints it; `head` is the tag of the first request, or nothing."""
    who = client(class_id, client_id)
    previous = "{ RequestTag:: ready:false r:229000.1000 p:704238.6234 l:0.0000 }"
    top = "none"
    if head:
        top = f"{{ ClientReq:: tag:{{ RequestTag:: ready:false {head} }} client:{who} }}"
    return (
        f" {{ client:{who}, record:{{ ClientRec:: client:{who} prev_tag:{previous} "
        f"req_count:{count} top_req:{top} }} }}"
    )


def shard(
    *records: str, immediate: int | None = None, queued: int | None = None
) -> dict[str, object]:
    """`queued`: how many requests the shard says it has; else as many as its records have."""
    tops = "".join(f" {{ {kind}_top:{' '.join(records)} }}" for kind in ("reservation", "ready"))
    if queued is None:
        queued = sum(int(one) for text in records for one in re.findall(r"req_count:(\d+)", text))
    sizes = {"scheduler": queued}
    if immediate is not None:
        sizes["immediate"] = immediate
    return {
        "queue_sizes": sizes,
        "mClockClients": {
            "client_count": len(records),
            "clients": f"{{ PriorityQueue:: {''.join(records)}{tops} }}",
        },
        "mClockQueues": {"queues": "RESER:LIMIT:READY:"},
    }


def test_lengths_and_heads_are_read_by_class_and_shard() -> None:
    dump = read_queue_dump(
        {
            "OSD:ShardedOpWQ:0": shard(
                record("3", 119, "r:229186.3300 p:704238.6 l:min"),
                record("1", 4, "r:max p:1.0 l:229187.1500"),
            ),
            "OSD:ShardedOpWQ:1": shard(record("0", 0, "")),
        }
    )
    assert dump.scheduler == "mclock_scheduler"
    first, second = dump.shards
    assert (first.index, second.index) == ("0", "1")
    assert first.lengths == {CLIENT: 119, BEST_EFFORT: 4}
    assert second.lengths == {RECOVERY: 0}
    # The measured example: 119 client ops queued, the head due 0.32 s ago.
    assert reservation_lag(first.heads[CLIENT], NOW) == pytest.approx(0.32, abs=1e-3)
    assert reservation_lag(first.heads[BEST_EFFORT], NOW) is None
    assert limit_wait(first.heads[CLIENT], NOW) == 0
    assert limit_wait(first.heads[BEST_EFFORT], NOW) == pytest.approx(0.5, abs=1e-3)
    assert RECOVERY not in second.heads


def test_the_heads_printed_again_as_tops_of_the_heaps_are_not_counted_twice() -> None:
    dump = read_queue_dump({"OSD:ShardedOpWQ:0": shard(record("3", 5, "r:1.0 p:1.0 l:min"))})
    assert dump.shards[0].lengths == {CLIENT: 5}
    assert len(dump.shards[0].heads[CLIENT]) == 1


def test_clients_that_each_have_a_queue_of_their_own_are_added_and_the_latest_tells() -> None:
    body = shard(
        record("client", 3, "r:229186.0000 p:1.0 l:min", 4105),
        record("client", 4, "r:229185.0000 p:1.0 l:min", 4107),
        record("background_recovery", 2, "r:229186.5000 p:1.0 l:229186.9", 0),
        immediate=7,
    )
    only = read_queue_dump({"OSD:ShardedOpWQ:0": body}).shards[0]
    assert only.lengths == {CLIENT: 7, RECOVERY: 2, IMMEDIATE: 7}
    assert reservation_lag(only.heads[CLIENT], NOW) == pytest.approx(1.65, abs=1e-3)


def test_wpq_is_told_by_its_arrays_and_says_nothing_of_classes() -> None:
    queues = [63, 4911, {"priority": 63, "num_keys": 1, "first_item_cost": 4096}]
    body = {"high_queues": [], "queues": queues}
    dump = read_queue_dump({f"OSD:ShardedOpWQ:{i}": body for i in range(5)})
    assert dump.scheduler == "wpq"
    assert len(dump.shards) == 5
    assert not any(one.told or one.lengths for one in dump.shards)


def test_the_mclock_of_16_2_prints_nothing_and_that_tells_it() -> None:
    dump = read_queue_dump({f"OSD:ShardedOpWQ:{i}": {} for i in range(5)})
    assert dump.scheduler == "mclock_scheduler"
    assert not any(one.told for one in dump.shards)


@pytest.mark.parametrize("reply", [{}, {"OSD:ShardedOpWQ:0": {"bfq": 1}}, {"x": 3}])
def test_another_shape_is_an_unknown_scheduler(reply: dict[str, object]) -> None:
    assert read_queue_dump(reply).scheduler == "unknown"


def test_an_empty_queue_is_not_behind_and_one_that_is_ahead_neither() -> None:
    assert reservation_lag([], NOW) == 0
    assert reservation_lag([Head(reservation=229190.0, limit=None)], NOW) == 0


def test_a_head_whose_limit_has_passed_is_not_held() -> None:
    assert limit_wait([], NOW) == 0
    assert limit_wait([Head(reservation=None, limit=229186.0)], NOW) == 0


def test_a_head_that_fell_due_before_the_wrap_is_late_by_seconds_not_by_days() -> None:
    due = TAG_MODULO - 0.5
    assert seconds_past(due, 1_795_000_000 + 1.5) == pytest.approx(2.0)
    assert seconds_past(1.5, 1_794_999_999.5) == pytest.approx(-2.0)


def test_a_clock_set_back_by_an_hour_reads_as_not_yet_due() -> None:
    assert seconds_past(229186.65, NOW - 3600) == pytest.approx(-3600)
    assert reservation_lag([Head(229186.65, None)], NOW - 3600) == 0


@given(
    now=st.floats(1e9, 4e9),
    late=st.floats(-400_000, 400_000),
)
def test_lateness_is_found_wherever_the_clock_stands(now: float, late: float) -> None:
    assert seconds_past((now - late) % TAG_MODULO, now) == pytest.approx(late, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "cls"),
    [
        ("3client", CLIENT),
        ("0background_recovery", RECOVERY),
        ("1background_best_effort", BEST_EFFORT),
        ("2immediate", IMMEDIATE),
        # Crimson's numbers are others: the name decides.
        ("2client", CLIENT),
        ("4immediate", IMMEDIATE),
        ("3repop", None),
        ("3", CLIENT),
        ("5", None),
        ("33", None),
        ("client3", None),
    ],
)
def test_a_class_is_read_by_its_name_or_else_its_number(text: str, cls: str | None) -> None:
    assert class_of(text) == cls


@pytest.mark.parametrize(
    ("body", "what", "said"),
    [
        (shard(record("5", 4, "r:229181.6500 p:1.0 l:min")), "class", "5"),
        (shard(record("3", 4, "r:1.0 p:1.0 l:min"), queued=9), "reply", "9 requests wait"),
        (shard(record("3", 4, "r:soon p:1.0 l:min")), "reply", "r:soon"),
        (shard(record("3", 4, "r:nan p:1.0 l:min")), "reply", "r:nan"),
    ],
)
def test_what_is_not_understood_is_said_and_the_shard_is_not_whole(
    body: dict[str, object], what: str, said: str
) -> None:
    odd = NotUnderstood()
    assert not read_queue_dump({"OSD:ShardedOpWQ:0": body}, odd).shards[0].whole
    ((found, (_, text)),) = odd.found.items()
    assert found == what
    assert said in text


def test_another_scheduler_is_not_understood_and_wpq_is() -> None:
    odd = NotUnderstood()
    read_queue_dump({"OSD:ShardedOpWQ:0": {"high_queues": [], "queues": []}}, odd)
    assert not odd.found
    read_queue_dump({"OSD:ShardedOpWQ:0": {"bfq": 1}}, odd)
    assert list(odd.found) == ["reply"]
