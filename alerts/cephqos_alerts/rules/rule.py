"""What a rule is: a series to record, an alert, a group of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Severity = Literal["critical", "warning", "info", "none"]

# What an alert can be about. output/alertmanager.py silences alerts by it:
# osd: what one OSD reserves or does. Silent while that OSD does not answer. Not for findings.
# absence: an OSD that is not there or not seen. Silent during its maintenance.
# load: what a test run causes on purpose. Silent during one.
# scrub, recovery: work that flags of the cluster can stop. Silent while such a flag is set.
Subject = Literal["osd", "absence", "load", "scrub", "recovery"]


# The comments of an expression, and its strings, in which # begins none.
_STRING_OR_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`| *#.*')
_PREVIOUSLY: Final = re.compile(r"previously\(([\w:]+)((?:\{[^}]*\})?)\)")
# A recorded series, marked or not, with its matchers: only names of recorded series have colons.
_SERIES_READ: Final = re.compile(r"(previously\()?\b(\w+:[\w:]+)(?:\{([^}]*)\})?")
_EQUAL: Final = re.compile(r'(\w+)="([^"]*)"')


def without_comments(expr: str) -> str:
    return _STRING_OR_COMMENT.sub(lambda it: "" if it[0].lstrip()[:1] == "#" else it[0], expr)


def without_texts(expr: str) -> str:
    """The expression without its strings and comments: every name in it is one."""
    return _STRING_OR_COMMENT.sub("", expr)


def read_previously(expr: str) -> list[str]:
    """The series in `previously(…)`, each once.

    They are read as the evaluation before this one recorded them, by this rule or by a later one.
    The mark shows that an old value is meant. The test for rules that depend on each other in a
    circle reads it too. render.py removes it, so Prometheus reads a plain series.
    """
    return list(dict.fromkeys(name for name, _ in _PREVIOUSLY.findall(without_comments(expr))))


@dataclass(frozen=True)
class SeriesRead:
    """A recorded series that an expression reads."""

    name: str
    labels: Mapping[str, str]  # those that its matchers fix: {class="client"}
    marked: bool  # by `previously(…)`

    def may_be(self, record: str, labels: Mapping[str, str]) -> bool:
        """Whether this series may come from a rule that records this name with these labels."""
        return record == self.name and all(
            labels.get(label, value) == value for label, value in self.labels.items()
        )


def series_read(expr: str) -> list[SeriesRead]:
    return [
        SeriesRead(name, dict(_EQUAL.findall(matchers)), bool(marked))
        for marked, name, matchers in _SERIES_READ.findall(without_comments(expr))
    ]


def without_marks(expr: str) -> str:
    return _PREVIOUSLY.sub(r"\1\2", expr)


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
# Clients suffer, but to end it takes a decision, other hardware or other settings.
NOT_TONIGHT: Final = Urgency(clients_suffer=True)
MORNING: Final = Urgency()
SOME_DAY: Final = Urgency(to_do=False)
NOT_SENT: Final = Urgency(sent=False)
# As sources name them.
URGENCIES: Final[Mapping[str, Urgency]] = {
    "now": NOW,
    "not_tonight": NOT_TONIGHT,
    "morning": MORNING,
    "some_day": SOME_DAY,
    "not_sent": NOT_SENT,
}

# What an alert is about, as the label that says where: text.py has the words.
Place = Literal["osd", "osds", "pool", "cluster", "exporter", "prometheus"]
# The labels of an alert that is about such a place.
LABELS_OF_PLACE: Final[Mapping[Place, Sequence[str]]] = {
    "osd": ("cluster", "ceph_daemon"),
    "osds": ("cluster",),
    "pool": ("cluster", "pool"),
    "cluster": ("cluster",),
    "exporter": ("cluster", "instance"),
    "prometheus": (),
}


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
    about: Sequence[Subject] = ()
    expr: str
    urgency: Urgency
    summary: str
    description: str  # what happens, and how much
    where: Place = "osd"
    by: Sequence[str] = ()  # labels besides those of `where`: an alert for each of their values
    likely: str = ""  # the likely cause, without a full stop, or a template of the sentence
    first: FirstCommand | None = None
    # How long the condition lasts before the alert fires: `hold` if Prometheus waits (`for`, in
    # seconds before scaling), `held` if the expression does (a window of settings.py: "hold").
    hold: float = 0.0
    held: str = ""
    keep: float = 0.0  # `keep_firing_for`, in seconds
    within: str = ""  # "@hour@": the time in which the expression looks for events
    dashboard: str = ""  # a key of DASHBOARDS of render.py, if not that of `where`
    labels: Mapping[str, str] = field(default_factory=dict)
    duplicates: Sequence[str] = ()  # alerts that Ceph ships and that say the same

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
