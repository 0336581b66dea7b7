"""Every window and link of the rules, in one place. Thresholds are in `cephqos_base.thresholds`.

Rules name them as `@name@`. Windows and holds are written as they are for a scrape interval of
15 s; `time_scale` shortens all of them in the same proportion for tests and demos.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from cephqos_base.thresholds import THRESHOLDS, Thresholds
from cephqos_base.units import duration

_PLACEHOLDER: Final = re.compile(r"@(\w+)@")

# A rate needs two samples; four make it survive a lost scrape.
SAMPLES_PER_RATE: Final = 4

# Seconds, before scaling.
WINDOWS: Final[Mapping[str, float]] = {
    "rate": 60,  # rates of counters
    "sustained": 60,  # how long a state must hold, in every sample
    "hold": 300,  # how long a violation must last before an alert fires
    "long_hold": 900,
    "hour": 3600,
    "day": 86400,
    "history_step": 300,  # how finely the look back samples
    "slow_interval": 60,  # how often the rules that look back for a day are evaluated
}


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What an operator's file changes besides thresholds; changes.py reads it."""

    severities: Mapping[str, str] = field(default_factory=dict)
    leave_out: Sequence[str] = ()  # alerts
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    helpers: bool = True
    duplicates: bool = True

    def severity(self, ours: str) -> str:
        """What a severity is called."""
        return self.severities.get(ours, ours)


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """What a set of rules is generated for."""

    scrape_interval: float = 15.0
    evaluations_per_scrape: int = 1  # of which the engine keeps one
    time_scale: float = 1.0
    job: str = "cephqos.*"  # regular expression of the scrape jobs of cephqos-exporter
    runbook_url: str = ""  # without one, alerts have no such link
    dashboard_url: str = ""  # the same
    dashboard_prefix: str = ""  # of the uids
    thresholds: Thresholds = THRESHOLDS
    changes: Changes = Changes()

    @property
    def shortest(self) -> float:
        """No window is shorter than this: a rate over less sees no two samples."""
        return SAMPLES_PER_RATE * self.scrape_interval

    def scaled(self, seconds: float) -> float:
        """A hold: in proportion, but at least two samples."""
        return max(seconds * self.time_scale, 2 * self.scrape_interval)

    def window(self, seconds: float) -> float:
        """A window of a rate: in proportion, but never too short for one."""
        return max(seconds * self.time_scale, self.shortest)

    def expand(self, text: str) -> str:
        """Put in the values of all `@name@`."""
        return _PLACEHOLDER.sub(lambda match: self._value(match[1]), text)

    def _value(self, name: str) -> str:
        if name in WINDOWS:
            return duration(self.window(WINDOWS[name]))
        if name.endswith("_minutes"):
            # The same, of a window that is looked at once in a slow interval.
            seconds = self.window(WINDOWS[name.removesuffix("_minutes")])
            slow = self.window(WINDOWS["slow_interval"])
            return f"{self.thresholds.coverage * seconds / slow:g}"
        if name.endswith("_samples"):
            # The minimum of evaluations of a window that must have found something.
            seconds = self.window(WINDOWS[name.removesuffix("_samples")])
            return f"{self.thresholds.coverage * seconds / self.scrape_interval:g}"
        if name.endswith("_evaluations"):
            seconds = self.window(WINDOWS[name.removesuffix("_evaluations")])
            return f"{seconds / self.scrape_interval:g}"
        if name == "interval_seconds":
            return f"{self.scrape_interval:g}"
        if name.endswith("_seconds"):
            # As long as real things take, so not scaled.
            return f"{WINDOWS[name.removesuffix('_seconds')]:g}"
        if name in {it.name for it in fields(Thresholds)}:
            return f"{getattr(self.thresholds, name):g}"
        if name in {it.name for it in fields(self)}:
            return str(getattr(self, name))
        raise KeyError(f"no setting is called {name}")
