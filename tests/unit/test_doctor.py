"""Each check of `cephqos doctor`: the finding appears, and it stays away."""

import dataclasses
import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedHost

from cephqos_base import dashboards
from cephqos_base.command import main
from cephqos_base.version import __version__
from cephqos_doctor import boards, key, rules, scheduler, sockets, targets
from cephqos_doctor.cli import CLUSTER_CHECKS, HOST_CHECKS, PROMETHEUS_CHECKS
from cephqos_doctor.cluster_facts import NEEDED, ClusterFacts
from cephqos_doctor.finding import Check, Diagnosis, Finding, diagnose, quoted
from cephqos_doctor.host_facts import (
    HostFacts,
    OsdFacts,
    OsdProcess,
    RunningExporter,
    SocketFacts,
    closed_directories,
    exporter_processes,
    gather,
    osd_processes,
    read_osd,
    roles_of,
)
from cephqos_doctor.prometheus_facts import LoadedRule, PrometheusFacts, ScrapeTarget
from cephqos_exporter.ceph import cluster
from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.cli import read_settings
from cephqos_exporter.qos.tags import QueueDump

RECORDINGS = Path(__file__).parents[1] / "recordings"
SECURITY = Path(__file__).parents[2] / "exporter" / "SECURITY.md"


def found(checks: Iterable[Check[Any]], facts: object) -> dict[str, list[Finding]]:
    """What checks found, by their names."""
    findings: dict[str, list[Finding]] = {}
    for check in checks:
        for one in check.find(facts):
            findings.setdefault(check.name, []).append(one)
    return findings


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
    """A host on which all is well."""
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
    }
    return HostFacts(**(well | changed))


def answering(failure: str, owner: str = "ceph") -> SocketFacts:
    path = Path("/run/ceph/ceph-osd.3.asok")
    return SocketFacts(path=path, osd="osd.3", owner=owner, failure=failure)


def test_nothing_is_found_on_a_host_where_all_is_well() -> None:
    assert found(HOST_CHECKS, host()) == {}


@pytest.mark.parametrize(
    ("changed", "check", "said", "mend"),
    [
        ({"closed": ("/run/ceph",)}, "directories-readable", "/run/ceph", "sudo -u ceph"),
        ({"sockets": ()}, "sockets-found", "pid 77", "discovery.sockets"),
        ({"sockets": (), "processes": ()}, "sockets-found", "no OSD runs here", "ceph osd tree"),
        (
            {"sockets": (answering("permission", "167"),), "exporters": ()},
            "sockets-permitted",
            "belongs to 167",
            "sudo -u '#167'",
        ),
        ({"sockets": (answering("refused"),)}, "osds-answer", "nobody listens", "ceph-osd@3"),
        ({"sockets": (answering("timeout"),)}, "osds-answer", "(timeout)", "ceph daemon"),
        (
            {"exporters": (RunningExporter(pid=9, user="root"),)},
            "exporter-user",
            "runs as root",
            "User=ceph",
        ),
        (
            {"exporters": (RunningExporter(pid=9, user="nobody"),)},
            "exporter-user",
            "may not connect",
            "User=ceph",
        ),
        ({"clock_synchronised": False}, "clock-synchronised", "not synchronised", "timedatectl"),
        ({"osds": (recorded(perf="false"),)}, "figures-not-blinded", "perf is false", "restart"),
        (
            {"osds": (recorded(osd_enable_op_tracker="false"),)},
            "figures-not-blinded",
            "osd_enable_op_tracker",
            "ceph config set osd.3 osd_enable_op_tracker true",
        ),
        (
            {"osds": (recorded(osd_mclock_max_capacity_iops_hdd="900000"),)},
            "capacity-plausible",
            "900000 IOPS is not plausible",
            "bench",
        ),
        (
            {"osds": (recorded(osd_mclock_scheduler_client_res="0.9"),)},
            "reservations-possible",
            "of its capacity together",
            "osd_mclock_profile",
        ),
        (
            {"osds": (recorded(osd_mclock_scheduler_client_lim="0.1"),)},
            "limits-possible",
            "limit of client",
            "osd_mclock_scheduler_client_lim 0",
        ),
        ({"osds": (recorded(osd_op_queue="wpq"),)}, "scheduler-in-force", "wpq", "restart"),
    ],
)
def test_what_is_wrong_on_a_host_is_found_by_one_check_with_its_mend(
    changed: dict[str, Any], check: str, said: str, mend: str
) -> None:
    findings = found(HOST_CHECKS, host(**changed))
    assert list(findings) == [check]
    [finding] = findings[check]
    assert said in f"{finding.subject} {finding.problem}"
    assert mend in finding.mend


def test_a_capacity_that_nobody_measured_is_found() -> None:
    bodies = RecordedDaemon.load(RECORDINGS / "reef" / "idle").replies
    replies = {name: json.loads(body) for name, body in bodies.items()}
    for media in ("hdd", "ssd"):
        replies["config diff"]["diff"].pop(f"osd_mclock_max_capacity_iops_{media}", None)
    osd = read_osd("osd.3", replies)
    assert list(found(scheduler.CHECKS, host(osds=(osd,)))) == ["capacity-plausible"]


def test_wpq_promises_nothing_unless_a_policy_does() -> None:
    osd = recorded(osd_op_queue="wpq")
    osd = dataclasses.replace(osd, queues=QueueDump("wpq", []))
    assert list(found(scheduler.CHECKS, host(osds=(osd,)))) == ["scheduler-promises"]
    assert found(scheduler.CHECKS, host(osds=(osd,), policy=True)) == {}


def test_the_built_in_profiles_of_no_release_are_called_impossible() -> None:
    for release in ("reef", "tentacle"):
        osd = recorded(release)
        assert "reservations-possible" not in found(scheduler.CHECKS, host(osds=(osd,)))


def test_a_left_over_socket_is_no_finding_while_the_osd_answers_on_another() -> None:
    both = (answering(""), answering("refused"))
    assert found(sockets.CHECKS, host(sockets=both)) == {}


def test_a_socket_elsewhere_is_found_through_its_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ceph-osd.3.asok"
    path.parent.mkdir()
    path.touch()
    process = OsdProcess(pid=77, osd="osd.3", sockets=(str(path),))
    findings = found(sockets.CHECKS, host(sockets=(), processes=(process,)))
    assert f"--discovery.sockets='{path.parent}/*.asok'" in findings["sockets-found"][0].mend
    gone = OsdProcess(pid=77, osd="osd.3", sockets=("/in/container/ceph-osd.3.asok",))
    findings = found(sockets.CHECKS, host(sockets=(), processes=(gone,)))
    assert "mount a directory of the host at /in/container" in findings["sockets-found"][0].mend


def test_an_exporter_of_another_user_with_the_capability_is_fine() -> None:
    exporter = RunningExporter(pid=9, user="cephqos", overrides=True)
    assert found(sockets.CHECKS, host(exporters=(exporter,))) == {}


def process(proc: Path, pid: int, *arguments: str, status: str = "", unix: str = "") -> None:
    directory = proc / str(pid)
    (directory / "net").mkdir(parents=True)
    (directory / "cmdline").write_text("\0".join(arguments) + "\0")
    (directory / "status").write_text(status)
    (directory / "net" / "unix").write_text(unix)


def test_processes_are_read_with_their_sockets_and_rights(tmp_path: Path) -> None:
    unix = "Num RefCount\n0: 2 0 10000 1 1 55 /run/ceph/ceph-osd.12.asok\n"
    process(tmp_path, 5, "/usr/bin/ceph-osd", "-f", "--id", "12", unix=unix)
    process(tmp_path, 6, "/usr/bin/ceph-osd", "-f", "--id", "1", unix=unix)
    status = "Uid:\t167\t167\t167\t167\nCapEff:\t0000000000000002\n"
    process(tmp_path, 7, "python3", "/usr/bin/cephqos-exporter", status=status)
    process(tmp_path, 8, "python3", "/usr/bin/cephqos-exporter", "--role=cluster", status=status)
    first, second = osd_processes(tmp_path)
    assert first == OsdProcess(pid=5, osd="osd.12", sockets=("/run/ceph/ceph-osd.12.asok",))
    assert second == OsdProcess(pid=6, osd="osd.1")
    [exporter] = exporter_processes(tmp_path)
    assert exporter.pid == 7
    assert exporter.overrides


@pytest.mark.parametrize(
    ("words", "roles"),
    [
        (["--role=cluster"], ["cluster"]),
        (["--role", "osd,cluster"], ["osd", "cluster"]),
        (["--config.file={file}"], ["probe"]),
        (["--config.file", "{file}", "--role=osd"], ["osd"]),
        (["--config.file=/nowhere.yml"], ["osd"]),
        ([], ["osd"]),
    ],
)
def test_the_role_of_an_exporter_is_read_where_it_stands(
    words: list[str], roles: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "probe.yml"
    file.write_text("role: [probe]\n")
    assert list(roles_of([word.format(file=file) for word in words])) == roles


def test_directories_that_do_not_exist_are_not_closed(tmp_path: Path) -> None:
    assert list(closed_directories([f"{tmp_path}/nothing/*/*.asok", f"{tmp_path}/*.asok"])) == []


def reachable(**changed: Any) -> ClusterFacts:
    return ClusterFacts(**({"name": "client.cephqos", "status": {"health": {}}} | changed))


SKEW = {"health": {"checks": {"MON_CLOCK_SKEW": {"summary": {"message": "skew on mon.b"}}}}}


@pytest.mark.parametrize(
    ("changed", "check", "said", "mend"),
    [
        ({}, "", "", ""),
        ({"failure": "timed out"}, "cluster-reachable", "timed out", "ceph auth get-or-create"),
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
            "make an own key",
        ),
        ({"status": SKEW}, "monitor-clocks", "skew on mon.b", "chronyc"),
        ({"status": {"mgrmap": {"available": False}}}, "manager-active", "no manager", "mgr"),
        ({"status": {"mgrmap": {"available": True}}}, "", "", ""),
    ],
)
def test_what_is_wrong_with_a_cluster_is_found_by_one_check(
    changed: dict[str, Any], check: str, said: str, mend: str
) -> None:
    findings = found(CLUSTER_CHECKS, reachable(**changed))
    assert list(findings) == ([check] if check else [])
    for [finding] in findings.values():
        assert said in finding.problem
        assert mend in finding.mend


def test_the_caps_are_those_that_are_documented_and_cover_every_command_of_the_role() -> None:
    assert f"mon '{key.MON_CAPS}' mgr '{key.MGR_CAPS}'" in SECURITY.read_text()
    assert {query.prefix for query, _ in NEEDED} == cluster.READ_ONLY_COMMANDS
    given = f"mon '{key.MON_CAPS}' mgr '{key.MGR_CAPS}'"
    for _, cap in NEEDED:
        daemon, words = shlex.split(cap)
        assert re.search(rf"{daemon} '[^']*{re.escape(words)}", given), cap


def prometheus(**changed: Any) -> PrometheusFacts:
    """A Prometheus with which all is well."""
    loaded = (LoadedRule(group="cephqos-work", name="a:b", expr="x", interval=15, seconds=0.1),)
    generated = Path(boards.__file__).parents[2] / "dashboards/cephqos_dashboards/generated"
    well: dict[str, Any] = {
        "url": "http://localhost:9090",
        "version": "2.53.0",
        "seconds_apart": 0.0,
        "targets": (
            ScrapeTarget(job="cephqos", instance="a:10130", up=True, error="", interval=15),
        ),
        "exporters": ({"job": "cephqos", "instance": "a:10130", "version": __version__},),
        "rules": loaded,
        "expected": loaded,
        "dashboards": {
            uid: json.loads((generated / f"{uid}.json").read_text()) for uid in dashboards.ALL
        },
    }
    return PrometheusFacts(**(well | changed))


def target(**changed: Any) -> tuple[ScrapeTarget, ...]:
    [one] = prometheus().targets
    return (dataclasses.replace(one, **changed),)


def rule(**changed: Any) -> tuple[LoadedRule, ...]:
    [one] = prometheus().rules
    return (dataclasses.replace(one, **changed),)


def test_nothing_is_found_where_a_prometheus_is_as_it_should_be() -> None:
    assert found(PROMETHEUS_CHECKS, prometheus()) == {}


@pytest.mark.parametrize(
    ("changed", "check", "said", "mend"),
    [
        ({"version": "2.41.1"}, "prometheus-version", "2.41.1", "2.42"),
        ({"targets": (), "exporters": ()}, "exporters-scraped", "scrapes no", "job_name: cephqos"),
        (
            {"exporters": ({"job": "ceph qos", "version": __version__},)},
            "job-names",
            "jobs named cephqos.*",
            "--job",
        ),
        ({"targets": target(up=False, error="EOF")}, "targets-up", "EOF", "curl"),
        ({"targets": target(interval=60.0)}, "scrape-interval", "60 s", "--scrape-interval 60"),
        ({"doubled_counters": ({"ceph_daemon": "osd.1"},)}, "nothing-twice", "double", "drop"),
        ({"doubled_osds": ({"ceph_daemon": "osd.1"},)}, "nothing-twice", "osd.1", "remove"),
        ({"doubled_clusters": ({"cluster": "c"},)}, "nothing-twice", "role cluster", "disable"),
        ({"label_taken": ({"job": "cephqos"},)}, "label-cluster-free", "hides", "honor_labels"),
        ({"rules": ()}, "rules-of-this-version", "not loaded", "cephqos rules build"),
        ({"rules": rule(expr="y")}, "rules-of-this-version", "differ", "rules build"),
        ({"rules": (*rule(), *rule(name="old"))}, "rules-of-this-version", "old", "rules build"),
        ({"expected": (*rule(), *rule(name="new"))}, "rules-of-this-version", "missing: new", ""),
        ({"rules": rule(error="many-to-many")}, "rules-work", "many-to-many", "rules build"),
        ({"rules": rule(seconds=20.0)}, "rules-in-time", "20.0 s", "--scrape-interval 30"),
        (
            {"exporters": ({"job": "cephqos", "instance": "a:1", "version": "0.0.9"},)},
            "exporters-of-this-version",
            "0.0.9",
            "same version",
        ),
        ({"dashboards": {}}, "dashboards-of-this-version", "missing", "dashboards install"),
        ({"grafana_failure": "HTTP 401"}, "grafana-reachable", "401", "--grafana-header"),
        ({"seconds_apart": -30.0}, "clocks-agree", "30.0 s behind", "timedatectl"),
    ],
)
def test_what_is_wrong_with_a_prometheus_is_found_by_one_check(
    changed: dict[str, Any], check: str, said: str, mend: str
) -> None:
    findings = found(PROMETHEUS_CHECKS, prometheus(**changed))
    found_else = set(findings) - {check}
    assert check in findings
    assert found_else <= {"exporters-scraped"}
    [finding] = findings[check]
    assert said in f"{finding.subject} {finding.problem}"
    assert mend in finding.mend


def test_a_prometheus_that_does_not_answer_is_one_finding() -> None:
    facts = PrometheusFacts(url="http://h:1", failure="refused")
    assert list(found(PROMETHEUS_CHECKS, facts)) == ["prometheus-reachable"]


def test_a_dashboard_with_another_query_differs_and_one_with_other_ids_does_not() -> None:
    held = json.loads(json.dumps(prometheus().dashboards))
    uid = dashboards.OVERVIEW
    held[uid] |= {"id": 12, "version": 7, "refresh": "1m"}
    assert found(boards.CHECKS, prometheus(dashboards=held)) == {}
    held[uid]["panels"] = held[uid]["panels"][1:]
    [finding] = found(boards.CHECKS, prometheus(dashboards=held))["dashboards-of-this-version"]
    assert finding.problem.endswith(uid)


def test_rules_are_made_for_the_interval_at_which_most_are_evaluated() -> None:
    slow = rule(group="cephqos-history", interval=60.0)
    facts = prometheus(rules=(*rule(), *slow), expected=(*rule(), *slow))
    assert found((*targets.CHECKS, *rules.CHECKS), facts) == {}


def test_names_from_a_cluster_cannot_command_a_terminal_or_a_shell() -> None:
    finding = Finding("osd.\x1b[2J", "a\nb\x07", f"ceph {quoted('x; rm -rf /')}")
    text = Diagnosis("host", ("c",), (("c", finding),)).text()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "'x; rm -rf /'" in text
    assert "osd.\\x1b[2J" in text


def test_findings_as_json_name_check_subject_problem_and_mend() -> None:
    document = diagnose("host", HOST_CHECKS, host(clock_synchronised=False)).document()
    assert document["looked_at"] == "host"
    assert len(document["checks"]) == len(HOST_CHECKS)
    [one] = document["findings"]
    assert set(one) == {"check", "subject", "problem", "mend"}


def test_every_check_has_a_name_of_its_own_and_is_documented() -> None:
    names = [check.name for check in (*HOST_CHECKS, *CLUSTER_CHECKS, *PROMETHEUS_CHECKS)]
    assert len(names) == len(set(names))
    page = (SECURITY.parent / "DOCTOR.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == names


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


def test_a_mistake_ends_with_status_2_and_shows_no_password(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "host", "--bogus"])
    assert ended.value.code == 2
    assert main(["doctor", "host", "--config.file=/nowhere.yml"]) == 2
    assert main(["doctor", "prometheus", "http://user:secret@host"]) == 2
    header = tmp_path / "header"
    header.write_text("a secret\n")
    assert main(["doctor", "prometheus", "http://host", f"--header={header}"]) == 2
    said = capsys.readouterr()
    assert "secret" not in said.err + said.out
