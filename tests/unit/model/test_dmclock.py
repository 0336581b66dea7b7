"""dmClock shares a server as its paper says, and as its rules promise."""

import pytest
from tests.model.scheduler.dmclock import DmClock, Served, Tag, Terms, next_tag


def shares(
    terms: dict[str, Terms],
    rate: float,
    seconds: float = 12,
    costs: dict[str, float] | None = None,
    wants: dict[str, float] | None = None,
) -> tuple[dict[str, float], float]:
    """Cost per second that each class gets of a server, and the share of time it stood still.

    Each class always has requests, or as many a second as it `wants`.
    """
    costs, wants = costs or {}, wants or {}
    clock, queue = 0.0, DmClock(terms)
    added, got = dict.fromkeys(terms, 0), dict.fromkeys(terms, 0.0)
    idle = 0.0
    while clock < seconds:
        for name in terms:
            full = 60 - queue.waiting_of(name)
            due = int(clock * wants[name]) - added[name] if name in wants else full
            for _ in range(due):
                queue.add(name, costs.get(name, 1.0), None, clock)
                added[name] += 1
        found = queue.pull(clock)
        if isinstance(found, Served):
            got[found.name] += found.cost
            clock += found.cost / rate
        else:
            until = clock + 1 / rate
            idle += until - clock
            clock = until
    return {name: got[name] / seconds for name in terms}, idle / seconds


PAPER = {
    "remote_desktop": Terms(250, 100, 0),
    "transactions": Terms(250, 200, 0),
    "migration": Terms(0, 300, 1000),
}


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (500, (250, 250, 0)),
        (700, (250, 250, 200)),
        (1200, (250, 380, 570)),
        (1800, (300, 600, 900)),
        (2400, (467, 933, 1000)),
    ],
)
def test_the_example_of_the_paper(rate: float, expected: tuple[float, ...]) -> None:
    """Three machines on one array: within their bounds they share by weight."""
    got, _ = shares(PAPER, rate)
    assert list(got.values()) == pytest.approx(list(expected), rel=0.02, abs=8)


def test_what_is_asked_for_less_is_shared_by_the_others_and_not_owed_later() -> None:
    got, idle = shares(PAPER, 1200, wants={"transactions": 100})
    assert got["transactions"] == pytest.approx(100, rel=0.02)
    assert got["remote_desktop"] == pytest.approx(1100 / 4, rel=0.03)
    assert idle == 0


def test_reservations_are_met_where_they_fit_whatever_the_costs_are() -> None:
    terms = {"small": Terms(300, 1, 0), "large": Terms(500, 1, 0), "rest": Terms(0, 50, 0)}
    got, idle = shares(terms, 1000, costs={"small": 1, "large": 40, "rest": 7})
    assert got["small"] >= 297 and got["large"] >= 495
    assert idle == 0, "a server stood still while requests waited"


def test_a_limit_holds_although_the_server_stands_still() -> None:
    terms = {"a": Terms(50, 1, 100), "b": Terms(0, 9, 200)}
    got, idle = shares(terms, 1000)
    assert got["a"] == pytest.approx(100, rel=0.02) and got["b"] == pytest.approx(200, rel=0.02)
    assert idle == pytest.approx(0.7, abs=0.01)


def test_a_reservation_above_the_limit_is_served_in_full() -> None:
    """The phase of reservations does not look at limits."""
    got, _ = shares({"a": Terms(400, 1, 100)}, 1000)
    assert got["a"] == pytest.approx(400, rel=0.02)


def test_weights_share_by_cost_and_not_by_requests() -> None:
    got, _ = shares({"a": Terms(0, 1, 0), "b": Terms(0, 3, 0)}, 1000, costs={"a": 1, "b": 10})
    assert got["b"] / got["a"] == pytest.approx(3, rel=0.03)


def test_tags_follow_the_last_request_or_the_clock() -> None:
    terms = Terms(10, 2, 20)
    assert next_tag(Tag(5.0, 7.0, 5.0), terms, 5, arrival=1.0) == (5.5, 9.5, 5.25)
    assert next_tag(Tag(5.0, 7.0, 5.0), terms, 5, arrival=50.0) == (50.0, 50.0, 50.0)
    assert next_tag(Tag(0, 0, 0), Terms(0, 0, 0), 5, arrival=1.0) == (
        *(float("inf"), float("inf")),
        float("-inf"),
    )


def test_it_says_when_the_next_request_falls_due() -> None:
    queue = DmClock({"a": Terms(1, 0, 0)})
    for _ in range(3):
        queue.add("a", 1, None, 100.0)
    first = queue.pull(100.5)
    assert isinstance(first, Served) and first.by_reservation
    assert queue.pull(100.5) == 101.0
    assert queue.lag("a", 103.0) == 2.0


def test_a_class_that_comes_back_after_minutes_competes_from_where_the_others_are() -> None:
    queue = DmClock({"a": Terms(0, 1, 0), "b": Terms(0, 1, 0)})
    queue.add("a", 1000, None, 10.0)
    queue.add("b", 1000, None, 10.0)
    queue.add("b", 1000, None, 10.0)
    order = [found.name for _ in range(3) if isinstance(found := queue.pull(11.0), Served)]
    assert order == ["a", "b", "b"]
    for _ in range(2):
        queue.add("b", 1000, None, 12.0)
    queue.add("a", 1000, None, 12.0)
    nearer = queue.pull(12.0)
    assert isinstance(nearer, Served) and nearer.name == "a", "its tags are behind those of b"
