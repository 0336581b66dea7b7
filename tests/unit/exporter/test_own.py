"""The exporter about itself, against what the kernel and prometheus_client say."""

import os

import psutil
import pytest
from prometheus_client import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from cephqos_exporter.labels import render_labels
from cephqos_exporter.scrape.own_metrics import OwnMetrics
from cephqos_exporter.scrape.part import Part

OSD = render_labels({"ceph_daemon": "osd.1", "cluster": "c"})


def figures(*parts: Part, own: OwnMetrics | None = None) -> dict[str, float]:
    return {
        f"{family.name}{suffix}{{{labels}}}" if labels else family.name: value
        for family in (own or OwnMetrics()).families(parts, 0.5)
        for suffix, labels, value in family.samples
    }


def test_process_metrics_are_those_of_prometheus_client() -> None:
    ours = figures()
    theirs = {
        sample.name: sample.value
        for metric in ProcessCollector(registry=CollectorRegistry()).collect()
        for sample in metric.samples
    }
    assert theirs.keys() == {name for name in ours if name.startswith("process_")}
    assert ours["process_max_fds"] == theirs["process_max_fds"]
    # Theirs is by the machine's date, also where the tests run on another (tests/clock).
    shift = float(os.environ.get("CLOCK_SHIFT", 0))
    assert ours["process_start_time_seconds"] - shift == pytest.approx(
        theirs["process_start_time_seconds"], abs=2
    )
    me = psutil.Process()
    assert ours["process_open_fds"] == pytest.approx(me.num_fds(), abs=2)
    assert ours["process_resident_memory_bytes"] == pytest.approx(me.memory_info().rss, rel=0.05)
    times = me.cpu_times()
    assert ours["process_cpu_seconds_total"] == pytest.approx(times.user + times.system, abs=0.1)
    assert 'python_gc_collections_total{generation="0"}' in ours


def test_descriptors_are_counted_where_the_kernel_does_not_tell_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = psutil.Process().num_fds()
    monkeypatch.setattr(os, "stat", lambda _: os.stat_result([0] * 10))
    assert figures()["process_open_fds"] == pytest.approx(expected, abs=2)


def test_the_parts_of_a_page_become_one_series_for_each_thing_they_tell() -> None:
    found = figures(
        Part(labels=OSD, down="timeout", took=2.0, seconds={"perf": 0.25}),
        Part(success={"cluster": False}),
        Part(success={"perf": True}, seconds={"perf": 0.25}),
    )
    daemon = 'ceph_daemon="osd.1",cluster="c"'
    assert found[f'cephqos_daemon_up{{{daemon},reason="timeout"}}'] == 0
    assert found[f"cephqos_daemon_scrape_duration_seconds{{{daemon}}}"] == 2
    assert found['cephqos_collector_duration_seconds{collector="perf"}'] == 0.5
    assert found['cephqos_collector_host_success{collector="perf"}'] == 1
    assert found['cephqos_collector_host_success{collector="cluster"}'] == 0
    assert found["cephqos_exporter_scrape_duration_seconds"] == 0.5
    assert found["cephqos_discovery_daemons"] == 1
    assert not [name for name in found if name.startswith("cephqos_collector_success")]


def test_nothing_is_told_of_an_earlier_scrape() -> None:
    own = OwnMetrics()
    figures(Part(success={"perf": True}, seconds={"perf": 1}), own=own)
    assert not [name for name in figures(own=own) if 'collector="perf"' in name]


def test_what_answered_wins_over_a_stale_socket_of_the_same_daemon() -> None:
    good, stale = Part(labels=OSD, took=0.1), Part(labels=OSD, down="refused", took=0.2)
    up = f'cephqos_daemon_up{{{OSD},reason=""}}'
    for order in ((good, stale), (stale, good)):
        found = figures(*order)
        assert found[up] == 1
        assert [name for name in found if name.startswith("cephqos_daemon_up")] == [up]
