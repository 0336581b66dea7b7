"""Checks of a cluster: why does recovery wait, do settings last, and do scrub intervals agree?

A placement group recovers when each OSD that it needs grants it a slot. So the questions are: which
OSD refuses, which setting is in force there, what is stored instead, and who changed it.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from cephqos_base.profiles import OVERRIDE_OPTION, PROFILE_OPTION
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.recovery_facts import (
    INTERVALS,
    OptionChange,
    RecoveryFacts,
    Stored,
)

# A change that is undone so soon is undone by a program.
_UNDONE_SECONDS: Final = 60.0


def _refused(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.recovery or RecoveryFacts()
    for slots in sorted(facts.slots, key=lambda it: -it.queued):
        if slots.refused:
            yield Finding(
                slots.osd,
                f"{slots.queued} placement groups wait for its {slots.side} slots: it grants"
                f" {slots.most} at a time ({_in_force_and_stored(facts, slots.osd)})",
                "cephqos capacity --prometheus http://localhost:9090 --since 7d   # first: limits"
                " are shares of the capacity\n"
                f"ceph config set osd {OVERRIDE_OPTION} true && ceph config set osd"
                " osd_max_backfills 3   # then, while no client waits; take both back afterwards",
            )


def _in_force_and_stored(facts: RecoveryFacts, osd: str) -> str:
    option = "osd_max_backfills"
    value = facts.in_force.get((osd, option), "an unknown value")
    said = f"{option} is {value} in force"
    others = [it for it in facts.stored if it.option == option and it.value != value]
    for it in others:
        mask = f" for {it.mask}" if it.mask else ""
        said += f"; {it.value} is stored in section {it.section}{mask}{_since(facts, it)}"
    if others and facts.in_force.get((osd, OVERRIDE_OPTION)) == "false":
        said += f", and mClock overrides it while {OVERRIDE_OPTION} is false"
    profile = facts.in_force.get((osd, PROFILE_OPTION))
    return f"{said}; profile {profile}" if profile else said


def _since(facts: RecoveryFacts, stored: Stored) -> str:
    times = [
        change.time
        for change in facts.changes
        if (change.section, change.option) == (stored.section, stored.option)
    ]
    since = f" since {times[-1][:19]}" if times else ""
    by = facts.by.get(stored.option)
    return f"{since} by {by}" if by else since


def undone(changes: Iterable[OptionChange]) -> Iterator[tuple[OptionChange, float]]:
    """Changes that were taken back soon after, each with the seconds until then."""
    last: dict[tuple[str, str], OptionChange] = {}
    for change in changes:
        key = change.section, change.option
        before = last.get(key)
        if before and before.old == change.new and before.new == change.old:
            seconds = _seconds(change.time) - _seconds(before.time)
            if 0 <= seconds < _UNDONE_SECONDS:
                yield before, seconds
        last[key] = change


def _seconds(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return float("nan")


def _taken_back(cluster: ClusterFacts) -> Iterator[Finding]:
    every: dict[tuple[str, str], list[tuple[OptionChange, float]]] = {}
    for change, seconds in undone(cluster.recovery.changes if cluster.recovery else ()):
        every.setdefault((change.section, change.option), []).append((change, seconds))
    for (section, option), times in every.items():
        change, seconds = times[-1]
        value = change.new if change.new is not None else "its default"
        by = cluster.recovery.by.get(option, "") if cluster.recovery else ""
        if by.startswith("osd."):
            who = f"{by}: mClock undoes it while {OVERRIDE_OPTION} is not true"
            mend = f"ceph config set osd {OVERRIDE_OPTION} true   # then set {option} again"
        else:
            who = "an operator such as Rook, or a script"
            mend = (
                "kubectl -n rook-ceph edit cephcluster   # Rook: spec.cephConfig, or the ConfigMap"
                " rook-config-override. Others: in what writes it"
            )
        often = f", {len(times)} times lately" if len(times) > 1 else ""
        yield Finding(
            f"{section}/{option}",
            f"it was set to {value} at {change.time[:19]} and taken back {seconds:.3g} s later"
            f"{often} by {who}",
            mend,
        )


def _intervals_differ(cluster: ClusterFacts) -> Iterator[Finding]:
    for option in INTERVALS:
        osds, manager = (cluster.intervals.get((who, option)) for who in ("osd", "mgr"))
        if osds is not None and manager is not None and osds > manager:
            yield Finding(
                "the cluster",
                f"{option} is {osds / 86400:g} days for OSDs, and {manager / 86400:g} days for the"
                " manager, which warns: PG_NOT_DEEP_SCRUBBED or PG_NOT_SCRUBBED stays, although"
                " OSDs scrub as it is set for them",
                f"ceph config set global {option} {quoted(f'{osds:.0f}')} && ceph config rm osd"
                f" {option}",
            )


def _not_asked(cluster: ClusterFacts) -> str:
    return "" if cluster.recovery else "needs client.admin, or --try-powers"


CHECKS: Final = (
    Check("recovery-slots", _refused, _not_asked),
    Check("settings-kept", _taken_back, _not_asked),
    Check("scrub-intervals-agree", _intervals_differ),
)
