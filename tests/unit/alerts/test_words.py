"""Comments and texts say the thresholds and windows in force, not the defaults."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

import pytest
import yaml

from cephqos_alerts.output.build import build_rules, log_rules
from cephqos_alerts.rules import words
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.thresholds import THRESHOLDS, Thresholds

# Each threshold is another one, and each window: none of these has a word of its own.
_CHANGED: Final = RuleSettings(
    scrape_interval=7,
    time_scale=0.37,
    thresholds=Thresholds(
        **{it.name: round(1.13 * getattr(THRESHOLDS, it.name), 4) for it in fields(Thresholds)}
    ),
)
# What may be a threshold or a window: shares, multiples, amounts with a unit, times.
_AMOUNT: Final = re.compile(
    r"\b(?:half|twice|(?:an?|one|two|three|four|five) (?:tenth|fifth|quarter|third|half|eighth)s?"
    r"|two|three|four|five|six|seven|eight|nine|ten|fifteen|thirty"
    r"|\d+(?:\.\d+)?(?: ?%| ms| s\b| KiB| times| minutes?| hours?| days?)"
    r"|seconds?|minutes?|hours?|days?)\b"
)
_QUERY: Final = re.compile(r"\{\{.*?\}\}")
# Amounts that no threshold and no window is meant by.
_CONSTANT: Final = (
    "two exporters report different media: two would break",
    "The OSD does not count the second",
    "a burst of a second",
    "one of three holds",
    "seconds of waiting per second",
    "one shard of eight has an eighth",
    "restart of Prometheus such a series would last for minutes",
    "requests per second",
    "three peers",
    "a third class",
    "two OSDs",
    "averages of a minute",
    "for minutes after its last sample: then two `by`",
    "In each second",
    "in each second",
    "cores that were given twice",
    "At the rate of the last minutes",
    "too few hours",
    "After 10 s it fails",
    "sums over both count twice",
    "enabled on two hosts",
    "look at the network between the two",
    "longer than a second",
)


def _said(settings: RuleSettings) -> Iterator[tuple[str, str]]:
    """The name of each rule, and what comments and texts of it say."""
    for text in (*build_rules(settings, []).values(), log_rules(settings)):
        for group in yaml.load(text, yaml.CSafeLoader)["groups"]:
            for rule in group["rules"]:
                comments = re.findall(r"(?:^| )# ?(.*)", rule["expr"], re.MULTILINE)
                said = [" ".join(comments), *rule.get("annotations", {}).values()]
                name = rule.get("alert") or rule["record"] + str(rule.get("labels", ""))
                yield name, " ".join(_QUERY.sub("", it) for it in said)


def _in_force(settings: RuleSettings) -> set[str]:
    """How comments and texts may say a threshold or a window."""
    thresholds = {
        words.threshold(it.name, getattr(settings.thresholds, it.name)) for it in fields(Thresholds)
    }
    numbers = {f"{getattr(settings.thresholds, it.name):g}" for it in fields(Thresholds)}
    return {
        *thresholds,
        *(f"{number} times" for number in (*thresholds, *numbers)),
        f"{settings.scrape_interval:g} s",
    }


def _amounts(settings: RuleSettings) -> list[str]:
    """Amounts that are neither those of `_CHANGED` nor constants, with what is around them."""
    in_force = _in_force(_CHANGED)
    found = []
    for name, said in _said(settings):
        for constant in _CONSTANT:
            said = said.replace(constant, "")
        for it in _AMOUNT.finditer(said):
            if it[0] not in in_force:
                found.append(f"{name}: …{said[max(0, it.start() - 60) : it.end() + 40]}…")
    return found


def test_no_comment_and_no_text_names_the_default_of_what_is_changed() -> None:
    assert _amounts(_CHANGED) == []


def test_such_defaults_are_found() -> None:
    found = "\n".join(_amounts(RuleSettings()))
    for default in ("a quarter", "half", "four times", "five minutes", "15 minutes", "a day ago"):
        assert default in found


def test_every_constant_is_said_by_some_rule() -> None:
    said = " ".join(it for _, it in _said(_CHANGED))
    assert [constant for constant in _CONSTANT if constant not in said] == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("part", 0.25, "a quarter"),
        ("part", 0.4, "40 %"),
        ("half", 0.5, "half"),
        ("far_above", 6, "six"),
        ("far_above", 7.5, "7.5"),
        ("device_latency_ssd", 0.04, "40 ms"),
        ("device_latency_hdd", 1.5, "1.5 s"),
        ("large_requests", 32768, "32 KiB"),
        ("disk_requests", 60, "60"),
    ],
)
def test_a_threshold_in_words(name: str, value: float, said: str) -> None:
    settings = RuleSettings(thresholds=replace(THRESHOLDS, **{name: value}))
    assert settings.expand(f"@{name} in words@") == said


def test_windows_in_words_are_those_in_force() -> None:
    said = [f"@{name} in words@" for name in ("hold", "day")]
    assert [RuleSettings().expand(it) for it in said] == ["five minutes", "a day"]
    assert [RuleSettings(time_scale=0.5).expand(it) for it in said] == ["150s", "12h"]


def test_only_thresholds_and_windows_have_words() -> None:
    with pytest.raises(KeyError, match="scrape_interval"):
        RuleSettings().expand("@scrape_interval in words@")
