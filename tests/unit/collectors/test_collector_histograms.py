"""Op histograms in seconds, on recordings and on hand-made ones."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.collectors.histograms import HistogramsCollector
from cephqos_exporter.daemon import Daemon, ReplyMissing
from cephqos_exporter.families import Family

from ..osd_views import OSD, RecordedOsd, samples, value, values

NAME = "cephqos_osd_op_latency_seconds"
WRITES = "op_w_latency_in_bytes_histogram"


def buckets(family: Family, **labels: str) -> dict[float, float]:
    """Cumulative counts by upper bound, in the order in which they were written."""
    found = values([family], f"{family.name}_bucket", labels)
    return {float(text.partition('le="')[2].rstrip('"')): n for text, n in found.items()}


def cleared(osd: RecordedOsd) -> Mapping[str, list[list[int]]]:
    """The op histograms of an OSD that has done nothing yet, to be filled."""
    histograms = osd.replies["perf histogram dump"]["osd"]
    for histogram in histograms.values():
        for row in histogram["values"]:
            row[:] = [0] * len(row)
    return {name: histogram["values"] for name, histogram in histograms.items()}


@pytest.mark.parametrize("release", RELEASES)
def test_a_recorded_load_agrees_with_the_osds_own_counts(release: str) -> None:
    osd = RecordedOsd(release)
    (family,) = osd.scrape(HistogramsCollector())
    counters = osd.counters("osd")
    for op, key in (("read", "op_r"), ("write", "op_w"), ("rw", "op_rw")):
        counts = list(buckets(family, op=op).values())
        assert counts == sorted(counts)
        assert value([family], f"{NAME}_count", op=op) == counts[-1]
        # The two replies were recorded some ops apart.
        assert counts[-1] == pytest.approx(counters[key], rel=0.02)
        assert value([family], f"{NAME}_sum", op=op) == counters[f"{key}_latency"]["sum"]
    assert value([family], f"{NAME}_count", op="write") > 0


@pytest.mark.parametrize("release", RELEASES)
def test_the_mean_lies_within_the_buckets_that_it_is_made_of(release: str) -> None:
    """Were the axis taken for microseconds, the mean would lie a thousand times below."""
    osd = RecordedOsd(release)
    (family,) = osd.scrape(HistogramsCollector())
    found = buckets(family, op="write")
    total = value([family], f"{NAME}_count", op="write")
    mean = value([family], f"{NAME}_sum", op="write") / total
    bounds, counts = list(found), list(found.values())
    each = [n - before for n, before in zip(counts, [0, *counts], strict=False)]
    lower = sum(n * low for n, low in zip(each, [0, *bounds], strict=False)) / total
    upper = sum(n * high for n, high in zip(each, bounds, strict=True) if n) / total
    assert lower <= mean <= upper


def test_bounds_are_seconds_that_double_from_100_microseconds() -> None:
    (family,) = RecordedOsd("reef").scrape(HistogramsCollector())
    bounds = list(buckets(family, op="read"))
    assert bounds[:3] == [0.0001, 0.0002, 0.0004]
    assert bounds[-2] == pytest.approx(104.8576)
    assert bounds[-1] == float("inf")
    assert all(b == pytest.approx(2 * a) for a, b in pairwise(bounds[:-1]))


def test_each_row_falls_under_the_bound_that_holds_it() -> None:
    osd = RecordedOsd("reef")
    rows = cleared(osd)[WRITES]
    rows[0][1] = 1  # below 0: the clock went back
    rows[1][1] = 10  # below 100 µs
    rows[2][1] = 100  # 100 to 200 µs
    rows[31][31] = 1000  # open-ended
    (family,) = osd.scrape(HistogramsCollector())
    found = buckets(family, op="write")
    assert found[0.0001] == 11
    assert found[0.0002] == 111
    assert found[104.8576] == 111
    assert found[float("inf")] == 1111


def test_the_longest_bound_can_be_chosen_and_loses_no_op() -> None:
    osd = RecordedOsd("reef")
    rows = cleared(osd)[WRITES]
    rows[10][3], rows[25][3] = 5, 7
    (family,) = osd.scrape(HistogramsCollector(longest=1.0))
    found = buckets(family, op="write")
    assert max(bound for bound in found if bound != float("inf")) == 0.8192
    assert found[0.8192] == 5
    assert found[float("inf")] == 12


def test_size_classes_split_every_op_by_the_lower_end_of_its_class() -> None:
    osd = RecordedOsd("reef")
    rows = cleared(osd)[WRITES]
    # Columns: 1 is 0-511, 4 is 2-4 KiB, 5 is 4-8 KiB, 6 is 8-16 KiB, 13 is 1-2 MiB.
    rows[3][1], rows[3][4], rows[3][5], rows[3][6], rows[3][13] = 1, 2, 3, 4, 5
    collector = HistogramsCollector(by_size=True)
    whole, split = osd.scrape(collector)
    name = "cephqos_osd_op_size_latency_seconds_count"
    counts = values([split], name, {"op": "write"})
    assert list(counts.values()) == [3, 7, 0, 0, 0, 5, 0]
    assert value([split], name, op="write", size_min_bytes="4096") == 7
    assert value([whole], f"{NAME}_count", op="write") == 15
    assert not values([split], "cephqos_osd_op_size_latency_seconds_sum")


def test_ops_of_all_sizes_together_are_the_whole() -> None:
    whole, split = RecordedOsd("tentacle").scrape(HistogramsCollector(by_size=True))
    for op in ("read", "write", "rw"):
        parts = values([split], "cephqos_osd_op_size_latency_seconds_count", {"op": op})
        assert sum(parts.values()) == value([whole], f"{NAME}_count", op=op)


def test_by_default_there_is_one_family_of_seventy_odd_series() -> None:
    (family,) = RecordedOsd("tentacle").scrape(HistogramsCollector())
    assert family.type == "histogram"
    assert len(family.samples) <= 75


def test_a_daemon_that_is_no_osd_has_none_and_is_not_asked() -> None:
    mon = Daemon("mon", "a", OSD.cluster, OSD.socket)
    osd = RecordedOsd("reef", daemon=mon)
    assert osd.scrape(HistogramsCollector()) == []
    assert osd.asked == [[]]


def test_between_two_reads_the_last_histograms_are_shown_with_their_own_sums() -> None:
    osd, collector = RecordedOsd("reef"), HistogramsCollector(interval=5)
    shown = []
    for second in range(7):
        osd.time = 1000.0 + second
        (family,) = osd.scrape(collector)
        shown.append(
            (
                value([family], f"{NAME}_count", op="write"),
                value([family], f"{NAME}_sum", op="write"),
            )
        )
        osd.add_ops("op_w", 4096, 10)
        osd.counters("osd")["op_w_latency"]["sum"] += 1.0
    read = [second for second, asked in enumerate(osd.asked) if "perf histogram dump" in asked]
    assert read == [0, 5]
    count, seconds = shown[0]
    assert shown == [(count, seconds)] * 5 + [(count + 50, seconds + 5.0)] * 2


@pytest.mark.parametrize("by_size", [False, True])
@pytest.mark.parametrize("missing", ["op_rw_latency_in_bytes_histogram", "op_rw_latency"])
def test_what_is_missing_of_one_kind_of_operation_costs_that_kind(
    missing: str, by_size: bool
) -> None:
    osd, collector = RecordedOsd("reef"), HistogramsCollector(interval=0, by_size=by_size)
    before = osd.scrape(collector)
    found = osd.replies["perf histogram dump"]["osd"]
    holder = found if missing in found else osd.counters("osd")
    kept = holder.pop(missing)
    families = osd.scrape(collector)
    assert osd.not_understood == {"counter"}
    assert not values(families, f"{NAME}_count", {"op": "rw"})
    for op in ("read", "write"):
        assert value(families, f"{NAME}_count", op=op) == value(before, f"{NAME}_count", op=op)
    holder[missing] = kept
    assert samples(osd.scrape(collector)) == samples(before)


@pytest.mark.parametrize("quantum", [100, None, 100_000_000])
def test_bounds_in_a_unit_that_is_not_known_make_no_histogram(quantum: int | None) -> None:
    """A release that mends the axis's name or its values: bounds would be a thousand times off."""
    osd, collector = RecordedOsd("reef"), HistogramsCollector(interval=0)
    for histogram in osd.replies["perf histogram dump"]["osd"].values():
        histogram["axes"][0]["quant_size"] = quantum
    for _ in range(2):
        with pytest.raises(ReplyMissing, match="another unit"):
            osd.scrape(collector)
