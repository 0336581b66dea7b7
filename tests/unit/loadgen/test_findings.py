"""What a reader must know before they trust a repeat's figures, and what a load lost against
another."""

import pytest

from cephqos_base.errors import ConfigError
from cephqos_loadgen.archive.cli import figure
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.phase_kinds.wait import WaitResult
from cephqos_loadgen.results.figures import LoadFigures, changes
from cephqos_loadgen.results.findings import findings
from cephqos_loadgen.results.phase import PhaseRecord, RecoveryFigures, Step
from cephqos_loadgen.results.repeat import MetricsRecording
from cephqos_loadgen.scenario.parse import parse


def figures(iops: float, mean: float, bins: dict[int, int] | None = None) -> LoadFigures:
    return LoadFigures(100, iops, iops * 4096, mean, None, None, {}, bins or {})


def load(start: float, end: float) -> PhaseRecord:
    total = figures(100, 0.001)
    step = Step(1, start, end, end - start, total, None, total, {})
    return PhaseRecord("fio", start, end, "duration", result=FioResult("rbd", "load", (step,)))


def scrub(start: float, end: float) -> PhaseRecord:
    result = ScrubResult(8, 100, 1 << 20, end - start, 2)
    return PhaseRecord("scrub", start, end, "done", result=result)


def said(**phases: PhaseRecord) -> tuple[str, ...]:
    return findings(phases, {}, MetricsRecording(0, 0, {}, ""))


def test_a_scrub_that_ends_before_the_client_is_named_with_the_time_that_counts() -> None:
    assert said(scrub=scrub(100, 130), client=load(102, 160)) == (
        "client: scrub ended 30 s before it, after 28 s",
    )


def test_a_scrub_that_outlives_the_client_is_named() -> None:
    assert said(scrub=scrub(100, 190), client=load(102, 160)) == (
        "scrub: went on for 30 s after client had ended",
    )


def test_a_load_that_a_scrub_did_not_meet_is_not_compared_with_it() -> None:
    assert said(alone=load(10, 90), scrub=scrub(91, 160), client=load(92, 161)) == ()


def test_what_a_load_lost_is_said_in_percent() -> None:
    bins = ({1_000_000: 100}, {1_500_000: 100})
    found = changes(figures(200, 0.001, bins[0]), figures(146, 0.0012, bins[1]))
    assert found == pytest.approx({"iops": -27, "latency_mean": 20, "latency_p99": 50})
    record = PhaseRecord("fio", 0, 1, "duration", changes=found)
    shown = [figure(key, value) for key, value in record.headline().items()]
    assert shown == ["-27.0 % iops", "+20.0 % latency mean", "+50.0 % latency p99"]


def test_a_load_without_bins_or_without_any_io_has_fewer_changes() -> None:
    assert changes(figures(0, 0.0), figures(10, 0.001)) == {}


@pytest.mark.parametrize(
    ("against", "percent", "said"), [("a", {}, 1), ("a", {"iops": 1.0}, 0), ("", {}, 0)]
)
def test_a_comparison_that_could_not_be_made_is_said(
    against: str, percent: dict[str, float], said: int
) -> None:
    """The load that it is compared with was still running, or failed."""
    done = WaitResult(1.0)
    record = PhaseRecord("fio", 0, 9, "done", result=done, changes=percent, against=against)
    found = findings({"b": record}, {}, MetricsRecording(0, 0, {}, ""))
    assert found == ("b: not compared with a, which had no figures when it ended",) * said


def test_recovery_is_shown_with_its_rate() -> None:
    record = PhaseRecord(
        "fio", 0, 9, "condition", recovery=RecoveryFigures(80, 80 << 20, 4.0, True)
    )
    shown = [figure(key, value) for key, value in record.headline().items()]
    assert shown[-2:] == ["20.0 recovered objects/s", "20.0 MiB/s"]


TEXT = """\
scenario: s
phases:
  - {name: rest, wait: {}, until: {duration: 1s}}
  - {name: one, fio: {engine: libaio, path: /x, rw: read, bs: 4K}, until: {duration: 1s}}
  - {name: two, fio: {engine: libaio, path: /x, rw: read, bs: 4K}, until: {duration: 1s}, AGAINST}
"""


def test_a_load_is_compared_with_a_load_before_it() -> None:
    (point,) = parse(TEXT.replace("AGAINST", "against: one"), "s").points
    assert [phase.against for phase in point.phases] == ["", "", "one"]
    for wrong in ("rest", "two", "nobody"):
        with pytest.raises(ConfigError, match=r"allowed: one of one$"):
            parse(TEXT.replace("AGAINST", f"against: {wrong}"), "s")
