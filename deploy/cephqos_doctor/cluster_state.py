"""Checks of a cluster: is there a manager to ask, and do the monitors' clocks agree?"""

from collections.abc import Iterator
from typing import Final

from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import Check, Finding
from cephqos_doctor.key import set_caps


def _manager(facts: ClusterFacts) -> Iterator[Finding]:
    manager = facts.status.get("mgrmap")
    if isinstance(manager, dict) and manager.get("available") is False:
        yield Finding(
            "the cluster",
            "no manager is active: figures of scrub, recovery and pools stand still",
            "ceph mgr stat   # and start a manager: systemctl start ceph-mgr.target"
            " (cephadm: ceph orch ps --daemon-type mgr; Rook: the deployment rook-ceph-mgr-a)",
        )
    elif facts.unanswered:
        yield Finding(
            "the manager",
            f"it is active and did not answer `{facts.unanswered}` of {facts.name}: it hangs, or"
            " the key has no caps for managers, which are then silent",
            f"{set_caps(facts.name)}   # if it has no mgr caps: ceph auth get\n"
            "ceph mgr fail   # if it hangs: another one takes over",
        )


def _clocks(facts: ClusterFacts) -> Iterator[Finding]:
    checks = facts.status.get("health", {}).get("checks", {})
    skew = checks.get("MON_CLOCK_SKEW") if isinstance(checks, dict) else None
    if isinstance(skew, dict):
        message = skew.get("summary", {}).get("message", "clock skew detected")
        yield Finding(
            "the cluster",
            f"the monitors' clocks differ ({message}): what happens on two hosts cannot be"
            " compared",
            "chronyc makestep   # on those hosts; ceph time-sync-status tells which",
        )


def left_for_clients(facts: ClusterFacts) -> str:
    """What such pools leave for client writes. It is no finding: no setting changes it."""
    shares = [f"{1 / size:.0%} (size {size})" for size in facts.sizes if size > 1]
    if not shares:
        return ""
    return (
        "replica writes have no reservation and go first: while clients write, a saturated OSD can"
        f" give them this share of what it does: {', '.join(shares)}"
    )


CHECKS: Final = (Check("manager-active", _manager), Check("monitor-clocks", _clocks))
