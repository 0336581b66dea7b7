"""Which run may be gone on with."""

import errno
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_base.errors import UsageError
from cephqos_base.servers import Address
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.plan.errors import ClusterUnfit, RunError
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.results.environment import facts_of, facts_of_all
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.repeat import InForce, RunStatus
from cephqos_loadgen.run import runner
from cephqos_loadgen.run.one_repeat import new_record
from cephqos_loadgen.run.resume import (
    check_cluster,
    check_environment,
    environments_of,
    recorded_plan,
    take_along,
)
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.run_recording.files import write_json
from cephqos_loadgen.run_recording.layout import repeat_folder
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter
from cephqos_loadgen.scenario.parse import parse


def test_a_run_goes_on_on_its_own_cluster_only(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text(json.dumps({"cluster": {"fsid": "one"}}))
    check_cluster(tmp_path, "one")
    with pytest.raises(ClusterUnfit, match="it ran on the cluster one, this is two"):
        check_cluster(tmp_path, "two")


def test_a_run_that_saw_no_cluster_goes_on_on_any(tmp_path: Path) -> None:
    check_cluster(tmp_path, "one")


TEXT = "scenario: s\nrepeats: 2\nphases: [{name: w, wait: {}, until: {duration: 1s}}]\n"


def interrupted(folder: Path) -> Plan:
    """A run whose two repeats are finished; its plan."""
    plan = parse(TEXT, "s.yaml")
    for number in (1, 2):
        name = repeat_folder(number, "only", number)
        recorder = RepeatRecorder(folder / name)
        recorder.event("phase_started", phase="w")
        record = new_record(name, plan.points[0], number, InForce({}, {}, {}, {}, ()))
        recorder.close(replace(record, status="finished"))
    write_json(folder / "plan.json", to_json(plan))
    write_json(folder / "environment.json", {"cluster": {"fsid": "one"}})
    return plan


def test_a_repeat_that_lost_what_it_recorded_is_made_again(tmp_path: Path) -> None:
    """After a power cut a file may be empty whose checksum is written down: a new archive must not
    give it a new one."""
    plan, notes = interrupted(tmp_path / "source"), list[str]()
    for damaged, taken in (("", [1, 2]), ("events.jsonl", [1])):
        archive = ArchiveWriter(tmp_path / "out", f"run{damaged}")
        if damaged:
            (tmp_path / "source" / "repeats" / "002-only-r2" / damaged).write_bytes(b"")
        found = take_along(tmp_path / "source", plan, archive, notes.append)
        archive.events.close()
        assert [record.repeat for record in found] == taken
        assert len(list(archive.folder.glob("repeats/*"))) == len(taken)
        assert (archive.folder / "environment.json").exists(), "if it sees no cluster itself"
    assert notes == [
        "repeats/002-only-r2 is made again: events.jsonl is not as it was recorded",
    ]


def test_a_run_goes_on_with_the_version_that_began_it(tmp_path: Path) -> None:
    """Another one may count otherwise: one archive would hold figures of two kinds."""
    plan = interrupted(tmp_path / "source")
    write_json(tmp_path / "source" / "environment.json", {"cephqos": "0.0.1"})
    archive = ArchiveWriter(tmp_path / "out", "run")
    with pytest.raises(UsageError, match=r"it ran with cephqos 0\.0\.1, this is"):
        take_along(tmp_path / "source", plan, archive, lambda text: None)
    archive.events.close()


def test_repeats_that_are_no_longer_wanted_are_not_taken_along(tmp_path: Path) -> None:
    """With fewer --repeats: three of two that were planned would be a strange archive."""
    interrupted(tmp_path / "source")
    plan = parse(TEXT.replace("repeats: 2", "repeats: 1"), "s.yaml")
    text = json.loads((tmp_path / "source" / "plan.json").read_text())
    write_json(tmp_path / "source" / "plan.json", {**text, "text": plan.text})
    archive = ArchiveWriter(tmp_path / "out", "run")
    found = take_along(tmp_path / "source", plan, archive, lambda text: None)
    archive.events.close()
    assert [record.repeat for record in found] == [1]


@pytest.mark.parametrize("damage", ["empty", "torn", "of another", "a link"])
def test_a_repeat_whose_record_is_damaged_is_made_again(tmp_path: Path, damage: str) -> None:
    plan, notes = interrupted(tmp_path / "source"), list[str]()
    folder = tmp_path / "source" / "repeats" / "002-only-r2"
    record = folder / "repeat.json"
    text = record.read_text()
    if damage == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        changed = {"empty": "", "torn": text[:90], "of another": text.replace("002-", "001-")}
        record.write_text(changed[damage])
    archive = ArchiveWriter(tmp_path / "out", "run")
    found = take_along(tmp_path / "source", plan, archive, notes.append)
    archive.events.close()
    assert [record.repeat for record in found] == [1]
    assert len(notes) == 1 and notes[0].startswith("repeats/002-only-r2 is made again: ")


@pytest.mark.parametrize("text", ["", "{", "7", "[]", "{}", '{"text": "x"}'])
def test_a_plan_that_is_damaged_is_said_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(UsageError, match=r"its plan\.json is damaged$"):
        recorded_plan(tmp_path)


def test_a_run_that_is_going_on_is_not_resumed(tmp_path: Path) -> None:
    """Its repeats would be made twice, at the same time."""
    running = ArchiveWriter(tmp_path / "source", "run")
    plan = interrupted(running.folder)
    archive = ArchiveWriter(tmp_path / "out", "next")
    with pytest.raises(UsageError, match=r"run\.partial: that run is still going on"):
        take_along(running.folder, plan, archive, lambda text: None)
    os.close(running._held)  # as when its process is gone
    assert len(take_along(running.folder, plan, archive, lambda text: None)) == 2
    running.events.close()
    archive.events.close()


def environment(**changed: str) -> dict[str, Any]:
    facts = {"kernel": "6.1", "ceph": "18.2.4", "class": "ssd", **changed}
    return {
        "host": {"cpus": 2, "kernel": facts["kernel"]},
        "cluster": {
            "versions": {"osd": {facts["ceph"]: 1}},
            "osds": [{"default_device_class": facts["class"]}],
        },
    }


@pytest.mark.parametrize(
    ("changed", "given", "said"),
    [
        ({}, True, ""),
        ({"ceph": "20.2.0"}, False, "Ceph was 18.2.4, is 20.2.0; give its --release again"),
        ({"ceph": "20.2.0"}, True, "Ceph was 18.2.4, is 20.2.0"),
        ({"kernel": "6.8"}, False, "Kernel was 6.1, is 6.8"),
        ({"class": "hdd"}, True, "Device class was ssd, is hdd"),
        ({"class": "hdd"}, False, ""),  # labs differ as their points want them to
    ],
)
def test_a_run_goes_on_where_its_repeats_are_comparable_only(
    tmp_path: Path, changed: dict[str, str], given: bool, said: str
) -> None:
    (tmp_path / "environment.json").write_text(json.dumps(environment()))
    if not said:
        check_environment(tmp_path, environment(**changed), existing_cluster=given)
        return
    with pytest.raises(ClusterUnfit, match=re.escape(said)):
        check_environment(tmp_path, environment(**changed), existing_cluster=given)


async def test_clusters_of_different_kinds_are_all_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points may have clusters of their own: the last one is not that of all figures."""
    seen = [environment(**{"class": kind}) for kind in ("ssd", "hdd", "ssd")]

    async def collect(cluster: object) -> dict[str, Any]:
        return seen.pop(0)

    monkeypatch.setattr("cephqos_loadgen.run.runner.environment.collect", collect)
    options = RunOptions(out=tmp_path / "out", exporters=(Address("http://127.0.0.1:9/metrics"),))
    run = Runner(parse(TEXT, "s.yaml"), options, Silent())
    archive = ArchiveWriter(tmp_path / "out", "run")
    session: Any = SimpleNamespace(cluster=None, archive=archive)
    while seen:
        await run._write_environment(session)
    archive.events.close()
    found = environments_of(archive.folder)
    assert [facts_of(each)["Device class"] for each in found] == ["ssd", "hdd"]
    assert facts_of_all(found)["Device class"] == "ssd or hdd"
    assert facts_of_all(found)["Kernel"] == "6.1"


@pytest.mark.parametrize("status", ["complete", "failed"])
def test_a_run_whose_archive_cannot_be_finished_is_not_a_success(
    tmp_path: Path, status: RunStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ArchiveWriter, "seal", full)
    archive = ArchiveWriter(tmp_path / "out", "run")
    archive.events.close()
    run = Runner(parse(TEXT, "s.yaml"), RunOptions(out=tmp_path / "out"), Silent())
    if status == "failed":  # its error is on its way
        assert run._finish(archive, status, "error") == archive.folder
        return
    with pytest.raises(RunError, match=r"stays unfinished in .*run.partial: .*No space left"):
        run._finish(archive, status, "")


class OnCluster:
    """A session that meets the cluster `fsid`, asks whether it may, and is not let any further."""

    fsid = "two"

    def __init__(self, *_: object, check: Any, **__: object) -> None:
        self._check = check
        self.journal = SimpleNamespace(used=False, commands=list)
        self.kept = SimpleNamespace(left=set())
        self.failures: list[str] = []

    async def begin(self) -> None:
        self._check(self.fsid)
        raise RuntimeError("it went on")

    async def end(self) -> None: ...


async def begun(options: RunOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on the cluster `two`, as far as its first look at it."""
    monkeypatch.setattr(runner, "Session", OnCluster)
    text = "scenario: s\nphases: [{name: w, wait: {}, until: {duration: 1s}}]\n"
    plan = parse(text, "s.yaml")
    archive: Any = None
    await Runner(plan, options, Silent())._on_cluster(archive, plan.points[0].lab, [])


async def test_resuming_on_another_cluster_is_refused_when_that_cluster_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "environment.json").write_text(json.dumps({"cluster": {"fsid": "one"}}))
    options = RunOptions(
        out=tmp_path / "out", conf=tmp_path / "ceph.conf", known_fsid="two", work=tmp_path / "work"
    )
    with pytest.raises(RuntimeError, match="it went on"):
        await begun(options, monkeypatch)
    with pytest.raises(ClusterUnfit, match="it ran on the cluster one, this is two"):
        await begun(replace(options, resume=tmp_path), monkeypatch)
    (tmp_path / "environment.json").write_text(json.dumps({"cluster": {"fsid": "two"}}))
    with pytest.raises(RuntimeError, match="it went on"):
        await begun(replace(options, resume=tmp_path), monkeypatch)


@pytest.mark.parametrize(
    ("most", "shares", "made", "said"),
    [
        (0.1, (0.5, 0.05), 2, 1),
        (0.1, (0.5, 0.4, 0.3), 3, 2),  # the last one counts, whatever it is
        (None, (0.5,), 1, 0),
    ],
)
async def test_a_repeat_that_others_disturb_is_made_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: float | None,
    shares: tuple[float, ...],
    made: int,
    said: int,
) -> None:
    plan = parse(TEXT, "s.yaml")
    left, repeats = list(shares), []

    class Disturbed:
        def __init__(self, session: Any, point: Any, recorder: RepeatRecorder, *_: Any) -> None:
            self.recorder, self.others_cpu = recorder, left.pop(0)
            repeats.append(self)

        async def run(self, header: Any) -> Any:
            assert list(self.recorder.folder.iterdir()), "an earlier one is in its place"
            (self.recorder.folder / "mine").write_text(str(self.others_cpu))
            self.recorder.close_files()
            return replace(header, status="finished")

    monkeypatch.setattr(runner, "OneRepeat", Disturbed)
    progress = Silent()
    notes: list[str] = []
    monkeypatch.setattr(progress, "note", notes.append)
    running = Runner(plan, RunOptions(out=tmp_path, others_cpu=most), progress)
    archive = ArchiveWriter(tmp_path, "run")
    session = SimpleNamespace(archive=archive, check_given_back=lambda: None)
    force = InForce({}, {}, {}, {}, ())
    running.notify = lambda *_, **__: None  # type: ignore[assignment]
    await running._repeat(session, plan.points[0], 1, force, None)  # type: ignore[arg-type]
    archive.events.close()
    assert len(repeats) == made
    (folder,) = archive.folder.glob("repeats/*")
    assert (folder / "mine").read_text() == str(shares[made - 1])
    assert [record.status for record in running._records] == ["finished"]
    assert sum("is made again: other programs used" in note for note in notes) == said
