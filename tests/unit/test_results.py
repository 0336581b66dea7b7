"""Results as types: they survive being written down, and what does not fit is named."""

from typing import Any

import pytest

from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.osd_bench import OsdBenchFigures, OsdBenchResult
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.phase_kinds.registry import KINDS, RESULTS
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.json_form import Misfit, from_json, to_json
from cephqos_loadgen.results.phase import PhaseRecord, PhaseResult, Recovery, Step

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
        OsdBenchResult({"osd.0": OsdBenchFigures(1000.0, 4e6)}),
        PinResult("by_osd", {"osd.0": (0, 2)}, applied=False),
    ],
)
def test_a_phase_is_read_as_it_was_written(result: PhaseResult) -> None:
    recovery = Recovery(5, 4096, 2.0, finished=True)
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
    data = to_json(Recovery(5, 4096, 2.0, finished=True)) | {"seconds": float("nan")}
    with pytest.raises(Misfit, match="seconds: found nan, expected a finite number"):
        from_json(Recovery, data)


def test_any_percentile_comes_from_the_bins_and_none_without_them() -> None:
    assert FIGURES.latency_percentile_seconds(90) == pytest.approx(0.002)
    assert FIGURES.latency_percentile_seconds(99.95) == pytest.approx(0.009)
    bench = LoadFigures(10, 5.0, 20480.0, 0.002, None, 0.009, {}, {})
    assert bench.latency_percentile_seconds(99) is None


def test_every_kind_of_phase_has_a_result_with_a_version() -> None:
    assert RESULTS.keys() == KINDS.keys()
    for name, result in RESULTS.items():
        assert result.__dict__["kind"] == name
        assert result.__dict__["version"] >= 1
