"""Recorded log lines of three releases against the patterns of the collector and of the log rules.

tests/stack/test_logs_rules.py sends the same lines through a real collector and Loki; here the
patterns alone are tried, with Python's own regular expressions.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.recorded import RELEASES
from tests.runbooks import ENTRIES

from cephqos_alerts.output.build import LOGS, log_rules
from cephqos_alerts.rules.rule import Alert
from cephqos_alerts.rules.settings import RuleSettings

RECORDED = Path("tests/recordings/logs")
COLLECTOR: dict[str, Any] = yaml.safe_load(Path("deploy/collector/collector.yaml").read_text())
LOKI: dict[str, Any] = yaml.safe_load(Path("deploy/loki/loki.yaml").read_text())
DAEMONS = COLLECTOR["receivers"]["file_log/daemons"]
CLUSTER = COLLECTOR["receivers"]["file_log/cluster"]
NAMES = [rule.name for rule in LOGS.rules if isinstance(rule, Alert)]
FSID = "01234567-89ab-cdef-0123-456789abcdef"


def patterns(receiver: dict[str, Any]) -> list[str]:
    return [it["regex"] for it in receiver["operators"] if it["type"] == "regex_parser"]


def entries(release: str, file: str) -> list[str]:
    begin = re.compile(DAEMONS["multiline"]["line_start_pattern"], re.MULTILINE)
    text = (RECORDED / release / file).read_text()
    begins = [match.start() for match in begin.finditer(text)]
    assert begins[0] == 0
    return [text[a:b] for a, b in zip(begins, [*begins[1:], len(text)], strict=True)]


def osd_entries(release: str) -> list[str]:
    files = sorted((RECORDED / release).glob("ceph-osd.*.log"))
    return [entry for file in files for entry in entries(release, file.name)]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("daemon", ["osd.0", "osd.1", "osd.2", "mon.a", "mgr.x"])
def test_every_entry_of_a_daemon_has_a_time_a_thread_and_a_level(release: str, daemon: str) -> None:
    _, dump, line, _ = patterns(DAEMONS)
    for entry in entries(release, f"ceph-{daemon}.log"):
        found = re.search(dump if entry.startswith("---") else line, entry)
        assert found, entry[:200]
        assert len(found["fraction"]) >= 3 and found["zone"] == "+0000"
        assert int(found["level"]) in range(-1, 31)


@pytest.mark.parametrize("release", RELEASES)
def test_every_line_of_the_cluster_log_names_who_said_it_and_how_bad_it_is(release: str) -> None:
    for entry in entries(release, "ceph.log"):
        found = re.match(patterns(CLUSTER)[1], entry)
        assert found, entry
        assert found["ceph_daemon"].split(".")[0] in ("mon", "osd", "mgr")
        assert found["clog"] in ("DBG", "INF", "SEC", "WRN", "ERR")


@pytest.mark.parametrize(
    ("path", "fsid", "kind", "name"),
    [
        ("/var/log/ceph/ceph-osd.12.log", None, "osd", "12"),
        ("/var/log/ceph/ceph-mgr.node1.xyz.log", None, "mgr", "node1.xyz"),
        ("/var/log/ceph/ceph-osd.12.log.1", None, "osd", "12"),
        ("/var/log/ceph/ceph-osd.12.log.1.gz", None, "osd", "12"),
        (f"/var/log/ceph/{FSID}/ceph-mon.a.log", FSID, "mon", "a"),
    ],
)
def test_the_path_tells_the_daemon_and_with_cephadm_the_cluster(
    path: str, fsid: str | None, kind: str, name: str
) -> None:
    found = re.search(patterns(DAEMONS)[0], path)
    assert found and (found["fsid"], found["type"], found["id"]) == (fsid, kind, name)


@pytest.mark.parametrize(
    ("path", "run", "repeat"),
    [
        ("/runs/20261122T001722Z-small-1.partial/events.jsonl", "20261122T001722Z-small-1", None),
        ("/runs/20261122T001722Z-small-1/events.jsonl", "20261122T001722Z-small-1", None),
        (
            "/runs/20261122T001722Z-small-1/repeats/001-only-r1/events.jsonl",
            "20261122T001722Z-small-1",
            "001-only-r1",
        ),
        (
            "/runs/20261122T001722Z-small-1.partial/prepare-0f81/events.jsonl",
            "20261122T001722Z-small-1",
            "prepare-0f81",
        ),
    ],
)
def test_the_path_of_events_tells_the_run_whether_it_is_whole_or_not(
    path: str, run: str, repeat: str | None
) -> None:
    receiver = COLLECTOR["receivers"]["file_log/runs"]
    found = re.search(patterns(receiver)[0], path)
    assert found and (found["run"], found["repeat"]) == (run, repeat)


# By alert, what its expression takes a line apart with.
PATTERNS = {
    rule.name: found[1]
    for rule in LOGS.rules
    if isinstance(rule, Alert) and (found := re.search("[|] regexp `([^`]+)`", rule.expr))
}
# 16.2 accepts every result of its benchmark, and takes changes back without a word.
_SINCE_18_2 = ("CephQosBenchmarkRejected", "CephQosSettingReverted")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("alert", PATTERNS)
def test_each_rule_knows_the_words_of_each_release(release: str, alert: str) -> None:
    found = [
        match.groupdict()
        for entry in osd_entries(release)
        if (match := re.search(PATTERNS[alert], entry)) and not entry.startswith("---")
    ]
    assert bool(found) is not (release == "pacific" and alert in _SINCE_18_2)
    assert all(all(values.values()) for values in found)


@pytest.mark.parametrize("name", NAMES)
def test_every_log_alert_has_a_runbook_with_its_query(name: str) -> None:
    assert "```logql" in ENTRIES[name]


def test_committed_log_rules_are_what_their_source_gives() -> None:
    assert Path("alerts/loki/fake/logs.yml").read_text() == log_rules(RuleSettings())


def test_every_log_alert_reads_only_streams_of_some_severity() -> None:
    for rule in LOGS.rules:
        assert isinstance(rule, Alert)
        assert re.search(r'\{+log=~?"[a-z|]+", severity="(warning|error|fatal)"', rule.expr)


def test_labels_of_loki_are_the_resource_attributes_of_the_collector() -> None:
    wanted = LOKI["limits_config"]["otlp_config"]["resource_attributes"]["attributes_config"]
    labels = set(wanted[0]["attributes"])
    given = {key for it in COLLECTOR["receivers"].values() for key in it["resource"]}
    assert labels == given == {"cluster", "log", "severity", "host"}


def test_an_entry_that_the_collector_reads_as_one_is_taken_by_loki_as_one() -> None:
    largest = {it["max_log_size"] for it in COLLECTOR["receivers"].values()}
    assert largest == {"4MiB"} and LOKI["limits_config"]["max_line_size"] == "5MB"
