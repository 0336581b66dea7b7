"""The Crimson collector, on replies in the shape of real ones of four builds."""

import fnmatch
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from tests.recorded import CRIMSON
from tests.replay import crimson as crimson_replies
from tests.replay.daemons import RecordedDaemon

from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.collectors.crimson import CrimsonCollector
from cephqos_exporter.collectors.crimson.names import LEFT_OUT, TABLE, USUAL, shown
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render

from .crimson_views import (
    BLOCKS,
    BUILDS,
    DOCUMENTATION,
    SEGMENTS,
    collected,
    entry,
    histogram,
    one,
    recorded,
    samples,
    unread,
    view,
)


# The recordings
def test_the_committed_replies_are_what_their_generator_writes(tmp_path: Path) -> None:
    crimson_replies.write(tmp_path)
    for build in BUILDS:
        written = RecordedDaemon.load(tmp_path / build).replies
        assert written == RecordedDaemon.load(CRIMSON / build).replies


def test_the_recordings_have_every_metric_that_is_named() -> None:
    names = {name for build in BUILDS for item in recorded(build)["metrics"] for name in item}
    assert names >= {*TABLE, *LEFT_OUT}
    # Of a setting that is not recorded: the cache's other policy.
    patterns = [pattern for pattern in USUAL if "2q" not in pattern]
    assert [one for one in patterns if not fnmatch.filter(names, one)] == []


# Units, names, labels
def test_reactors_are_used_bytesby_shard_in_base_units() -> None:
    reply = {
        "metrics": [
            entry("reactor_utilization", 93.25, shard="0"),
            entry("reactor_cpu_busy_ms", 571_000, shard="1"),
            entry("reactor_aio_bytes_write", 4096, shard="1"),
            entry("scheduler_starvetime_ms", 210, group="main", shard="0"),
            entry("scheduler_time_spent_on_task_quota_violations_ms", 38, group="main", shard="0"),
        ]
    }
    name = "cephqos_crimson"
    assert collected(reply) == {
        f'{name}_reactor_utilization_ratio{{shard="0"}}': 0.9325,
        f'{name}_reactor_cpu_busy_seconds_total{{shard="1"}}': 571,
        f'{name}_reactor_aio_bytes_write_total{{shard="1"}}': 4096,
        f'{name}_scheduler_starvetime_seconds_total{{group="main",shard="0"}}': 0.21,
        f"{name}_scheduler_time_spent_on_task_quota_violations_seconds_total"
        f'{{group="main",shard="0"}}': 0.038,
    }


@pytest.mark.parametrize(
    ("source", "name", "kind", "divisor"),
    [
        ("reactor_awake_time_ms_total", "reactor_awake_time_seconds_total", "counter", 1000),
        ("io_queue_total_delay_sec", "io_queue_delay_seconds_total", "counter", 1),
        ("io_queue_total_read_ops", "io_queue_read_ops_total", "counter", 1),
        ("osd_mclock_max_wait_ms", "osd_mclock_max_wait_seconds", "gauge", 1000),
        ("memory_total_memory", "memory_total_memory", "gauge", 1),
        ("segment_cleaner_closed_ool_total_bytes", None, "gauge", 1),
        ("segment_cleaner_reclaimed_bytes", "segment_cleaner_reclaimed_bytes_total", "counter", 1),
        ("seastore_op_lat", "seastore_op_seconds", "histogram", 1000),
        ("seastore_conflict_replay_distribution", None, "histogram", 1),
        ("seastore_cbj_submit_record_latency_total", None, "counter", 1),
        ("io_queue_integrated_queue_length", None, "unknown", 1),
        ("cache_dirty_extents", None, "unknown", 1),
        ("odd_name.ms", "odd_name_ms", "unknown", 1),
    ],
)
def test_names_types_and_units_follow_from_the_words_of_a_name(
    source: str, name: str | None, kind: str, divisor: float
) -> None:
    one = shown(source)
    expected = (f"cephqos_crimson_{name or source}", kind, divisor)
    assert (one.name, one.type, one.divisor) == expected


def test_no_two_metrics_of_the_recordings_have_one_name_and_counters_end_as_such() -> None:
    names = {name for build in BUILDS for item in recorded(build)["metrics"] for name in item}
    told = [shown(name) for name in names]
    assert len({one.name for one in told}) == len(names)
    assert all((one.type == "counter") == one.name.endswith("_total") for one in told)


@pytest.mark.parametrize(
    ("source", "unit"),
    [
        ("reactor_cpu_steal_time_ms", 1),
        ("background_process_io_blocked_time", 1),
        ("io_queue_starvation_time_sec", 0.001),
    ],
)
def test_a_counter_that_falls_at_its_source_stays_at_the_highest_it_was(
    source: str, unit: float
) -> None:
    collector = CrimsonCollector()
    values = []
    for figures in ({"0": 500, "1": 70}, {"0": 0, "1": 80}, {"0": 510, "1": 20}):
        reply = {"metrics": [entry(source, n * unit, shard=shard) for shard, n in figures.items()]}
        values.append(tuple(samples(collector.collect(view(reply))).values()))
    assert values == [(0.5, 0.07), (0.5, 0.08), (0.51, 0.08)]
    collector.forget(view({}).daemon)
    restarted = samples(collector.collect(view(one(source, 3 * unit, shard="0"))))
    assert restarted == {f'{shown(source).name}{{shard="0"}}': 0.003}


def test_the_scheduling_group_of_the_end_is_not_shown() -> None:
    reply = one("scheduler_runtime_ms", 0, group="atexit", shard="0")
    assert collected(reply, include=["*"]) == {}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("options", [{}, {"include": ["*"]}, {"shard_histograms": True}])
def test_what_is_used_bytesof_a_real_reply_is_valid_openmetrics_and_nothing_is_left_unread(
    build: str, options: dict[str, Any]
) -> None:
    families = list(CrimsonCollector(**options).collect(view(recorded(build))))
    page = Page()
    page.add(render(families))
    text = page.body(openmetrics=True).decode()
    metrics: Iterable[Metric] = openmetrics_parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    parsed = [sample for metric in metrics for sample in metric.samples]
    assert len(parsed) == sum(len(family.samples) for family in families)
    assert len({(s.name, *sorted(s.labels.items())) for s in parsed}) == len(parsed)
    assert unread(recorded(build), **options) == 0


# Crimson's own mClock
def test_crimsons_scheduler_is_used_bytesby_the_classes_of_cephqos() -> None:
    found = collected(recorded(BLOCKS))
    name = "cephqos_crimson_osd_mclock_throttled_ops_total"
    labels = 'op_class="{}",class="{}",shard="1"'
    for theirs, ours in (
        ("client", "client"),
        ("background_recovery", "background_recovery"),
        ("background_best_effort", "background_best_effort"),
        ("immediate", "immediate"),
        ("repop", "immediate"),
    ):
        assert f"{name}{{{labels.format(theirs, ours)}}}" in found
    longest = f"cephqos_crimson_osd_mclock_max_wait_seconds{{{labels.format('client', 'client')}}}"
    assert found[longest] == 2.4


def test_waits_in_crimsons_scheduler_are_a_histogram_of_all_shards() -> None:
    def waits(shard: str, first: int) -> dict[str, Any]:
        counts = {1: first, 5: first + 2, 10: first + 2}
        value = histogram(counts, first + 3, total=1000)
        return entry("osd_mclock_throttle_wait_latency", value, op_class="client", shard=shard)

    reply = {"metrics": [waits("0", 10), waits("1", 20)]}
    key = 'cephqos_crimson_osd_mclock_throttle_wait_seconds_%s{op_class="client",class="client"%s}'
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
        ]
    }
    found = collected(reply)
    assert found["cephqos_qos_client_wait_seconds_total{}"] == 2.0
    recovery = 'op_class="background_recovery",class="background_recovery",shard="0"'
    assert found[f"cephqos_crimson_osd_mclock_wait_seconds_total{{{recovery}}}"] == 9
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


# SeaStore
def test_space_is_used_bytesof_both_cleaners() -> None:
    for build, cleaner in ((SEGMENTS, "segment"), (BLOCKS, "rbm")):
        name = f"{cleaner}_cleaner_used_bytes"
        used = next(item[name] for item in recorded(build)["metrics"] if name in item)
        found = collected(recorded(build))
        used_bytes = [v for k, v in found.items() if k.startswith(f"cephqos_crimson_{name}{{")]
        assert used_bytes[0] == used["value"]


def test_stages_of_a_transaction_come_with_their_tails_on_request() -> None:
    name = "cephqos_crimson_seastore_do_transaction_stage_seconds"
    assert not [key for key in collected(recorded(BLOCKS)) if name in key]
    found = collected(recorded(BLOCKS), include=["seastore_do_*"])
    shards = 3
    assert found[f'{name}_count{{stage="submit_journal",tail="all"}}'] == shards * 530
    assert found[f'{name}_bucket{{stage="build",tail="very_slow",le="0.1"}}'] == shards * 9


# What a later build says
def understood(reply: object) -> tuple[dict[str, float], set[str]]:
    seen = view(reply)
    found = samples(CrimsonCollector().collect(seen))
    return found, set(seen.not_understood.found)


@pytest.mark.parametrize("build", BUILDS)
def test_all_of_a_recorded_build_is_understood(build: str) -> None:
    assert understood(recorded(build))[1] == set()


def test_a_class_of_a_later_build_is_counted_and_is_none_of_ours() -> None:
    reply = one("osd_mclock_total_wait_ms", 5, op_class="dream", shard="0")
    found, odd = understood(reply)
    assert list(found) == [
        'cephqos_crimson_osd_mclock_wait_seconds_total{op_class="dream",shard="0"}'
    ]
    assert odd == {"class"}


def test_a_sum_over_shards_is_absent_where_one_of_them_cannot_be_read() -> None:
    waits = [
        entry("osd_mclock_total_wait_ms", value, op_class="client", shard=str(shard))
        for shard, value in enumerate((1000, "much"))
    ]
    found, odd = understood({"metrics": waits})
    assert "cephqos_qos_client_wait_seconds_total{}" not in found
    assert odd == {"counter"}
    found, odd = understood({"metrics": waits[:1]})
    assert found["cephqos_qos_client_wait_seconds_total{}"] == 1
    assert not odd


# What is asked for
@pytest.mark.parametrize("pattern", ["cache_*", "segment_manager_*", "*"])
def test_a_pattern_adds_what_it_matches_to_the_usual(pattern: str) -> None:
    usual, more = collected(recorded(SEGMENTS)), collected(recorded(SEGMENTS), include=[pattern])
    assert usual.items() < more.items()
    prefix = f"cephqos_crimson_{pattern.rstrip('*')}"
    assert all(key.startswith(prefix) for key in more.keys() - usual.keys())


def test_what_no_word_tells_is_unknown_under_seastars_name_and_a_histogram_if_it_looks_so() -> None:
    reply = recorded(SEGMENTS)
    reply["metrics"].append(entry("new_wait", histogram({1: 2, 2: 3}, 4), shard="0"))
    families = CrimsonCollector(include=["*"]).collect(view(reply))
    types = {family.name.removeprefix("cephqos_crimson_"): family.type for family in families}
    assert types["cache_trans_invalidated_by_extent"] == "unknown"
    assert types["new_wait"] == "histogram"
    found = collected(reply, include=["new*"])
    assert found['cephqos_crimson_new_wait_bucket{le="2.0"}'] == 3
    assert found["cephqos_crimson_new_wait_count{}"] == 4


def test_how_full_segments_are_is_no_histogram_of_samples() -> None:
    [name] = LEFT_OUT
    assert not [key for key in collected(recorded(SEGMENTS), include=["*"]) if name in key]


def test_the_number_of_series_is_what_the_documentation_says() -> None:
    text = DOCUMENTATION.read_text()
    for build in BUILDS:
        for option, options in (
            ("usual", {}),
            ("include=*", {"include": ["*"]}),
        ):
            found = collected(recorded(build), **options)
            shards = {key.split('shard="')[1].split('"')[0] for key in found if 'shard="' in key}
            each = sum('shard="' in key for key in found) / len(shards)
            osd = sum('shard="' not in key for key in found)
            row = f"| {build} | {option} | {each:.0f} | {osd} |"
            assert row in text, row


def test_the_command_is_on_the_read_only_list() -> None:
    collector = CrimsonCollector()
    osd = collector.commands(view({}).daemon)
    assert {command.prefix for command in osd} <= set(READ_ONLY_COMMANDS)
    assert collector.commands(view({}, kind="mon").daemon) == ()
    assert list(collector.collect(view({}, kind="mon"))) == []
