"""Scrub work put together from rows of placement group statistics."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_exporter.cluster.replies import PgStat
from cephqos_exporter.cluster.scrub_progress import ScrubProgress, done_families, running_families
from cephqos_exporter.cluster.time_left import RUNNING_SCRUBS, Factors
from cephqos_exporter.labels import Labels, LabelText

from ..osd_views import samples
from .cluster_replies import NOW, P1, pg, scrubbing

LABELS = Labels(LabelText(""))


def deep(progress: ScrubProgress) -> int:
    """Objects deep-scrubbed so far."""
    done = progress.done.get((2, "deep"))
    return done.objects if done else 0


def finished(pgid: str = "2.0", at: float = NOW, **more: object) -> PgStat:
    """The placement group after a deep scrub that ended then."""
    return pg(pgid, scrubbed=at, deep_scrubbed=at, **more)


def test_what_was_done_before_the_first_look_is_not_counted() -> None:
    progress = ScrubProgress()
    progress.observe([pg(), scrubbing("2.1", done=300)])
    assert progress.done.get((2, "deep")) is None or deep(progress) == 0


def test_a_scrub_is_counted_as_it_goes_and_once() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    counts = []
    for row in (
        scrubbing(done=0),
        scrubbing(done=120),
        scrubbing(done=120),
        scrubbing(done=480),
        finished(),
        finished(),
    ):
        progress.list_running([row] if row.scrubbing else [])
        progress.observe([row])
        counts.append(deep(progress))
    assert counts == [0, 120, 120, 480, 500, 500]
    assert progress.done[2, "deep"].pgs == 1
    assert progress.done[2, "deep"].bytes == 500 * 4096


def test_a_pool_that_is_gone_leaves_nothing_behind() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    progress.observe([finished()])
    progress.tick(NOW, [2])
    assert deep(progress) == 500
    progress.tick(NOW + 5, [3])
    assert not progress.done


def test_a_placement_group_that_a_new_manager_has_not_heard_of_was_not_scrubbed() -> None:
    """It says that it never was; when its OSD reports, that would look like a scrub that ended."""
    progress = ScrubProgress()
    progress.observe([pg()])
    nothing: dict[str, Any] = {"objects": 0, "bytes": 0, "objects_scrubbed": 0, "duration": None}
    unknown = pg(states=frozenset({"unknown"}), scrubbed=0.0, deep_scrubbed=0.0, **nothing)
    progress.observe([unknown, replace(unknown, pgid="2.1")])
    progress.observe([pg(), pg("2.1")])
    assert not any(done.pgs or done.objects for done in progress.done.values())
    assert progress.records["2.0"].scrubbed == progress.records["2.1"].scrubbed == NOW - 5000


def test_a_scrub_that_nobody_saw_run_is_counted_by_its_stamp() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    progress.observe([finished()])
    assert deep(progress) == 500
    assert (2, "shallow") not in progress.done or progress.done[2, "shallow"].objects == 0


def test_a_shallow_scrub_moves_one_stamp_only() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    progress.observe([scrubbing(done=0, deep=False)])
    progress.observe([scrubbing(done=100, deep=False)])
    progress.observe([pg(scrubbed=NOW)])
    assert progress.done[2, "shallow"].objects == 500
    assert deep(progress) == 0


def test_what_the_last_scrub_left_is_not_progress_of_the_next() -> None:
    """The count is reset when the new scrub has its reservations, not when it begins to wait."""
    progress = ScrubProgress()
    progress.observe([pg()])
    progress.list_running([scrubbing(done=500)])
    assert deep(progress) == 0
    assert progress.objects_done(progress.running[0]) == 0
    progress.list_running([scrubbing(done=40)])
    assert deep(progress) == 40
    assert progress.objects_done(progress.running[0]) == 40


def test_a_second_scrub_already_under_way_when_the_first_ones_end_is_seen() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    progress.observe([scrubbing(done=450)])
    again = scrubbing(done=30, scrubbed=NOW, deep_scrubbed=NOW)
    progress.observe([again])
    assert deep(progress) == 530
    progress.observe([finished(at=NOW + 60)])
    assert deep(progress) == 1000
    assert progress.done[2, "deep"].pgs == 2


def test_a_scrub_given_up_and_begun_anew_is_work_done_twice() -> None:
    progress = ScrubProgress()
    progress.observe([pg(), scrubbing(done=0)])
    progress.observe([scrubbing(done=200)])
    progress.observe([scrubbing(done=50)])
    assert deep(progress) == 250


def test_a_primary_that_has_changed_since_forgets_what_was_done_and_it_counts_all_the_same() -> (
    None
):
    progress = ScrubProgress()
    progress.observe([pg()])
    progress.observe([finished(objects_scrubbed=0, duration=None, primary=1)])
    assert deep(progress) == 500


def test_on_16_2_a_scrub_counts_when_it_ends_and_its_time_is_that_of_its_state() -> None:
    progress = ScrubProgress()
    progress.observe([pg(objects_scrubbed=None, duration=None)])
    running = scrubbing(done=None, changed=NOW - 30, duration=None)
    progress.list_running([running])
    assert deep(progress) == 0
    progress.list_running([])
    progress.observe([finished(objects_scrubbed=None, duration=None)])
    assert deep(progress) == 500
    done = progress.done[2, "deep"]
    assert (done.seconds, done.timed, done.last_duration) == (30.0, 1, 30.0)


def test_on_16_2_a_scrub_that_nobody_saw_run_has_no_time() -> None:
    progress = ScrubProgress()
    progress.observe([pg(objects_scrubbed=None, duration=None)])
    progress.observe([finished(objects_scrubbed=None, duration=None)])
    done = progress.done[2, "deep"]
    assert (done.pgs, done.timed, done.last_duration) == (1, 0, None)
    names = samples(done_families(progress, {2: P1}, LABELS))
    assert not [name for name in names if "last_duration" in name]


def test_on_16_2_progress_is_absent_whether_or_not_scrubs_run() -> None:
    for rows in ([], [scrubbing(done=None)]):
        progress = ScrubProgress()
        progress.observe([pg("2.7", objects_scrubbed=None)])
        progress.list_running(rows)
        found = samples(running_families(progress, {2: P1}, LABELS))
        deep_pgs = 'cephqos_scrub_pool_running_pgs{pool="p1",level="deep"}'
        assert found[deep_pgs] == len(rows)
        assert not [name for name in found if "objects_" in name or "eta" in name]


def test_the_last_duration_is_that_of_the_scrub_that_ended_last() -> None:
    progress = ScrubProgress()
    progress.observe(
        [
            finished("2.1", at=NOW - 50, duration=3.0),
            finished("2.2", at=NOW - 10, duration=4.0),
            finished("2.3", at=NOW - 90, duration=5.0),
            pg("2.4", scrubbed=NOW, deep_scrubbed=NOW - 500, duration=0.25),
        ]
    )
    found = samples(done_families(progress, {2: P1}, LABELS))
    last = "cephqos_scrub_pool_last_duration_seconds"
    assert found[f'{last}{{pool="p1",level="deep"}}'] == 4.0
    assert found[f'{last}{{pool="p1",level="shallow"}}'] == 0.25


def test_those_that_leave_the_list_name_the_osds_to_look_at() -> None:
    progress = ScrubProgress()
    progress.list_running([scrubbing("2.0", primary=4), scrubbing("2.1", primary=5)])
    assert progress.list_running([scrubbing("2.1", primary=5)]) == {4}
    assert progress.list_running([]) == {5}


def test_running_scrubs_tell_what_is_left_and_how_long_it_will_take() -> None:
    progress = ScrubProgress()
    progress.observe([pg("2.0"), pg("2.1")])
    for second, done in ((0, 0), (10, 100), (20, 200)):
        progress.list_running([scrubbing("2.0", done=done), scrubbing("2.1", done=done // 2)])
        progress.tick(NOW + second, [2])
    found = samples(running_families(progress, {2: P1}, LABELS))
    base, deep = "cephqos_scrub_pool_running_", 'pool="p1",level="deep"'
    assert found[f"{base}pgs{{{deep}}}"] == 2
    assert found[f"{base}objects{{{deep}}}"] == 1000
    assert found[f"{base}objects_done{{{deep}}}"] == 300
    assert found[f"{base}objects_left{{{deep}}}"] == 700
    seconds = [found.pop(f'{base}eta_seconds{{{deep},bound="{it}"}}') for it in Factors._fields]
    assert seconds == pytest.approx([700 / 15 * factor for factor in RUNNING_SCRUBS])
    assert not [name for name in found if "eta" in name], "no shallow scrub runs"


def test_while_nothing_moves_there_is_no_time_of_arrival() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    for second in (0, 10):
        progress.list_running([scrubbing(done=0)])
        progress.tick(NOW + second, [2])
    found = samples(running_families(progress, {2: P1}, LABELS))
    assert not [name for name in found if "eta" in name]


def test_beside_recovery_the_interval_is_not_known() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    progress.beside_recovery = True
    for second, done in ((0, 0), (10, 100)):
        progress.list_running([scrubbing(done=done)])
        progress.tick(NOW + second, [2])
    found = samples(running_families(progress, {2: P1}, LABELS))
    assert [name.split("bound=")[1] for name in found if "eta" in name] == ['"likely"}']


def test_a_scrub_that_stood_still_for_a_minute_keeps_its_rate() -> None:
    progress = ScrubProgress()
    progress.observe([pg()])
    for second, done in ((0, 0), (10, 100), (40, 100), (100, 100)):
        progress.list_running([scrubbing(done=done)])
        progress.tick(NOW + second, [2])
    found = samples(running_families(progress, {2: P1}, LABELS))
    likely = 'cephqos_scrub_pool_running_eta_seconds{pool="p1",level="deep",bound="likely"}'
    assert found[likely] == pytest.approx(400 / 1 * RUNNING_SCRUBS.likely)


def test_placement_groups_that_are_gone_are_forgotten_after_two_rounds() -> None:
    progress = ScrubProgress()
    progress.observe([pg("2.0"), pg("2.1")])
    for _ in range(4):
        progress.observe([pg("2.0")])
        progress.end_round()
    assert set(progress.records) == {"2.0"}


class SimulatedPg:
    """A placement group that is scrubbed deeply; `work` is what it has really done."""

    SIZE = 500

    def __init__(self, *, reports: bool) -> None:
        self.reports = reports
        self.now, self.stamp = NOW, NOW - 5000
        self.running = self.reserved = False
        self.done, self.work, self.finished_work = self.SIZE, 0, 0

    def step(self, kind: str) -> None:
        self.now += 1
        if kind == "begin" and not self.running:
            # Until it has its reservations, what it says is still the last one's.
            self.running, self.reserved = True, False
        elif kind == "reserve" and self.running and not self.reserved:
            self.done, self.reserved = 0, True
        elif kind == "advance" and self.reserved:
            self._work(min(130, self.SIZE - self.done))
        elif kind == "finish" and self.reserved:
            self._work(self.SIZE - self.done)
            self.running = self.reserved = False
            self.stamp = self.now
            self.finished_work += self.SIZE
        elif kind == "abort":
            self.running = self.reserved = False

    def _work(self, objects: int) -> None:
        self.done += objects
        self.work += objects

    def row(self) -> PgStat:
        shown = self.done if self.reports else None
        stamps: dict[str, Any] = {"scrubbed": self.stamp, "deep_scrubbed": self.stamp}
        return (
            scrubbing(done=shown, **stamps)
            if self.running
            else pg(objects_scrubbed=shown, **stamps)
        )


STEPS = st.lists(
    st.tuples(st.sampled_from(["begin", "reserve", "advance", "finish", "abort"]), st.booleans()),
    max_size=60,
)


@given(steps=STEPS, reports=st.booleans())
def test_the_counter_never_falls_and_never_counts_work_that_was_not_done(
    steps: Sequence[tuple[str, bool]], reports: bool
) -> None:
    """However seldom one looks."""
    progress, simulated, last = ScrubProgress(), SimulatedPg(reports=reports), 0
    progress.observe([simulated.row()])
    for kind, look in steps:
        simulated.step(kind)
        if look:
            progress.observe([simulated.row()])
            assert last <= deep(progress) <= simulated.work
            last = deep(progress)


@given(steps=STEPS, reports=st.booleans())
def test_who_looks_after_every_step_counts_every_object_of_a_scrub_that_ends(
    steps: Sequence[tuple[str, bool]], reports: bool
) -> None:
    progress, simulated = ScrubProgress(), SimulatedPg(reports=reports)
    progress.observe([simulated.row()])
    for kind, _ in steps:
        simulated.step(kind)
        progress.observe([simulated.row()])
    assert deep(progress) >= simulated.finished_work
    if reports:
        assert deep(progress) == simulated.work
