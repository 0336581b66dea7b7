"""A repeat whose metrics are missing fails, and its cost is what was used."""

import os
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.archive.reader import read_record
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import capacity_bench
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.load.phase_runner import Recorded
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.parts import Capacity
from cephqos_loadgen.results.host import CpuUse, CpuUsers, HostUse
from cephqos_loadgen.results.repeat import Gap, InForce, MetricsRecording, RepeatRecord
from cephqos_loadgen.run import one_repeat
from cephqos_loadgen.run.one_repeat import CostMeter, OneRepeat, new_record
from cephqos_loadgen.run_recording.layout import repeat_folder
from cephqos_loadgen.run_recording.metrics import MetricsRecorder
from cephqos_loadgen.run_recording.own_exporter import OwnExporter, RunExporters
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder
from cephqos_loadgen.scenario.parse import parse

POINT = parse("scenario: s\nphases: [{name: w, wait: {}, until: {duration: 1s}}]", "s").points[0]


async def nothing(*_: object, **__: object) -> None:
    """In the place of the phases."""


async def no_log(*_: object, **__: object) -> None:
    raise OSError("no cluster is here")


def fake_session(check_held: Any = nothing, changed: Sequence[str] = ()) -> Any:
    async def changed_by_others() -> Sequence[str]:
        return changed

    cluster = SimpleNamespace(pid=None, once=no_log, restarted=set(), fsid="f", view=None)
    place = SimpleNamespace(environment={})
    return SimpleNamespace(
        archive=SimpleNamespace(give_reserve_back=lambda: None),
        cluster=cluster,
        watch_cluster=cluster,
        journal=SimpleNamespace(entries=[]),
        settings=None,
        access=SimpleNamespace(argv=list, place=place),
        roll_back=nothing,
        check_held=check_held,
        changed_by_others=changed_by_others,
    )


async def repeated(
    folder: Path, check_held: Any = nothing, changed: Sequence[str] = ()
) -> RepeatRecord:
    repeat = OneRepeat(
        fake_session(check_held, changed),
        POINT,
        RepeatRecorder(folder / "repeat"),
        Live(RunPlace()),
        RunExporters({}, OwnExporter([], "", folder, lambda *_: None)),
    )
    return await repeat.run(new_record("repeat", POINT, 1, InForce({}, {}, {}, {}, ())))


@pytest.mark.parametrize(("missing", "status"), [(3.0, "finished"), (23.0, "failed")])
async def test_a_repeat_without_most_of_its_metrics_is_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: float, status: str
) -> None:
    gaps = {"exporter": (Gap(1.0, missing),)}
    summary = MetricsRecording(9, 9, {"exporter": 23}, "exporter: no answer", gaps)
    monkeypatch.setattr(MetricsRecorder, "summary", lambda recorder: summary)
    monkeypatch.setattr(OneRepeat, "_prepare_and_run", nothing)
    monkeypatch.setattr(OneRepeat, "_context", lambda repeat: None)
    record = await repeated(tmp_path)
    assert record.status == status
    assert record.findings == (f"recording: no metrics of exporter for {missing:.0f} s (1 gap)",)
    if status == "failed":
        assert record.error.startswith("recording failed: exporter gave no metrics for 23 of ")


async def test_what_others_used_counts_while_clients_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use(others: float) -> HostUse:
        return HostUse(1.0, CpuUse(1, 1.0, 0, 0, 0, 0, 0), {}, {}, None, CpuUsers(0, others, "x"))

    async def within(repeat: OneRepeat, context: object, metrics: object, into: Recorded) -> None:
        into.hosts.update(fill=use(0.9), load=use(0.3), again=use(0.2))

    load = "{engine: libaio, path: /x, rw: read, bs: 4K}, until: {duration: 1s}}"
    text = f"scenario: s\nphases: [{{name: load, fio: {load}, {{name: again, fio: {load}]"
    monkeypatch.setattr(OneRepeat, "_prepare_and_run", within)
    monkeypatch.setattr(OneRepeat, "_context", lambda repeat: None)
    repeat = OneRepeat(
        fake_session(),
        parse(text, "s").points[0],
        RepeatRecorder(tmp_path / "repeat"),
        Live(RunPlace()),
        RunExporters({}, OwnExporter([], "", tmp_path, lambda *_: None)),
    )
    await repeat.run(new_record("repeat", POINT, 1, InForce({}, {}, {}, {}, ())))
    assert repeat.others_cpu == pytest.approx(0.3)


async def test_hours_in_which_pools_were_filled_do_not_make_missing_metrics_a_small_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a minute that was recorded, 23 seconds are missing."""
    gaps = {"exporter": (Gap(1.0, 23.0),)}
    summary = MetricsRecording(37, 9, {"exporter": 23}, "no answer", gaps, seconds=60.0)
    monkeypatch.setattr(MetricsRecorder, "summary", lambda recorder: summary)
    monkeypatch.setattr(OneRepeat, "_prepare_and_run", nothing)
    monkeypatch.setattr(OneRepeat, "_context", lambda repeat: None)
    began = time.time() - 7200
    times = iter([began])
    clock = SimpleNamespace(**{**vars(time), "time": lambda: next(times, began + 7200)})
    monkeypatch.setattr(one_repeat, "time", clock)
    record = await repeated(tmp_path)
    assert record.end_unix_seconds - record.start_unix_seconds == 7200
    assert record.error == ("recording failed: exporter gave no metrics for 23 of 60 s (no answer)")


async def test_a_clock_that_was_set_in_the_last_second_of_a_repeat_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def within(repeat: OneRepeat, *_: Any) -> None:
        before = repeat._clock._clock
        repeat._clock._clock = lambda: before() + 7200

    monkeypatch.setattr(OneRepeat, "_prepare_and_run", within)
    monkeypatch.setattr(OneRepeat, "_context", lambda repeat: None)
    (finding,) = (await repeated(tmp_path)).findings
    assert finding.startswith("clock: this host's clock moved by +7200.0 s at ")


async def test_a_setting_that_someone_else_changed_under_a_repeat_is_its_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures are of another policy than its name says, for a part of it."""
    said = "osd osd_mclock_profile was set to balanced by someone else"
    monkeypatch.setattr(OneRepeat, "_prepare_and_run", nothing)
    monkeypatch.setattr(OneRepeat, "_context", lambda repeat: None)
    record = await repeated(tmp_path, changed=(said,))
    assert (record.status, record.findings) == ("finished", (f"setting: {said}",))


# Each event is on the disk before the next.
@pytest.mark.parametrize(
    ("file", "during"),
    [
        ("events.jsonl", True),
        *((file, True) for file in ("intervals.jsonl.gz", "cluster.jsonl.gz", "metrics.columns")),
        *((file, False) for file in ("intervals.jsonl.gz", "cluster.jsonl.gz", "metrics.columns")),
    ],
)
async def test_a_repeat_whose_files_take_no_more_is_recorded_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, during: bool
) -> None:
    """A disk that is full, in the middle or with the last bytes."""
    folder = tmp_path / "repeat"
    folder.mkdir()
    (folder / file).symlink_to("/dev/full")

    async def within(repeat: OneRepeat, context: object, metrics: MetricsRecorder, *_: Any) -> None:
        recorder = repeat._recorder
        metrics._writer.add(1.0, {"a": 1.0})
        lines = 2000 if during else 1
        for number in range(lines):
            entry = {"time": time.time(), "noise": os.urandom(32).hex()}
            recorder.cluster.write(entry)
            recorder.intervals.write(entry)
            recorder.event("x", number=number)
        if during:
            metrics._writer.flush()

    monkeypatch.setattr(OneRepeat, "_prepare_and_run", within)
    monkeypatch.setattr(OneRepeat, "_context", lambda repeat: None)
    record = await repeated(tmp_path)
    assert record.status == "failed"
    assert record.error == "recording failed: [Errno 28] No space left on device"
    assert read_record(folder / "repeat.json").status == "failed"


async def test_a_repeat_beside_which_another_run_took_the_cluster_is_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run would take it along as finished."""

    async def lost() -> None:
        raise RunError("another run took this cluster over")

    monkeypatch.setattr(OneRepeat, "_prepare_and_run", nothing)
    monkeypatch.setattr(OneRepeat, "_context", lambda repeat: None)
    record = await repeated(tmp_path, check_held=lost)
    assert (record.status, record.error) == ("failed", "another run took this cluster over")


def test_the_cpu_of_an_exporter_that_was_started_again_is_never_negative(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The present process counts from its own start."""
    used = {1: 5.0, 2: 0.5}
    monkeypatch.setattr(one_repeat, "cpu_seconds", lambda pid: used[pid])
    exporter: Any = SimpleNamespace(pid=1)
    meter = CostMeter(fake_session(), exporter)
    used[1] = 5.75
    assert meter.spent().exporter_cpu_seconds == pytest.approx(0.75)
    exporter.pid = 2
    assert meter.spent().exporter_cpu_seconds == pytest.approx(0.5)


def test_cpu_seconds_are_those_of_the_process() -> None:
    with subprocess.Popen(["sleep", "60"]) as idle:
        assert one_repeat.cpu_seconds(idle.pid) < 0.5
        idle.kill()
    assert one_repeat.cpu_seconds(os.getpid()) > 0


@pytest.mark.parametrize("letter", ["a", "ü", "日", "𠀀", "/", "\udc80"])
def test_any_name_of_a_point_makes_a_folder(tmp_path: Path, letter: str) -> None:
    """A file name of more than 255 bytes would fail the run in its middle."""
    recorder = RepeatRecorder(tmp_path / repeat_folder(1, letter * 300, 1))
    recorder.close_files()
    assert len(recorder.folder.name.encode()) < 100
    assert recorder.folder.parent == tmp_path / "repeats"
    assert repeat_folder(7, "policy=wpq,depth=4", 2) == "repeats/007-policy=wpq,depth=4-r2"


@pytest.mark.parametrize("zone", ["+0000", "-0500", "+0530", ""])
def test_the_cluster_log_of_a_repeat_is_found_in_whatever_zone_monitors_write(zone: str) -> None:
    """Around midnight too: compared as text, a zone behind UTC lost all lines of the repeat."""
    offset = {"-0500": -5 * 3600, "+0530": 5.5 * 3600}.get(zone, 0.0)
    since = 1_795_046_399.7  # a moment before midnight

    def entry(seconds: float) -> dict[str, str]:
        local = datetime.fromtimestamp(since + seconds + offset, UTC)
        return {"stamp": local.strftime("%Y-%m-%dT%H:%M:%S.%f") + zone}

    entries = [entry(seconds) for seconds in (-60, -2, 0, 1, 4000)] + [{"stamp": "soon"}, {}]
    assert list(one_repeat.logged_since(entries, since)) == entries[2:5]


async def test_what_was_measured_of_each_osd_is_set_before_the_first_point() -> None:
    class Cluster:
        async def command(self, prefix: str, target: str = "", **_: object) -> object:
            if prefix == "osd metadata":
                return [{"id": 0, "rotational": "0"}, {"id": 1, "rotational": "1"}]
            assert prefix == "bench"
            return {"iops": {"osd.0": 1234.5, "osd.1": 99.0}[target], "bytes_per_sec": 1.0}

        async def up_osds(self) -> list[int]:
            return [0, 1]

    done: list[CephOption] = []

    class Settings:
        async def apply(self, options: list[CephOption]) -> None:
            done.extend(options)

    cluster: Any = Cluster()
    settings: Any = Settings()
    found = await capacity_bench.measure(cluster, settings, Capacity(), lambda text: None)
    assert found == {"osd.0": 1234.5, "osd.1": 99.0}
    assert [(o.section, o.name, o.value) for o in done] == [
        ("osd.0", "osd_mclock_max_capacity_iops_ssd", "1234.50"),
        ("osd.1", "osd_mclock_max_capacity_iops_hdd", "99.00"),
    ]
