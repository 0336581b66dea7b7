"""Which OSDs are read when."""

from hypothesis import given
from hypothesis import strategies as st

from cephqos_exporter.cluster.rotation import Rotation


def test_the_first_round_is_not_spread() -> None:
    rotation = Rotation(300)
    assert rotation.due([0, 1, 2], 0.0) == [0, 1, 2]
    assert rotation.end_round()
    assert rotation.as_of == 0.0


def test_later_rounds_take_the_interval() -> None:
    rotation = Rotation(300)
    rotation.due(range(60), 0.0)
    rotation.due(range(60), 5.0)
    assert rotation.end_round()
    read = []
    for poll in range(2, 62):
        read += rotation.due(range(60), poll * 5.0)
        rotation.end_round()
    assert len(read) in (59, 60, 61)
    assert len(set(read)) >= 59
    assert rotation.as_of is not None


def test_a_large_cluster_is_read_a_few_at_a_time_from_the_start() -> None:
    rotation, osds = Rotation(300), range(1000)
    assert len(rotation.due(osds, 0.0)) == 50
    assert not rotation.end_round()
    assert rotation.as_of is None
    read = 50
    for poll in range(1, 20):
        read += len(rotation.due(osds, poll * 5.0))
    assert read == 1000
    assert rotation.end_round()


def test_those_asked_for_come_out_of_turn_and_once() -> None:
    rotation = Rotation(300)
    rotation.due(range(5), 0.0)
    rotation.end_round()
    rotation.ask_soon([3, 99])
    assert rotation.due(range(5), 0.1) == [3]
    assert rotation.due(range(5), 0.2) == []


def test_an_osd_that_went_down_is_not_read_and_a_new_one_is_next_round() -> None:
    rotation = Rotation(10)
    rotation.due(range(100), 0.0)
    assert set(rotation.due([*range(50), 200], 0.1)) <= set(range(50))
    rotation.end_round()
    read: set[int] = set()
    for second in range(1, 40):
        read.update(rotation.due([*range(50), 200], float(second)))
        rotation.end_round()
    assert read == {*range(50), 200}


def test_a_clock_that_is_set_back_stops_no_round() -> None:
    rotation, osds = Rotation(60), range(60)
    rotation.due(osds, 10_000.0)
    rotation.due(osds, 10_005.0)
    assert rotation.end_round()
    read = [osd for poll in range(12) for osd in rotation.due(osds, 100.0 + poll * 5.0)]
    assert len(read) >= 50


def test_a_cluster_without_osds_has_no_rounds() -> None:
    rotation = Rotation(10)
    assert rotation.due([], 0.0) == []
    assert not rotation.end_round()


@given(
    osds=st.integers(1, 300),
    interval=st.floats(0.1, 1000),
    pauses=st.lists(st.floats(0.01, 100), min_size=1, max_size=60),
)
def test_no_poll_reads_more_than_its_share(osds: int, interval: float, pauses: list[float]) -> None:
    rotation, now = Rotation(interval), 0.0
    for pause in pauses:
        taken = rotation.due(range(osds), now)
        assert len(taken) == len(set(taken)) <= 50
        rotation.end_round()
        now += pause
