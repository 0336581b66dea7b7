"""Work in normalised ops: exact where sizes are known, and never a jump."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_base.series import BEST_EFFORT, CLASSES, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.qos.cost_models import BandwidthModel, QosState
from cephqos_exporter.qos.sizes import Counted, SizeAxis, SizedOps, read_size_axis, spread
from cephqos_exporter.qos.work import RecoveryItems, Scrubbed, Totals, WorkMeter

KIB, MIB = 1024, 1024 * 1024
SSD = BandwidthModel(bandwidth=1200 * MIB, iops=21500)
HDD = BandwidthModel(bandwidth=150 * MIB, iops=315)

RANGES: list[dict[str, int]] = [
    {"max": -1},
    {"min": 0, "max": 511},
    *({"min": 512 << i, "max": (1024 << i) - 1} for i in range(29)),
    {"min": 512 << 29},
]
AXIS = read_size_axis({"ranges": RANGES})


def qos(cost: BandwidthModel = SSD) -> QosState:
    return QosState(
        cost=cost,
        media="ssd",
        shards=8,
        capacity_origin="default",
        classes={},
    )


def counted(ops: Sequence[tuple[int, int]]) -> Counted:
    """Counters and histogram rows of (count, size) pairs."""
    rows = [0.0] * len(AXIS)
    for count, size in ops:
        rows[row_of(size)] += count
    return Counted(rows, sum(n for n, _ in ops), sum(n * size for n, size in ops))


def row_of(size: int, axis: SizeAxis = AXIS) -> int:
    return next(i for i, (low, high) in enumerate(axis) if i and low <= size <= high)


NOTHING = Totals(
    reads=0,
    writes=counted([]),
    read_writes=counted([]),
    subops=0,
    subop_bytes=0,
    recovery_ops=0,
    recovery_bytes=0,
    pushes_sent=0,
    push_bytes=0,
    store_bytes=0,
    recovery=RecoveryItems(0, 0, 0, 0, 0, 0),
    scrub=Scrubbed(0, 0, 0),
)


def done(now: Totals, settings: QosState | None = None, degraded: float | None = None) -> WorkMeter:
    """A meter that saw an idle OSD and then this."""
    meter = WorkMeter()
    settings = settings or qos()
    meter.advance(NOTHING, AXIS, settings, degraded)
    meter.advance(now, AXIS, settings, degraded)
    return meter


def exact(ops: Sequence[tuple[int, int]], model: BandwidthModel = SSD) -> float:
    return sum(n * model.normalised(size) for n, size in ops)


def test_the_axis_has_the_bounds_that_the_daemon_prints() -> None:
    assert AXIS[1] == (0, 511)
    assert AXIS[row_of(4096)] == (4096, 8191)
    low, high = AXIS[-1]
    assert high == 2 * low


@pytest.mark.parametrize("model", [SSD, HDD])
@pytest.mark.parametrize(
    "ops",
    [
        [(1000, 4 * KIB)],
        [(300, 64 * KIB)],
        [(40, MIB)],
        [(5, 4 * MIB)],
        [(1000, 4 * KIB), (300, 64 * KIB), (40, MIB)],
        [(1000, 0)],
    ],
)
def test_powers_of_two_in_any_mix_are_exact(
    ops: list[tuple[int, int]], model: BandwidthModel
) -> None:
    meter = done(replace(NOTHING, writes=counted(ops)), qos(model))
    assert meter.done[CLIENT] == pytest.approx(exact(ops, model), rel=1e-9)


@pytest.mark.parametrize("size", [5000, 100_000, 777_777, 3_000_000])
def test_a_single_odd_size_is_exact(size: int) -> None:
    ops = [(500, size)]
    meter = done(replace(NOTHING, writes=counted(ops)))
    assert meter.done[CLIENT] == pytest.approx(exact(ops), rel=1e-9)


def test_reads_cost_one_each_however_much_they_bring() -> None:
    assert done(replace(NOTHING, reads=700)).done[CLIENT] == 700


def test_read_modify_writes_are_charged_for_what_they_write() -> None:
    meter = done(replace(NOTHING, read_writes=counted([(10, MIB)])))
    assert meter.done[CLIENT] == pytest.approx(10 * SSD.normalised(MIB))


def test_nothing_is_counted_of_what_happened_before_the_first_look() -> None:
    meter = WorkMeter()
    meter.advance(replace(NOTHING, reads=10**9), AXIS, qos(), None)
    assert meter.done == dict.fromkeys(CLASSES, 0)


def test_a_change_of_capacity_revalues_nothing_that_was_done_before() -> None:
    meter = WorkMeter()
    first, second = counted([(100, MIB)]), counted([(150, MIB)])
    slower = qos(BandwidthModel(bandwidth=1200 * MIB, iops=10_750))
    meter.advance(NOTHING, AXIS, qos(), None)
    meter.advance(replace(NOTHING, writes=first), AXIS, qos(), None)
    before = meter.done[CLIENT]
    meter.advance(replace(NOTHING, writes=first), AXIS, slower, None)
    assert meter.done[CLIENT] == before
    meter.advance(replace(NOTHING, writes=second), AXIS, slower, None)
    assert meter.done[CLIENT] - before == pytest.approx(50 * slower.cost.normalised(MIB))


def test_counters_that_were_reset_go_on_from_what_they_hold() -> None:
    meter = WorkMeter()
    meter.advance(NOTHING, AXIS, qos(), None)
    before = replace(NOTHING, writes=counted([(100, 4096)]), reads=1000, subops=50)
    meter.advance(before, AXIS, qos(), None)
    after = replace(NOTHING, writes=counted([(7, 4096)]), reads=3, subops=2)
    meter.advance(after, AXIS, qos(), None)
    assert meter.done[CLIENT] == 100 + 1000 + 7 + 3
    assert meter.done[IMMEDIATE] == 52


def test_ops_that_the_histogram_has_not_seen_yet_are_not_charged_to_the_others() -> None:
    sized = SizedOps()
    sized.advance(counted([]), AXIS)
    # Two replies of a busy OSD: the counters are 20 ops ahead of the histogram.
    ahead = counted([(120, MIB)])
    mix = sized.advance(Counted(counted([(100, MIB)]).rows, ahead.ops, ahead.bytes), AXIS)
    assert mix == [(100, MIB)]


def test_replica_writes_get_the_osds_own_mix_of_sizes_scaled_to_their_mean() -> None:
    own = [(900, 4 * KIB), (100, MIB)]
    total = sum(n * s for n, s in own)
    now = replace(NOTHING, writes=counted(own), subops=2000, subop_bytes=2 * total)
    meter = done(now)
    assert meter.done[IMMEDIATE] == pytest.approx(2 * exact(own), rel=1e-9)
    # The mean alone (106 KiB for each) would claim too little: small ones cost a whole op each.
    assert 2000 * SSD.normalised(total / 1000) < 0.7 * meter.done[IMMEDIATE]


def test_replica_writes_of_an_osd_that_serves_no_client_get_their_mean() -> None:
    meter = done(replace(NOTHING, subops=10, subop_bytes=10 * MIB))
    assert meter.done[IMMEDIATE] == pytest.approx(10 * SSD.normalised(MIB))


RECOVERED = replace(
    NOTHING,
    recovery_ops=10,
    pushes_sent=20,
    push_bytes=20 * MIB,
    recovery=RecoveryItems(starts=12, continuations=2, pushes=4, replies=20, pulls=3, messages=10),
)
# 14 items of an object each, 4 pushes, 3 requests of 8 MiB, 30 small messages.
RECOVERY_WORK = (
    14 * SSD.normalised(MIB)
    + 4 * SSD.normalised(MIB + 1000)
    + 3 * SSD.normalised(8 * MIB)
    + 30 * SSD.normalised(0)
)


def test_recovery_of_degraded_data_is_background_recovery() -> None:
    meter = done(RECOVERED, degraded=1.0)
    assert meter.done[RECOVERY] == pytest.approx(RECOVERY_WORK)
    assert meter.done[BEST_EFFORT] == 0


def test_recovery_of_misplaced_data_is_best_effort() -> None:
    meter = done(RECOVERED, degraded=0.0)
    assert meter.done[BEST_EFFORT] == pytest.approx(RECOVERY_WORK)
    assert meter.done[RECOVERY] == 0


def test_recovery_that_ended_between_two_looks_belongs_where_the_last_one_did() -> None:
    meter = WorkMeter()
    meter.advance(NOTHING, AXIS, qos(), 0.0)
    meter.advance(RECOVERED, AXIS, qos(), None)
    assert meter.done[RECOVERY] == 0
    assert meter.done[BEST_EFFORT] > 0


def test_an_osd_that_only_pulls_takes_the_size_from_what_it_recovered() -> None:
    items = RecoveryItems(0, 0, pushes=5, replies=0, pulls=0, messages=0)
    now = replace(NOTHING, recovery_ops=5, recovery_bytes=5 * MIB, recovery=items)
    meter = done(now, degraded=1.0)
    assert meter.done[RECOVERY] == pytest.approx(5 * SSD.normalised(MIB + 1000))


def test_an_osd_that_only_receives_takes_the_size_from_what_its_store_writes() -> None:
    """As one that came back and leads no placement group yet. Once it sends, it knows better."""
    writes = counted([(100, 4 * KIB)])
    items = RecoveryItems(0, 0, pushes=5, replies=0, pulls=0, messages=0)
    received = replace(
        NOTHING,
        writes=writes,
        subops=10,
        subop_bytes=10 * MIB,
        store_bytes=writes.bytes + 10 * MIB + 5 * 4 * MIB,
        recovery=items,
    )
    assert done(received).done[RECOVERY] == pytest.approx(5 * SSD.normalised(4 * MIB + 1000))
    assert done(replace(received, store_bytes=None)).done[RECOVERY] == 5
    meter = WorkMeter()
    for now in (NOTHING, RECOVERED):
        meter.advance(now, AXIS, qos(), 1.0)
    before = meter.done[RECOVERY]
    assert RECOVERED.recovery
    five_more = replace(RECOVERED.recovery, pushes=RECOVERED.recovery.pushes + 5)
    later = replace(RECOVERED, store_bytes=99 * MIB, recovery=five_more)
    meter.advance(later, AXIS, qos(), 1.0)
    assert meter.done[RECOVERY] - before == pytest.approx(5 * SSD.normalised(MIB + 1000))


def test_a_scrubbed_object_is_one_op_its_bytes_when_read_and_the_events_of_its_chunk() -> None:
    meter = done(replace(NOTHING, scrub=Scrubbed(objects=100, bytes=100 * MIB, chunks=4)))
    assert meter.done[BEST_EFFORT] == pytest.approx(100 + 100 * MIB / SSD.cost_per_io + 4 * 6)


mixes = st.lists(st.tuples(st.integers(1, 10_000), st.integers(0, 64 * MIB)), max_size=6)


@given(ops=mixes)
def test_spread_keeps_every_op_in_its_row_and_the_bytes_in_sum(ops: list[tuple[int, int]]) -> None:
    now = counted(ops)
    mix = spread(now.rows, AXIS, now.bytes)
    assert sum(n for n, _ in mix) == now.ops
    assert sum(n * size for n, size in mix) == pytest.approx(now.bytes, rel=1e-6, abs=1.0)
    rows = [row for row, n in zip(AXIS, now.rows, strict=True) if n]
    for (_, size), (low, high) in zip(mix, rows, strict=True):
        assert low <= size <= high


@given(ops=mixes)
def test_sizes_that_are_not_known_exactly_cost_less_than_an_op_each_too_much(
    ops: list[tuple[int, int]],
) -> None:
    """Below cost_per_io any size costs one op; above it the sum is what counts, and it is known."""
    meter = done(replace(NOTHING, writes=counted(ops)))
    error = meter.done[CLIENT] - exact(ops)
    assert abs(error) <= sum(n for n, _ in ops) + 1e-6


@given(steps=st.lists(st.tuples(mixes, st.floats(100, 80_000)), max_size=8))
def test_work_never_goes_back_whatever_the_capacity_does(
    steps: list[tuple[list[tuple[int, int]], float]],
) -> None:
    meter = WorkMeter()
    total: list[tuple[int, int]] = []
    before = dict(meter.done)
    for ops, capacity in steps:
        total += ops
        settings = qos(BandwidthModel(bandwidth=1200 * MIB, iops=capacity))
        meter.advance(replace(NOTHING, writes=counted(total)), AXIS, settings, None)
        assert all(meter.done[cls] >= before[cls] for cls in CLASSES)
        before = dict(meter.done)
