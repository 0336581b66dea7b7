"""The exporter about itself, against what the kernel and prometheus_client say."""

import os

import psutil
import pytest
from prometheus_client import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from cephqos_exporter.collectors import own
from cephqos_exporter.collectors.own import OwnReporter
from cephqos_exporter.labels import render_labels
from cephqos_exporter.report import DaemonReport, ScrapeReport


def figures(report: ScrapeReport) -> dict[str, float]:
    return {
        f"{family.name}{{{labels}}}" if labels else family.name: value
        for family in OwnReporter().families(report)
        for _, labels, value in family.samples
    }


def test_process_metrics_are_those_of_prometheus_client() -> None:
    ours = figures(ScrapeReport())
    theirs = {
        sample.name: sample.value
        for metric in ProcessCollector(registry=CollectorRegistry()).collect()
        for sample in metric.samples
    }
    assert theirs.keys() <= ours.keys()
    for name in ("process_max_fds", "process_start_time_seconds"):
        assert ours[name] == pytest.approx(theirs[name])
    me = psutil.Process()
    assert ours["process_open_fds"] == pytest.approx(me.num_fds(), abs=2)
    assert ours["process_resident_memory_bytes"] == pytest.approx(me.memory_info().rss, rel=0.05)
    times = me.cpu_times()
    assert ours["process_cpu_seconds_total"] == pytest.approx(times.user + times.system, abs=0.1)


def test_descriptors_are_counted_where_the_kernel_does_not_tell_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = psutil.Process().num_fds()
    monkeypatch.setattr(os, "stat", lambda _: os.stat_result([0] * 10))
    assert own._open_descriptors() == pytest.approx(expected, abs=2)


def test_a_report_becomes_one_series_for_each_thing_it_tells() -> None:
    labels = render_labels({"ceph_daemon": "osd.1", "cluster": "c"})
    report = ScrapeReport(seconds=0.5, finish={"perf": True}, sources={"cluster": False})
    report.add(DaemonReport(labels, False, "timeout", 2.0))
    report.spend("perf", 0.25)
    report.spend("perf", 0.25)
    found = figures(report)
    daemon = 'ceph_daemon="osd.1",cluster="c"'
    assert found[f'cephqos_daemon_up{{{daemon},reason="timeout"}}'] == 0
    assert found[f"cephqos_daemon_scrape_duration_seconds{{{daemon}}}"] == 2
    assert found['cephqos_collector_duration_seconds{collector="perf"}'] == 0.5
    assert found['cephqos_collector_host_success{collector="perf"}'] == 1
    assert found['cephqos_collector_host_success{collector="cluster"}'] == 0
    assert found["cephqos_exporter_scrape_duration_seconds"] == 0.5
    assert not [name for name in found if name.startswith("cephqos_collector_success")]


def test_what_answered_wins_over_a_stale_socket_of_the_same_daemon() -> None:
    labels = render_labels({"ceph_daemon": "osd.1", "cluster": "c"})
    good = DaemonReport(labels, True, "", 0.1)
    stale = DaemonReport(labels, False, "refused", 0.1)
    for order in ((good, stale), (stale, good)):
        report = ScrapeReport()
        for one in order:
            report.add(one)
        assert list(report.daemons.values()) == [good]
