"""Findings can be true of many OSDs at once. Each is a series per OSD and one alert per cluster.

The alert counts the OSDs and names the worst. It does not depend on how many there are, so 3,000
OSDs are one notification, and OSDs that come and go while it fires send none.

OsdFinding(name="CephQosThreadAtCeiling", …) becomes two rules. One records the series
osd:cephqos_finding:value{finding="ThreadAtCeiling"} for each OSD, with the finding's figure as its
value. The other is the alert CephQosThreadAtCeiling, a count of these series.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cephqos_alerts.rules.rule import Alert, FirstCommand, RecordedSeries, Rule, Subject, Urgency
from cephqos_alerts.rules.template import show, when
from cephqos_alerts.rules.text import (
    ON_OSDS,
    ON_SO_MANY,
    they_share,
    worst_first,
    worst_is,
    worst_of,
)
from cephqos_base.recorded import PerOsd

# Seconds for which the alert goes on after the last OSD: load that comes and goes over a day is one
# alert.
KEPT: Final = 6 * 3600.0
_OSD: Final = "{{ $labels.ceph_daemon }}"


@dataclass(frozen=True, kw_only=True)
class OsdFinding:
    """A finding. Fields that `Alert` has, too, mean the same here."""

    name: str
    about: Sequence[Subject] = ()
    expr: str  # a series per OSD; the largest value is the worst
    by: Sequence[str] = ()
    urgency: Urgency
    likely: str
    first: FirstCommand  # $labels.ceph_daemon in it becomes the worst OSD
    summary: str  # the alert adds: on 214 of 3000 OSDs, worst osd.7
    description: str
    figure: str = ""  # template that shows the value of an OSD: "VALUE | humanizePercentage"
    # How long it must last: a window of settings.py. `window` if this module has to wait for it,
    # `held` if `expr` does.
    window: str = ""
    held: str = ""
    within: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    counted: bool = True  # "on 3 of 12 OSDs"; False if no exporter reports these OSDs
    shared: bool = False  # the text says what all of these OSDs share: a model, a host
    keep: float = KEPT
    duplicates: Sequence[str] = ()


def finding_rules(*findings: OsdFinding) -> tuple[Rule, ...]:
    return tuple(rule for finding in findings for rule in (_recorded(finding), _alert(finding)))


def _fixed_labels(finding: OsdFinding) -> dict[str, str]:
    """The labels by which the series of this finding are known."""
    return {"finding": finding.name.removeprefix("CephQos"), **finding.labels}


def _recorded(finding: OsdFinding) -> RecordedSeries:
    return RecordedSeries(record=PerOsd.FINDING, expr=finding.expr, labels=_fixed_labels(finding))


def _alert(finding: OsdFinding) -> Alert:
    labels = _fixed_labels(finding).items()
    selector = ", ".join(f'{label}="{value}"' for label, value in labels)
    lasting = f"{PerOsd.FINDING}{{{selector}}}"
    of_one = "".join(f'{label}="{value}",' for label, value in labels)
    osds = f"{PerOsd.FINDING}{{{of_one}SELECTOR}}"  # for `worst_of`
    if window := finding.window:
        # Minute by minute, so that it does not depend on how often rules are evaluated.
        minutes = f"count_over_time({lasting}[@{window}@:@slow_interval@])"
        lasting += f" and {minutes} >= @{window}_minutes@"
    known_by = ("cluster", *finding.by)
    worst = worst_of(osds, known_by)
    first = finding.first.line.replace(
        _OSD, when(worst, show("(. | first).Labels.ceph_daemon"), "osd.N")
    )
    return Alert(
        name=finding.name,
        about=finding.about,
        expr=f"count by ({', '.join(known_by)}) ({lasting})",
        urgency=finding.urgency,
        where="osds",
        by=finding.by,
        likely=finding.likely,
        first=FirstCommand(line=first, on=finding.first.on),
        held=finding.held or finding.window,
        within=finding.within,
        keep=finding.keep,
        duplicates=finding.duplicates,
        labels=finding.labels,
        summary=f"{finding.summary} {ON_SO_MANY if finding.counted else ON_OSDS}{worst_is(worst)}",
        description=(
            f"{finding.description} Worst first: {worst_first(worst, finding.figure)}."
            f"{they_share(osds, known_by) if finding.shared else ''}"
        ),
    )
