"""What the doctor finds on a host."""

import dataclasses
import json
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon

from cephqos_base.series import SCHEDULED
from cephqos_doctor import processes, scheduler, sockets
from cephqos_doctor.cli import HOST_CHECKS
from cephqos_doctor.host_facts import (
    ClosedDirectory,
    OsdFacts,
    closed_directories,
    read_osd,
)
from cephqos_doctor.processes import OsdProcess, RunningExporter, look, roles_of
from cephqos_exporter import lookup
from cephqos_exporter.qos.tags import QueueDump

from ..mclock_osds import pacific_mclock
from .doctor_facts import answering, found, host, mends, recorded

FSID = "11111111-2222-3333-4444-555555555555"


def test_nothing_is_found_on_a_host_where_all_is_well() -> None:
    assert found(HOST_CHECKS, host()) == {}


@pytest.mark.parametrize(
    ("changed", "check", "said", "mend"),
    [
        (
            {"closed": (ClosedDirectory(path="/run/ceph", owner="ceph"),), "processes": ()},
            "directories-readable",
            "/run/ceph",
            "sudo -u ceph cephqos doctor host\nsystemctl edit cephqos-exporter",
        ),
        (
            {"closed": (ClosedDirectory(path="/run/ceph/fsid", owner="167"),), "processes": ()},
            "directories-readable",
            "/run/ceph/fsid",
            "setpriv --reuid=167 --regid=167 --clear-groups cephqos doctor host",
        ),
        (
            {"closed": (ClosedDirectory(path="/var/lib/rook", owner="root"),), "processes": ()},
            "directories-readable",
            "/var/lib/rook",
            "sudo cephqos doctor host   # as root",
        ),
        ({"sockets": ()}, "sockets-found", "pid 77", "discovery.sockets"),
        ({"sockets": (), "processes": ()}, "sockets-found", "no OSD runs here", "ceph osd tree"),
        (
            {"sockets": (answering("permission", "167"),), "exporters": ()},
            "sockets-permitted",
            "belongs to 167",
            # sudo refuses a number that no user has, and systemd ends the unit with 217/USER.
            "setpriv --reuid=167 --regid=167 --clear-groups cephqos doctor host\n"
            "useradd --system --uid 167 ",
        ),
        (
            {
                "sockets": (answering("", "167"),),
                "exporters": (RunningExporter(pid=9, user="ceph"),),
            },
            "exporter-user",
            "may not connect to the sockets of 167",
            "ceph-167\nsystemctl edit cephqos-exporter   # [Service] User=167",
        ),
        (
            {"sockets": (answering("refused"),), "processes": ()},
            "osds-answer",
            "no process listens",
            "ceph-osd@3",
        ),
        ({"sockets": (answering("timeout"),)}, "osds-answer", "(timeout)", "ceph daemon"),
        (
            {"exporters": (RunningExporter(pid=9, user="root", overrides=True),)},
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
            "under full load",
        ),
        (
            {
                "osds": (
                    recorded(osd_mclock_profile="custom", osd_mclock_scheduler_client_res="0.9"),
                )
            },
            "reservations-possible",
            "of its capacity: not all",
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
    assert mends(finding)


def test_a_capacity_without_an_upper_bound_is_told_without_one() -> None:
    osd = recorded(osd_mclock_max_capacity_iops_ssd="3")
    osd = dataclasses.replace(osd, rotational=False)
    [finding] = found(scheduler.CHECKS, host(osds=(osd,)))["capacity-plausible"]
    assert finding.problem.endswith("not plausible for an SSD (1000 or more)")


def test_a_directory_that_answers_late_is_waited_for_while_another_one_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Less than a moment is what the exporter waits then: it asks again at the next scrape."""
    monkeypatch.setattr(lookup, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(processes, "_PATIENCE_SECONDS", 60.0)
    late = partial(threading.Event().wait, 0.05)
    assert processes.answer_of(lookup.Lookup(late)) is False
    monkeypatch.setattr(processes, "_PATIENCE_SECONDS", 0.0)
    ended = threading.Event()
    with pytest.raises(TimeoutError):
        processes.answer_of(lookup.Lookup(ended.wait))
    ended.set()


def test_a_capacity_that_nobody_measured_is_found() -> None:
    bodies = RecordedDaemon.load(RECORDINGS / "reef" / "idle").replies
    replies = {name: json.loads(body) for name, body in bodies.items()}
    for media in ("hdd", "ssd"):
        replies["config diff"]["diff"].pop(f"osd_mclock_max_capacity_iops_{media}", None)
    osd = read_osd("osd.3", replies)
    assert list(found(scheduler.CHECKS, host(osds=(osd,)))) == ["capacity-plausible"]


def test_wpq_reserves_nothing_unless_a_policy_does() -> None:
    osd = recorded(osd_op_queue="wpq")
    osd = dataclasses.replace(osd, queues=QueueDump("wpq", []))
    assert list(found(scheduler.CHECKS, host(osds=(osd,)))) == ["scheduler-reservations"]
    assert found(scheduler.CHECKS, host(osds=(osd,), policy=True)) == {}


def test_an_mclock_that_is_not_supported_is_said_and_not_judged() -> None:
    """16.2: the options of its profiles are operations per second of a shard, and no shares."""
    pacific = pacific_mclock()
    pacific.replies["config show"]["osd_op_queue"] = "mclock_scheduler"
    told = found(scheduler.CHECKS, host(osds=(read_osd("osd.3", pacific.replies),)))
    assert list(told) == ["scheduler-reservations"]
    assert "not supported" in told["scheduler-reservations"][0].problem


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


@pytest.mark.parametrize(
    ("path", "mend"),
    [
        ("/run/ceph/ceph-osd.3.asok", "systemctl status ceph-osd@3"),
        (f"/run/ceph/{FSID}/ceph-osd.3.asok", f"systemctl status ceph-{FSID}@osd.3"),
        (
            "/var/lib/rook/exporter/ceph-osd.3.asok",
            "kubectl get pods --all-namespaces -l ceph-osd-id=3",
        ),
    ],
)
def test_whether_an_osd_runs_is_asked_as_its_host_starts_osds(path: str, mend: str) -> None:
    dead = dataclasses.replace(answering("refused"), path=Path(path))
    [finding] = found(sockets.CHECKS, host(sockets=(dead,), processes=()))["osds-answer"]
    assert finding.mend.startswith(mend)


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
    seen = look(tmp_path)
    first, second = seen.osds
    assert first == OsdProcess(pid=5, osd="osd.12", sockets=("/run/ceph/ceph-osd.12.asok",))
    assert second == OsdProcess(pid=6, osd="osd.1")
    [exporter] = seen.exporters
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
    assert list(roles_of([word.format(file=file) for word in words], {})) == roles


def test_directories_that_do_not_exist_are_not_closed(tmp_path: Path) -> None:
    assert list(closed_directories([f"{tmp_path}/nothing/*/*.asok", f"{tmp_path}/*.asok"])) == []


def of_21(version: str) -> OsdFacts:
    """A 20.2 OSD, but its options do not have the profile's values; what they have is left over."""
    replies = {
        name: json.loads(body)
        for name, body in RecordedDaemon.load(RECORDINGS / "tentacle" / "idle").replies.items()
    }
    replies["version"] = {"version": version}
    diff = replies["config diff"]["diff"]
    for cls in SCHEDULED:
        for suffix, left in (("res", 0.9), ("wgt", 1), ("lim", 0.1)):
            option = f"osd_mclock_scheduler_{cls}_{suffix}"
            diff[option] = {"default": 0, "mon": left, "final": left}
            replies["config show"][option] = str(left)
    facts = read_osd("osd.3", replies)
    assert facts is not None
    return facts


def test_leftovers_of_a_custom_profile_are_neither_reservations_nor_findings() -> None:
    told = found(HOST_CHECKS, host(osds=(of_21("21.1.0"),)))
    assert not {"scheduler-reservations", "reservations-possible", "limits-possible"} & set(told)


def test_a_profile_of_a_release_that_is_not_known_is_a_finding() -> None:
    told = found(HOST_CHECKS, host(osds=(of_21("22.2.0"),)))
    assert "does not know what profile balanced of Ceph 22 reserves" in str(told)
