"""A cluster of the model does what can be reckoned by hand."""

from collections import Counter
from random import Random

import pytest
from tests.model.scheduler.parts import Clients, Place, RecoveryWork, ScrubWork, Store
from tests.model.scheduler.simulate import Trial, simulate
from tests.model.scheduler.wpq import Wpq

from cephqos_base.profiles import Share, shares_of
from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY
from cephqos_exporter.qos.cost_models import BandwidthModel, QosState, settings_of

STORE = Store(read_seconds=0.01, write_seconds=0.01, throttle_bytes=8096, spread=0.1)


def qos(profile: str = "balanced", capacity: float = 100.0) -> QosState:
    shares = shares_of(18, profile)
    assert shares
    return QosState(
        cost=BandwidthModel(bandwidth=capacity * 65536, iops=capacity),
        media="ssd",
        shards=1,
        capacity_origin="mon",
        classes={name: settings_of(share, capacity) for name, share in shares.items()},
        recovery_item_bytes=None,
    )


def test_a_closed_load_gets_what_the_device_gives_and_waits_for_the_rest() -> None:
    place = Place(osds=2, copies=2, store=STORE, qos=qos())
    got = simulate(Trial(place=place, clients=Clients(depth=16), seconds=35))
    assert got.iops == pytest.approx(100, rel=0.03), "each write is made on both"
    mean = sum(got.latencies) / len(got.latencies)
    assert mean == pytest.approx(16 / 100, rel=0.03)


def test_reads_are_made_once_and_an_open_load_below_the_rate_does_not_wait() -> None:
    place = Place(osds=2, copies=2, store=STORE, qos=None)
    got = simulate(Trial(place=place, clients=Clients(reads=1.0, rate=40), seconds=35))
    assert got.iops == pytest.approx(40, rel=0.1)
    assert got.latency(0.5) == pytest.approx(0.0115, rel=0.1)


def test_slots_of_the_device_multiply_its_rate() -> None:
    many = Store(read_seconds=0.01, write_seconds=0.01, slots=4)
    place = Place(osds=1, copies=1, store=many, qos=None)
    got = simulate(Trial(place=place, clients=Clients(depth=32), seconds=25))
    assert got.iops == pytest.approx(400, rel=0.03)


def test_a_seed_gives_the_same_again() -> None:
    trial = Trial(
        place=Place(osds=3, copies=2, store=STORE, qos=qos()),
        clients=Clients(depth=8, reads=0.5),
        backlog=RecoveryWork(objects=50, size=65536, groups=8),
        scrub=ScrubWork(objects=30, size=4096),
        seconds=30,
    )
    assert simulate(trial) == simulate(trial)


@pytest.mark.parametrize(
    ("profile", "seconds"), [("high_client_ops", 50), ("high_recovery_ops", 29)]
)
def test_recovery_ends_in_the_time_of_its_reservation(profile: str, seconds: float) -> None:
    """1,000 objects at 40 and 70 of 100 operations per second, with clients that want all.

    Who pushes has two for each: the start, and the answer, for which the device does nothing. So
    it may take half as long.
    """
    place = Place(osds=2, copies=1, store=STORE, qos=qos(profile))
    backlog = RecoveryWork(objects=1000, size=4096, groups=50, work=RECOVERY)
    trial = Trial(
        place=place, clients=Clients(depth=64), backlog=backlog, seconds=90, until_done=True
    )
    took = simulate(trial).recovery_seconds
    assert took and seconds / 2 <= took <= seconds * 1.05


def test_a_placement_group_recovers_one_object_at_a_time() -> None:
    place = Place(osds=2, copies=1, store=STORE, qos=None)

    def seconds(groups: int, at_once: int = 100) -> float | None:
        backlog = RecoveryWork(objects=200, size=4096, groups=groups, at_once=at_once)
        trial = Trial(place=place, backlog=backlog, seconds=60, until_done=True)
        return simulate(trial).recovery_seconds

    assert seconds(1) == pytest.approx(200 * 0.0204, rel=0.03), "read, pushed, written, answered"
    assert seconds(8) == pytest.approx(200 * 0.01, rel=0.15), "one OSD reads as the other writes"
    assert seconds(8, at_once=1) == pytest.approx(200 * 0.0204, rel=0.03)


def test_a_capacity_that_is_not_real_leaves_reservations_behind() -> None:
    def violated(capacity: float) -> int:
        place = Place(osds=1, copies=1, store=STORE, qos=qos("high_client_ops", capacity))
        got = simulate(Trial(place=place, clients=Clients(depth=200), seconds=30))
        return got.violated[0]

    assert violated(90) == 0
    assert violated(400) >= 28


def test_scrub_ends_and_its_limit_holds_it() -> None:
    def seconds(profile: str) -> float | None:
        place = Place(osds=1, copies=1, store=STORE, qos=qos(profile))
        scrub = ScrubWork(objects=300, size=65536, slots=3)
        return simulate(Trial(place=place, scrub=scrub, seconds=60)).scrub_seconds

    held, free = seconds("high_client_ops"), seconds("high_recovery_ops")
    assert held and free
    assert free == pytest.approx(3.0, rel=0.05), "300 objects at 100 reads per second"
    assert held == pytest.approx(20 * 31 / 70, rel=0.15), "a chunk of 15 is charged 2 an object"


def random() -> Random:
    return Random(1)  # noqa: S311 - a simulation


def test_wpq_draws_by_priority_and_less_what_costs_most() -> None:
    def drawn(cost: float) -> Counter[str]:
        queue, got = Wpq(random()), Counter[str]()
        for _ in range(6000):
            queue.add(60, CLIENT, 1, CLIENT)
            queue.add(20, BEST_EFFORT, cost, BEST_EFFORT)
        for _ in range(6000):
            got[str(queue.pull())] += 1
        return got

    assert drawn(1)[CLIENT] == pytest.approx(4500, rel=0.05), "60 : 20, each at 0.1"
    assert drawn(1000)[CLIENT] == pytest.approx(6000 * 60 / 62, rel=0.05), "60 : 20 x 0.1"


def test_wpq_lets_clients_of_a_priority_take_turns() -> None:
    queue = Wpq(random())
    for name in ("a", "a", "a", "b"):
        queue.add(63, name, 1, name)
    assert [queue.pull() for _ in range(5)] == ["a", "b", "a", "a", None]


def test_profiles_of_releases_that_are_not_known_are_not_guessed() -> None:
    assert shares_of(19, "balanced") is None
    known = shares_of(20, "balanced")
    assert known and known[BEST_EFFORT] == Share(0.05, 2, 0.9)
