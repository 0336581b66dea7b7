"""What a rule is: a series to record, an alert, a group of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Severity = Literal["critical", "warning", "info", "none"]

# What an alert can be about. alertmanager.py uses it to know when an alert says nothing new.
# osd: what one OSD reserves or does. Pointless while that OSD does not answer. None of findings.
# absence: an OSD that is not there or not seen. Expected during its maintenance.
# load: what a test run causes on purpose.
# scrub, recovery: work that flags of the cluster can stop.
Subject = Literal["osd", "absence", "load", "scrub", "recovery"]


_PREVIOUSLY: Final = re.compile(r"@previously ([\w:]+)@")
# A recorded series, marked or not, with its matchers: only names of recorded series have colons.
_READ: Final = re.compile(r"(@previously )?\b(\w+:[\w:]+)@?(?:\{([^}]*)\})?")
_EQUAL: Final = re.compile(r'(\w+)="([^"]*)"')


def previously(series: str) -> str:
    """The series as the evaluation before this one recorded it, by this rule or by a later one.

    The mark says that an old value is meant: to readers, and to the test that looks for circles.
    render.py removes it, so Prometheus reads a plain series.
    """
    return f"@previously {series}@"


def read_previously(expr: str) -> list[str]:
    """The series marked by `previously`, each once."""
    return list(dict.fromkeys(_PREVIOUSLY.findall(expr)))


@dataclass(frozen=True)
class SeriesRead:
    """A recorded series that an expression reads."""

    name: str
    labels: Mapping[str, str]  # those that its matchers fix: {class="client"}
    marked: bool  # by `previously`

    def may_be(self, record: str, labels: Mapping[str, str]) -> bool:
        """Whether a rule may record it that records this name with these fixed labels."""
        return record == self.name and all(
            labels.get(label, value) == value for label, value in self.labels.items()
        )


def series_read(expr: str) -> list[SeriesRead]:
    return [
        SeriesRead(name, dict(_EQUAL.findall(matchers)), bool(marked))
        for marked, name, matchers in _READ.findall(expr)
    ]


def without_marks(expr: str) -> str:
    return _PREVIOUSLY.sub(r"\1", expr)


@dataclass(frozen=True, kw_only=True)
class Urgency:
    """Facts from which the severity of an alert follows. docs/operate/alerts.md has the rule."""

    clients_suffer: bool = False  # now: not perhaps, and not later
    ends_tonight: bool = False  # one person can end it now, with what is there
    to_do: bool = True  # a person must do something, now or later
    sent: bool = True
    but: str = ""  # an exception, to follow "Can it wait: yes,"

    @property
    def severity(self) -> Severity:
        if not self.sent:
            return "none"
        if self.clients_suffer and self.ends_tonight:
            return "critical"
        return "warning" if self.to_do else "info"

    @property
    def can_wait(self) -> str:
        return ", ".join(filter(None, [CAN_WAIT[self.severity], self.but]))


CAN_WAIT: Final[Mapping[Severity, str]] = {
    "critical": "no",
    "warning": "until morning",
    "info": "yes",
}
NOW: Final = Urgency(clients_suffer=True, ends_tonight=True)
# It takes a decision, other hardware or other settings.
NOT_TONIGHT: Final = Urgency(clients_suffer=True)
MORNING: Final = Urgency()
SOME_DAY: Final = Urgency(to_do=False)
NOT_SENT: Final = Urgency(sent=False)

# What an alert is about, as the label that says where: text.py has the words.
Place = Literal["osd", "osds", "pool", "cluster", "exporter", "prometheus"]


@dataclass(frozen=True, kw_only=True)
class FirstCommand:
    """What to type first. It only reads, and `$labels` fill in its names."""

    line: str
    on: Literal["ceph", "host", "prometheus"] = "ceph"  # where `ceph` works, or which host


@dataclass(frozen=True, kw_only=True)
class RecordedSeries:
    """A series to record; the comment is for the operator who reads the YAML."""

    record: str
    expr: str
    comment: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """An alert. runbooks.py has the page of its runbook; text.py makes its text of these parts."""

    name: str
    about: Sequence[Subject]
    expr: str
    urgency: Urgency
    summary: str
    description: str  # what happens, and how much
    where: Place = "osd"
    likely: str = ""  # the likely cause, without a full stop, or a template of the sentence
    first: FirstCommand | None = None
    hold: float = 0.0  # `for`, in seconds before scaling
    keep: float = 0.0  # `keep_firing_for`, in seconds
    held: str = ""  # the window of settings.py for which the expression itself waits
    within: str = ""  # the time in which the expression looks for events
    dashboard: str = "osd"
    labels: Mapping[str, str] = field(default_factory=dict)

    duplicates: Sequence[str] = ()  # alerts that Ceph ships, of which this one says nothing new

    @property
    def severity(self) -> Severity:
        return self.urgency.severity


Rule = RecordedSeries | Alert


@dataclass(frozen=True, kw_only=True)
class RuleGroup:
    """Rules evaluated one after the other, in this order; `slow` ones once a minute."""

    name: str
    rules: Sequence[Rule]
    slow: bool = False
