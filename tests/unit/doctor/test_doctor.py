"""Each check of `cephqos doctor`: the finding appears, and it stays away."""

import asyncio
import dataclasses
import re
import shlex
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import RECORDINGS
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedHost

from cephqos_base.command import main
from cephqos_doctor import key, sockets, upkeep
from cephqos_doctor.cli import CLUSTER_CHECKS, HOST_CHECKS, PROMETHEUS_CHECKS
from cephqos_doctor.cluster_facts import NEEDED, ClusterFacts
from cephqos_doctor.finding import Check, Diagnosis, Finding, diagnose, quoted
from cephqos_doctor.host_facts import gather
from cephqos_exporter import sysfs
from cephqos_exporter.ceph import cluster
from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.cli import read_settings
from cephqos_exporter.sysfs import OsdDevice

from .doctor_facts import found, host, mends

SECURITY = Path(__file__).parents[3] / "docs/install/security.md"


def reachable(**changed: Any) -> ClusterFacts:
    return ClusterFacts(**({"name": "client.cephqos", "status": {"health": {}}} | changed))


SKEW = {"health": {"checks": {"MON_CLOCK_SKEW": {"summary": {"message": "skew on mon.b"}}}}}


def late(pgs: int) -> dict[str, Any]:
    check = {"PG_NOT_DEEP_SCRUBBED": {"summary": {"message": "...", "count": pgs}}}
    return {"pgmap": {"num_pgs": 200}, "health": {"checks": check}}


@pytest.mark.parametrize(
    ("changed", "check", "said", "mend"),
    [
        ({}, "", "", ""),
        ({"failure": "no key"}, "cluster-reachable", "no key", "ceph auth get-or-create"),
        (
            {"failure": "no module", "bindings_missing": True},
            "cluster-reachable",
            "rados module",
            "python3-rados",
        ),
        ({"denied": ("mgr 'x'",)}, "caps-sufficient", "mgr 'x'", "ceph auth caps client.cephqos"),
        ({"powers": ("read keys",)}, "caps-minimal", "read keys", "ceph auth caps"),
        (
            {"powers": ("read keys",), "name": "client.admin"},
            "caps-minimal",
            "read keys",
            "ceph auth get-or-create client.cephqos",
        ),
        ({"status": SKEW}, "monitor-clocks", "skew on mon.b", "chronyc"),
        ({"status": {"mgrmap": {"available": False}}}, "manager-active", "no manager", "mgr"),
        ({"status": {"mgrmap": {"available": True}}}, "", "", ""),
        (
            {"status": late(12)},
            "scrub-time-sufficient",
            "12 of 200 placement groups are very late for a deep scrub",
            "osd_max_scrubs",
        ),
        (
            {"status": late(12), "window_hours": 42.0},
            "scrub-time-sufficient",
            "in 42 of 168 hours",
            "osd_scrub_begin_hour",
        ),
        ({"status": late(3)}, "", "", ""),
    ],
)
def test_what_is_wrong_with_a_cluster_is_found_by_one_check(
    changed: dict[str, Any], check: str, said: str, mend: str
) -> None:
    findings = found(CLUSTER_CHECKS, reachable(**changed))
    assert list(findings) == ([check] if check else [])
    for [finding] in findings.values():
        assert mends(finding)
        assert said in finding.problem
        assert mend in finding.mend


def test_the_caps_are_those_that_are_documented_and_cover_every_command_of_the_role() -> None:
    assert f"mon '{key.MON_CAPS}' mgr '{key.MGR_CAPS}'" in SECURITY.read_text()
    assert {query.prefix for query, _ in NEEDED} == cluster.READ_ONLY_COMMANDS
    given = f"mon '{key.MON_CAPS}' mgr '{key.MGR_CAPS}'"
    for _, cap in NEEDED:
        daemon, words = shlex.split(cap)
        assert re.search(rf"{daemon} '[^']*{re.escape(words)}", given), cap


def test_names_from_a_cluster_cannot_command_a_terminal_or_a_shell() -> None:
    finding = Finding("osd.\x1b[2J", "a\nb\x07", f"ceph {quoted('x; rm -rf /')}")
    text = Diagnosis("host", ("c",), (("c", finding),)).text()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "'x; rm -rf /'" in text
    assert "osd.\\x1b[2J" in text


def test_what_is_the_same_of_sixty_osds_is_told_once_and_names_them_all() -> None:
    osds = [f"osd.{number}" for number in range(60)]
    findings = [("a", Finding(osd, "guessed", f"ceph config set {osd} x 1")) for osd in osds]
    other = ("a", Finding("osd.7", "guessed", "ceph config set osd y 1"))
    text = Diagnosis("host", ("a",), (*findings, other)).text()
    assert text.splitlines() == [
        "osd.0 and 59 more: guessed [a]",
        "    ceph config set osd.0 x 1",
        f"    # the same for {', '.join(osds[1:])}",
        "osd.7: guessed [a]",
        "    ceph config set osd y 1",
        "host: 1 check, 61 findings",
    ]


def test_findings_as_json_name_check_subject_problem_and_mend() -> None:
    document = diagnose("host", HOST_CHECKS, host(clock_synchronised=False)).document()
    assert document["looked_at"] == "host"
    assert len(document["checks"]) == len(HOST_CHECKS)
    [one] = document["findings"]
    assert set(one) == {"check", "subject", "problem", "mend"}


def test_every_check_has_a_name_of_its_own_and_is_documented() -> None:
    every: tuple[Check[Any], ...] = (
        *HOST_CHECKS,
        *CLUSTER_CHECKS,
        *(one for one in upkeep.CHECKS if one.name not in {it.name for it in CLUSTER_CHECKS}),
        *PROMETHEUS_CHECKS,
    )
    names = [check.name for check in every]
    assert len(names) == len(set(names))
    page = Path("docs/operate/doctor.md").read_text()
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == sorted(names)


async def test_replayed_osds_are_gathered_and_only_asked_what_reads(tmp_path: Path) -> None:
    recording = RecordedDaemon.load(RECORDINGS / "reef" / "idle")
    host = ReplayedHost(tmp_path)
    host.add(recording)
    host.add(recording).fault = Fault.GARBAGE
    async with host:
        read = read_settings({"discovery.sockets": f"{tmp_path}/*.asok"}, {})
        facts = await gather(read)
    assert [osd.osd for osd in facts.osds] == ["osd.0"]
    assert [socket.failure for socket in facts.sockets] == ["", "malformed"]
    assert set(host.asked) <= READ_ONLY_COMMANDS
    silent = found(sockets.CHECKS, dataclasses.replace(facts, processes=()))["osds-answer"]
    assert "(malformed)" in silent[0].problem


async def test_a_data_directory_that_hangs_is_a_finding_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one on a disk that died; it is looked at once."""
    looks, ended = [], threading.Event()

    def hang(*_: object) -> list[OsdDevice]:
        looks.append(threading.current_thread())
        ended.wait(60)
        return []

    monkeypatch.setattr(sysfs, "osd_devices", hang)
    host = ReplayedHost(tmp_path)
    host.add(RecordedDaemon.load(RECORDINGS / "reef" / "idle"))
    try:
        async with host, asyncio.timeout(50):
            facts = await gather(read_settings({"discovery.sockets": f"{tmp_path}/*.asok"}, {}))
    finally:
        ended.set()
    assert len(looks) == 1
    assert threading.main_thread() not in looks
    findings = found(sockets.CHECKS, dataclasses.replace(facts, processes=()))
    assert "does not answer" in findings["osds-answer"][0].problem


def test_a_mistake_ends_with_status_2_and_shows_no_password(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "host", "--bogus"])
    assert ended.value.code == 2
    assert main(["doctor", "host", "--config.file=/nowhere.yml"]) == 2
    for url in ("http://user:secret@host", "http://user:a/secret@host", "http://h/?a=@secret"):
        assert main(["doctor", "prometheus", url]) == 2
    header = tmp_path / "header"
    header.write_text("a secret\n")
    assert main(["doctor", "prometheus", "http://host", f"--header={header}"]) == 2
    said = capsys.readouterr()
    assert "secret" not in said.err + said.out
