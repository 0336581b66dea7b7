"""A host where all is well, for the tests of the doctor."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon

from cephqos_doctor.finding import Check, Finding
from cephqos_doctor.host_facts import HostFacts, OsdFacts, SocketFacts, read_osd
from cephqos_doctor.processes import OsdProcess, RunningExporter


def found(checks: Iterable[Check[Any]], facts: object) -> dict[str, list[Finding]]:
    """What checks found, by their names."""
    findings: dict[str, list[Finding]] = {}
    for check in checks:
        for one in check.find(facts):
            findings.setdefault(check.name, []).append(one)
    return findings


def mends(finding: Finding) -> bool:
    """Whether it says what to type or which setting to write, and no sentence about it; and to
    restart no OSD unasked."""
    if re.search(r"restart (osd\.|it\b)", finding.mend) and "ok-to-stop osd." not in finding.mend:
        return False
    return finding.mend[0].islower()


def recorded(release: str = "reef", **changed: str) -> OsdFacts:
    """An OSD that answered once, with other values of some options."""
    bodies = RecordedDaemon.load(RECORDINGS / release / "idle").replies
    replies = {name: json.loads(body) for name, body in bodies.items()}
    diff = replies["config diff"]["diff"]
    # As an administrator would have it: capacities that somebody set.
    for media, iops in (("hdd", "200"), ("ssd", "20000")):
        option = f"osd_mclock_max_capacity_iops_{media}"
        changed.setdefault(option, iops)
        diff[option] = {"default": "1", "mon": changed[option], "final": changed[option]}
    replies["config show"] |= changed
    facts = read_osd("osd.3", replies)
    assert facts is not None
    return facts


def host(**changed: Any) -> HostFacts:
    """A host on which all is well, as far as is known: what it counts of its machine is not."""
    well: dict[str, Any] = {
        "user": "ceph",
        "patterns": ("/run/ceph/*.asok",),
        "sockets": (
            SocketFacts(path=Path("/run/ceph/ceph-osd.3.asok"), osd="osd.3", owner="ceph"),
        ),
        "processes": (OsdProcess(pid=77, osd="osd.3"),),
        "exporters": (RunningExporter(pid=99, user="ceph"),),
        "osds": (recorded(),),
        "clock_synchronised": True,
        "swapped_bytes": 0,
    }
    return HostFacts(**(well | changed))


def answering(failure: str, owner: str = "ceph") -> SocketFacts:
    path = Path("/run/ceph/ceph-osd.3.asok")
    return SocketFacts(path=path, osd="osd.3", owner=owner, failure=failure)
