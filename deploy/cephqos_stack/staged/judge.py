"""Compares the alerts that came to the receiver with what a situation expects.

For example, osd.1 gets a slow device, and an alert names osd.1 and `device` 7 s later. Then `judge`
returns ("right", 7.0, []). The demo and `make truth` call it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cephqos_alerts.rules.runbooks import WARNING_SUFFIX
from cephqos_alerts.rules.settings import WINDOWS
from cephqos_stack.staged.situation import FASTER, ExpectedFinding, Situation

Verdict = Literal["right", "wrong OSD", "wrong cause", "late", "missed", "false", "not run"]
# Alerts that say that the watching failed. They are no wrong findings: here a scrape has one second
# instead of ten, and an alert needs twenty seconds of failures instead of ten minutes.
BLIND = (
    "CephQosCollectorFailing",
    "CephQosTooFewSamples",
    "CephQosFiguresMissing",
    "CephQosExporterDown",
)
# Seconds after a fault before which it cannot have caused an alert. If one of BLIND comes earlier,
# the watching had failed without the fault.
SOONEST = WINDOWS["hold"] / FASTER
SETTLED = 8.0  # seconds in which more alerts count after all that were expected
_LABELS = ("severity", "alertname", "ceph_daemon", "class", "cause", "by", "seen", "collector")
# Cause and culprit, and why an OSD is slow or does not answer, may change while an alert fires. So
# they are no labels of alerts. Here they are read from the description.
_CAUSE_IN_TEXT = (
    "CephQosReservationViolated",
    "CephQosReservationViolatedWidely",
    "CephQosPolicyTargetViolated",
)
# Alerts that count OSDs name the worst of them in the description.
_WORST = re.compile(r"(osd\.\d+)(?: on host \S+)? \(")
_LIKELY = re.compile(r"Likely cause: (\w+)(?: by ([\w.]+?))?(?: on host|, on most|\.(?: |$))")
SEEN_OF_IT = {  # words of a description, and the cause that they state
    "Its device is slow or has stopped.": "device",
    "Only its commits are slow: its device is well.": "store",
    "Its threads wait for a CPU.": "cpu",
    "Its threads wait for memory": "cpu",
    "Its process is stopped": "stopped",
    "A limit of its container stops its threads.": "cpu",
    "A limit of its container holds up its requests.": "device",
    "Neither its device nor its CPU shows why": "network",
}


@dataclass(frozen=True)
class Heard:
    """An alert at the receiver."""

    after: float  # seconds since the fault, or since the load began
    labels: Mapping[str, str]
    worst: Sequence[str] = ()  # the OSDs that an alert about many names

    @classmethod
    def of(cls, after: float, labels: Mapping[str, str], description: str) -> "Heard":
        """An alert with the cause and the culprit of its description as labels.

        Situations name the severity, so an alert has one name for both.
        """
        labels = {**labels, "alertname": labels["alertname"].removesuffix(WARNING_SUFFIX)}
        text = " ".join(description.split())
        causes = [cause for words, cause in SEEN_OF_IT.items() if words in text]
        if labels["alertname"] == "CephQosReplicaSlow":
            labels = {**labels, "cause": causes[0] if causes else "not said"}
        elif labels["alertname"] == "CephQosDaemonNotAnswering" and causes:
            labels = {**labels, "cause": causes[0]}
        likely = _LIKELY.search(text)
        if labels["alertname"] in _CAUSE_IN_TEXT:
            labels = {**labels, "cause": likely[1] if likely else "unknown"}
        if likely and likely[2]:
            labels = {**labels, "by": likely[2]}
        return cls(after, labels, _WORST.findall(text.partition("Worst first:")[2]))

    def __str__(self) -> str:
        words = [self.labels[name] for name in _LABELS if self.labels.get(name)]
        return f"{' '.join(words).replace('CephQos', '')} @{self.after:.0f}s"


def matches(finding: ExpectedFinding, heard: Heard, turn: int, osds: int) -> bool:
    """Whether the alert is the finding. `turn`: see `osd_name`. `osds`: how many there are."""
    labels = heard.labels
    if labels["alertname"] not in finding.alert:
        return False
    if finding.osd is not None:
        osd = osd_name(finding.osd, turn, osds)
        if osd not in (labels.get("ceph_daemon"), *heard.worst):
            return False
    wanted = {
        "cause": finding.cause,
        "by": _turned(finding.by, turn, osds),
        "class": finding.class_,
        "seen": finding.seen,
        "severity": finding.severity,
    }
    # `a|b`: either; None: anything.
    return all(labels.get(key, "") in value.split("|") for key, value in wanted.items() if value)


def osd_name(osd: int, turn: int, osds: int) -> str:
    """The OSD meant by a number in a situation. `turn` moves all, so that each OSD fails once."""
    return f"osd.{(osd + turn) % osds}"


def _turned(by: str | None, turn: int, osds: int) -> str | None:
    """The label `by` of a finding, with the OSD that is meant."""
    if by is None or not by.startswith("osd."):
        return by
    return osd_name(int(by.removeprefix("osd.")), turn, osds)


def judge(
    situation: Situation, heard: Sequence[Heard], turn: int
) -> tuple[Verdict, float | None, list[Heard]]:
    """The verdict, how long the first expected alert took, and alerts that should not have come.

    If the watching fails in a healthy situation, silence proves nothing: "not run". A fault without
    its alert is missed all the same, unless the watching had failed before it.
    """
    osds = situation.cluster.osds
    failures = watch_failures(heard)
    heard = [alert for alert in heard if alert not in failures]

    def is_expected(alert: Heard) -> bool:
        findings = (*situation.expect, *situation.allow)
        return any(matches(finding, alert, turn, osds) for finding in findings)

    others = [alert for alert in heard if not is_expected(alert)]
    if situation.healthy:
        if others:
            return "false", None, others
        return ("not run" if failures else "right"), None, others
    times = []  # of each expected finding, in seconds; infinite: it never came
    for finding in situation.expect:
        after = [alert.after for alert in heard if matches(finding, alert, turn, osds)]
        times.append(min(after, default=math.inf))
    in_order = zip(times, situation.expect, strict=True)
    late = any(time > finding.within for time, finding in in_order)
    first = min(times) if min(times) < math.inf else None
    verdict: Verdict = "right"
    if late:
        verdict = "missed" if math.inf in times else "late"
        if any(alert.after < SOONEST for alert in failures):
            verdict = "not run"
    return _worse_with(others, verdict, situation, turn), first, others


def watch_failures(heard: Sequence[Heard]) -> list[Heard]:
    """The alerts that the cluster could not be watched."""
    return [alert for alert in heard if alert.labels["alertname"] in BLIND]


def _worse_with(
    others: Sequence[Heard], verdict: Verdict, situation: Situation, turn: int
) -> Verdict:
    """The verdict, or a worse one if other alerts came too."""
    culprits = {
        osd_name(finding.osd, turn, situation.cluster.osds)
        for finding in situation.expect
        if finding.osd is not None
    }
    # Alerts of the whole cluster have no OSD: they accuse none.
    accused = {alert.labels["ceph_daemon"] for alert in others if alert.labels.get("ceph_daemon")}
    if culprits and accused - culprits:
        return "wrong OSD"
    if others:
        return "wrong cause"
    return verdict
