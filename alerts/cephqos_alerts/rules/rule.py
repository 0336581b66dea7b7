"""What a rule is: a series to record, an alert, a group of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Severity = Literal["critical", "warning", "info", "none"]

# What an alert can be about, for alertmanager.py to know when it says nothing new:
# - osd: what one OSD promises or does, pointless while that OSD does not answer
# - absence: an OSD that is not there or not seen, as expected while it is being maintained
# - load: what a test run brings about on purpose
# - scrub, recovery: work that flags of the cluster can stop
Subject = Literal["osd", "absence", "load", "scrub", "recovery"]


_PREVIOUSLY: Final = re.compile(r"@previously ([\w:]+)@")


def previously(series: str) -> str:
    """What the evaluation before this one recorded: by this rule, or by one that comes later.

    To Prometheus this is the series as any other. The mark is for who reads the rules, and for the
    test that finds circles: without such reads there is none.
    """
    return f"@previously {series}@"


def read_previously(expr: str) -> list[str]:
    """The series that are read so, each once."""
    return list(dict.fromkeys(_PREVIOUSLY.findall(expr)))


def without_marks(expr: str) -> str:
    return _PREVIOUSLY.sub(r"\1", expr)


@dataclass(frozen=True, kw_only=True)
class RecordedSeries:
    """A series to record; the comment is for the operator who reads the YAML."""

    record: str
    expr: str
    comment: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """An alert; `hold` in seconds before scaling. runbooks.py has the page of its runbook."""

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
