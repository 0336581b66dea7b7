"""The small study's pages: what they say of made-up labs with the published figures, and others."""

import csv
import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from tests.study.__main__ import Options, progress, write_pages
from tests.study.document import FIGURES, VERDICTS, to_csv, to_markdown, verdicts
from tests.study.experiments import (
    APART,
    BOTH,
    COST,
    EXPERIMENTS,
    HDD,
    PROFILES,
    PUBLISHED,
    RECOVERY,
    SCRUB,
    SMALL,
    TEN,
    pieces,
)
from tests.study.side import (
    Figure,
    LabRow,
    Side,
    Sides,
    compared,
    measured,
    merged,
    paired,
    ratios_differ,
    read_labs,
    write_labs,
)
from tests.study.trends import (
    COUNTED,
    TRENDS,
    Found,
    Judgement,
    alike,
    judged,
    keeps,
    more,
    standing,
)
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_base.series import RecoverySeries
from cephqos_base.units import MIB
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import analyse
from cephqos_loadgen.results.phase import RecoveryFigures

# IOPS beside other work, IOPS alone, mean latency in ms, seconds of scrub, objects/s of recovery.
Row = tuple[float, float, float, float | None, float | None]
# As published where a study has figures. Others are made up in the order that it says: of scrubs
# mostly, and of scrub with recovery.
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
    APART.name: {
        "wpq": (10955, 15007, 5.79, 16, None),
        "high_client_ops": (11405, 15007, 5.62, 20, None),
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
        "cost_50m/balanced": (11255, 15007, 5.65, 22, None),
        "cost_20m/balanced": (11200, 15007, 5.65, 12, None),
        "cost_50m/high_recovery_ops": (11000, 15007, 5.7, 26, None),
        "cost_50m/wpq": (9000, 15007, 7.1, 11, None),
    },
    BOTH.name: {
        "wpq": (7000, 15007, 9.1, 18, 50),
        "high_client_ops": (8010, 15007, 8.0, 26, 90),
        "balanced": (8015, 15007, 8.0, 26, 120),
        "high_recovery_ops": (8020, 15007, 8.0, 27, 150),
    },
}
# How much faster each lab is: that is no noise of a comparison.
_LABS = (1.0, 1.05, 0.95, 1.02, 0.98)


def moved(number: int, lab: int, noise: float) -> float:
    """`noise` moves each policy of each lab by its own share."""
    return _LABS[lab] * (1 + noise * math.sin(7 * number + 3 * lab))


def lab_row(name: str, number: int, row: Row, lab: int, noise: float) -> LabRow:
    iops, alone, latency, scrub, rate = row
    by = moved(number, lab, noise)
    figures = {"iops@alone": alone * _LABS[lab]}
    for at in ("", *["@scrub"] * bool(scrub), *["@recovery"] * bool(rate)):
        figures |= {f"iops{at}": iops * by, f"clat_mean{at}": latency / by / 1e3}
    if scrub:
        figures |= {"scrub_seconds": scrub / by, "scrub_objects": 1000.0}
    if rate:
        figures |= {"recovery_bandwidth": 4 * MIB * rate * by, "recovery_seconds": 2000.0}
    outlasts = bool(scrub and scrub / by > 31)  # loads of 30 seconds
    return LabRow(
        name, f"lab{lab}", figures, outlasts, False, 0.04, 0.02, "ceph version 18.2.7 (made up)"
    )


def side(rows: Mapping[str, Row], *, noise: float = 0.0005, labs: int = 4) -> Side:
    numbered = list(enumerate(rows.items()))
    return Side(
        tuple(
            lab_row(name, number, row, lab, noise)
            for number, (name, row) in numbered
            for lab in range(labs)
        )
    )


def written(
    folder: Path,
    rows: Mapping[str, Row],
    lab: int,
    noise: float,
    variables: Mapping[str, str] | None = None,
) -> Path:
    """The archive of one lab."""

    def repeat(number: int, row: Row) -> SyntheticRepeat:
        iops, alone, latency, scrub, rate = row
        by = moved(number, lab, noise)
        return SyntheticRepeat(
            iops * by,
            latency / by,
            seconds=30,
            alone=alone * _LABS[lab],
            scrub_seconds=scrub / by if scrub else None,
            recovery=recovered(20.0, rate * by) if rate else None,
        )

    points = {name: [repeat(number, row)] for number, (name, row) in enumerate(rows.items())}
    busy = {"others": 0.04, "steal": 0.02}
    made = Builder(run=f"lab{lab}", points=points, busy=busy, variables=variables or {})
    return made.write(folder / f"lab-{lab}")


def recovered(seconds: float, rate: float) -> RecoveryFigures:
    """Of so many objects of 4 MiB that rates of a few per second can be told apart."""
    objects = round(seconds * rate * 100)
    return RecoveryFigures(objects, 4 * MIB * objects, seconds * 100, True)


def by_text(found: Sequence[Found], beginning: str) -> Found:
    return next(it for it in found if it.trend.published.startswith(beginning))


@pytest.fixture(scope="module")
def published() -> Sides:
    return {name: side(rows) for name, rows in AGREEING.items()}


def test_the_table_of_an_experiment_has_what_its_archives_say(tmp_path: Path) -> None:
    rows = {name: AGREEING[BOTH.name][name] for name in ("wpq", "balanced")}
    labs = [analyse(open_archive(written(tmp_path, rows, lab, 0.01))) for lab in range(2)]
    found, wanted = measured(labs), side(rows, noise=0.01, labs=2)
    table = tmp_path / "labs.csv"
    write_labs(found, table, "these")
    assert read_labs(table, "these") == found
    assert not read_labs(table, "others").rows and not read_labs(tmp_path / "none", "these").rows
    for row, made in zip(found.rows, wanted.rows, strict=True):
        assert (row.setting, row.lab) == (made.setting, made.lab)
        # These archives have no metrics that say when recovery ran.
        seen = {key: value for key, value in made.figures.items() if "@recovery" not in key}
        assert row.figures == pytest.approx(seen, rel=0.01)
        assert (row.others, row.steal) == pytest.approx((0.04, 0.02))


def test_labs_with_the_published_figures_agree_with_every_trend(published: Sides) -> None:
    found = list(judged(published))
    assert len(found) == len(TRENDS) and len(COUNTED) >= 24
    others = {it.trend.published: it.today for it in found if it.today.verdict != "agrees"}
    # osd_scrub_cost has no effect here, and one figure of the study is of another time.
    assert [it.verdict for it in others.values()] == ["not put to the test"] * 3


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


def test_a_share_that_is_not_kept_differs_and_leads_the_page(published: Sides) -> None:
    rows = dict(AGREEING[RECOVERY.name]) | {"high_client_ops": (5600, 21500, 11.4, None, 80)}
    found = {**published, RECOVERY.name: side(rows)}
    it = by_text(list(judged(found)), "high_client_ops keeps its reservation")
    assert it.today.verdict == "differs"
    page = to_markdown(found).replace("\\", "")
    assert "2 differ otherwise" in page
    assert "Of 2 that differ, no reason is known for 2." in page
    said = f"Here: differs. Why is not known: its control, {SMALL.name}, was not run."
    reservation = "- 2. high_client_ops keeps its reservation, 50 % of it: 11,209 IOPS."
    assert f"{reservation} {said}" in page
    agree, differ = page.split("## What was found")[1].split("Differ otherwise, with")
    assert "Agree, with the profiles of today:" in agree and reservation not in agree
    assert reservation in differ.split("##")[0].splitlines()


def test_published_allocations_that_agree_are_the_reason(published: Sides) -> None:
    """Today's profiles turn the order of scrubs round; with those of the study it is as it was."""
    was = AGREEING[SCRUB.name]
    rows = {
        **was,
        "high_client_ops": was["high_recovery_ops"],
        "high_recovery_ops": was["high_client_ops"],
        **{f"published_{name}": row for name, row in was.items()},
    }
    found = {**published, SCRUB.name: side(rows)}
    it = by_text(list(judged(found)), "The scrub ends sooner with balanced")
    assert it.today.verdict == "the other way round"
    assert it.then is not None and it.then.verdict == "agrees"
    (other,) = it.others
    assert other.under == "With the study's own allocations" and other.apart
    page = to_markdown(found).replace("\\", "")
    assert re.search(r"\(agrees\): published_high_recovery_ops 2\d\.\d s, published_balanced", page)
    assert "The two changes differ beyond noise." in page


def test_profiles_that_are_alike_with_published_allocations_only_have_their_reason() -> None:
    was = AGREEING[RECOVERY.name]
    rows = {**was, "balanced": (12500, 21500, 5.0, None, 120)}
    then = {PUBLISHED[name]: was[name] for name in PROFILES}
    page = to_markdown({RECOVERY.name: side({**rows, **then})})
    assert "1 differs otherwise" in page and "no reason is known" not in page
    assert "Here: differs. With the study's own allocations (agrees): published" in page


def test_an_agreement_of_today_only_is_counted_apart(published: Sides) -> None:
    """The study's own allocations leave clients what WPQ does: the profile's of today do it."""
    was = AGREEING[SCRUB.name]
    rows = {**was, **{f"published_{name}": was["wpq"] for name in PROFILES}}
    found = {**published, SCRUB.name: side(rows, noise=0.002)}
    it = by_text(list(judged(found)), "The scrub ends sooner with WPQ than with high_client_ops")
    assert it.today.verdict == "agrees" and it.today_only
    (summary, today, *_) = (li for li in to_markdown(found).splitlines() if li.startswith("- "))
    assert summary.startswith("- With the allocations that profiles had in the studies: of")
    assert re.search(r", \d+ agree, \d+ agree with today's allocations only and 3", today)


@pytest.mark.parametrize(
    ("boosted", "reason"),
    [
        (
            2544.0,
            "Without large objects: they are of 256 KiB, with as many bytes in all"
            " (agrees): wpq_boosted@recovery 2,5",
        ),
        (21000.0, "Why is not known: it is the same without large objects"),
    ],
)
def test_a_control_is_a_reason_only_if_it_changes_the_verdict(
    published: Sides, boosted: float, reason: str
) -> None:
    was = AGREEING[RECOVERY.name]
    rows: dict[str, Row] = {**was, "wpq_boosted": (21000, 21500, 3.0, None, 60)}
    control = {name: was[name] for name in SMALL.policies}
    control["wpq_boosted"] = (boosted, 21500, 25.0, None, 350)
    own = {RECOVERY.name: side(rows), SMALL.name: side(control)}
    found = {**published, **own}
    it = by_text(list(judged(found)), "Boosted WPQ breaks half")
    assert it.today.verdict == "differs"
    assert f"- 1. {it.trend.published} Here: differs. {reason}" in to_markdown(found).replace(
        "\\", ""
    )


def test_a_control_of_one_lab_is_no_reason(published: Sides) -> None:
    rows = dict(AGREEING[RECOVERY.name]) | {"high_client_ops": (5600, 21500, 11.4, None, 80)}
    control = {name: rows[name] for name in SMALL.policies}
    found = {**published, RECOVERY.name: side(rows), SMALL.name: side(control, labs=1)}
    said = f"Here: differs. Why is not known: its control, {SMALL.name}, has too few labs."
    assert f"11,209 IOPS. {said}" in to_markdown(found).replace("\\", "")


def test_a_policy_that_came_later_is_compared_in_the_labs_that_ran_it() -> None:
    rows = AGREEING[SCRUB.name]
    late = {"published_high_client_ops": rows["high_client_ops"]}
    with_late = side({**rows, **late}, noise=0.002).rows
    whole = Side(tuple(row for row in with_late if row.lab != "lab0" or row.setting not in late))
    claim = more(metrics.SCRUB_SECONDS, "high_client_ops", "wpq")
    today, then = claim(whole), claim(whole, published=True)
    assert [len(figure.values) for figure in today.figures] == [4, 4]
    assert [len(figure.values) for figure in then.figures] == [3, 3]
    assert then.verdict == today.verdict == "agrees"


def test_an_experiment_with_more_labs_than_were_planned_is_named() -> None:
    rows = AGREEING[RECOVERY.name]
    said = "client-vs-recovery ran in more than the 4 labs that were planned"
    assert said in to_markdown({RECOVERY.name: side(rows, labs=5)})
    assert said not in to_markdown({RECOVERY.name: side(rows, labs=4)})


def test_a_baseline_slower_than_the_load_puts_nothing_to_the_test() -> None:
    rows: dict[str, Row] = {"wpq": (10955, 1000, 5, None, None)}
    found = keeps("wpq", 0.95, breaks=True)(side(rows))
    assert found.verdict == "not put to the test"
    assert "Clients alone were slower: this is no baseline." in found.here


def test_what_every_policy_keeps_was_not_put_to_the_test() -> None:
    """Boosted WPQ leaves clients as much as the profiles do: nothing threatened the share."""
    rows: dict[str, Row] = {name: (11000, 12000, 5, None, 9) for name in AGREEING[RECOVERY.name]}
    it = side(rows)
    found = keeps("high_client_ops", 0.5)(it)
    assert found.verdict == "not put to the test"
    assert "No policy surely broke it here." in found.here
    assert keeps("wpq_boosted", 0.5, breaks=True)(it).verdict == "differs"


def test_what_every_policy_breaks_was_not_put_to_the_test() -> None:
    rows: dict[str, Row] = {name: (2500, 12000, 25, None, 9) for name in AGREEING[RECOVERY.name]}
    found = keeps("wpq_boosted", 0.5, breaks=True)(side(rows))
    assert found.verdict == "not put to the test"
    assert "No policy surely kept it here." in found.here


def test_a_small_loss_is_not_the_other_way_round() -> None:
    """Clients lose 0.6 % where 27 % were published: the direction is the same."""
    it = side({"wpq": (994, 1000, 5, None, None)})
    assert keeps("wpq", 0.95, breaks=True)(it).verdict == "differs"


def cut_off(it: Side, policy: str) -> Side:
    """The same, with a limit that ended the clients of a policy."""
    return Side(tuple(replace(row, cut_off=row.setting == policy) for row in it.rows))


def test_the_rate_of_a_recovery_that_a_limit_cut_is_of_its_time_with_clients() -> None:
    it = cut_off(side(AGREEING[RECOVERY.name]), "wpq_boosted")
    assert more(metrics.RECOVERY_BANDWIDTH, "wpq_boosted", "balanced")(it).verdict == "agrees"
    page = to_markdown({RECOVERY.name: it})
    assert "in client-vs-recovery a limit ended the clients of wpq\\_boosted before" in page


def test_a_scrub_that_outlasts_its_clients_has_no_time_beside_them() -> None:
    rows = {"wpq": AGREEING[SCRUB.name]["wpq"], "custom": (9000, 15007, 7.0, 40, None)}
    it = side(rows)
    found = more(metrics.SCRUB_SECONDS, "custom", "wpq")(it)
    assert found.verdict == "not known"
    assert "Clients ended before the work of custom." in found.here


def test_labs_that_end_in_the_same_second_are_not_equal() -> None:
    """A manager reports every two seconds: 8 and 10 s in each lab is no proof."""
    rows: dict[str, Row] = {"a": (1000, 2000, 5, 10, None), "b": (1000, 2000, 5, 8, None)}
    it = side(rows, noise=0.0)
    found = compared(it, metrics.SCRUB_SECONDS, ("a", "b"))
    assert found.error == pytest.approx(math.sqrt((1 / 10**2 + 1 / 8**2) / 12), rel=0.05)
    assert paired((10.0,) * 4, (8.0,) * 4).error == 0


def test_alike_is_a_test_of_its_own() -> None:
    rows: dict[str, Row] = {
        name: (iops, 2000, 5, None, None)
        for name, iops in (("a", 1000.0), ("b", 1005.0), ("c", 1100.0))
    }
    tight = side(rows)
    wide = side(rows, noise=0.05)
    assert alike(metrics.IOPS, 0.02, "b", "a")(tight).verdict == "agrees"
    assert alike(metrics.IOPS, 0.02, "c", "a")(tight).verdict == "differs"
    assert alike(metrics.IOPS, 0.02, "b", "a")(wide).verdict == "no difference found"
    without = Side(tuple(row for row in tight.rows if row.setting != "c"))
    vacuous = alike(metrics.IOPS, 0.02, "b", "a")(without)
    assert vacuous.verdict == "not put to the test"
    assert vacuous.here.endswith("No other policy surely differs from them here.")


def test_a_recovery_that_outlasts_its_clients_counts_while_they_run(tmp_path: Path) -> None:
    """In 30 s with clients 300 of 1,000 objects are recovered, the rest within 10 s after it."""
    rows: Mapping[str, Row] = {"wpq": (100, 200, 5, None, 1.0)}
    run = analyse(open_archive(written(tmp_path, rows, 0, 0.0)))
    (it,) = run.observations
    client = next(phase for phase in it.record.phases.values() if phase.kind == "fio")
    start, end = client.start_unix_seconds, client.end_unix_seconds
    recovery = replace(
        client, kind="wait", end_unix_seconds=end + 10, result=None,
        recovery=RecoveryFigures(1000, 1000 * MIB, 40.0, True),
    )  # fmt: skip
    times = np.array([start, end, end + 10])
    counter = Series(RecoverySeries.POOL_OBJECTS, {}, times, np.array([50.0, 350.0, 1050.0]))
    phases = {"client": client, "recovery": recovery}
    observed = replace(
        it,
        record=replace(it.record, phases=phases),
        samples=Samples({counter.name: [counter]}),
    )
    (row,) = measured([replace(run, observations=(observed,))]).rows
    assert row.figures["recovery_bandwidth"] == pytest.approx(300 * MIB / (end - start))
    assert row.figures["recovery_seconds"] == pytest.approx(end - start)


def test_policies_of_later_labs_are_in_the_report_and_the_table(tmp_path: Path) -> None:
    ran = ({"a": (90, 100, 5, 9, None)}, {"a": (90, 100, 5, 9, None), "b": (80, 100, 6, 9, None)})
    labs = [analyse(open_archive(written(tmp_path, its, lab, 0.0))) for lab, its in enumerate(ran)]
    assert [(row.setting, row.lab) for row in measured(labs).rows] == [
        ("a", "lab0"), ("a", "lab1"), ("b", "lab1"),
    ]  # fmt: skip
    whole = merged("both", labs)
    assert [it.record.axes["policy"] for it in whole.observations] == ["a", "a", "b"]
    assert [point["name"] for point in whole.plan["points"]] == ["policy=a", "policy=b"]


def test_latency_of_a_closed_loop_is_not_counted_beside_its_iops(published: Sides) -> None:
    twins = [trend for trend in TRENDS if trend.same_as]
    assert twins and {trend.same_as for trend in twins} <= {trend.published for trend in COUNTED}
    assert f"today: of {len(COUNTED)} published trends" in to_markdown(published)


def test_noise_decides_nothing() -> None:
    found = list(judged({SCRUB.name: side(AGREEING[SCRUB.name], noise=0.4)}))
    it = by_text(found, "high_client_ops leaves clients more than WPQ")
    assert it.today.verdict == "no difference found"


def test_all_counted_trends_of_an_experiment_are_judged_together() -> None:
    """Whatever else is finished: a chance of one in a hundred stands for nothing among ten."""
    family = [trend.published for trend in COUNTED if trend.study == SCRUB]
    assert len(family) > 10
    missing = dict.fromkeys(family, Judgement("not known", ""))
    assert not any(standing({**missing, family[0]: Judgement("agrees", "", 0.01)}).values())
    stand = standing({**missing, family[0]: Judgement("agrees", "", 0.001)})
    assert [text for text, stands in stand.items() if stands] == family[:1]


def test_what_does_not_stand_may_be_chance_and_is_counted_apart() -> None:
    """Its interval excludes no change: that is not "no difference found"."""
    rows = dict(AGREEING[SCRUB.name]) | {"high_client_ops": (11700, 15007, 5.4, 20, None)}
    sides = {SCRUB.name: side(rows, noise=0.035)}
    it = by_text(list(judged(sides)), "high_client_ops leaves clients more than WPQ")
    assert it.today.verdict == "may be chance" and 0.05 / 12 < (it.today.chance or 0) < 0.05
    assert re.search(r"\d may be chance", to_markdown(sides))


def test_that_one_of_three_differs_may_be_chance_three_times() -> None:
    """And a pair that lies outside of the margin is no sign that it is inside."""
    rows: dict[str, Row] = {
        name: (iops, 2000, 5, None, None) for name, iops in (("a", 1000.0), ("b", 1001.0))
    }
    it = side({**rows, "c": (1100, 2000, 5, None, None)}, noise=0.01)
    two = [alike(metrics.IOPS, 0.05, *names)(it) for names in ("ac", "bc")]
    three = alike(metrics.IOPS, 0.05, *"abc")(it)
    assert {found.verdict for found in (*two, three)} == {"differs"}
    assert three.chance == pytest.approx(3 * min(found.chance or 0 for found in two))
    near = alike(metrics.IOPS, 0.09, "a", "c")(it)
    assert near.verdict == "no difference found" and (near.chance or 0) > 0.5


def test_changes_of_times_that_fall_into_one_bin_do_not_differ() -> None:
    """18, 18, 18 s of 20, 20, 20 s against 19 s: each end is known to a second."""
    new, old, then = (
        Figure(n, (t, t, t + 1e-3), 1 / t) for n, t in (("a", 18.0), ("b", 20.0), ("c", 19.0))
    )
    assert not ratios_differ((new, old), (then, old), same=True)
    exact = [it._replace(bin=0.0) for it in (new, old, then)]
    assert ratios_differ(exact[:2], (exact[2], exact[1]), same=True)


def test_only_what_an_experiment_runs_has_published_allocations() -> None:
    both = {trend.study.name for trend in TRENDS if trend.has_both}
    assert both == {it.name for it in (RECOVERY, HDD, SCRUB, TEN, BOTH)}


def test_an_experiment_that_is_missing_is_not_known(published: Sides) -> None:
    found = judged({SCRUB.name: published[SCRUB.name]})
    assert {it.today.verdict for it in found if it.trend.study == RECOVERY} == {"not known"}


def test_every_verdict_can_be_recomputed_with_the_script_of_the_page(
    published: Sides, tmp_path: Path
) -> None:
    was = AGREEING[RECOVERY.name]
    slower = {"high_recovery_ops": (5000, 21500, 12.0, None, 159)}
    sides = {
        **published,
        RECOVERY.name: side({**was, **slower, **{PUBLISHED[name]: was[name] for name in PROFILES}}),
        SCRUB.name: side(AGREEING[SCRUB.name], noise=0.03),
    }
    for name, rows in ((FIGURES, to_csv(sides)), (VERDICTS, verdicts(sides))):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    (script,) = re.findall(r"```python\n(.*?)```", to_markdown(sides), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    changes: dict[tuple[str, str], list[str]] = {}
    for line in done.stdout.splitlines():
        number, allocations, words = line.split(" ", 2)
        changes.setdefault((number, allocations), []).append(words)
    found = list(judged(sides))
    wanted = list(verdicts(sides))[1:]
    assert len(wanted) > len(TRENDS) and len(wanted) == len(changes)
    for number, allocations, _, _, chance in wanted:
        it = found[int(number) - 1]
        judgement = it.today if allocations == "today" else it.then
        *intervals, said = changes[number, allocations]
        assert judgement is not None
        assert any(words in judgement.here for words in intervals), (judgement.here, intervals)
        assert float(said.removeprefix("chance ")) == pytest.approx(
            float(chance), rel=0.02, abs=1e-9
        )


@pytest.mark.parametrize(
    "part",
    [
        "a scrub of 10,000,000 objects of 32 KiB; here 1,000 objects",
        "[a row for each policy and lab](client-vs-scrub/labs.csv)",
        "- Ceph's backoff of scrubs; here none",
        "other programs used at most 4 % of the CPUs, and other virtual machines took at most 2 %",
        "by -27.0 % with wpq (-27.0 % in the whole load)",
    ],
)
def test_the_page_has_what_the_machine_cannot_show(published: Sides, part: str) -> None:
    assert part in to_markdown(published)


def test_the_page_is_that_of_the_tables_beside_it() -> None:
    folder = Path("docs/internals/study-small")
    tables = {it.name: read_labs(folder / it.name / "labs.csv", it.ran_with) for it in EXPERIMENTS}
    sides = {name: table for name, table in tables.items() if table.rows}
    assert (folder / "README.md").read_text(encoding="utf-8") == to_markdown(sides)
    for name, rows in (("trends.csv", to_csv(sides)), ("verdicts.csv", verdicts(sides))):
        with (folder / name).open(newline="", encoding="utf-8") as opened:
            assert list(map(tuple, csv.reader(opened))) == list(rows), name


def test_labs_of_several_days_count_together(tmp_path: Path) -> None:
    """Two labs are in the table of an experiment, and one of them and another are here."""
    out = tmp_path / "pages"
    (out / BOTH.name).mkdir(parents=True)
    rows = {name: AGREEING[BOTH.name][name] for name in ("wpq", "balanced")}
    write_labs(side(rows, labs=2), out / BOTH.name / "labs.csv", BOTH.ran_with)
    every = [piece for piece in pieces(tmp_path / "own", 2) if piece.experiment == BOTH]
    for piece, lab in zip(every, (1, 2), strict=True):
        written(piece.folder, rows, lab, 0.0005, piece.variables)
    options = Options(tmp_path / "own", out, labs=2, bar=0.1, quick=False, causes=False)
    page = write_pages(options).read_text(encoding="utf-8")
    found = read_labs(out / BOTH.name / "labs.csv", BOTH.ran_with)
    labs = [(row.setting, row.lab) for row in found.rows]
    assert labs == [(name, lab) for name in rows for lab in ("lab0", "lab1", "lab2")]
    assert "Each experiment that was run ran in 3 labs" in page
    assert (out / BOTH.name / "report.md").exists()


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
