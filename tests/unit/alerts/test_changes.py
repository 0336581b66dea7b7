"""What an operator changes of the rules with one file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.changes import parse_changes
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base import yamlfile
from cephqos_base.errors import ConfigError


def built(text: str) -> dict[str, str]:
    settings = parse_changes(yamlfile.parse(f"version: 1\n{text}", "own.yml"), RuleSettings())
    return build_rules(settings, [])


def alerts(text: str) -> dict[str, dict[str, Any]]:
    return {
        rule["alert"]: rule
        for file in built(text).values()
        for group in yaml.safe_load(file)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }


def test_a_file_that_changes_nothing_gives_the_committed_rules() -> None:
    for name, text in built("").items():
        assert Path("alerts/rules", name).read_text(encoding="utf-8") == text


def test_severities_labels_and_annotations_are_the_operators() -> None:
    found = alerts("severities: {critical: page}\nlabels: {team: x}\nannotations: {wiki: y}")
    severities = {rule["labels"]["severity"] for rule in found.values()}
    assert severities == {"page", "warning", "info", "none"}
    assert all(rule["labels"]["team"] == "x" for rule in found.values())
    assert all(rule["annotations"]["wiki"] == "y" for rule in found.values())


def test_a_threshold_is_in_the_rules() -> None:
    assert "> 0.0123" in built("thresholds: {device_floor: 0.0123}")["osds.yml"]


def test_an_alert_that_is_left_out_is_gone_with_what_only_it_reads() -> None:
    text = built("leave_out: [CephQosOsdSlow]")["osds.yml"]
    assert "OsdSlow" not in text
    assert "ThreadAtCeiling" in text


def test_without_helpers_nothing_is_there_that_only_inhibits() -> None:
    assert "helpers.yml" not in built("helpers: no")
    assert "none" not in {rule["labels"]["severity"] for rule in alerts("helpers: no").values()}


def test_without_duplicates_alerts_that_ceph_has_are_gone() -> None:
    gone = set(alerts("")) - set(alerts("duplicates: no"))
    assert gone == {
        *("CephQosObjectsUnfound", "CephQosScrubsOverdueGrowing", "CephQosScrubErrors"),
        *("CephQosDaemonCrashed", "CephQosMonitorDiskLow", "CephQosFilesystemDown"),
        *("CephQosMonitorsUnwell", "CephQosPgsInactive", "CephQosOsdStaysDown"),
        *("CephQosPoolFull", "CephQosHealthCheckFails"),
    }
    # An OSD that the exporter may not ask is in no alert of Ceph's.
    assert "alert: CephQosDaemonNotAnswering" in built("duplicates: no")["osds.yml"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("severites: {}", "severities"),
        ("severities: {critcal: page}", "critical"),
        ("severities: {critical: warning}", "another name for each severity"),
        ("thresholds: {device_flor: 1}", "device_floor"),
        ("thresholds: {in_progress: 1}", "thresholds.in_progress"),
        ("thresholds: {device_floor: fast}", "a number"),
        ("leave_out: [CephQosOsdSlw]", "CephQosOsdSlow"),
        ("labels: {cluster: mine}", "that the rules do not use"),
        ("labels: {__name__: mine}", "that the rules do not use"),
        ("annotations: {summary: mine}", "that the rules do not use"),
        ("annotations: {wiki: '{{ $labels.cluster }'}", "a template that ends with }}"),
        ("helpers: perhaps", "true or false"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_may_be_meant(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        built(text)
    assert str(caught.value).startswith("own.yml:2: ")
