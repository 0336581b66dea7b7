"""Clients that run: what is said of several jobs together, and how long they may take."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from tests.recorded import client_output

from cephqos_loadgen.engines.fio_output import ClientStatus, IoTotals, JobStatus, read_status
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.load import clients, phase_runner
from cephqos_loadgen.load.context import Hands, Marks
from cephqos_loadgen.load.curves import Search, search
from cephqos_loadgen.load.followers import FioFollower, Follower
from cephqos_loadgen.load.intervals import JobIntervals
from cephqos_loadgen.load.phase_runner import limit_of
from cephqos_loadgen.load.step import step_of
from cephqos_loadgen.phase_kinds.fio import Fio, FioResult
from cephqos_loadgen.phase_kinds.wait import Wait
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase, Start, Until
from cephqos_loadgen.report.arrays.intervals import read_intervals
from cephqos_loadgen.results.figures import changes
from cephqos_loadgen.results.phase import PhaseRecord, RecoveryFigures, Step
from cephqos_loadgen.results.rates import DoneSoFar
from cephqos_loadgen.run_recording.child import ChildFailed
from cephqos_loadgen.run_recording.files import read_lines
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder


def job(ios: int, seconds: float) -> JobStatus:
    bins = {1_000_000: ios} if ios else {}
    done = IoTotals(ios, ios * 4096, ios, ios * 0.001, ios * 1e-6, 0.002, bins)
    return JobStatus({"read": done, "write": IoTotals()}, 0.0, seconds)


def points(ios: int, seconds: float) -> list[DoneSoFar]:
    """What a job of an even rate says once a second."""
    return [
        DoneSoFar(
            at, {"read": round(ios * at / seconds)}, {"read": round(4096 * ios * at / seconds)}
        )
        for at in range(int(seconds) + 1)
    ]


def follower(client: str, **jobs: tuple[int, float]) -> Any:
    status = ClientStatus(10.0, {name: job(*each) for name, each in jobs.items()})
    done = {name: points(*each) for name, each in jobs.items()}
    return SimpleNamespace(client=client, last=status, points=done)


def test_rates_of_jobs_are_over_the_time_in_which_all_ran() -> None:
    """One job of 100 per second for ten seconds, one for five: that is 200, and neither the 150 of
    all I/Os by the longest time nor more."""
    together = step_of([follower("a", v0=(1000, 10.0), v1=(500, 5.0))], 4, 0.0)
    apart = step_of([follower("a", v0=(1000, 10.0)), follower("b", v0=(500, 5.0))], 4, 0.0)
    for step in (together, apart):
        assert step.total.iops == pytest.approx(200)
        assert step.total.bytes_per_second == pytest.approx(200 * 4096)
        assert step.seconds == 5.0
        assert step.total.ios == 1500, "all that they did"
        assert sum(each.ios for each in step.jobs.values()) == 1500


def test_two_jobs_of_one_name_are_an_error_and_not_one_job() -> None:
    text = client_output("reef", "two_jobs")
    document = orjson.loads(text[text.rindex(b'\n{\n  "fio version"') :].strip())
    assert len(read_status(document).jobs) == 2
    document["jobs"][1]["jobname"] = document["jobs"][0]["jobname"]
    with pytest.raises(RunError, match="2 jobs with 1 names"):
        read_status(document)


def test_a_job_whose_start_is_said_to_be_0_started_as_long_ago_as_it_ran() -> None:
    text = client_output("tentacle", "two_jobs")
    document = orjson.loads(text[text.rindex(b'\n{\n  "fio version"') :].strip())
    known = {name: job.start for name, job in read_status(document).jobs.items()}
    for job in document["jobs"]:
        job["job_start"] = 0
    found = {name: job.start for name, job in read_status(document).jobs.items()}
    assert found == pytest.approx(known, abs=2.0)


def phase(until: str, seconds: float, **options: str) -> Phase:
    action = Fio(
        engine="libaio",
        rw="read",
        block_size=4096,
        depth=1,
        path="/x",
        options=tuple(options.items()),
    )
    end = Until(until, seconds, seconds)  # type: ignore[arg-type]
    return Phase("load", action, Start("at"), end)


def test_a_phase_may_take_its_ramp_in_addition() -> None:
    plain = limit_of(phase("duration", 10.0))
    assert plain > 10.0
    assert limit_of(phase("duration", 10.0, ramp_time="90s")) == plain + 90.0


FIO = """\
#!/usr/bin/python3
import sys, time
time.sleep({seconds})
print(open({output!r}).read())
"""


async def run_fio(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, takes: float, ramp: str
) -> FioResult:
    """A program that says what fio once said, after so many seconds; 0.1 s are asked for."""
    said = folder / "said.json"
    said.write_bytes(client_output("reef", "two_jobs"))
    program = folder / "bin" / "fio"
    program.parent.mkdir()
    program.write_text(FIO.format(seconds=takes, output=str(said)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(clients, "_GRACE", 0.5)
    recorder = RepeatRecorder(folder / "repeat")

    async def no_osds() -> dict[str, int]:
        return {}

    context = SimpleNamespace(
        recorder=recorder,
        live=Live(RunPlace()),
        rates={},
        place=ProgramPaths(),
        cluster=SimpleNamespace(pids=no_osds),
        steps={},
    )
    loading = phase("duration", 0.1, ramp_time=ramp)
    assert isinstance(loading.action, Fio)
    try:
        async with asyncio.timeout(20):
            return await loading.action.carry_out(context, loading, None)  # type: ignore[arg-type]
    finally:
        recorder.close_files()


async def test_a_ramp_longer_than_all_grace_does_not_end_the_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await run_fio(tmp_path, monkeypatch, takes=2.0, ramp="10s")
    assert result.total.ios > 0


async def test_clients_that_do_not_end_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ChildFailed, match=r"load.client.0: not done within 0\.6 s"):
        await run_fio(tmp_path, monkeypatch, takes=30.0, ramp="0s")


class SlowToReport:
    """A cluster whose recovery is done, and whose OSDs take a second to report what it was."""

    follower = SimpleNamespace(expect=lambda: None)
    reported = 0.0

    async def recovery_done(self, since: float) -> None:
        await asyncio.sleep(0.2)

    async def recovery(self) -> RecoveryFigures:
        await asyncio.sleep(1.0)
        self.reported = time.time()
        return RecoveryFigures(9, 9 * 4096, 0.1, True)


async def test_a_phase_ends_with_its_work_and_not_when_osds_have_reported_its_recovery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or what the host did, and what classes got, would be taken over seconds without a load."""
    hosts: dict[str, float] = {}

    @asynccontextmanager
    async def recorded(*_: object, **__: object) -> AsyncIterator[None]:
        yield
        hosts["end"] = time.time()

    monkeypatch.setattr("cephqos_loadgen.load.phase_runner.host_figures.recorded", recorded)
    waiting = Phase("w", Wait(), Start("at"), Until("recovery_done", 20.0, 1.0), against="v")
    watcher = SlowToReport()
    context: Any = SimpleNamespace(
        point=SimpleNamespace(phases=(waiting,)), marks={"w": Marks()}, watcher=watcher,
        live=Live(RunPlace()), recorder=SimpleNamespace(event=lambda *_, **__: None),
        started=0.0, data_moved=0.0, cluster=None,
    )  # fmt: skip
    found = phase_runner.Recorded()
    await phase_runner.run_phases(context, cast(Hands, None), found)
    record = found.records["w"]
    assert record.recovery is not None and record.recovery.objects == 9
    assert (record.against, record.changes) == ("v", {}), "which a finding says"
    assert record.end_unix_seconds - record.start_unix_seconds >= 0.2
    assert record.end_unix_seconds < watcher.reported
    assert hosts["end"] < watcher.reported


def test_a_load_worked_until_its_clients_ended() -> None:
    """What served them takes time to go."""
    step = step_of([follower("a", v0=(100, 10.0))], 4, 0.0)
    result = FioResult("rbd", "load", (replace(step, end_unix_seconds=57.0),))
    assert PhaseRecord("fio", 0.0, 68.0, "condition", result=result).worked == (0.0, 57.0)
    assert PhaseRecord("wait", 0.0, 68.0, "condition").worked == (0.0, 68.0)


def test_a_step_ends_with_its_clients_and_not_when_what_served_them_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Volumes are unmapped and QEMU is ended behind it: OSDs and disks rest meanwhile, and would
    seem to have done less per second."""
    monkeypatch.setattr(time, "time", lambda: 25.0)
    jobs = {"v0": (1000, 10.0), "v1": (500, 9.0)}
    assert step_of([follower("a", **jobs)], 4, 0.0).counted == (0.0, 10.0)
    silent: Any = SimpleNamespace(client="a", last=ClientStatus(10.0, {}), points={"v0": []})
    assert step_of([silent], 4, 1.0).counted == (1.0, 25.0), "of what did nothing nobody knows"


def test_a_load_that_did_nothing_has_no_latency_and_keeps_within_no_target() -> None:
    idle, busy = (step_of([follower("a", v0=(ios, 10.0))], 4, 0.0) for ios in (0, 100))
    assert FioResult("rbd", "load", (idle,)).headline() == {
        "iops": 0.0,
        "seconds": 10.0,
        "depth": 4.0,
    }
    assert changes(busy.total, idle.total) == {"iops": -100.0}

    async def run(depth: int, seconds: float) -> Step:
        return idle

    wanted = Search(target=0.01, percentile=None, least=1, most=8, dwell=1.0)
    steps = asyncio.run(search(wanted, run, lambda *_, **__: None))
    assert [step.within_target for step in steps] == [False]


def test_a_second_in_which_nothing_completed_is_recorded_too(tmp_path: Path) -> None:
    """Or the rate of a load that stood still would be that of the seconds in which it went on."""
    recorder = RepeatRecorder(tmp_path / "repeat")
    context = SimpleNamespace(recorder=recorder, live=Live(RunPlace()), rates={})
    follower = Said(context, "load", "client.0", "rbd", 4)  # type: ignore[arg-type]
    for second, ios in enumerate((100, 100, 100, 150, 150), start=1):
        follower.take(ClientStatus(1000.0 + second, {"v": job(ios, float(second))}))
    follower.take(ClientStatus(1009.0, {"v": job(150, 5.0)}))  # the same again, at the end
    follower.flush()
    recorder.close_files()
    lines = list(read_lines(tmp_path / "repeat" / "intervals.jsonl.gz"))
    assert [line["seconds"] for line in lines] == [1.0] * 5
    assert [line["read"]["ios"] for line in lines] == [100, 0, 0, 50, 0]
    assert lines[1]["read"]["latency_percentiles_seconds"] == {}, "a latency of nothing is none"
    assert {line["write"] for line in lines} == {None}
    found = read_intervals(lines)
    assert found.rate(found.of("load")) == pytest.approx(30.0)


def test_a_very_short_interval_joins_the_one_before_it_and_a_first_one_the_next() -> None:
    intervals, before, found = JobIntervals(), None, []
    for runtime in (0.1, 1.0, 2.0, 2.1, 3.1):
        found.append(intervals.add(job(0, runtime), before, 1000 + runtime))
        before = job(0, runtime)
    found.append(intervals.add(job(0, 0.2), None, 1004.0))  # it counts anew
    found.append(intervals.last())
    assert intervals.last() is None
    stretches = [(stretch.end, round(stretch.seconds, 3)) for stretch in found if stretch]
    assert stretches == [(1001.0, 1.0), (1002.1, 1.1), (1003.1, 1.0), (1004.0, 0.2)]


def test_the_bytes_that_fio_counts_at_the_very_end_are_in_its_last_second(tmp_path: Path) -> None:
    """As it was: 389 completed in the last second, the bytes of 63 of them were counted 5 ms later.
    By itself that is 0 IOPS with 49.2 MiB/s."""
    recorder = RepeatRecorder(tmp_path / "repeat")
    context = SimpleNamespace(recorder=recorder, live=Live(RunPlace()), rates={})
    follower = Said(context, "load", "client.0", "rbd", 64)  # type: ignore[arg-type]
    # At its very start, too: I/Os whose bytes are not counted have no run time.
    for ios, late, runtime in ((2, 2, 0.0), (350, 1, 1.0), (739, 63, 2.0), (739, 0, 2.005)):
        status = job(ios, runtime)
        done = replace(status.totals["read"], bytes=(ios - late) * 4096)
        totals = {"read": done, "write": IoTotals()}
        follower.take(ClientStatus(1000 + runtime, {"v": replace(status, totals=totals)}))
    follower.flush()
    recorder.close_files()
    lines = list(read_lines(tmp_path / "repeat" / "intervals.jsonl.gz"))
    assert [(line["seconds"], line["read"]["ios"]) for line in lines] == [(1.0, 350), (1.005, 389)]
    moved = [line["read"]["bytes_per_second"] * line["seconds"] for line in lines]
    assert sum(moved) == pytest.approx(739 * 4096)
    assert lines[-1]["end_unix_seconds"] == pytest.approx(1002.005)


@pytest.mark.parametrize("release", ["pacific", "reef", "tentacle"])
@pytest.mark.parametrize("name", ["two_jobs", "interrupted", "unsteady"])
def test_seconds_add_up_to_what_fio_said_at_its_end(
    tmp_path: Path, release: str, name: str
) -> None:
    """I/Os, completions in bins, and bytes, of the output of real fios."""
    recorder = RepeatRecorder(tmp_path / "repeat")
    context = SimpleNamespace(recorder=recorder, live=Live(RunPlace()), rates={})
    follower = FioFollower(context, "load", "client.0", "rbd", 8)  # type: ignore[arg-type]
    follower(client_output(release, name))
    follower.flush()
    recorder.close_files()
    lines = list(read_lines(tmp_path / "repeat" / "intervals.jsonl.gz"))
    parts = [(line, line[d]) for line in lines for d in ("read", "write") if line[d]]
    assert follower.last is not None
    whole = follower.last.total
    assert sum(part["ios"] for _, part in parts) == whole.ios > 1000
    assert sum(sum(part["latency_bins_ns"].values()) for _, part in parts) == whole.ios
    moved = sum(part["bytes_per_second"] * line["seconds"] for line, part in parts)
    assert moved == pytest.approx(whole.bytes, rel=1e-3)
    assert whole.bytes == whole.ios * 4096
    assert min(line["seconds"] for line in lines) > 0.5


class Said(Follower):
    """A client whose status is given by the test."""
