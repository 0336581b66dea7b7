"""The small study's page: what it says of made-up runs with the published figures, and others."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.study.document import to_markdown
from tests.study.reasons import GUESS, LIMIT, bounds_of, waits_behind
from tests.study.side import RECOVERY, SCRUB, Side
from tests.study.trends import TRENDS, alike, judged, keeps, more
from tests.synthetic_archive import START, Builder, SyntheticRepeat

from cephqos_base.series import QosSeries
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import analyse
from cephqos_loadgen.report.tables.of_waiting import WaitingPlace
from cephqos_loadgen.results.phase import RecoveryFigures

# As published: IOPS, mean latency in ms, seconds of recovery, objects per second.
RECOVERED = {
    "wpq_boosted": (2544.0, 25.0, 220.0, 350.0),
    "high_client_ops": (11209.0, 5.688, 966.0, 80.0),
    "balanced": (11017.0, 5.75, 647.0, 120.0),
    "high_recovery_ops": (11153.0, 5.75, 488.0, 159.0),
}
# IOPS, mean latency in ms, seconds of scrub; the seconds are in the published order only.
SCRUBBED = {
    "wpq": (15007 * 0.73, 5.79, 16.0),
    "high_client_ops": (15007 * 0.76, 5.62, 20.0),
    "balanced": (15007 * 0.76, 5.65, 22.0),
    "high_recovery_ops": (15007 * 0.76, 5.65, 26.0),
}


def recovered(seconds: float, rate: float) -> RecoveryFigures:
    return RecoveryFigures(round(seconds * rate), round(seconds * rate) << 22, seconds, True)


def sides(folder: Path, *, spread: float = 0.001, worse: float = 1.0) -> dict[str, Side]:
    """Three repeats of each; `worse` divides what the mClock profiles leave to clients."""

    def three(iops: float, latency: float, **more: object) -> list[SyntheticRepeat]:
        shares = (1 - spread, 1.0, 1 + spread)
        return [SyntheticRepeat(iops * s, latency * s, seconds=30, **more) for s in shares]  # type: ignore[arg-type]

    points = {
        policy: three(iops, latency, scrub_seconds=seconds)
        for policy, (iops, latency, seconds) in SCRUBBED.items()
    }
    scrub = Builder(run="s", points=points).write(folder / "scrub")
    points = {
        policy: three(
            iops / (1.0 if policy == "wpq_boosted" else worse),
            latency,
            recovery=recovered(seconds, rate),
        )
        for policy, (iops, latency, seconds, rate) in RECOVERED.items()
    }
    recovery = Builder(run="r", points=points).write(folder / "recovery")
    return {
        SCRUB: Side(analyse(open_archive(scrub)), (15000.0, 15007.0, 15014.0)),
        RECOVERY: Side(analyse(open_archive(recovery)), (21480.0, 21500.0, 21520.0)),
    }


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Side]:
    return sides(tmp_path_factory.mktemp("published"))


def test_runs_with_the_published_figures_agree_with_every_trend(published: dict[str, Side]) -> None:
    found = {trend.published: judgement for trend, judgement in judged(published)}
    assert len(found) == len(TRENDS)
    assert {text: j for text, j in found.items() if j.verdict != "agrees"} == {}


def test_a_reservation_that_is_violated_differs_and_leads_the_page(tmp_path: Path) -> None:
    found = sides(tmp_path, worse=2.0)
    verdicts = {trend.published: j.verdict for trend, j in judged(found)}
    assert verdicts["high_client_ops keeps it: 11,209 IOPS."] == "differs"
    page = to_markdown(found)
    assert "3 differ otherwise" in page.replace("\\", "")
    assert "- Differs: high_client_ops keeps it: 11,209 IOPS." in page
    assert page.index("Differs:") < page.index("## Trends")
    assert page.index("## Trends") < page.index("## Why they differ") < page.index("Not known.")


def test_the_reason_is_what_was_measured_a_profile_without_a_limit_has_none(tmp_path: Path) -> None:
    points = {"a": [SyntheticRepeat(100.0)], "b": [SyntheticRepeat(100.0)]}
    run = analyse(open_archive(Builder(points=points).write(tmp_path / "run")))
    ended = Series(
        QosSeries.LIMIT_OPS,
        {"class": "background_best_effort"},
        np.array([START - 5, START - 1]),
        np.array([70.0, 70.0]),
    )
    lasting = replace(ended, times=np.array([START, START + 30]))
    limits = {"policy=a": lasting, "policy=b": ended}
    run = replace(
        run,
        observations=tuple(
            replace(it, samples=Samples({ended.name: [limits[it.record.point]]}))
            for it in run.observations
        ),
    )
    reason = bounds_of(LIMIT, "background_best_effort", "a", "b", meaning="So.")
    assert (
        reason(Side(run, ()))
        == f"The limit of scrub on an OSD: 70.0 ops/s with a, none with b. {GUESS} So."
    )
    assert waits_behind("background_recovery", "a", meaning="So.")(Side(run, ())) == ""


def test_a_baseline_slower_than_the_load_puts_nothing_to_the_test(
    published: dict[str, Side],
) -> None:
    slower = {
        study: replace(side, baseline=tuple(iops / 10 for iops in side.baseline))
        for study, side in published.items()
    }
    verdicts = {trend.published: j for trend, j in judged(slower)}
    found = verdicts["high_client_ops keeps it: 11,209 IOPS."]
    assert found.verdict == "not put to the test"
    assert "Clients alone were slower: this is no baseline." in found.here
    page = to_markdown(slower)
    assert "6 are not put to the test" in page and ": no baseline |" in page


def test_what_every_policy_keeps_was_not_put_to_the_test(tmp_path: Path) -> None:
    """Boosted WPQ leaves clients as much as the profiles do: nothing threatened the share."""
    points = {policy: [SyntheticRepeat(11000.0 + n) for n in range(3)] for policy in RECOVERED}
    run = analyse(open_archive(Builder(run="r", points=points).write(tmp_path / "run")))
    side = Side(run, (12000.0, 12010.0, 11990.0))
    found = keeps("high_client_ops", 0.5)(side)
    assert found.verdict == "not put to the test"
    assert "No policy broke it here." in found.here
    assert keeps("wpq_boosted", 0.5, breaks=True)(side).verdict == "differs"


def test_a_small_loss_is_not_the_other_way_round(tmp_path: Path) -> None:
    """Clients lose 0.6 % where 27 % were published: the direction is the same."""
    points = {"wpq": [SyntheticRepeat(994.0 + n) for n in range(3)]}
    run = analyse(open_archive(Builder(run="r", points=points).write(tmp_path / "run")))
    side = Side(run, (1000.0, 1001.0, 1002.0))
    assert keeps("wpq", 0.95, breaks=True)(side).verdict == "differs"


def test_a_time_that_a_limit_cut_is_compared_with_nothing(tmp_path: Path) -> None:
    def three(rate: float, **more: object) -> list[SyntheticRepeat]:
        done = recovered(20.0 + rate, rate)
        return [SyntheticRepeat(100.0 + n, recovery=done, **more) for n in range(3)]  # type: ignore[arg-type]

    points = {"wpq_boosted": three(50.0, ended_by="cut_off"), "balanced": three(30.0)}
    run = analyse(open_archive(Builder(run="r", points=points).write(tmp_path / "run")))
    side = Side(run, ())
    found = more(metrics.RECOVERY_SECONDS, "wpq_boosted", "balanced")(side)
    assert found.verdict == "not known"
    assert "Clients were ended before the recovery of wpq_boosted" in found.here
    assert more(metrics.IOPS, "wpq_boosted", "balanced")(side).verdict != "not known"
    page = to_markdown({RECOVERY: side})
    assert "Censored: a limit ended the clients of wpq\\_boosted" in page


def test_alike_is_a_test_of_its_own(tmp_path: Path) -> None:
    def side(spread: float) -> Side:
        points = {
            name: [SyntheticRepeat(1000.0 * share * (1 + n * spread)) for n in (-1, 0, 1)]
            for name, share in (("a", 1.0), ("b", 1.005), ("c", 1.1))
        }
        folder = tmp_path / str(spread)
        return Side(analyse(open_archive(Builder(run="r", points=points).write(folder))), ())

    tight, wide = side(0.001), side(0.05)
    assert alike(metrics.IOPS, "b", "a", 0.02)(tight).verdict == "agrees"
    assert alike(metrics.IOPS, "c", "a", 0.02)(tight).verdict == "differs"
    assert alike(metrics.IOPS, "b", "a", 0.02)(wide).verdict == "no difference found"


def test_latency_of_a_closed_loop_is_not_counted_beside_its_iops(
    published: dict[str, Side],
) -> None:
    twins = [trend for trend in TRENDS if trend.same_as]
    assert {trend.same_as for trend in twins} <= {trend.published for trend in TRENDS}
    assert f"Of {len(TRENDS) - len(twins)} published trends" in to_markdown(published)


def test_a_share_that_is_missing_is_not_known_and_not_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {"a": [SyntheticRepeat(100.0)]}
    run = analyse(open_archive(Builder(points=points).write(tmp_path / "run")))
    shares = {("policy=a", "client"): {WaitingPlace("store_commit", ""): 1.0}}
    monkeypatch.setattr("tests.study.reasons.waited", lambda _: shares)
    said = waits_behind("background_best_effort", "a", meaning="So.")(Side(run, ()))
    assert said.startswith("Clients waited behind scrub for not known with a.")


def test_noise_decides_nothing(tmp_path: Path) -> None:
    verdicts = {t.published: j.verdict for t, j in judged(sides(tmp_path, spread=0.4))}
    text = "high_client_ops leaves clients more throughput than WPQ: 24 % lost against 27 %."
    assert verdicts[text] == "no difference found"


def test_a_missing_policy_is_not_known(published: dict[str, Side]) -> None:
    verdicts = [j.verdict for t, j in judged({SCRUB: published[SCRUB]}) if t.study == RECOVERY]
    assert set(verdicts) == {"not known"}


@pytest.mark.parametrize(
    "part",
    [
        "| CPU | 2 × a CPU | 2 × a CPU |",
        "a scrub of 10,000,000 objects of 32 KiB; here 1,000 objects",
        "loads of 9 to 14 minutes; here 30 to 30 s",
        "15,007 and 21,500 IOPS of clients alone; here 15,007 to 21,500",
        "Clients alone: 21,500 IOPS (3 repeats).",
        "What speaks against the figures of these runs",
        "cephqos run client-vs-scrub --scale study --repeats 3",
    ],
)
def test_the_page_describes_the_machine_and_what_it_cannot_show(
    published: dict[str, Side], part: str
) -> None:
    assert part in to_markdown(published)
