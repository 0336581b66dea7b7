"""The small study's pages: what they say of made-up labs with the published figures, and others."""

import csv
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest
from tests.study.__main__ import Options, progress, write_pages
from tests.study.document import to_csv, to_markdown, verdicts
from tests.study.experiments import (
    APART,
    BOTH,
    COST,
    EXPERIMENTS,
    HDD,
    RECOVERY,
    SCRUB,
    TEN,
    WIDE,
    pieces,
)
from tests.study.side import Side, Sides, compared, measured, paired, read_labs, write_labs
from tests.study.trends import (
    COUNTED,
    TRENDS,
    Found,
    Judgement,
    alike,
    chances,
    judged,
    keeps,
    more,
)
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.statistics import holm
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import analyse
from cephqos_loadgen.results.phase import RecoveryFigures

# IOPS beside other work, IOPS alone, mean latency in ms, seconds of scrub, objects/s of recovery.
Row = tuple[float, float, float, float | None, float | None]
# As published; seconds of scrub are in the published order only.
AGREEING: Mapping[str, Mapping[str, Row]] = {
    RECOVERY.name: {
        "wpq_default": (18000, 21500, 3.5, None, 97),
        "wpq_boosted": (2544, 21500, 25, None, 350),
        "high_client_ops": (11209, 21500, 5.69, None, 80),
        "balanced": (11017, 21500, 5.81, None, 120),
        "high_recovery_ops": (11153, 21500, 5.74, None, 159),
    },
    HDD.name: {
        "wpq_default": (308, 340, 208, None, 5.8),
        "wpq_boosted": (146, 340, 433, None, 9),
        "high_client_ops": (271, 340, 235, None, 3),
        "balanced": (248, 340, 258, None, 4),
        "high_recovery_ops": (240, 340, 265, None, 5),
    },
    SCRUB.name: {
        "wpq": (10955, 15007, 5.79, 16, None),
        "high_client_ops": (11405, 15007, 5.62, 20, None),
        "balanced": (11255, 15007, 5.65, 22, None),
        "high_recovery_ops": (11200, 15007, 5.65, 26, None),
        "custom": (9000, 15007, 7.0, 12, None),
    },
    TEN.name: {
        "scrub/wpq": (10955, 15007, 5.8, 18, None),
        "scrub/high_client_ops": (11405, 15007, 5.62, 20, None),
        "ten_scrubs/wpq": (10000, 15007, 7.2, 9, None),
        "ten_scrubs/high_client_ops": (10300, 15007, 7.0, 10, None),
    },
    COST.name: {
        "cost_50m/high_client_ops": (11405, 15007, 5.62, 20, None),
        "cost_20m/high_client_ops": (11405, 15007, 5.62, 12, None),
        "cost_20m/high_recovery_ops": (11000, 15007, 5.7, 12, None),
        "cost_50m/wpq": (9000, 15007, 7.1, 11, None),
    },
    BOTH.name: {
        "wpq": (8000, 15007, 8.0, 18, 50),
        "high_client_ops": (8010, 15007, 8.0, 26, 90),
        "balanced": (8015, 15007, 8.0, 26, 120),
        "high_recovery_ops": (8020, 15007, 8.0, 27, 150),
    },
}
_LABS = (1.0, 1.05, 0.95, 1.02)  # how much faster each lab is: that is no noise of a comparison


def written(folder: Path, rows: Mapping[str, Row], lab: int, noise: float) -> Path:
    """The archive of one lab. `noise` moves each policy of each lab by its own share."""

    def repeat(number: int, row: Row) -> SyntheticRepeat:
        iops, alone, latency, scrub, rate = row
        moved = _LABS[lab] * (1 + noise * math.sin(7 * number + 3 * lab))
        return SyntheticRepeat(
            iops * moved,
            latency / moved,
            seconds=30,
            alone=alone * _LABS[lab],
            scrub_seconds=scrub / moved if scrub else None,
            recovery=recovered(20.0, rate * moved) if rate else None,
        )

    points = {
        name.replace("/", "+"): [repeat(number, row)]
        for number, (name, row) in enumerate(rows.items())
    }
    axes = {
        name.replace("/", "+"): dict(zip(("experiment", "policy"), name.split("/"), strict=True))
        for name in rows
        if "/" in name
    }
    return Builder(run=f"lab{lab}", points=points, axes=axes).write(folder / f"lab-{lab}")


def recovered(seconds: float, rate: float) -> RecoveryFigures:
    """Of so many objects that rates of a few per second can be told apart."""
    return RecoveryFigures(round(seconds * rate * 100), 1 << 30, seconds * 100, True)


def side(folder: Path, rows: Mapping[str, Row], *, noise: float = 0.0005, labs: int = 4) -> Side:
    runs = [analyse(open_archive(written(folder, rows, lab, noise))) for lab in range(labs)]
    file = folder / "labs.csv"
    write_labs(measured(runs), file)
    assert read_labs(file) == measured(runs)
    return read_labs(file)


def by_text(found: Sequence[Found], beginning: str) -> Found:
    return next(it for it in found if it.trend.published.startswith(beginning))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    folder = tmp_path_factory.mktemp("published")
    return {name: side(folder / name, rows) for name, rows in AGREEING.items()}


def test_labs_with_the_published_figures_agree_with_every_trend(published: Sides) -> None:
    found = list(judged(published))
    assert len(found) == len(TRENDS) and len(COUNTED) >= 24
    others = {it.trend.published: it.today for it in found if it.today.verdict != "agrees"}
    (not_obeyed,) = others.values()
    assert not_obeyed.verdict == "not put to the test", "osd_scrub_cost has no effect here"


def test_a_lab_that_is_faster_than_another_is_no_noise(published: Sides) -> None:
    """Labs differ by 5 %, and within each lab WPQ leaves clients 4 % less."""
    it = by_text(list(judged(published)), "high_client_ops leaves clients more than WPQ")
    assert it.today.verdict == "agrees"
    found = paired((104.0, 109.0, 99.0), (100.0, 105.0, 95.0))
    assert found.low is not None and found.low > 0.03


def test_an_interval_of_a_change_within_labs_is_that_of_student() -> None:
    new, old = (104.0, 109.3, 99.1, 101.0), (100.0, 105.0, 95.0, 98.0)
    logs = [math.log(a / b) for a, b in zip(new, old, strict=True)]
    reach = 3.182446 * stdev(logs) / 2
    found = paired(new, old)
    assert found.low == pytest.approx(math.exp(fmean(logs) - reach) - 1, rel=1e-6)
    assert found.high == pytest.approx(math.exp(fmean(logs) + reach) - 1, rel=1e-6)
    assert not paired((1.0,), (2.0,)).known
    assert not paired((1.0, 0.0), (2.0, 2.0)).known


def test_a_share_that_is_not_kept_differs_and_leads_the_page(
    published: Sides, tmp_path: Path
) -> None:
    rows = dict(AGREEING[RECOVERY.name]) | {"high_client_ops": (5600, 21500, 11.4, None, 80)}
    found = {**published, RECOVERY.name: side(tmp_path, rows)}
    it = by_text(list(judged(found)), "high_client_ops keeps half of it")
    assert it.today.verdict == "differs"
    page = to_markdown(found).replace("\\", "")
    assert "2 differ otherwise" in page
    assert "Of 2 that differ, a control shows why for 0: [reasons]" in page
    assert "- high_client_ops keeps half of it: 11,209 IOPS. Not known: no control was run." in page


def test_published_allocations_that_agree_are_the_reason(published: Sides, tmp_path: Path) -> None:
    """Today's profiles turn the order of scrubs round; with those of the study it is as it was."""
    was = AGREEING[SCRUB.name]
    rows = {
        **was,
        "high_client_ops": was["high_recovery_ops"],
        "high_recovery_ops": was["high_client_ops"],
        **{f"published_{name}": row for name, row in was.items()},
    }
    found = {**published, SCRUB.name: side(tmp_path, rows)}
    it = by_text(list(judged(found)), "The scrub ends sooner with balanced")
    assert it.today.verdict == "the other way round"
    assert it.then is not None and it.then.verdict == "agrees"
    assert it.reason.startswith("The profiles' allocations: with those of the study's release")
    assert "published_high_recovery_ops" in it.reason


@pytest.mark.parametrize(
    ("boosted", "reason"),
    [
        (2544.0, "Without the queue: BlueStore's throttles are wide"),
        (21000.0, "Not known. Nothing else is seen without the queue"),
    ],
)
def test_a_control_is_a_reason_only_if_it_changes_the_verdict(
    published: Sides, tmp_path: Path, boosted: float, reason: str
) -> None:
    was = AGREEING[RECOVERY.name]
    rows: dict[str, Row] = {**was, "wpq_boosted": (21000, 21500, 3.0, None, 60)}
    control = {name: was[name] for name in WIDE.policies}
    control["wpq_boosted"] = (boosted, 21500, 25.0, None, 350)
    own = {RECOVERY.name: side(tmp_path / "own", rows), WIDE.name: side(tmp_path / "wide", control)}
    found = {**published, **own}
    it = by_text(list(judged(found)), "Boosted WPQ breaks half")
    assert it.today.verdict == "differs"
    assert it.reason.startswith(reason)


def test_a_baseline_slower_than_the_load_puts_nothing_to_the_test(tmp_path: Path) -> None:
    rows: dict[str, Row] = {"wpq": (10955, 1000, 5, None, None)}
    found = keeps("wpq", 0.95, breaks=True)(side(tmp_path, rows))
    assert found.verdict == "not put to the test"
    assert "Clients alone were slower: this is no baseline." in found.here


def test_what_every_policy_keeps_was_not_put_to_the_test(tmp_path: Path) -> None:
    """Boosted WPQ leaves clients as much as the profiles do: nothing threatened the share."""
    rows: dict[str, Row] = {name: (11000, 12000, 5, None, 9) for name in AGREEING[RECOVERY.name]}
    it = side(tmp_path, rows)
    found = keeps("high_client_ops", 0.5)(it)
    assert found.verdict == "not put to the test"
    assert "No policy broke it here." in found.here
    assert keeps("wpq_boosted", 0.5, breaks=True)(it).verdict == "differs"


def test_a_small_loss_is_not_the_other_way_round(tmp_path: Path) -> None:
    """Clients lose 0.6 % where 27 % were published: the direction is the same."""
    it = side(tmp_path, {"wpq": (994, 1000, 5, None, None)})
    assert keeps("wpq", 0.95, breaks=True)(it).verdict == "differs"


def cut_off(it: Side, policy: str) -> Side:
    """The same, with a limit that ended the clients of a policy."""
    return Side(tuple(replace(row, cut_off=row.setting == policy) for row in it.rows))


def test_the_rate_of_a_recovery_that_a_limit_cut_is_of_its_time_with_clients(
    tmp_path: Path,
) -> None:
    it = cut_off(side(tmp_path, AGREEING[RECOVERY.name]), "wpq_boosted")
    assert more(metrics.RECOVERY_OBJECT_RATE, "wpq_boosted", "balanced")(it).verdict == "agrees"
    page = to_markdown({RECOVERY.name: it})
    assert "in client-vs-recovery a limit ended the clients of wpq\\_boosted before" in page


def test_a_scrub_that_outlasts_its_clients_has_no_time_beside_them(tmp_path: Path) -> None:
    rows = {"wpq": AGREEING[SCRUB.name]["wpq"], "custom": (9000, 15007, 7.0, 40, None)}
    it = side(tmp_path, rows)
    found = more(metrics.SCRUB_SECONDS, "custom", "wpq")(it)
    assert found.verdict == "not known"
    assert "Clients ended before the work of custom." in found.here


def test_labs_that_end_in_the_same_second_are_not_equal(tmp_path: Path) -> None:
    """A manager reports every two seconds: 8 and 10 s in each lab is no proof."""
    rows: dict[str, Row] = {"a": (1000, 2000, 5, 10, None), "b": (1000, 2000, 5, 8, None)}
    it = side(tmp_path, rows, noise=0.0)
    found = compared(it, metrics.SCRUB_SECONDS, ("a", "b"))
    assert found.error == pytest.approx(math.sqrt((1 / 10**2 + 1 / 8**2) / 12), rel=0.05)
    assert paired((10.0,) * 4, (8.0,) * 4).error == 0


def test_alike_is_a_test_of_its_own(tmp_path: Path) -> None:
    rows: dict[str, Row] = {
        name: (iops, 2000, 5, None, None)
        for name, iops in (("a", 1000.0), ("b", 1005.0), ("c", 1100.0))
    }
    tight = side(tmp_path / "tight", rows)
    wide = side(tmp_path / "wide", rows, noise=0.05)
    assert alike(metrics.IOPS, 0.02, "b", "a")(tight).verdict == "agrees"
    assert alike(metrics.IOPS, 0.02, "c", "a")(tight).verdict == "differs"
    assert alike(metrics.IOPS, 0.02, "b", "a")(wide).verdict == "no difference found"


def test_latency_of_a_closed_loop_is_not_counted_beside_its_iops(published: Sides) -> None:
    twins = [trend for trend in TRENDS if trend.same_as]
    assert twins and {trend.same_as for trend in twins} <= {trend.published for trend in COUNTED}
    assert f"Of {len(COUNTED)} published trends" in to_markdown(published)


def test_noise_decides_nothing(tmp_path: Path) -> None:
    found = list(judged({SCRUB.name: side(tmp_path, AGREEING[SCRUB.name], noise=0.4)}))
    it = by_text(found, "high_client_ops leaves clients more than WPQ")
    assert it.today.verdict == "no difference found"


def test_trends_that_were_compared_and_not_decided_count_too() -> None:
    """Found beside five others that show nothing, a chance of one in fifty stands for nothing."""
    texts = [trend.published for trend in COUNTED][:6]
    undecided = {t: Judgement("no difference found", "", 0.5) for t in texts}
    together = chances({**undecided, texts[0]: Judgement("agrees", "", 0.02)})
    assert list(together.values()) == [0.02, *[0.5] * 5]
    assert not any(holm(list(together.values())))
    assert not chances({texts[0]: Judgement("not known", "")})


def test_an_experiment_that_is_missing_is_not_known(published: Sides) -> None:
    found = judged({SCRUB.name: published[SCRUB.name]})
    assert {it.today.verdict for it in found if it.trend.study == RECOVERY} == {"not known"}


def test_every_verdict_can_be_recomputed_from_the_table(published: Sides) -> None:
    head, *rows = to_csv(published)
    assert head == ("trend", "allocations", "figure", "lab", "value")
    table: dict[tuple[str, str], dict[str, list[float]]] = {}
    for trend, allocations, figure, _, value in rows:
        table.setdefault((trend, allocations), {}).setdefault(figure, []).append(float(value))
    for number, it in enumerate(judged(published), start=1):
        if it.today.verdict == "not put to the test":
            continue
        lows = []
        for new, old in itertools.combinations(table[str(number), "today"].values(), 2):
            assert len(new) == len(old) == 4
            lows.append(f"{paired(new, old).low or 0:+.1%}"[:4])
        if "Scrub time" not in str(it.today.figures):  # its bins of a second widen the interval
            assert any(low in it.today.here for low in lows), (it, lows)


@pytest.mark.parametrize(
    "part",
    [
        "a scrub of 10,000,000 objects of 32 KiB; here 1,000 objects",
        "[client-vs-scrub](client-vs-scrub/labs.csv)",
        "- Ceph's backoff of scrubs; here none",
    ],
)
def test_the_page_has_what_the_machine_cannot_show(published: Sides, part: str) -> None:
    assert part in to_markdown(published)


def test_the_page_is_that_of_the_tables_beside_it() -> None:
    folder = Path("docs/internals/study-small")
    sides = {
        it.name: read_labs(file)
        for it in EXPERIMENTS
        if (file := folder / it.name / "labs.csv").exists()
    }
    assert (folder / "README.md").read_text(encoding="utf-8") == to_markdown(sides)
    for name, rows in (("trends.csv", to_csv(sides)), ("verdicts.csv", verdicts(sides))):
        with (folder / name).open(newline="", encoding="utf-8") as file:
            assert list(map(tuple, csv.reader(file))) == list(rows), name


def test_an_experiment_of_another_day_stays(tmp_path: Path) -> None:
    """Two labs are in its table, and one archive is here: the table stays, and the page has it."""
    own, out = tmp_path / "archives", tmp_path / "pages"
    folder = out / SCRUB.name
    folder.mkdir(parents=True)
    whole = side(tmp_path, AGREEING[SCRUB.name], labs=2)
    write_labs(whole, folder / "labs.csv")
    piece = next(it for it in pieces(own, 1) if it.experiment == SCRUB)
    rows = {"wpq": [SyntheticRepeat(100.0)]}
    made = Builder(run="a", points=rows, variables=piece.variables, busy={"others": 0.0})
    made.write(piece.folder / "20260101T000000Z-a")
    page = write_pages(Options(own, out, labs=4, bar=0.1, quick=False, causes=False))
    assert read_labs(folder / "labs.csv") == whole
    assert "Each experiment ran in 2 labs" in page.read_text()


def test_policies_of_a_trend_are_run_by_its_experiment_and_by_its_control() -> None:
    for trend in TRENDS:
        for experiment in filter(None, (trend.study, trend.control)):
            axes = experiment.only.get("experiment", "").split(",")
            for setting in trend.claim.settings:
                of, _, policy = setting.partition("@")[0].rpartition("/")
                assert policy in experiment.policies, (trend.published, experiment.name)
                assert not of or of in axes


def test_progress_names_what_is_left_and_a_disturbed_piece_is_left(tmp_path: Path) -> None:
    every = [it for it in pieces(tmp_path, 1) if it.experiment in (SCRUB, APART)]
    rows = {"wpq": [SyntheticRepeat(100.0)]}
    for piece, name, others, changed in (
        (every[0], "a", 0.04, {}),
        (every[1], "b", 0.5, {}),
        (every[1], "c", 0.0, {"objects": "3"}),
    ):
        variables = {**piece.variables, **changed}
        made = Builder(run=name, points=rows, variables=variables, busy={"others": others})
        made.write(piece.folder / f"20260101T000000Z-{name}")
    done, left, total = progress(every, 0.10)
    assert done.split() == ["client-vs-scrub,", "lab", "1", "done:", "20260101T000000Z-a"]
    assert "left, about 6 min (2 disturbed or not finished)" in left
    assert total == "left: about 0 h 6 min"
    assert len(list(pieces(tmp_path, 3))) == 3 * len(EXPERIMENTS)
