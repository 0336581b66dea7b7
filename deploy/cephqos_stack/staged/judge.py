"""What came to the receiver, against what was expected."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cephqos_alerts.rules.settings import WINDOWS
from cephqos_stack.staged.situation import FASTER, ExpectedFinding, Situation

Verdict = Literal["right", "wrong OSD", "wrong cause", "late", "missed", "false", "not run"]
# The watching failed. A scrape has one second here and ten in production, and ten minutes of
# failing are twenty seconds: such an alert is no wrong finding about a reservation.
BLIND = (
    "CephQosCollectorFailing",
    "CephQosTooFewSamples",
    "CephQosFiguresMissing",
    "CephQosExporterDown",
)
# Nothing is found sooner after a fault. What says before that the watching failed, saw it fail
# without the fault.
SOONEST = WINDOWS["hold"] / FASTER
SETTLED = 8.0  # seconds to look on after all that was expected has come
_LABELS = ("severity", "alertname", "ceph_daemon", "class", "cause", "by", "seen", "collector")
# What may change while an alert fires is in its description: the culprit, and what is said of an
# OSD that is slow or does not answer.
_CULPRIT = re.compile(r"Likely cause: \w+ by ([\w.]+?)(?: on host|\.(?: |$))")
SEEN_OF_IT = {
    "Its device is slow or has stopped.": "device",
    "Its threads wait for a CPU.": "cpu",
    "A limit of its container stops its threads.": "cpu",
    "Neither its device nor its CPU shows why": "network",
}


@dataclass(frozen=True)
class Heard:
    """An alert at the receiver, seconds after the fault (or after the load began)."""

    after: float
    labels: Mapping[str, str]

    @classmethod
    def of(cls, after: float, labels: Mapping[str, str], description: str) -> "Heard":
        """With the cause that a reader of the alert sees."""
        text = " ".join(description.split())
        seen = [cause for words, cause in SEEN_OF_IT.items() if words in text]
        if labels["alertname"] == "CephQosReplicaSlow":
            labels = {**labels, "cause": seen[0] if seen else "not said"}
        elif labels["alertname"] == "CephQosDaemonNotAnswering" and seen:
            labels = {**labels, "cause": seen[0]}
        if culprit := _CULPRIT.search(text):
            labels = {**labels, "by": culprit[1]}
        return cls(after, labels)

    def __str__(self) -> str:
        words = [self.labels[name] for name in _LABELS if self.labels.get(name)]
        return f"{' '.join(words).replace('CephQos', '')} @{self.after:.0f}s"


def matches(finding: ExpectedFinding, heard: Heard, turn: int, osds: int) -> bool:
    """`turn` moves all OSDs of a situation by as many, so that not always the same one fails."""
    labels = heard.labels
    if labels["alertname"] not in finding.alert:
        return False
    wanted = {
        "ceph_daemon": None if finding.osd is None else named(finding.osd, turn, osds),
        "cause": finding.cause,
        "by": _by(finding.by, turn, osds),
        "class": finding.class_,
        "seen": finding.seen,
        "severity": finding.severity,
    }
    return all(labels.get(key, "") in value.split("|") for key, value in wanted.items() if value)


def named(osd: int, turn: int, osds: int) -> str:
    return f"osd.{(osd + turn) % osds}"


def _by(by: str | None, turn: int, osds: int) -> str | None:
    if by is None or not by.startswith("osd."):
        return by
    return named(int(by.removeprefix("osd.")), turn, osds)


def judge(
    situation: Situation, heard: Sequence[Heard], turn: int
) -> tuple[Verdict, float | None, list[Heard]]:
    """The verdict, how long the first expected alert took, and what should not have come.

    Silence proves nothing while the watching fails: a healthy run without figures is not run.
    A fault that was not found is missed all the same, unless the watching had failed before it.
    """
    osds = situation.cluster.osds
    blind = unseen(heard)
    heard = [it for it in heard if it not in blind]

    def among(findings: Sequence[ExpectedFinding], alert: Heard) -> bool:
        return any(matches(finding, alert, turn, osds) for finding in findings)

    others = [it for it in heard if not among((*situation.expect, *situation.allow), it)]
    if situation.healthy:
        calm: Verdict = "not run" if blind else "right"
        return ("false" if others else calm), None, others
    times = []
    for finding in situation.expect:
        came = [it.after for it in heard if matches(finding, it, turn, osds)]
        times.append(min(came, default=float("inf")))
    late = any(t > f.within for t, f in zip(times, situation.expect, strict=True))
    first = min(times) if min(times) < float("inf") else None
    verdict: Verdict = "right"
    if late:
        verdict = "missed" if float("inf") in times else "late"
        verdict = "not run" if any(it.after < SOONEST for it in blind) else verdict
    return _of_fault(situation, verdict, others, turn), first, others


def unseen(heard: Sequence[Heard]) -> list[Heard]:
    """What says that the cluster could not be watched."""
    return [it for it in heard if it.labels["alertname"] in BLIND]


def _of_fault(
    situation: Situation, verdict: Verdict, others: Sequence[Heard], turn: int
) -> Verdict:
    culprits = {
        named(it.osd, turn, situation.cluster.osds) for it in situation.expect if it.osd is not None
    }
    # What is of the whole cluster accuses no OSD.
    accused = {it.labels["ceph_daemon"] for it in others if it.labels.get("ceph_daemon")}
    if culprits and accused - culprits:
        return "wrong OSD"
    if others:
        return "wrong cause"
    return verdict
