"""Crimson replies that are odd: each figure costs itself and nothing else."""

from typing import Any

import pytest

from cephqos_exporter.collectors.crimson import CrimsonCollector
from cephqos_exporter.daemon import ReplyMissing
from cephqos_exporter.daemon_errors import Malformed

from .crimson_views import BLUESTORE, collected, entry, histogram, one, recorded, unread, view


def test_a_figure_that_is_not_finite_is_absent_and_not_odd() -> None:
    reply = one("reactor_polls", None, shard="0")
    assert collected(reply) == {}
    assert unread(reply) == 0


def test_names_that_prometheus_would_refuse_are_made_fit() -> None:
    reply = one("odd-name.x", 3, **{"a b": "1"})
    assert collected(reply, include=["*"]) == {'cephqos_crimson_odd_name_x{a_b="1"}': 3}


def test_labels_that_prometheus_would_refuse_or_take_for_something_else_are_left_out() -> None:
    labels = {"": "a", "9lives": "b", "__name__": "c", "le": "d", "cluster": "e", "ok": "f"}
    reply = one("reactor_polls", 3, **labels, mountpoint="", **{"o.k": "g", "o_k": "h"}, number=5)
    assert collected(reply) == {'cephqos_crimson_reactor_polls_total{ok="f",o_k="g",number="5"}': 3}
    text = one("reactor_polls", 3, shard='a"b\nc\\')
    assert collected(text) == {'cephqos_crimson_reactor_polls_total{shard="a\\"b\\nc\\\\"}': 3}


def test_a_class_that_the_reply_has_itself_is_kept() -> None:
    reply = one("reactor_polls", 3, **{"class": "main"}, op_class="repop")
    expected = 'cephqos_crimson_reactor_polls_total{class="main",op_class="repop"}'
    assert collected(reply) == {expected: 3}


@pytest.mark.parametrize(
    "odd",
    [
        3,
        None,
        {"reactor_polls": 3},
        {"reactor_polls": {"shard": "0"}},
        entry("reactor_polls", "many"),
        entry("reactor_polls", True),
        entry("reactor_polls", [1]),
        entry("reactor_polls", 10**400),
        entry("reactor_polls", 3, shard={"a": 1}),
        entry("reactor_polls", histogram({1: 1}, 1) | {"sum": "x"}),
        entry("seastore_op_lat", 5),
        entry("seastore_op_lat", {}),
        entry("seastore_op_lat", {"sum": "x", "count": 1}),
        entry("seastore_op_lat", {"sum": 1.0}),
        entry("seastore_op_lat", {"sum": 1.0, "count": 1, "buckets": 3}),
        entry("seastore_op_lat", {"sum": 1.0, "count": 1, "buckets": [3]}),
        entry("seastore_op_lat", {"sum": 1.0, "count": 1, "buckets": [{"le": 1}]}),
        entry("seastore_op_lat", histogram({2: 1, 1: 1}, 2)),
        entry("reactor_polls", -1),
        entry("reactor_polls", 2**64 - 5),  # a negative number, written without its sign
        entry("seastore_op_lat", histogram({1: 5}, 5, total=-1)),
        entry("seastore_op_lat", histogram({1: -5, 2: 1}, 2)),
        entry("seastore_op_lat", histogram({-1: 5, 2: 1}, 6)),
        entry("seastore_op_lat", {"sum": 1, "count": 1.5, "buckets": []}),
        entry("osd_mclock_total_wait_ms", "x", op_class="client"),
    ],
)
def test_one_odd_metric_costs_itself_and_nothing_else(odd: object) -> None:
    good = recorded(BLUESTORE)
    expected = collected(good)
    both = {"metrics": [odd, *good["metrics"]]}
    assert collected(both) == expected
    assert unread(both) == 1


def test_a_series_that_comes_twice_is_shown_once() -> None:
    reply = {"metrics": [entry("reactor_polls", n, shard="0") for n in (3, 4)]}
    assert collected(reply) == {'cephqos_crimson_reactor_polls_total{shard="0"}': 3}
    assert unread(reply) == 1


def test_labels_in_another_order_and_labels_that_are_left_out_make_no_series_twice() -> None:
    polls = [entry("reactor_polls", 3, a="1", b="2"), entry("reactor_polls", 4, b="2", a="1")]
    assert len(collected({"metrics": polls})) == 1
    latency = [
        entry("seastore_op_lat", histogram({1: 5}, 6), latency="READ", shard="0"),
        entry("seastore_op_lat", histogram({2: 5}, 6), latency="READ", shard="0", **{"9": "x"}),
    ]
    assert len(collected({"metrics": latency})) == 4
    assert unread({"metrics": latency}) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.b", "a-b"),
        ("reactor_polls", "reactor_polls_total"),
        ("seastore_op_lat", "seastore_op_seconds_count"),
        ("reactor_polls", "metrics_unread"),
    ],
)
def test_no_metric_takes_the_name_of_another(first: str, second: str) -> None:
    value = histogram({1: 1}, 1) if first == "seastore_op_lat" else 3
    alone = collected(one(first, value, shard="0"), include=["*"])
    reply = {"metrics": [entry(first, value, shard="0"), entry(second, 4, shard="1")]}
    assert collected(reply, include=["*"]) == alone
    assert unread(reply, include=["*"]) == 1


def test_shards_with_other_bounds_are_not_added_to_the_first() -> None:
    def op(shard: str, bound: float) -> dict[str, Any]:
        return entry("seastore_op_lat", histogram({bound: 5}, 6), latency="READ", shard=shard)

    reply = {"metrics": [op("0", 1), op("1", 2)]}
    assert collected(reply)['cephqos_crimson_seastore_op_seconds_count{latency="READ"}'] == 6
    assert unread(reply) == 1


@pytest.mark.parametrize("reply", [None, [], {}, 3, {"metrics": 3}, {"metrics": {"a": 1}}])
def test_a_reply_that_is_no_list_of_metrics_is_an_error(reply: object) -> None:
    with pytest.raises(Malformed):
        list(CrimsonCollector().collect(view(reply)))


def test_a_classic_osd_does_not_know_the_command_and_has_no_series() -> None:
    with pytest.raises(ReplyMissing) as error:
        list(CrimsonCollector().collect(view(None, error="unknown_command")))
    assert error.value.reason == "unknown_command"
