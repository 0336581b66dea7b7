"""Every window and link of the rules, in one place. Thresholds are in `cephqos_base.thresholds`.

Rules name them as `@name@`, and `RuleSettings.expand` puts in the values:

    @hold@              5m: a window of WINDOWS
    @hold_seconds@      300: the same as a number
    @hold_evaluations@  20: evaluations of rules in that time
    @hold_samples@      16: so many of them (80 %) must have a sample
    @hold_minutes@      4: the same for rules that are evaluated once a minute
    @half@              0.5: a threshold
    @half in words@     half: the same for a sentence (words.py)
    @cpu_rank_busy@     35: a rank of a cause

Windows and holds are for a scrape interval of 15 s; `time_scale` shortens all of them in the same
proportion for tests and demos.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from cephqos_alerts.rules import words
from cephqos_base.causes import CAUSES
from cephqos_base.other_logs import OtherLogs
from cephqos_base.thresholds import THRESHOLDS, Thresholds
from cephqos_base.units import duration

_PLACEHOLDER: Final = re.compile(r"@(\w+)( in words)?@")

# A rate needs two samples; four make it survive a lost scrape.
SAMPLES_PER_RATE: Final = 4
# How long operations take is not judged by fewer than these: one slow operation would be much.
LEAST_OPS: Final = 100

_THRESHOLDS: Final = frozenset(threshold.name for threshold in fields(Thresholds))


def _of_causes() -> dict[str, str]:
    """The ranks of causes, and the names of some of them, for a regular expression."""
    values = {
        "causes_ended_tonight": "|".join(it.name for it in CAUSES if it.ends_tonight),
        "causes_of_own_load": "|".join(it.name for it in CAUSES if it.own_load),
    }
    for cause in CAUSES:
        values[f"{cause}_rank"] = str(cause.rank)
        for other in cause.other_ranks:
            values[f"{cause}_rank_{other.name}"] = str(other.rank)
            values[f"{cause}_rank_above_{other.name}"] = str(cause.rank - other.rank)
    return values


OF_CAUSES: Final[Mapping[str, str]] = _of_causes()

# Seconds, before scaling.
WINDOWS: Final[Mapping[str, float]] = {
    "rate": 60,  # rates of counters
    "sustained": 60,  # how long a state must hold, in every sample
    "hold": 300,  # how long a violation must last before an alert fires
    "long_hold": 900,
    "hour": 3600,
    "day": 86400,
    "fortnight": 14 * 86400,  # Prometheus keeps 15 days by default
    "month": 30 * 86400,
    "quarter": 90 * 86400,
    "year": 360 * 86400,
    "history_step": 300,  # between samples of a look back for a day
    "slow_interval": 60,  # between evaluations of rules that look back for a day
}


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What an operator's file changes besides thresholds; changes.py reads it and explains it."""

    severities: Mapping[str, str] = field(default_factory=dict)  # our name -> the operator's
    leave_out: Sequence[str] = ()  # names of alerts
    labels: Mapping[str, str] = field(default_factory=dict)  # added to every alert
    annotations: Mapping[str, str] = field(default_factory=dict)  # added to every alert
    helpers: bool = True  # keep alerts that only inhibit others
    duplicates: bool = True  # keep alerts that Ceph's own rules have, too

    def severity(self, our_name: str) -> str:
        """The operator's name of a severity."""
        return self.severities.get(our_name, our_name)


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """What a set of rules is generated for."""

    scrape_interval: float = 15.0
    evaluations_per_scrape: int = 1  # the engine keeps the result of one of them
    time_scale: float = 1.0
    job: str = "cephqos.*"  # regular expression of the scrape jobs of cephqos-exporter
    runbook_url: str = ""  # without one, alerts have no such link
    dashboard_url: str = ""  # without one, alerts have no such link
    dashboard_prefix: str = ""  # what the uids of the dashboards begin with
    site_labels: Sequence[str] = ()  # labels that tell clusters of the same name apart
    logs: OtherLogs | None = None  # of another collector than ours
    thresholds: Thresholds = THRESHOLDS
    changes: Changes = Changes()

    def scaled(self, seconds: float) -> float:
        """A `for`: shortened by the time scale, but at least two samples."""
        return max(seconds * self.time_scale, 2 * self.scrape_interval)

    def window(self, seconds: float) -> float:
        """A window of a rate: shortened by the time scale, but never too short for a rate."""
        return max(seconds * self.time_scale, SAMPLES_PER_RATE * self.scrape_interval)

    def expand(self, text: str) -> str:
        """A text with the values of all `@name@`."""
        return _PLACEHOLDER.sub(
            lambda match: self._in_words(match[1]) if match[2] else self._value(match[1]), text
        )

    def _in_words(self, name: str) -> str:
        if name in WINDOWS:
            return words.time(self.window(WINDOWS[name]))
        if name not in _THRESHOLDS:
            raise KeyError(f"no threshold or window is called {name}")
        return words.threshold(name, getattr(self.thresholds, name))

    def _value(self, name: str) -> str:
        if name in WINDOWS:
            return duration(self.window(WINDOWS[name]))
        if name.endswith("_samples"):
            seconds = self.window(WINDOWS[name.removesuffix("_samples")])
            return f"{self.thresholds.coverage * seconds / self.scrape_interval:g}"
        if name.endswith("_minutes"):
            seconds = self.window(WINDOWS[name.removesuffix("_minutes")])
            slow = self.window(WINDOWS["slow_interval"])
            return f"{self.thresholds.coverage * seconds / slow:g}"
        if name.endswith("_evaluations"):
            seconds = self.window(WINDOWS[name.removesuffix("_evaluations")])
            return f"{seconds / self.scrape_interval:g}"
        if name == "interval_seconds":
            return f"{self.scrape_interval:g}"
        if name.endswith("_seconds"):
            # Compared with figures that are in real seconds, so not scaled.
            return f"{WINDOWS[name.removesuffix('_seconds')]:g}"
        if name in OF_CAUSES:
            return OF_CAUSES[name]
        if name in _THRESHOLDS:
            return f"{getattr(self.thresholds, name):g}"
        if name in {setting.name for setting in fields(self)}:
            return str(getattr(self, name))
        raise KeyError(f"no setting is called {name}")
