"""Figures of made-up fio output against plain arithmetic: any jobs, bins, runtimes and ramps."""

import math
import tempfile
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fio_said import SaidJob, document

from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.load.followers import FioFollower
from cephqos_loadgen.load.step import step_of
from cephqos_loadgen.results.figures import PERCENTILES, percentile_ns
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.run_recording.files import read_lines
from cephqos_loadgen.run_recording.layout import INTERVALS_FILE
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder

BINS = st.dictionaries(st.integers(1, 10**10), st.integers(1, 10**6), min_size=1, max_size=20)
T0 = 1_000_000.0


@given(BINS, st.sampled_from(PERCENTILES))
def test_a_percentile_is_the_nearest_rank_of_all_completions(
    bins: dict[int, int], percent: str
) -> None:
    rank = math.ceil(sum(bins.values()) * Fraction(percent) / 100)
    seen = 0
    for value in sorted(bins):
        seen += bins[value]
        if seen >= rank:
            break
    assert percentile_ns(bins, float(percent)) == value


JOB = st.tuples(
    st.integers(2, 12),  # seconds
    st.integers(1, 500),  # completions per second
    st.integers(0, 3),  # starts so many seconds late
    st.integers(1000, 10**9),  # each takes so many nanoseconds
    st.sampled_from((512, 4096, 65536)),
)


def followed(jobs: list[tuple[int, int, int, int, int]], ramp: int) -> tuple[Step, list[Any]]:
    """Each a process of its own, that prints a document a second; counts begin anew at the end of
    a ramp."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = RepeatRecorder(Path(folder) / "repeat")
        context: Any = SimpleNamespace(recorder=recorder, live=Live(RunPlace()), rates={})
        followers = []
        for number, (seconds, rate, late, latency, block) in enumerate(jobs):
            follower = FioFollower(context, "load", f"client.{number}", "rbd", 4)
            for second in range(1, ramp + seconds + 1):
                counted = second if second <= ramp else second - ramp
                began = T0 + late + (ramp if second > ramp else 0)
                job = SaidJob(counted, {latency: rate * counted}, block, began=began)
                text = document(T0 + late + second, {f"volume.{number}": job})
                follower(text.encode())
            follower.flush()
            assert not follower.torn
            followers.append(follower)
        recorder.close_files()
        lines = list(read_lines(recorder.folder / INTERVALS_FILE))
    return step_of(followers, 4, T0, 60.0), lines


def test_rates_of_whole_intervals_are_kept_and_much_shorter_ones_say_nothing() -> None:
    """A steady state is judged by them: fio may report twice within a moment."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = RepeatRecorder(Path(folder) / "repeat")
        context: Any = SimpleNamespace(recorder=recorder, live=Live(RunPlace()), rates={})
        follower = FioFollower(context, "load", "client.0", "rbd", 4)
        for seconds in (0.2, 1.2, 2.2):
            job = SaidJob(seconds, {10**6: round(100 * seconds)}, 4096, began=T0)
            follower(document(T0 + seconds, {"volume.0": job}).encode())
        follower.flush()
        recorder.close_files()
    assert [time for time, _ in context.rates["load"]] == pytest.approx(
        [T0 + 1.2, T0 + 2.2], rel=0, abs=1e-3
    )
    assert [rate for _, rate in context.rates["load"]] == pytest.approx([100, 100])


@settings(max_examples=60, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=4), st.sampled_from((0, 0, 5)))
def test_rates_counts_bytes_and_latencies_of_jobs_together(
    jobs: list[tuple[int, int, int, int, int]], ramp: int
) -> None:
    # A job that has done less when its ramp ends than in its first second after it cannot be told.
    step, lines = followed(jobs, ramp)
    ios = [seconds * rate for seconds, rate, *_ in jobs]
    assert step.total.ios == sum(ios)
    assert sum(step.total.latency_bins_ns.values()) == sum(ios)
    mean = sum(n * job[3] for n, job in zip(ios, jobs, strict=True)) / sum(ios) * 1e-9
    assert step.total.latency_mean_seconds == pytest.approx(mean)
    variance = sum(n * (job[3] * 1e-9 - mean) ** 2 for n, job in zip(ios, jobs, strict=True))
    deviation = math.sqrt(variance / sum(ios))
    assert step.total.latency_deviation_seconds == pytest.approx(deviation, abs=2e-5 * mean)
    assert step.total.latency_max_seconds == pytest.approx(max(job[3] for job in jobs) * 1e-9)
    common = min(j[0] + j[2] for j in jobs) - max(j[2] for j in jobs)
    if common > 0:
        assert step.seconds == pytest.approx(common)
        assert step.total.iops == pytest.approx(sum(j[1] for j in jobs))
        assert step.total.bytes_per_second == pytest.approx(sum(j[1] * j[4] for j in jobs))
    assert step.read == step.total and step.write is None
    assert step.counted[0] == pytest.approx(T0 + ramp + min(job[2] for job in jobs))
    early = {f"client.{n}/volume.{n}": float(job[0]) for n, job in enumerate(jobs)}
    assert step.ended_early == early
    for number, job in enumerate(jobs):
        own = step.jobs[f"client.{number}/volume.{number}"]
        assert own.iops == pytest.approx(job[1])
        assert own.bytes_per_second == pytest.approx(job[1] * job[4])
        mine = [line for line in lines if line["client"] == f"client.{number}"]
        assert sum(line["read"]["ios"] for line in mine) == job[1] * (job[0] + ramp)
        assert {round(line["read"]["iops"]) for line in mine} == {job[1]}
