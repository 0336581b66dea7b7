"""Results as types: they survive being written down, and what does not fit is named."""

from typing import Any

import pytest

from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.osd_bench import OsdBenchResult
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.phase_kinds.registry import KINDS, RESULTS
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.findings import findings
from cephqos_loadgen.results.host import CpuUse, CpuUsers, HostUse, ProcessUse, ThreadUse
from cephqos_loadgen.results.json_form import Misfit, from_json, to_json
from cephqos_loadgen.results.phase import PhaseRecord, PhaseResult, RecoveryFigures, Step
from cephqos_loadgen.results.repeat import BenchFigures, Gap, MetricsRecording

FIGURES = LoadFigures(
    10, 5.0, 20480.0, 0.002, 0.001, 0.009, {"50": 0.002}, {2_000_000: 9, 9_000_000: 1}
)
STEP = Step(4, 1.0, 3.0, 2.0, FIGURES, None, FIGURES, {"client.0/volume.0": FIGURES})
RESULT = FioResult("rbd", "sweep", (STEP, STEP), stopped_because="dispersion")


@pytest.mark.parametrize(
    "result",
    [
        RESULT,
        ScrubResult(4, 40, 1 << 20, 3.5, 2),
        OsdBenchResult({"osd.0": BenchFigures(1000.0, 4e6)}),
        PinResult("by_osd", {"osd.0": (0, 2)}, applied=False),
    ],
)
def test_a_phase_is_read_as_it_was_written(result: PhaseResult) -> None:
    recovery = RecoveryFigures(5, 4096, 2.0, finished=True)
    record = PhaseRecord(result.kind, 1.0, 2.0, "condition", result=result, recovery=recovery)
    data = to_json(record)
    assert data["result"]["kind"] == result.kind
    assert data["result"]["version"] == result.version
    assert from_json(PhaseRecord, data, RESULTS) == record


def broken(**changes: Any) -> dict[str, Any]:
    data = to_json(PhaseRecord("fio", 1.0, 2.0, "duration", result=RESULT))
    data["result"] |= changes
    return dict(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (broken(kind="fioo"), r"result\.kind: found 'fioo', expected one of fio, rados_bench"),
        (broken(version=7), r"result\.version: found 7, expected 1"),
        (broken(mode="curve"), r"result\.mode: found 'curve', expected one of load, sweep, search"),
        (broken(steps=[]) | {"start_unix_seconds": "now"}, r"start_unix_seconds: found 'now'"),
        (broken(depth=1), r"result\.depth: found 1, expected no such key"),
        (broken(steps=[{}]), r"result\.steps\[0\]: found dict, expected the key depth"),
        (broken(reached="yes"), r"result\.reached: found 'yes', expected true or false"),
        ([], "the whole: found list, expected an object"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(data: Any, message: str) -> None:
    with pytest.raises(Misfit, match=message):
        from_json(PhaseRecord, data, RESULTS)


def test_a_number_that_is_none_is_refused() -> None:
    data = to_json(RecoveryFigures(5, 4096, 2.0, finished=True)) | {"seconds": float("nan")}
    with pytest.raises(Misfit, match="seconds: found nan, expected a finite number"):
        from_json(RecoveryFigures, data)


def test_any_percentile_comes_from_the_bins_and_none_without_them() -> None:
    assert FIGURES.latency_percentile_seconds(90) == pytest.approx(0.002)
    assert FIGURES.latency_percentile_seconds(99.95) == pytest.approx(0.009)
    bench = LoadFigures(10, 5.0, 20480.0, 0.002, None, 0.009, {}, {})
    assert bench.latency_percentile_seconds(99) is None


def test_every_kind_of_phase_has_a_result_with_a_version() -> None:
    assert RESULTS.keys() == KINDS.keys()
    for name, result in RESULTS.items():
        assert result.__dict__["kind"] == name
        assert result.version >= 1


# -- findings ------------------------------------------------------------------------------------


def host(user: float, osd: float, steal: float = 0.0) -> HostUse:
    """Ten seconds of two CPUs."""
    cpu = CpuUse(2, user, 0.0, 0.0, 0.0, steal, 20.0 - user - steal)
    threads = {"tp_osd_tp": ThreadUse(osd, 0.0, 2, osd / 2)}
    users = CpuUsers(osd, user - osd, "")
    return HostUse(10.0, cpu, {}, {"osd.0": ProcessUse(1 << 30, threads)}, cpu_users=users)


QUIET = MetricsRecording(10, 100, {}, "")


def test_a_machine_that_others_kept_busy_is_a_finding_and_the_runs_own_load_is_none() -> None:
    assert findings({}, {"client": host(12.0, 11.0)}, QUIET) == ()
    (busy,) = findings({}, {"client": host(12.0, 4.0)}, QUIET)
    assert busy == "client: other programs used 40% of this host's CPUs"
    (stolen,) = findings({}, {"client": host(2.0, 2.0, steal=3.0)}, QUIET)
    assert stolen == "client: the hypervisor took 15% of this host's CPUs"


def test_what_was_cut_off_stopped_early_or_never_seen_is_a_finding() -> None:
    none = RecoveryFigures(0, 0, 0.0, finished=False)
    phases = {
        "client": PhaseRecord("fio", 1.0, 3.0, "cut_off", result=RESULT, recovery=none),
        "scrub": PhaseRecord("scrub", 1.0, 2.0, "done", result=ScrubResult(4, 40, 9, 3.5, 2)),
    }
    gaps = {"exporter": (Gap(1.0, 4.0), Gap(9.0, 3.0))}
    assert findings(phases, {}, MetricsRecording(10, 100, {}, "", gaps)) == (
        "client: cut off by at_most before its end came",
        "client: the curve ended at depth 4, before its last: dispersion",
        "client: no recovery was seen",
        "recording: no metrics of exporter for 7 s (2 gaps)",
    )
