"""Crimson replies that are odd: each figure costs itself and nothing else."""


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
        entry("reactor_polls", -1),
        entry("reactor_polls", 2**64 - 5),  # a negative number, written without its sign
        entry("seastore_op_lat", histogram({1: 5}, 5, total=-1)),
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


@pytest.mark.parametrize("reply", [None, [], {}, 3, {"metrics": 3}, {"metrics": {"a": 1}}])
def test_a_reply_that_is_no_list_of_metrics_is_an_error(reply: object) -> None:
    with pytest.raises(Malformed):
        list(CrimsonCollector().collect(view(reply)))


def test_a_classic_osd_does_not_know_the_command_and_has_no_series() -> None:
    with pytest.raises(ReplyMissing) as error:
        list(CrimsonCollector().collect(view(None, error="unknown_command")))
    assert error.value.reason == "unknown_command"
