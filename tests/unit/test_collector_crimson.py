"""The Crimson collector, on replies in the shape of real ones of three builds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from tests.replay import crimson as crimson_replies
from tests.replay.daemons import RecordedDaemon

from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.collectors.crimson import GROUPS, METRICS, TABLE, CrimsonCollector
from cephqos_exporter.errors import Malformed
from cephqos_exporter.exposition import Page
from cephqos_exporter.model import Daemon, DaemonView, Family, Host, ReplyMissing, render_labels

RECORDINGS = Path(__file__).parents[1] / "recordings" / "crimson"
DOCUMENTATION = Path(__file__).parents[2] / "exporter" / "CRIMSON.md"
SEGMENTS, BLOCKS, BLUESTORE = "spring-segments", "autumn-random-blocks", "spring-bluestore"
BUILDS = (SEGMENTS, BLOCKS, BLUESTORE)


def view(reply: object, *, kind: str = "osd", error: str = "") -> DaemonView:
    daemon = Daemon(kind, "0", "c", Path("/run/osd.0.asok"))
    replies: dict[str, Any] = {} if error else {METRICS: reply}
    errors = {METRICS: error} if error else {}
    return DaemonView(daemon, render_labels(daemon.labels), replies, errors, 1.0, Host())


def samples(families: Iterable[Family]) -> dict[str, float]:
    """Without the count of what was unread, and without the labels that all have."""
    own = 'ceph_daemon="osd.0",cluster="c"'
    return {
        f"{family.name}{suffix}{{{labels.removeprefix(own).removeprefix(',')}}}": value
        for family in families
        for suffix, labels, value in family.samples
        if not family.name.endswith("_unread")
    }


def collected(reply: object, **options: Any) -> dict[str, float]:
    return samples(CrimsonCollector(**options).collect(view(reply)))


def unread(reply: object, **options: Any) -> float:
    families = CrimsonCollector(**options).collect(view(reply))
    return next(f.samples[0][2] for f in families if f.name == "cephqos_crimson_metrics_unread")


def recorded(build: str) -> Any:
    return orjson.loads(RecordedDaemon.load(RECORDINGS / build).replies[METRICS])


def entry(name: str, value: object, **labels: object) -> dict[str, Any]:
    return {name: {**labels, "value": value}}


def one(name: str, value: object, **labels: object) -> dict[str, Any]:
    return {"metrics": [entry(name, value, **labels)]}


def histogram(
    counts: Mapping[float, int] | Mapping[int, int], count: int, total: float = 0
) -> dict[str, Any]:
    buckets: list[dict[str, Any]] = [{"le": le, "count": n} for le, n in counts.items()]
    return {"sum": total, "count": count, "buckets": [*buckets, {"le": "+Inf", "count": count}]}


def buckets(found: dict[str, float], name: str) -> list[float]:
    return [value for key, value in found.items() if key.startswith(f"{name}_bucket")]


# The recordings


def test_the_committed_replies_are_what_their_generator_writes(tmp_path: Path) -> None:
    crimson_replies.write(tmp_path)
    for build in BUILDS:
        written = RecordedDaemon.load(tmp_path / build).replies
        assert written == RecordedDaemon.load(RECORDINGS / build).replies


def test_the_recordings_have_every_metric_of_the_tables() -> None:
    names = {name for build in BUILDS for item in recorded(build)["metrics"] for name in item}
    newer = {name for name in TABLE if name.startswith("cache_2q_")}  # of a build not recorded
    assert TABLE.keys() - newer <= names


# Units, names, labels


def test_reactors_are_shown_by_shard_in_base_units() -> None:
    reply = {
        "metrics": [
            entry("reactor_utilization", 93.25, shard="0"),
            entry("reactor_cpu_busy_ms", 571_000, shard="1"),
            entry("reactor_aio_bytes_write", 4096, shard="1"),
            entry("scheduler_starvetime_ms", 210, group="main", shard="0"),
            entry("scheduler_time_spent_on_task_quota_violations_ms", 38, group="main", shard="0"),
        ]
    }
    name = "cephqos_crimson_scheduler"
    assert collected(reply) == {
        'cephqos_crimson_reactor_utilization_ratio{shard="0"}': 0.9325,
        'cephqos_crimson_reactor_busy_seconds_total{shard="1"}': 571,
        'cephqos_crimson_reactor_aio_bytes_total{shard="1",op="write"}': 4096,
        f'{name}_seconds_total{{group="main",shard="0",state="starve"}}': 0.21,
        f'{name}_quota_violation_seconds_total{{group="main",shard="0"}}': 0.038,
    }


def test_the_scheduling_group_of_the_end_is_shown_on_request_only() -> None:
    reply = one("scheduler_runtime_ms", 0, group="atexit", shard="0")
    assert collected(reply, groups=GROUPS) == {}
    assert len(collected(reply, everything=True)) == 1


def test_every_entry_of_the_tables_has_one_type_and_help_per_name() -> None:
    told: dict[str, tuple[str, str]] = {}
    for shown in (one for entries in TABLE.values() for one in entries):
        assert told.setdefault(shown.name, (shown.type, shown.help)) == (shown.type, shown.help)
        assert (shown.type == "counter") == shown.name.endswith("_total"), shown.name
        assert shown.group in ("", *GROUPS)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    "options", [{}, {"groups": GROUPS}, {"everything": True}, {"shard_histograms": True}]
)
def test_what_is_shown_of_a_real_reply_is_valid_openmetrics_and_nothing_is_left_unread(
    build: str, options: dict[str, Any]
) -> None:
    families = list(CrimsonCollector(**options).collect(view(recorded(build))))
    page = Page()
    page.add_families(families)
    text = page.body(openmetrics=True).decode()
    metrics: Iterable[Metric] = openmetrics_parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    parsed = [sample for metric in metrics for sample in metric.samples]
    assert len(parsed) == sum(len(family.samples) for family in families)
    assert len({(s.name, *sorted(s.labels.items())) for s in parsed}) == len(parsed)
    assert unread(recorded(build), **options) == 0


# Crimson's own mClock


def test_crimsons_scheduler_is_shown_by_the_classes_of_cephqos() -> None:
    found = collected(recorded(BLOCKS))
    name = "cephqos_crimson_mclock_throttled_ops_total"
    labels = 'op_class="{}",class="{}",shard="1"'
    for theirs, ours in (
        ("client", "client"),
        ("background_recovery", "background_recovery"),
        ("background_best_effort", "background_best_effort"),
        ("immediate", "immediate"),
        ("repop", "immediate"),
    ):
        assert f"{name}{{{labels.format(theirs, ours)}}}" in found
    longest = f"cephqos_crimson_mclock_longest_wait_seconds{{{labels.format('client', 'client')}}}"
    assert found[longest] == 2.4


def test_waits_in_crimsons_scheduler_are_a_histogram_of_all_shards() -> None:
    def waits(shard: str, first: int) -> dict[str, Any]:
        counts = {1: first, 5: first + 2, 10: first + 2}
        value = histogram(counts, first + 3, total=1000)
        return entry("osd_mclock_throttle_wait_latency", value, op_class="client", shard=shard)

    reply = {"metrics": [waits("0", 10), waits("1", 20)]}
    key = 'cephqos_crimson_mclock_wait_seconds_%s{op_class="client",class="client"%s}'
    found = collected(reply)
    assert found == {
        key % ("bucket", ',le="0.001"'): 30,
        key % ("bucket", ',le="0.005"'): 34,
        key % ("bucket", ',le="0.01"'): 34,
        key % ("bucket", ',le="+Inf"'): 36,
        key % ("sum", ""): 2.0,
        key % ("count", ""): 36,
    }
    assert len(collected(reply, shard_histograms=True)) == 2 * len(found)


def test_what_clients_waited_is_the_series_that_classic_osds_have_too() -> None:
    name = "osd_mclock_total_wait_ms"
    reply = {
        "metrics": [
            entry(name, 1500, op_class="client", shard="0"),
            entry(name, 500, op_class="client", shard="1"),
            entry(name, 9000, op_class="background_recovery", shard="0"),
            entry(name, "odd", op_class="client", shard="2"),
        ]
    }
    found = collected(reply)
    assert found["cephqos_qos_client_wait_seconds_total{}"] == 2.0
    recovery = 'op_class="background_recovery",class="background_recovery",shard="0"'
    assert found[f"cephqos_crimson_mclock_waited_seconds_total{{{recovery}}}"] == 9
    older = collected(recorded(SEGMENTS))
    assert not [key for key in older if "qos_client_wait" in key]


def test_waits_at_the_throttle_of_seastore_are_a_throttles_as_those_of_bluestore() -> None:
    def stage(stage: str, tail: str, total: float) -> dict[str, Any]:
        value = histogram({1: 5, 2: 3}, 9, total)
        return entry("seastore_do_transaction_stage_lat", value, stage=stage, tail=tail, shard="0")

    waits = [("throttler_wait", "all", 250), ("throttler_wait", "slow", 200), ("build", "all", 90)]
    found = collected({"metrics": [stage(*one) for one in waits]})
    key = 'cephqos_qos_throttle_wait_seconds_total{throttle="seastore"}'
    assert {k: v for k, v in found.items() if "_qos_" in k} == {key: 0.25}


def test_operations_that_change_the_reactor_are_told_from_those_that_do_not() -> None:
    reply = {
        "metrics": [
            entry("osd_pg_shard_op_local", 70, op_type="client_request", shard="0"),
            entry("osd_pg_shard_op_remote", 30, op_type="client_request", shard="0"),
        ]
    }
    key = 'cephqos_crimson_pg_ops_total{op_type="client_request",shard="0",path="%s"}'
    assert collected(reply) == {key % "local": 70, key % "remote": 30}


# Histograms


def test_stalls_are_those_of_the_histogram_and_not_the_reports_of_the_detector() -> None:
    stalls = histogram({640: 0, 768: 1, 1280: 3, 2560: 11}, 11, total=43_520)
    both = {
        "metrics": [
            entry("stall_detector_reported", 0, shard="0"),
            entry("reactor_stalls", stalls, shard="0"),
        ]
    }
    found = collected(both)
    assert found['cephqos_crimson_reactor_stalls_total{shard="0"}'] == 11
    assert found['cephqos_crimson_reactor_stall_reports_total{shard="0"}'] == 0
    assert found["cephqos_crimson_reactor_stall_seconds_sum{}"] == 0.04352
    assert found['cephqos_crimson_reactor_stall_seconds_bucket{le="0.00128"}'] == 3
    older = collected(one("stall_detector_reported", 4, shard="0"))
    assert older['cephqos_crimson_reactor_stalls_total{shard="0"}'] == 4


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
    assert milli['cephqos_crimson_seastore_op_seconds_bucket{op="read",le="0.0015"}'] == 95
    assert milli['cephqos_crimson_seastore_op_seconds_sum{op="read"}'] == 0.25
    counts = {le * 1000: n for le, n in counts.items()}
    micro = collected(one("seastore_op_lat", histogram(counts, 100, 250_000), latency="READ"))
    assert micro == milli


def test_a_build_without_buckets_has_only_the_last_one() -> None:
    found = collected(recorded(SEGMENTS))
    name = "cephqos_crimson_seastore_op_seconds"
    assert found[f'{name}_bucket{{op="read",le="+Inf"}}'] == found[f'{name}_count{{op="read"}}']
    assert len(buckets(found, name)) == len(crimson_replies.OPERATIONS)


def test_buckets_of_every_histogram_rise_and_end_at_the_count() -> None:
    for build in BUILDS:
        families = CrimsonCollector(everything=True).collect(view(recorded(build)))
        for family in (f for f in families if f.type == "histogram"):
            last = 0.0
            for suffix, labels, value in family.samples:
                if suffix == "_bucket":
                    assert value >= last, (family.name, labels)
                    last = value
                elif suffix == "_count":
                    assert value == last
                    last = 0.0


def test_how_full_segments_are_is_no_histogram_of_samples() -> None:
    name = "cephqos_crimson_seastore_segments_by_utilization"
    found = collected(recorded(SEGMENTS), groups=["cleaner"])
    assert found[f'{name}{{shard="0",utilization="0.1"}}'] == 21
    assert found[f'{name}{{shard="0",utilization="1.2"}}'] == 114_435


# SeaStore


def test_conflicts_stand_beside_commits() -> None:
    reply = {
        "metrics": [
            entry("cache_trans_committed", 4_300_000, src="MUTATE", shard="0"),
            entry("cache_trans_invalidated", 766_151, src="MUTATE", shard="0"),
        ]
    }
    assert collected(reply) == {
        'cephqos_crimson_seastore_commits_total{src="MUTATE",shard="0"}': 4_300_000,
        'cephqos_crimson_seastore_conflicts_total{src="MUTATE",shard="0"}': 766_151,
    }
    assert "cephqos_crimson_seastore_conflict_replays_count{}" in collected(recorded(BLOCKS))


def test_hits_of_the_cache_are_those_of_the_list_that_keeps_extents() -> None:
    names = ("cache_cache_access", "cache_cache_hit", "cache_lru_hit", "cache_lru_miss")
    reply = {"metrics": [entry(name, 7, shard="0") for name in (*names, "cache_2q_hit")]}
    key = 'cephqos_crimson_seastore_cache_lookups_total{shard="0",policy="%s",result="%s"}'
    expected = {key % ("lru", "hit"): 7, key % ("lru", "miss"): 7, key % ("2q", "hit"): 7}
    assert collected(reply) == expected
    assert len(collected(reply, groups=["cache"])) == 5


def test_space_is_shown_of_both_cleaners() -> None:
    for build, cleaner in ((SEGMENTS, "segment"), (BLOCKS, "rbm")):
        name = f"{cleaner}_cleaner_used_bytes"
        used = next(item[name] for item in recorded(build)["metrics"] if name in item)
        found = collected(recorded(build))
        shown = [v for k, v in found.items() if f'cleaner="{cleaner}",state="used"' in k]
        assert shown[0] == used["value"]


def test_stages_of_a_transaction_have_sums_and_with_the_group_buckets_and_tails() -> None:
    key = 'cephqos_crimson_seastore_stage_seconds_count{stage="submit_journal",tail="all"}'
    usual = collected(recorded(BLOCKS))
    shards = 3
    assert usual[key] == shards * 530
    assert not [name for name in usual if "very_slow" in name]
    more = collected(recorded(BLOCKS), groups=["transactions"])
    assert usual.items() < more.items()
    latency = "cephqos_crimson_seastore_stage_latency_seconds_bucket"
    assert more[f'{latency}{{stage="build",tail="very_slow",le="0.1"}}'] == shards * 9


# Groups, everything


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_adds_something_to_what_is_shown(group: str) -> None:
    added = [
        collected(recorded(build), groups=[group]).keys() - collected(recorded(build)).keys()
        for build in BUILDS
    ]
    assert any(added)


def test_everything_has_the_groups_and_what_no_table_knows_with_histograms() -> None:
    reply = recorded(SEGMENTS)
    reply["metrics"].append(entry("new_wait", histogram({1: 2, 2: 3}, 4), shard="0"))
    everything = collected(reply, everything=True)
    assert collected(reply, groups=GROUPS).items() < everything.items()
    key = 'cephqos_crimson_cache_trans_invalidated_by_extent{src="MUTATE",ext="ROOT",shard="0"}'
    assert key in everything
    assert everything['cephqos_crimson_new_wait_bucket{shard="0",le="2.0"}'] == 3
    assert everything['cephqos_crimson_new_wait_count{shard="0"}'] == 4


def test_the_number_of_series_is_what_the_documentation_says() -> None:
    text = DOCUMENTATION.read_text()
    for build in BUILDS:
        for option, options in (
            ("usual", {}),
            ("all groups", {"groups": GROUPS}),
            ("everything", {"everything": True}),
        ):
            found = collected(recorded(build), **options)
            shards = {key.split('shard="')[1].split('"')[0] for key in found if 'shard="' in key}
            each = sum('shard="' in key for key in found) / len(shards)
            osd = sum('shard="' not in key for key in found)
            row = f"| {build} | {option} | {each:.0f} | {osd} |"
            assert row in text, row


# Hostile input


def test_a_figure_that_is_not_finite_is_absent_and_not_odd() -> None:
    reply = one("reactor_polls", None, shard="0")
    assert collected(reply) == {}
    assert unread(reply) == 0


def test_names_that_prometheus_would_refuse_are_made_fit() -> None:
    reply = one("odd-name.x", 3, **{"a b": "1"})
    assert collected(reply, everything=True) == {'cephqos_crimson_odd_name_x{a_b="1"}': 3}


def test_labels_that_prometheus_would_refuse_or_take_for_something_else_are_left_out() -> None:
    labels = {"": "a", "9lives": "b", "__name__": "c", "le": "d", "cluster": "e", "ok": "f"}
    reply = one("reactor_polls", 3, **labels, mountpoint="", **{"o.k": "g", "o_k": "h"}, number=5)
    assert collected(reply) == {'cephqos_crimson_reactor_polls_total{ok="f",o_k="g",number="5"}': 3}
    text = one("reactor_polls", 3, shard='a"b\nc\\')
    assert collected(text) == {'cephqos_crimson_reactor_polls_total{shard="a\\"b\\nc\\\\"}': 3}


def test_a_label_of_ours_is_not_overridden_by_one_of_the_reply() -> None:
    reply = one("reactor_aio_reads", 3, op="write", shard="0")
    assert collected(reply) == {'cephqos_crimson_reactor_aio_ops_total{shard="0",op="read"}': 3}


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
    alone = collected(one(first, value, shard="0"), everything=True)
    reply = {"metrics": [entry(first, value, shard="0"), entry(second, 4, shard="1")]}
    assert collected(reply, everything=True) == alone
    assert unread(reply, everything=True) == 1


def test_shards_with_other_bounds_are_not_added_to_the_first() -> None:
    def op(shard: str, bound: float) -> dict[str, Any]:
        return entry("seastore_op_lat", histogram({bound: 5}, 6), latency="READ", shard=shard)

    reply = {"metrics": [op("0", 1), op("1", 2)]}
    assert collected(reply)['cephqos_crimson_seastore_op_seconds_count{op="read"}'] == 6
    assert unread(reply) == 1


@pytest.mark.parametrize("reply", [None, [], {}, 3, {"metrics": 3}, {"metrics": {"a": 1}}])
def test_a_reply_that_is_no_list_of_metrics_is_an_error(reply: object) -> None:
    with pytest.raises(Malformed):
        list(CrimsonCollector().collect(view(reply)))


def test_a_classic_osd_does_not_know_the_command_and_has_no_series() -> None:
    with pytest.raises(ReplyMissing) as error:
        list(CrimsonCollector().collect(view(None, error="unknown_command")))
    assert error.value.reason == "unknown_command"


def test_the_command_is_on_the_read_only_list() -> None:
    collector = CrimsonCollector()
    osd = collector.commands(view({}).daemon)
    assert {command.prefix for command in osd} <= set(READ_ONLY_COMMANDS)
    assert collector.commands(view({}, kind="mon").daemon) == ()
    assert list(collector.collect(view({}, kind="mon"))) == []
