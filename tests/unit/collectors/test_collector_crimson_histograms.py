"""Histograms of Crimson OSDs: which form their buckets have, and which of them are shown."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replay import crimson_names

from cephqos_exporter.collectors.crimson import CrimsonCollector

from .crimson_views import (
    BLOCKS,
    BUILDS,
    NEWEST,
    SEGMENTS,
    buckets,
    collected,
    entry,
    histogram,
    one,
    recorded,
    samples,
    view,
)


# Histograms
def test_stalls_are_a_histogram_and_the_reports_of_the_detector_stand_beside_it() -> None:
    stalls = histogram({640: 0, 768: 1, 1280: 3, 2560: 11}, 11, total=43_520)
    both = {
        "metrics": [
            entry("stall_detector_reported", 0, shard="0"),
            entry("reactor_stalls", stalls, shard="0"),
        ]
    }
    found = collected(both)
    assert found["cephqos_crimson_reactor_stall_seconds_count{}"] == 11
    assert found['cephqos_crimson_stall_detector_reported_total{shard="0"}'] == 0
    assert found["cephqos_crimson_reactor_stall_seconds_sum{}"] == 0.04352
    assert found['cephqos_crimson_reactor_stall_seconds_bucket{le="0.00128"}'] == 3


def test_of_many_buckets_each_shown_is_twice_the_one_before() -> None:
    found = collected(recorded(BLOCKS))
    bounds = [
        float(key.split('le="')[1].split('"')[0])
        for key in found
        if key.startswith("cephqos_crimson_reactor_stall_seconds_bucket")
    ]
    assert 15 <= len(bounds) <= 20
    assert bounds[:3] == [0.00064, 0.00128, 0.00256]
    assert bounds[-1] == float("inf")


@pytest.mark.parametrize(
    ("name", "counts", "count", "shown"),
    [
        # proved by a fall: each bucket for itself
        ("seastore_op_lat", {1: 90, 2: 5, 3: 5}, 103, [90, 95, 100, 103]),
        ("osd_mclock_throttle_wait_latency", {1: 90, 5: 5, 10: 5}, 103, [90, 95, 100, 103]),
        # proved by a sum above the number of samples: added up
        ("seastore_op_lat", {1: 90, 2: 95, 3: 100}, 103, [90, 95, 100, 103]),
        ("osd_mclock_throttle_wait_latency", {1: 90, 5: 95, 10: 100}, 103, [90, 95, 100, 103]),
        # neither: what builds are known to write
        ("seastore_op_lat", {1: 1, 2: 2, 3: 3}, 7, [1, 3, 6, 7]),
        ("osd_mclock_throttle_wait_latency", {1: 1, 5: 2, 10: 3}, 7, [1, 2, 3, 7]),
        ("seastore_op_lat", {1: 0, 2: 0, 3: 0}, 0, [0, 0, 0, 0]),
    ],
)
def test_the_form_of_a_histogram_is_told_by_its_figures(
    name: str, counts: dict[float, int], count: int, shown: list[float]
) -> None:
    reply = one(name, histogram(counts, count), op_class="client", latency="READ", shard="0")
    found = collected(reply)
    assert [value for key, value in found.items() if "_bucket{" in key] == shown


def test_one_series_proves_the_form_of_all_of_its_name_and_for_the_scrapes_that_follow() -> None:
    name = "osd_mclock_throttle_wait_latency"
    ambiguous = entry(name, histogram({1: 1, 5: 2}, 7), op_class="repop", shard="0")
    proof = entry(name, histogram({1: 9, 5: 0}, 9), op_class="client", shard="0")
    collector = CrimsonCollector()

    def repop(*entries: object) -> list[float]:
        found = samples(collector.collect(view({"metrics": list(entries)})))
        return [value for key, value in found.items() if "repop" in key and "_bucket" in key]

    assert repop(ambiguous) == [1, 2, 7]  # Seastar's own form, while nothing tells
    assert repop(ambiguous, proof) == [1, 3, 7]
    assert repop(ambiguous) == [1, 3, 7]
    collector.forget(view({}).daemon)
    assert repop(ambiguous) == [1, 2, 7]


def test_latencies_of_seastore_have_their_buckets_in_seconds_in_milliseconds_and_microseconds() -> (
    None
):
    counts = {1: 90, 1.5: 5, 100: 5}
    milli = collected(one("seastore_op_lat", histogram(counts, 100, 250), latency="READ"))
    assert milli['cephqos_crimson_seastore_op_seconds_bucket{latency="READ",le="0.0015"}'] == 95
    assert milli['cephqos_crimson_seastore_op_seconds_sum{latency="READ"}'] == 0.25
    counts = {le * 1000: n for le, n in counts.items()}
    micro = collected(one("seastore_op_lat", histogram(counts, 100, 250_000), latency="READ"))
    assert micro == milli


def test_operations_without_buckets_are_in_the_unit_of_those_that_have_some() -> None:
    """One build has bounds, in microseconds, for transactions only."""
    commits = histogram({250: 90, 500: 5, 100_000: 6}, 101, total=50_000)  # the last takes the rest
    reply = {
        "metrics": [
            entry("seastore_op_lat", commits, latency="DO_TRANSACTION", shard="0"),
            entry("seastore_op_lat", histogram({}, 4, total=800), latency="READ", shard="0"),
        ]
    }
    found = collected(reply)
    assert found['cephqos_crimson_seastore_op_seconds_sum{latency="DO_TRANSACTION"}'] == 0.05
    assert found['cephqos_crimson_seastore_op_seconds_sum{latency="READ"}'] == 0.0008
    assert buckets(found, "cephqos_crimson_seastore_op_seconds") == [90, 95, 101, 4]


def test_what_may_be_of_any_size_is_below_no_bound() -> None:
    """Builds that put all above 100 ms into the bucket below: a p99 of 3 s read as below 0.1 s."""
    collector, name = CrimsonCollector(), "cephqos_crimson_seastore_op_seconds"

    def shown(last: int, count: int, total: float) -> dict[str, float]:
        value = histogram({1: 90, 50: 0, 100: last}, count, total)
        reply = one("seastore_op_lat", value, latency="READ", shard="0")
        found = samples(collector.collect(view(reply)))
        return {key.split('le="')[1][:-2]: n for key, n in found.items() if f"{name}_bucket" in key}

    assert shown(0, 90, 40) == {"0.001": 90, "0.05": 90, "0.1": 90, "+Inf": 90}
    # 90 x 1 + 10 x 100 is less than the sum: the last bucket is open.
    assert shown(10, 100, 30_000) == {"0.001": 90, "0.05": 90, "+Inf": 100}
    # It may be: the sum of these proves nothing.
    assert shown(10, 100, 700) == {"0.001": 90, "0.05": 90, "+Inf": 100}
    # A build that counts what is above beside the buckets has proved that its last one is closed.
    assert shown(10, 101, 700) == {"0.001": 90, "0.05": 90, "0.1": 100, "+Inf": 101}
    assert shown(10, 100, 700) == {"0.001": 90, "0.05": 90, "0.1": 100, "+Inf": 100}


def test_waits_in_the_scheduler_are_milliseconds_however_long() -> None:
    reply = one("osd_mclock_throttle_wait_latency", histogram({1: 2, 60_000: 3}, 3, total=50_000))
    assert collected(reply)["cephqos_crimson_osd_mclock_throttle_wait_seconds_sum{}"] == 50


def test_finer_bounds_of_newer_builds_are_thinned_and_keep_what_is_below_a_millisecond() -> None:
    name = 'cephqos_crimson_seastore_op_seconds_bucket{latency="READ",le="'
    found = collected(recorded(NEWEST))
    bounds = [key.removeprefix(name)[:-2] for key in found if key.startswith(name)]
    assert " ".join(bounds) == "0.0001 0.00025 0.0005 0.001 0.002 0.005 0.01 0.02 0.05 0.1 +Inf"


def test_a_build_without_buckets_has_only_the_last_one() -> None:
    found = collected(recorded(SEGMENTS))
    name = "cephqos_crimson_seastore_op_seconds"
    assert (
        found[f'{name}_bucket{{latency="READ",le="+Inf"}}']
        == found[f'{name}_count{{latency="READ"}}']
    )
    assert len(buckets(found, name)) == len(crimson_names.OPERATIONS)


def test_buckets_of_every_histogram_rise_and_end_at_the_count() -> None:
    for build in BUILDS:
        families = CrimsonCollector(include=["*"]).collect(view(recorded(build)))
        for family in (f for f in families if f.type == "histogram"):
            last = 0.0
            for suffix, labels, value in family.samples:
                if suffix == "_bucket":
                    assert value >= last, (family.name, labels)
                    last = value
                elif suffix == "_count":
                    assert value == last
                    last = 0.0


@given(
    st.lists(st.lists(st.sampled_from([0.2, 1, 3, 40, 5000]), max_size=6), min_size=2, max_size=5),
    st.sampled_from(
        [
            # Name, buckets added up, what is past the last bound is in its bucket, unit in ms.
            ("seastore_op_lat", False, False, 1),
            ("seastore_op_lat", False, True, 1),
            ("seastore_op_lat", False, True, 1000),
            ("seastore_do_transaction_stage_lat", False, False, 1),
            ("osd_mclock_throttle_wait_latency", True, False, 1),
        ]
    ),
)
def test_no_bucket_falls_from_scrape_to_scrape_and_each_ends_at_the_count(
    scrapes: list[list[float]], form: tuple[str, bool, bool, int]
) -> None:
    name, added_up, past_in_last, unit = form
    bounds = crimson_names.LATENCY_BOUNDS
    collector = CrimsonCollector(include=["seastore_*"])
    seen: list[float] = []
    before: dict[str, float] = {}
    for more in scrapes:
        seen += more
        inside = [min((n for n, b in enumerate(bounds) if b >= one), default=-1) for one in seen]
        places = [len(bounds) - 1 if past_in_last and n < 0 else n for n in inside]
        counts = [places.count(n) for n in range(len(bounds))]
        shown = list(accumulate(counts)) if added_up else counts
        value = histogram(
            {bound * unit: n for bound, n in zip(bounds, shown, strict=True)},
            len(seen),
            sum(seen) * unit,
        )
        found = samples(collector.collect(view(one(name, value, latency="READ", shard="0"))))
        rising = [figure for key, figure in found.items() if "_bucket{" in key]
        assert rising == sorted(rising)
        assert rising[-1] == len(seen)
        assert all(found.get(key, figure) >= figure for key, figure in before.items())
        before = found
