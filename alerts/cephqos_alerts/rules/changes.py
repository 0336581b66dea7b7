"""What an operator changes of the rules: one file, read and checked (`rules build --config FILE`).

version: 1
severities: {critical: page}    # our names, and what to call them instead
thresholds: {device_floor: 0.01}
leave_out: [CephQosTooManySeries]
labels: {team: storage}         # of every alert
annotations: {wiki: "https://wiki.example.org/ceph"}
helpers: no                     # leave out alerts that only inhibit others
duplicates: no                  # leave out alerts of which Ceph's own rules have the same
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Final, get_args

from cephqos_alerts.rules.rule import Alert, RecordedSeries, RuleGroup, Severity
from cephqos_alerts.rules.runbooks import ALERTS
from cephqos_alerts.rules.settings import Changes, RuleSettings
from cephqos_base.judge import Bounds
from cephqos_base.recorded import PerCluster
from cephqos_base.thresholds import Thresholds
from cephqos_base.yamlfile import Value

_KEYS: Final = (
    *("version", "severities", "thresholds", "leave_out", "labels", "annotations"),
    *("helpers", "duplicates"),
)
_SEVERITIES: Final[Sequence[str]] = get_args(Severity)
# An operator may not change the bounds of the judge: reports and `top` judge by them, too.
_JUDGE_BOUNDS: Final = {bound.name for bound in fields(Bounds)}
THRESHOLDS: Final = tuple(
    threshold.name for threshold in fields(Thresholds) if threshold.name not in _JUDGE_BOUNDS
)
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# Labels and annotations that alerts have already.
LABELS: Final = frozenset((
    "alertname", "severity", "cluster", "ceph_daemon", "instance", "class", "cause", "by", "pool",
    "finding", "seen", "scope", "media", "group", "collector", "what", "level", "flag", "run",
    "scenario", "slo", "op", "window", "job", "option", "pg", "host",
    "log", "peer", "at",
))  # fmt: skip
_ANNOTATIONS: Final = frozenset(("summary", "description", "runbook_url", "dashboard_url"))


def parse_changes(document: Value, settings: RuleSettings) -> RuleSettings:
    """The settings as the file changes them; ConfigError for the first thing that is wrong."""
    top = document.table(_KEYS, ("version",))
    top["version"].integer(1, 1, "1")
    thresholds = top["thresholds"].known(THRESHOLDS) if "thresholds" in top else {}
    values = {name: value.number(0, 1e12) for name, value in thresholds.items()}
    changes = Changes(
        severities=_severities(top["severities"]) if "severities" in top else {},
        leave_out=_alerts(top["leave_out"]) if "leave_out" in top else (),
        labels=_texts(top["labels"], LABELS) if "labels" in top else {},
        annotations=_texts(top["annotations"], _ANNOTATIONS) if "annotations" in top else {},
        helpers=top["helpers"].boolean() if "helpers" in top else True,
        duplicates=top["duplicates"].boolean() if "duplicates" in top else True,
    )
    return replace(settings, changes=changes, thresholds=replace(Thresholds(), **values))


def _severities(value: Value) -> Mapping[str, str]:
    allowed = "a word of letters, digits, _ and -"
    renamed = {
        severity: name.text(r"[A-Za-z0-9_-]{1,40}", allowed)
        for severity, name in value.known(_SEVERITIES).items()
    }
    names = [renamed.get(severity, severity) for severity in _SEVERITIES]
    if len(set(names)) < len(names):
        value.fail("another name for each severity", ", ".join(names))
    return renamed


def _alerts(value: Value) -> tuple[str, ...]:
    items = value.sequence("a list of alerts")
    return tuple(item.one_of(ALERTS, "the name of an alert") for item in items)


def _texts(value: Value, taken: frozenset[str]) -> Mapping[str, str]:
    """Labels or annotations, by name; `taken` are names that the rules use themselves."""
    texts = {}
    for name, entry in value.entries("names and values").items():
        if not _NAME.fullmatch(name) or name in taken:
            entry.fail("a name of letters, digits and _ that the rules do not use", f"{name!r}")
        text = texts[name] = entry.string()
        if "{{" in _TEMPLATE.sub("", text):
            entry.fail("a template that ends with }}", f"{text!r}")
    return texts


def changed(groups: Sequence[RuleGroup], changes: Changes) -> list[RuleGroup]:
    """The groups without what is left out; a finding that no alert reads is not recorded."""

    def stays(rule: RecordedSeries | Alert) -> bool:
        if isinstance(rule, RecordedSeries):
            if rule.record == PerCluster.RUN_FLAG:  # only a helper reads it
                return changes.helpers
            return f"CephQos{rule.labels.get('finding', '')}" not in changes.leave_out
        if rule.name in changes.leave_out or (rule.duplicates and not changes.duplicates):
            return False
        return changes.helpers or rule.severity != "none"

    kept = [replace(group, rules=[rule for rule in group.rules if stays(rule)]) for group in groups]
    return [group for group in kept if group.rules]
