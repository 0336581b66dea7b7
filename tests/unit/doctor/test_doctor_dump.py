"""The doctor reads what people send one another, and says what it says of a live host."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon
from tests.unit.doctor.doctor_facts import found

from cephqos_base.command import main
from cephqos_base.errors import UsageError
from cephqos_doctor import dump
from cephqos_doctor.cli import DUMP_CHECKS

# As `ceph config dump` of 20.2 prints it.
_TABLE = """WHO  MASK  LEVEL     OPTION                  VALUE     RO
osd        advanced  osd_max_backfills       8
osd  class:hdd  advanced  osd_recovery_sleep_hdd  0.300000
osd        advanced  osd_scrub_begin_hour    22
osd        advanced  osd_scrub_end_hour      6
osd.1      advanced  osd_mclock_max_capacity_iops_ssd  20000.000000
"""


_SLEEP = '{"default": 0, "mon": 0.1, "final": 0}'


def _metadata(number: int, **changed: str) -> dict[str, Any]:
    known = {
        "id": number,
        "osd_data": f"/var/lib/ceph/osd/ceph-{number}",
        "osd_objectstore": "bluestore",
        "bluestore_bdev_rotational": "0",
        "default_device_class": "ssd",
        "ceph_version_short": "18.2.7",
        "device_ids": "nvme0n1=MODEL_A_SERIAL1",
        "hostname": "a",
    }
    return known | changed


def _stamps(*, late: int, of: int) -> dict[str, Any]:
    stamps = ["2026-09-01T00:00:00.000000+0000"] * late
    stamps += ["2026-11-24T00:00:00.000000+0000"] * (of - late)
    rows = [{"pgid": f"1.{n:x}", "last_deep_scrub_stamp": at} for n, at in enumerate(stamps)]
    return {"pg_map": {"stamp": "2026-11-25T00:00:00.000000+0000", "pg_stats": rows}}


def _folder(root: Path, files: dict[str, object]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def test_a_table_and_metadata_are_enough_to_find_what_is_set_without_effect(
    tmp_path: Path,
) -> None:
    metadata = [
        _metadata(0, bluestore_bdev_rotational="1", default_device_class="hdd"),
        _metadata(1),
        _metadata(2, default_device_class="hdd"),
    ]
    folder = _folder(
        tmp_path,
        {
            "sos_commands/ceph_mon/ceph_config_dump": _TABLE,
            "sos_commands/ceph_mon/ceph_osd_metadata": metadata,
            "json_output/ceph_pg_dump_--format_json-pretty": _stamps(late=10, of=100),
            "balancer": {"active": False, "mode": "upmap", "plans": []},
            "var/log/messages": "nothing of Ceph's",
        },
    )
    facts = dump.gather(folder)
    assert facts.read == ("balancer status", "config dump", "osd metadata", "pg dump")
    findings = found(DUMP_CHECKS, facts)
    sleeps = [it.subject for it in findings["options-in-effect"] if "sleep" in it.problem]
    assert sleeps == ["osd.0", "osd.2"], "the mask names their class"
    backfills = [it.subject for it in findings["options-in-effect"] if "backfill" in it.problem]
    assert backfills == ["osd.0", "osd.1", "osd.2"]
    guessed = [it.subject for it in findings["capacity-plausible"]]
    assert guessed == ["osd.0", "osd.2"], "the one of osd.1 was set"
    assert [it.subject for it in findings["media-as-it-is"]] == ["osd.2"]
    assert "may start in 56 of 168 hours" in findings["scrub-time-sufficient"][0].problem
    assert "ceph balancer on" in findings["balancer-on"][0].mend


def test_the_replies_of_osds_say_the_same_as_on_their_host(tmp_path: Path) -> None:
    bodies = RecordedDaemon.load(RECORDINGS / "reef" / "idle").replies
    replies = {name: json.loads(body) for name, body in bodies.items()}
    replies["config show"] |= {"name": "osd.7", "osd_enable_op_tracker": "false"}
    asok = "ceph_daemon_.var.run.ceph.ceph-osd.7.asok_"
    folder = _folder(
        tmp_path,
        {
            f"{asok}{command.replace(' ', '_')}": replies[command]
            for command in ("config show", "config diff", "dump_op_pq_state", "ops", "status")
        },
    )
    facts = dump.gather(folder)
    [osd] = facts.osds
    assert osd.osd == "osd.7"
    assert osd.queues is not None
    assert osd.scheduler == "mclock_scheduler"
    assert "figures-not-blinded" in found(DUMP_CHECKS, facts)


_SHOWN = """NAME                     VALUE        SOURCE    OVERRIDES  IGNORES
osd_max_backfills        8            mon
osd_mclock_profile       high_client_ops  mon
bluestore_throttle_bytes 4294967296   file
osd_mclock_max_capacity_iops_ssd 2000.500000 mon
osd_op_queue             mclock_scheduler default
a line                   of           another form
"""


def test_what_people_send_is_understood_whatever_stands_before_it(tmp_path: Path) -> None:
    """A warning, the names of `ceph tell osd.*`, a report, and tables instead of JSON."""
    shown = [{"name": "osd_max_backfills", "value": "8", "source": "mon"}, {"name": "other"}]
    tell = "".join(f'osd.{n}: {{\n"diff": {{"osd_recovery_sleep": {_SLEEP}}}}}\n' for n in (3, 4))
    folder = _folder(
        tmp_path,
        {
            "report.txt": "report 3461337\n" + json.dumps({"osd_metadata": [_metadata(0)]}),
            "ceph_osd_metadata_1": "Inferring fsid 1\n" + json.dumps(_metadata(1)),
            "a/ceph_config_show_osd.0": _SHOWN,
            "b/ceph-config-show-osd-1.json": shown,
            "c/config_show_osd.3": json.dumps({"name": "osd.3", "osd_op_queue": "wpq"}),
            "c/config_show_osd.4": json.dumps(
                {"name": "osd.4", "osd_op_queue": "mclock_scheduler", "osd_recovery_sleep": "0"}
            ),
            "tell": "[WRN] noise\n" + tell,
            "ceph_config_dump": "WHO MASK LEVEL OPTION VALUE RO\nmgr advanced mgr/balancer/active"
            " false\n",
        },
    )
    facts = dump.gather(folder)
    assert [osd.osd for osd in facts.osds] == ["osd.0", "osd.1", "osd.3", "osd.4"]
    assert facts.unread == {}
    findings = found(DUMP_CHECKS, facts)
    said = {(it.subject, it.problem.split()[0]) for it in findings["options-in-effect"]}
    assert ("osd.0", "osd_max_backfills") in said
    assert ("osd.1", "osd_max_backfills") in said
    assert ("osd.4", "osd_recovery_sleep") in said
    assert ("osd.3", "osd_recovery_sleep") not in said, "WPQ obeys it"
    assert [it.subject for it in findings["throttles-narrow"]] == ["osd.0"]
    assert "balancer-on" in findings


def test_a_file_of_that_name_that_is_not_understood_is_told(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "ceph_osd_metadata": [_metadata(0)],
            "sos/ceph_pg_dump": "PG_STAT  OBJECTS\n1.0  3\n",
            "config_diff": {"diff": {}},
            "ceph-mon.a.asok_config_show": {"name": "mon.a"},
            "x/ceph_osd_metadata.txt": "cut",
        },
    )
    facts = dump.gather(folder)
    told = found(DUMP_CHECKS, facts)["files-understood"]
    assert [it.subject for it in told] == ["config_diff", "sos/ceph_pg_dump"]
    assert told[0].mend.startswith("ceph daemon osd.N config diff")
    assert told[1].mend == "ceph pg dump --format json > pg_dump"


def test_of_metadata_alone_no_option_is_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _folder(tmp_path, {"metadata.json": [_metadata(0), _metadata(1)]})
    assert main(["doctor", "dump", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "read: osd metadata; 2 OSDs" in said
    assert "(no OSD's configuration is known)" in said
    assert "(no `ceph pg dump --format json` whose times are understood)" in said


@pytest.mark.parametrize(("days", "late"), [(8, 0), (12, 0), (13, 100)])
def test_a_deep_scrub_is_late_when_ceph_warns_of_it(days: int, late: int, tmp_path: Path) -> None:
    stamps = _stamps(late=0, of=100)
    stamps["pg_map"]["stamp"] = f"2026-12-{days - 6:02}T00:00:00.000000+0000"
    facts = dump.gather(_folder(tmp_path, {"pgs": stamps}))
    assert facts.overdue == late


@pytest.mark.parametrize(
    ("section", "mask", "late"),
    [("global", "", 10), ("osd.3", "", 100), ("osd", "class:hdd", 100), ("client", "", 100)],
)
def test_what_is_set_for_some_osds_does_not_say_when_ceph_warns(
    section: str, mask: str, late: int, tmp_path: Path
) -> None:
    stamps = _stamps(late=10, of=100)
    stamps["pg_map"]["stamp"] = "2026-12-08T00:00:00.000000+0000"
    longer = {"name": "osd_deep_scrub_interval", "value": "2592000"}
    rows = [{"section": section, "mask": mask, **longer}]
    folder = _folder(tmp_path, {"pgs": stamps, "config": rows})
    assert dump.gather(folder).overdue == late


@pytest.mark.parametrize(
    ("stamp", "pgs", "late"),
    [
        ("2026-11-24 00:00:00.123456", 100, 10),  # without T and zone, as before 15.2
        ("0.000000", 100, 100),  # never scrubbed
        ("yesterday", 10, 10),
    ],
)
def test_times_that_are_not_understood_are_not_in_time(
    stamp: str, pgs: int, late: int, tmp_path: Path
) -> None:
    stamps = _stamps(late=10, of=100)
    for row in stamps["pg_map"]["pg_stats"][10:]:
        row["last_deep_scrub_stamp"] = stamp
    facts = dump.gather(_folder(tmp_path, {"pgs": stamps}))
    assert (facts.pgs, facts.overdue) == (pgs, late)
    del stamps["pg_map"]["stamp"]  # as `ceph pg ls` has none
    assert dump.gather(_folder(tmp_path, {"pgs": stamps})).pgs == 0


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", "[" * 100_000, '{"a": 1}', "\x00\xff"])
def test_files_that_are_no_replies_are_left_out(content: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"file": content})
    with pytest.raises(UsageError, match="no file in it is a reply"):
        dump.gather(folder)


def test_a_folder_that_is_none_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "dump", "/nope"]) == 2
    assert "expected a folder with saved replies" in capsys.readouterr().err


def test_replies_of_another_shape_are_no_findings(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "a": [{"section": "osd", "name": "osd_scrub_begin_hour", "value": "x"}, {"name": 1}],
            "b": {"pg_map": {"stamp": 5, "pg_stats": [1, {}, {"last_deep_scrub_stamp": None}]}},
            "c": {"nodes": [1, {"type": "osd"}], "stray": []},
            "d": [{"id": 0, "osd_data": "/", "device_ids": None, "ceph_version_short": 5}],
        },
    )
    facts = dump.gather(folder)
    assert facts.window_hours is None
    assert (facts.pgs, facts.overdue) == (0, 0)
