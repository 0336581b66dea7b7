"""The Crimson collector, on replies in the shape of real ones of four builds."""

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
from cephqos_exporter.collectors.crimson import GROUPS, TABLE, CrimsonCollector
from cephqos_exporter.exposition import Page
from cephqos_exporter.rendering import render

from .crimson_views import (
    BLOCKS,
    BUILDS,
    DOCUMENTATION,
    NEWEST,
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


def test_the_recordings_have_every_metric_of_the_tables() -> None:
    names = {name for build in BUILDS for item in recorded(build)["metrics"] for name in item}
    # Of a setting that is not recorded: the cache's other policy.
    newer = {name for name in TABLE if name.startswith(("cache_2q_", "cache_onode_2q_"))}
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


@pytest.mark.parametrize(
    ("source", "name", "unit"),
    [
        ("reactor_cpu_steal_time_ms", "reactor_steal_seconds_total", 1),
        ("background_process_io_blocked_time", "seastore_background_blocked_seconds_total", 1),
        ("io_queue_starvation_time_sec", "io_queue_starvation_seconds_total", 0.001),
    ],
)
def test_a_counter_that_falls_at_its_source_stays_at_the_highest_it_was(
    source: str, name: str, unit: float
) -> None:
    collector = CrimsonCollector()
    shown = []
    for figures in ({"0": 500, "1": 70}, {"0": 0, "1": 80}, {"0": 510, "1": 20}):
        reply = {"metrics": [entry(source, n * unit, shard=shard) for shard, n in figures.items()]}
        shown.append(tuple(samples(collector.collect(view(reply))).values()))
    assert shown == [(0.5, 0.07), (0.5, 0.08), (0.51, 0.08)]
    collector.forget(view({}).daemon)
    restarted = samples(collector.collect(view(one(source, 3 * unit, shard="0"))))
    assert restarted == {f'cephqos_crimson_{name}{{shard="0"}}': 0.003}


def test_the_scheduling_group_of_the_end_is_shown_on_request_only() -> None:
    reply = one("scheduler_runtime_ms", 0, group="atexit", shard="0")
    assert collected(reply, groups=GROUPS) == {}
    assert len(collected(reply, everything=True)) == 1


def test_every_entry_of_the_tables_has_one_type_and_help_per_name() -> None:
    told: dict[str, tuple[str, str]] = {}
    for shown in (metric for entries in TABLE.values() for metric in entries):
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
    page.add(render(families))
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


def test_builds_that_keep_onodes_apart_show_hits_of_both_lists_and_by_kind_of_extent() -> None:
    found = collected(recorded(NEWEST), groups=["cache"])
    lookups = [key for key in found if "_cache_lookups_total{" in key]
    policies = {key.split('policy="')[1].split('"')[0] for key in lookups}
    assert policies == {"lru", "onode_lru"}
    stores = 2 * 2
    assert len([key for key in found if "_cache_kind_lookups_total{" in key]) == stores * 17 * 2
    key = 'cephqos_crimson_seastore_bucket_lookups_total{shard_store_index="1",shard="0",%s}'
    assert key % 'op="write",result="miss"' in found


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
    nested = [name for name in collected(recorded(NEWEST)) if "submit_ool_write_" in name]
    assert nested == [], "the parts of one stage come with the group"
    latency = "cephqos_crimson_seastore_stage_latency_seconds_bucket"
    name = f'{latency}{{stage="submit_ool_write_rbm_gate",tail="all",le="0.1"}}'
    assert name in collected(recorded(NEWEST), groups=["transactions"])
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


def test_the_command_is_on_the_read_only_list() -> None:
    collector = CrimsonCollector()
    osd = collector.commands(view({}).daemon)
    assert {command.prefix for command in osd} <= set(READ_ONLY_COMMANDS)
    assert collector.commands(view({}, kind="mon").daemon) == ()
    assert list(collector.collect(view({}, kind="mon"))) == []
