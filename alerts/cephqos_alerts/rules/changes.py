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
from cephqos_alerts.rules.runbooks import RUNBOOKS
from cephqos_alerts.rules.settings import Changes, RuleSettings
from cephqos_base.judge import Bounds
from cephqos_base.thresholds import Thresholds
from cephqos_base.yamlfile import Value

_KEYS: Final = (
    *("version", "severities", "thresholds", "leave_out", "labels", "annotations"),
    *("helpers", "duplicates"),
)
_SEVERITIES: Final[Sequence[str]] = get_args(Severity)
# The judge's are not among them: reports and `top` judge by them, too.
THRESHOLDS: Final = tuple(
    it.name for it in fields(Thresholds) if it.name not in {bound.name for bound in fields(Bounds)}
)
_ALERTS: Final = tuple(name for names in RUNBOOKS.values() for name in names)
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# What the rules put on alerts themselves.
_LABELS: Final = frozenset((
    "alertname", "severity", "cluster", "ceph_daemon", "instance", "class", "cause", "by", "pool",
    "finding", "seen", "scope", "media", "group", "collector", "what", "level", "flag", "run",
    "scenario", "slo", "op", "window", "job", "option", "pg", "host",
    "log", "peer",
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
        labels=_words(top["labels"], _LABELS) if "labels" in top else {},
        annotations=_words(top["annotations"], _ANNOTATIONS) if "annotations" in top else {},
        helpers=top["helpers"].boolean() if "helpers" in top else True,
        duplicates=top["duplicates"].boolean() if "duplicates" in top else True,
    )
    return replace(settings, changes=changes, thresholds=replace(Thresholds(), **values))


def _severities(value: Value) -> Mapping[str, str]:
    allowed = "a word of letters, digits, _ and -"
    names = {
        name: word.text(r"[A-Za-z0-9_-]{1,40}", allowed)
        for name, word in value.known(_SEVERITIES).items()
    }
    every = [names.get(name, name) for name in _SEVERITIES]
    if len(set(every)) < len(every):
        value.fail("another name for each severity", ", ".join(every))
    return names


def _alerts(value: Value) -> tuple[str, ...]:
    items = value.sequence("a list of alerts")
    return tuple(item.one_of(_ALERTS, "the name of an alert") for item in items)


def _words(value: Value, ours: frozenset[str]) -> Mapping[str, str]:
    words = {}
    for name, text in value.entries("names and values").items():
        if not _NAME.fullmatch(name) or name in ours:
            text.fail("a name of letters, digits and _ that the rules do not use", f"{name!r}")
        words[name] = text.string()
        if "{{" in _TEMPLATE.sub("", words[name]):
            text.fail("a template that ends with }}", f"{words[name]!r}")
    return words


def changed(groups: Sequence[RuleGroup], changes: Changes) -> list[RuleGroup]:
    """The groups without what is left out; a finding that no alert reads is not recorded."""

    def stays(rule: RecordedSeries | Alert) -> bool:
        if isinstance(rule, RecordedSeries):
            return f"CephQos{rule.labels.get('finding', '')}" not in changes.leave_out
        if rule.name in changes.leave_out or (rule.duplicates and not changes.duplicates):
            return False
        return changes.helpers or rule.severity != "none"

    kept = [replace(group, rules=[rule for rule in group.rules if stays(rule)]) for group in groups]
    return [group for group in kept if group.rules]
