"""Recovery of a cluster, on recordings and on sums made to order."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recorded import RELEASES

from cephqos_exporter.cluster.rates import Rates, time_left
from cephqos_exporter.cluster.recovery_progress import (
    CLUSTER_STATES,
    RecoveryTotals,
    cluster_families,
    is_recovering,
)
from cephqos_exporter.cluster.replies import ClusterStatus, parse_pool_totals, parse_status
from cephqos_exporter.labels import Labels, LabelText
from cephqos_exporter.not_understood import NotUnderstood

from ..osd_views import samples
from .cluster_replies import NOW, P1, recorded

LABELS = Labels(LabelText(""))
POOL = '{pool="p1"}'


def sums(recovered: int = 0, degraded: int = 0, misplaced: int = 0) -> Mapping[str, int]:
    return {
        "num_objects_recovered": recovered,
        "num_bytes_recovered": recovered * 65536,
        "num_keys_recovered": 0,
        "num_objects_degraded": degraded,
        "num_objects_misplaced": misplaced,
        "num_objects_unfound": 0,
        "num_object_copies": 8642,
    }


def status(**pgs_by_state: int) -> ClusterStatus:
    states = {name.replace("_and_", "+"): count for name, count in pgs_by_state.items()}
    return ClusterStatus("f", 1, True, sum(states.values()), states)


@pytest.mark.parametrize("release", RELEASES)
def test_totals_are_the_clusters_own(release: str) -> None:
    totals = RecoveryTotals()
    reply = parse_pool_totals(recorded(release, "recovery", "pools"), NotUnderstood())
    totals.update(reply, NOW, NotUnderstood())
    found = samples(totals.families({2: P1}, LABELS))
    for key, name in (
        ("num_objects_degraded", "degraded_objects"),
        ("num_objects_misplaced", "misplaced_objects"),
        ("num_objects_unfound", "unfound_objects"),
        ("num_object_copies", "object_copies"),
    ):
        assert found[f"cephqos_recovery_pool_{name}{POOL}"] == reply[2][key]


def test_an_exporter_that_starts_again_shows_no_work_of_before() -> None:
    """Its sum may be below what was shown last: a fall to anything but 0 would be taken for work.

    Counted on from the present sum (900), a rate would be of 900 objects in one interval.
    """
    before, after = RecoveryTotals(), RecoveryTotals()
    for second, value in enumerate((1000, 800, 900)):
        before.update({2: sums(value)}, NOW + second, NotUnderstood())
    after.update({2: sums(900)}, NOW + 3, NotUnderstood())
    name = f"cephqos_recovery_pool_objects_total{POOL}"
    assert samples(before.families({2: P1}, LABELS))[name] == 100
    assert samples(after.families({2: P1}, LABELS))[name] == 0


def test_a_rate_and_a_time_of_arrival_come_from_two_readings() -> None:
    totals = RecoveryTotals()
    totals.update({2: sums(0, 400, 600)}, NOW, NotUnderstood())
    first = samples(totals.families({2: P1}, LABELS))
    assert f"cephqos_recovery_pool_objects_per_second{POOL}" not in first
    assert f"cephqos_recovery_pool_eta_seconds{POOL}" not in first
    totals.update({2: sums(100, 300, 600)}, NOW + 10, NotUnderstood())
    found = samples(totals.families({2: P1}, LABELS))
    assert found[f"cephqos_recovery_pool_objects_per_second{POOL}"] == 10
    assert found[f"cephqos_recovery_pool_bytes_per_second{POOL}"] == 655360
    assert found[f"cephqos_recovery_pool_eta_seconds{POOL}"] == 90


def test_a_recovery_that_has_just_begun_is_not_thought_slow_for_the_idle_time_before() -> None:
    totals = RecoveryTotals()
    for second in range(0, 50, 5):
        totals.update({2: sums(0, 1000)}, NOW + second, NotUnderstood())
    totals.update({2: sums(100, 900)}, NOW + 50, NotUnderstood())
    found = samples(totals.families({2: P1}, LABELS))
    assert found[f"cephqos_recovery_pool_objects_per_second{POOL}"] == 2
    assert found[f"cephqos_recovery_pool_eta_seconds{POOL}"] == 45


def test_a_clock_that_is_set_back_ends_no_rate() -> None:
    rates: Rates[str] = Rates()
    rates.add("x", 10_000.0, 5)
    for second in range(4):
        rates.add("x", 100.0 + second, second)
    assert rates.of("x") == 1


def test_nothing_left_is_done_now_and_a_standstill_is_never() -> None:
    assert time_left(0, None) == 0
    assert time_left(10, None) is None
    assert time_left(10, 0.0) is None
    assert time_left(10, 2.0) == 5


def test_a_sum_that_falls_with_a_placement_group_does_not_make_work() -> None:
    """A fall would be taken for a restart, and all that was ever recovered for new work."""
    totals = RecoveryTotals()
    shown: list[float] = []
    for value in (1000, 1100, 700, 700, 750):
        totals.update({2: sums(value)}, NOW + len(shown), NotUnderstood())
        found = samples(totals.families({2: P1}, LABELS))
        shown.append(found[f"cephqos_recovery_pool_objects_total{POOL}"])
    assert shown == [0, 100, 100, 100, 150]


def test_a_pool_that_is_gone_leaves_nothing_behind() -> None:
    totals = RecoveryTotals()
    totals.update({2: sums(5)}, NOW, NotUnderstood())
    totals.pool_state_family({2: {"degraded": 1}}, {2: P1}, LABELS)
    totals.update({}, NOW + 1, NotUnderstood())
    assert not samples(totals.families({2: P1}, LABELS))
    assert not totals._counters
    assert not totals._seen_states


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30))
def test_the_counter_never_falls_and_grows_by_every_rise(values: list[int]) -> None:
    totals, last = RecoveryTotals(), 0.0
    for second, value in enumerate(values):
        totals.update({2: sums(value)}, NOW + second, NotUnderstood())
        total = totals._counters[2, "num_objects_recovered"].total
        assert total >= last
        last = total
    rises = sum(max(0, b - a) for a, b in pairwise(values))
    assert last == rises


def test_every_state_of_the_cluster_has_a_series_and_combined_ones_count_in_each() -> None:
    found = samples(
        cluster_families(
            status(
                active_and_clean=5,
                active_and_undersized_and_degraded_and_remapped_and_backfilling=2,
                active_and_remapped_and_backfilling=1,
                active_and_recovery_wait_and_degraded=3,
            ),
            LABELS,
            NotUnderstood(),
        )
    )
    name = "cephqos_recovery_cluster_pgs"
    assert len([key for key in found if key.startswith(name)]) == len(CLUSTER_STATES)
    assert found[f'{name}{{state="backfilling"}}'] == 3
    assert found[f'{name}{{state="degraded"}}'] == 5
    assert found[f'{name}{{state="down"}}'] == 0
    assert found["cephqos_cluster_pgs{}"] == 11


@pytest.mark.parametrize(
    ("names", "states"),
    [
        ("undersized+degraded+peered", {"undersized", "degraded", "peered", "unclean"}),
        ("active+clean+scrubbing+deep+repair", {"repair"}),
        ("active+clean+inconsistent+failed_repair", {"inconsistent", "failed_repair"}),
        ("active+clean+snaptrim", {"snaptrim"}),
        ("active+clean+snaptrim_wait", {"snaptrim_wait"}),
        ("active+clean+snaptrim_error", {"snaptrim_error"}),
        ("active+clean+laggy", {"laggy"}),
        ("active+clean+wait", {"wait"}),
        ("creating+peering", {"creating", "peering", "unclean"}),
        ("active+clean+premerge+peered", {"peered"}),
        ("unknown", {"unknown", "unclean"}),
        ("active+remapped", {"remapped", "unclean"}),
    ],
)
def test_a_state_that_keeps_data_from_clients_is_shown(names: str, states: set[str]) -> None:
    odd = NotUnderstood()
    found = samples(cluster_families(ClusterStatus("f", 1, True, 7, {names: 7}), LABELS, odd))
    name = "cephqos_recovery_cluster_pgs"
    shown = {key for key, count in found.items() if key.startswith(name) and count}
    assert shown == {f'{name}{{state="{state}"}}' for state in states}
    assert not odd.found


def test_a_state_of_a_later_release_is_counted_and_makes_no_series() -> None:
    odd = NotUnderstood()
    found = samples(cluster_families(status(active_and_hovering=3), LABELS, odd))
    assert not [key for key in found if "hovering" in key]
    assert found['cephqos_recovery_cluster_pgs{state="unclean"}'] == 3
    assert odd.found == {"state": (1, "hovering")}


def test_a_sum_that_one_pool_lacks_is_there_for_the_others() -> None:
    totals, odd = RecoveryTotals(), NotUnderstood()
    lacking = {key: n for key, n in sums(1).items() if key != "num_keys_recovered"}
    totals.update({2: sums(1), 3: lacking}, NOW, odd)
    assert "num_keys_recovered" in totals.sums[2]
    assert odd.found == {"counter": (1, "num_keys_recovered")}


@pytest.mark.parametrize(
    ("key", "lost"),
    [
        ("num_keys_recovered", {"cephqos_recovery_pool_keys_total"}),
        (
            "num_objects_misplaced",
            {"cephqos_recovery_pool_misplaced_objects", "cephqos_recovery_pool_eta_seconds"},
        ),
    ],
)
def test_a_sum_that_is_missing_costs_its_own_figures(key: str, lost: set[str]) -> None:
    shown, odd = [], NotUnderstood()
    for left_out in ("", key):
        totals = RecoveryTotals()
        for second in range(2):
            values = {k: n for k, n in sums(second, 4, 6).items() if k != left_out}
            totals.update({2: values}, NOW + second, odd)
        families = totals.families({2: P1}, LABELS)
        shown.append({family.name for family in families if family.samples})
    assert shown[0] - shown[1] == lost
    assert odd.found == {"counter": (2, key)}


def test_what_recovers_because_data_is_at_risk_is_told_from_what_is_merely_misplaced() -> None:
    found = samples(
        cluster_families(
            status(
                active_and_undersized_and_degraded_and_remapped_and_backfilling=2,
                active_and_remapped_and_backfilling=4,
                active_and_remapped_and_forced_backfill_and_backfilling=1,
                active_and_recovering_and_degraded=3,
            ),
            LABELS,
            NotUnderstood(),
        )
    )
    name = "cephqos_recovery_cluster_active_pgs"
    assert found[f'{name}{{kind="backfill",reason="at_risk"}}'] == 3
    assert found[f'{name}{{kind="backfill",reason="misplaced"}}'] == 4
    assert found[f'{name}{{kind="recovery",reason="at_risk"}}'] == 3
    assert found[f'{name}{{kind="recovery",reason="misplaced"}}'] == 0


def test_scrubs_of_the_cluster_are_told_by_level() -> None:
    found = samples(
        cluster_families(
            status(active_and_clean_and_scrubbing=2, active_and_clean_and_scrubbing_and_deep=3),
            LABELS,
            NotUnderstood(),
        )
    )
    assert found['cephqos_scrub_cluster_pgs{level="shallow"}'] == 2
    assert found['cephqos_scrub_cluster_pgs{level="deep"}'] == 3


def test_a_state_of_a_pool_shows_from_its_first_time_on_and_then_falls_to_zero() -> None:
    totals = RecoveryTotals()
    for counts, shown in (({}, None), ({2: {"degraded": 4}}, 4), ({}, 0)):
        found = samples([totals.pool_state_family(counts, {2: P1}, LABELS)])
        assert found.get('cephqos_recovery_pool_pgs{pool="p1",state="degraded"}') == shown
        assert found['cephqos_recovery_pool_pgs{pool="p1",state="backfilling"}'] == 0


@pytest.mark.parametrize("release", RELEASES)
def test_a_cluster_recovers_or_does_not(release: str) -> None:
    assert is_recovering(parse_status(recorded(release, "recovery", "status")))
    assert not is_recovering(status(active_and_clean=8, active_and_clean_and_scrubbing=1))


def test_rates_look_back_one_window_and_no_further() -> None:
    rates: Rates[str] = Rates(window=60)
    for second in range(0, 301, 10):
        rates.add("a", second, 0 if second < 200 else (second - 200) * 3)
    assert rates.of("a") == 3
    rates.keep({"b"})
    assert rates.of("a") is None
