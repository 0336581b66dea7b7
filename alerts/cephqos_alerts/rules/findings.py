"""What can be true of many OSDs at once: a series per OSD, and one alert per cluster.

The alert counts the OSDs and names the worst. It does not depend on how many there are, so 3,000
OSDs are one notification, and OSDs that come and go while it fires send none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cephqos_alerts.rules.rule import Alert, FirstCommand, RecordedSeries, Rule, Subject, Urgency
from cephqos_alerts.rules.template import show, when
from cephqos_alerts.rules.text import ON_OSDS, ON_SO_MANY, worst_first, worst_is, worst_of
from cephqos_base.recorded import PerOsd

# It goes on for so long after the last OSD: load that comes and goes over a day is one alert.
KEPT: Final = 6 * 3600.0
_OSD: Final = "{{ $labels.ceph_daemon }}"


@dataclass(frozen=True, kw_only=True)
class OsdFinding:
    """One of them. Its text speaks of one OSD, and of its `figure`."""

    name: str
    about: Sequence[Subject] = ()
    expr: str  # a series per OSD; the largest value is the worst
    by: Sequence[str] = ()  # labels besides cluster and OSD: an alert for each of their values
    urgency: Urgency
    likely: str
    first: FirstCommand  # of the worst
    summary: str  # goes on: on 214 of 3000 OSDs, worst osd.7
    description: str
    figure: str = ""  # template of a value, with VALUE
    window: str = ""  # of settings.py: for how long it must last, unless the expression says
    held: str = ""  # the same, where the expression says
    within: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    counted: bool = True  # among the OSDs that exporters report


def findings(*found: OsdFinding) -> tuple[Rule, ...]:
    """Their rules."""
    return tuple(rule for one in found for rule in (_recorded(one), _alert(one)))


def _own(finding: OsdFinding) -> dict[str, str]:
    return {"finding": finding.name.removeprefix("CephQos"), **finding.labels}


def _recorded(finding: OsdFinding) -> RecordedSeries:
    return RecordedSeries(record=PerOsd.FINDING, expr=finding.expr, labels=_own(finding))


def _alert(finding: OsdFinding) -> Alert:
    own = ", ".join(f'{label}="{value}"' for label, value in _own(finding).items())
    lasting = f"{PerOsd.FINDING}{{{own}}}"
    if window := finding.window:
        # Minute by minute, so that it does not depend on how often rules are evaluated.
        seen = f"count_over_time({lasting}[@{window}@:@slow_interval@])"
        lasting += f" and {seen} >= @{window}_minutes@"
    worst = _worst(finding)
    first = finding.first.line.replace(
        _OSD,
        when(worst, show("(. | first).Labels.ceph_daemon"), "osd.N"),
    )
    return Alert(
        name=finding.name,
        about=finding.about,
        expr=f"count by ({', '.join(('cluster', *finding.by))}) ({lasting})",
        urgency=finding.urgency,
        where="osds",
        likely=finding.likely,
        first=FirstCommand(line=first, on=finding.first.on),
        held=finding.held or finding.window,
        within=finding.within,
        keep=KEPT,
        dashboard="cluster",
        labels=finding.labels,
        summary=f"{finding.summary} {ON_SO_MANY if finding.counted else ON_OSDS}{worst_is(worst)}",
        description=f"{finding.description} Worst first: {worst_first(worst, finding.figure)}.",
    )


def _worst(finding: OsdFinding) -> str:
    fixed = "".join(f'{label}="{value}",' for label, value in _own(finding).items())
    return worst_of(f"{PerOsd.FINDING}{{{fixed}SELECTOR}}", ("cluster", *finding.by))
