"""What a rule is: a series to record, an alert, a group of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["page", "ticket", "info", "none"]

# What an alert can be about, for alertmanager.py to know when it says nothing new:
# - osd: what one OSD promises or does, pointless while that OSD does not answer
# - absence: an OSD that is not there or not seen, as expected while it is being maintained
# - load: what a test run brings about on purpose
# - scrub, recovery: work that flags of the cluster can stop
Subject = Literal["osd", "absence", "load", "scrub", "recovery"]


@dataclass(frozen=True, kw_only=True)
class RecordedSeries:
    """A series to record."""

    record: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """An alert; `hold` in seconds before scaling. Its runbook is the heading of its name."""

    name: str
    about: Sequence[Subject]
    expr: str
    severity: Severity
    summary: str
    description: str
    hold: float = 0.0
    dashboard: str = "osd"
    labels: Mapping[str, str] = field(default_factory=dict)


Rule = RecordedSeries | Alert


@dataclass(frozen=True, kw_only=True)
class RuleGroup:
    """Rules evaluated one after the other, in this order; `slow` ones once a minute."""

    name: str
    rules: Sequence[Rule]
    slow: bool = False
