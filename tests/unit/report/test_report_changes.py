"""Changes against a baseline, and tables of schedulers: the published arithmetic, and noise."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_base.command import main
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.compare.comparison import compare
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportSettings, analyse
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.tables.of_changes import LATENCIES, change_between
from cephqos_loadgen.report.tables.table import Table
from cephqos_loadgen.results.phase import RecoveryFigures


def tables(folder: Path, *options: str) -> str:
    assert main(["report", *map(str, (folder, *options)), "--out", str(folder) + "-out"]) == 0
    return (Path(str(folder) + "-out") / "report.md").read_text().replace("\\", "")


def three(
    iops: float, latency: float, spread: float = 0.01, **more: object
) -> list[SyntheticRepeat]:
    shares = (1 - spread, 1.0, 1 + spread)
    return [SyntheticRepeat(iops * s, latency * s, **more) for s in shares]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clients alone: 21,500 IOPS at 2.98 ms."""
    folder = tmp_path_factory.mktemp("baseline") / "alone"
    return Builder(run="alone", points={"none": three(21500.0, 2.98)}).write(folder)


def test_the_published_table_is_printed_against_a_baseline_archive(
    tmp_path: Path, baseline: Path
) -> None:
    points = {"high_client_ops": three(11209.0, 5.688), "wpq_boosted": three(2544.0, 25.0)}
    archive = Builder(run="b", points=points).write(tmp_path / "a")
    page = tables(archive, "--baseline", str(baseline), "--target", "50%")
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    (kept,) = [line for line in lines if "high_client_ops" in line and "kept" in line]
    assert [cell.strip() for cell in kept.split("|")[3:7]] == [
        "21,500", "11,209", "-10,291", "-47.9 %",
    ]  # fmt: skip
    assert "| 10,750 | kept ▲ |" in kept
    (broken,) = [line for line in lines if "wpq_boosted" in line and "broken" in line]
    assert "| 2,544 | -18,956 | -88.2 % |" in broken and "| 10,750 | broken ▼ |" in broken


def test_latency_changes_against_a_baseline_with_its_interval(
    tmp_path: Path, baseline: Path
) -> None:
    archive = Builder(run="b", points={"wpq": three(2544.0, 25.0)}).write(tmp_path / "a")
    page = tables(archive, "--baseline", str(baseline))
    (line,) = [it for it in page.splitlines() if it.startswith("| policy") and "Mean" in it]
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[4:8] == ["2.98", "25.0", "22.0", "+738.9 %"]
    low, high = (float(text.strip(" %+")) for text in cells[8].split("…"))
    assert low < 738.9 < high and cells[9] == "higher"
    for percent in ("p95", "p99", "p99.5"):
        assert f"| {percent}, ms |" in page


def test_scrub_and_recovery_change_against_those_of_the_baseline(tmp_path: Path) -> None:
    recovery = {
        seconds: RecoveryFigures(75_000, 75_000 << 22, seconds, True) for seconds in (966.0, 488.0)
    }
    runs = {}
    for name, seconds, scrub in (("before", 966.0, 20.0), ("after", 488.0, 10.0)):
        repeats = three(1000.0, 5.0, scrub_seconds=scrub, recovery=recovery[seconds])
        runs[name] = Builder(run=name, points={"a": repeats}).write(tmp_path / name)
    page = tables(runs["after"], "--baseline", str(runs["before"]))
    section = page[page.index("## Latency, scrub and recovery against the baseline") :]
    for words in (
        "| osd_in | Recovery time, s | 966 | 488 | -478 | -49.5 % |",
        "| osd_in | Recovery rate, objects/s | 77.6 | 154 | 76.0 | +98.0 % |",
        "| scrub | Scrub time, s | 20.0 | 10.0 | -10.0 | -50.0 % |",
        "| scrub | Scrub rate, MiB/s | 51.2 | 102 | 51.2 | +100.0 % |",
    ):
        assert words in section


def test_a_baseline_that_is_a_figure_has_throughput_only(tmp_path: Path) -> None:
    archive = Builder(points={"a": three(11209.0, 5.0)}).write(tmp_path / "a")
    page = tables(archive, "--baseline", "21,500")
    assert "## Change against the baseline" in page and "against the baseline, " not in page
    assert "## Latency, scrub and recovery" not in page


def outcomes(page: str) -> list[str]:
    lines = page[page.index("## Change against the baseline") :].split("##")[1].splitlines()
    return [line.split("|")[-2].strip() for line in lines if line.startswith("| ")][1:]


@pytest.mark.parametrize(
    ("repeats", "result"),
    [
        (three(11209.0, 5.0), "kept ▲"),
        (three(2544.0, 5.0), "broken ▼"),
        (three(10800.0, 5.0, spread=0.05), "too close to call"),
        (three(11209.0, 5.0)[:1], "not known"),
        (three(24000.0, 5.0), "not put to the test"),
    ],
)
def test_a_target_is_judged_by_the_interval(
    tmp_path: Path, repeats: list[SyntheticRepeat], result: str
) -> None:
    """10,800 is above 10,750, and 24,000 above the baseline: neither shows a reservation kept."""
    archive = Builder(points={"a": repeats}).write(tmp_path / "a")
    assert outcomes(tables(archive, "--baseline", "21,500", "--target", "50%")) == [result]


def test_a_baseline_archive_of_one_repeat_is_not_exact(tmp_path: Path) -> None:
    base = Builder(run="b", points={"none": three(21500.0, 3.0)[:1]}).write(tmp_path / "b")
    archive = Builder(run="a", points={"a": three(11209.0, 5.0)}).write(tmp_path / "a")
    page = tables(archive, "--baseline", str(base), "--target", "50%")
    assert outcomes(page) == ["not known"]


def test_a_baseline_slower_than_the_load_is_the_main_caveat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Builder(points={"a": three(1300.0, 5.0)}).write(tmp_path / "a")
    page = tables(archive, "--baseline", "1000")
    assert "Main caveat: The baseline is slower" in capsys.readouterr().out
    assert "The baseline is slower than what is compared with it in 1 row" in page
    assert "did 1,300 IOPS, the baseline 1,000 IOPS" in page
    page = tables(archive, "--baseline", "1290")
    assert "The baseline is slower" not in page


def test_a_baseline_of_another_environment_is_a_caveat(tmp_path: Path, baseline: Path) -> None:
    archive = Builder(run="a", points={"a": three(11209.0, 5.0)}).write(tmp_path / "a")
    assert "another environment" not in tables(archive, "--baseline", str(baseline))
    environment = archive / "environment.json"
    environment.write_text(environment.read_text().replace('"cpus": 2', '"cpus": 64'))
    page = tables(archive, "--baseline", str(baseline))
    assert "The baseline is of another environment" in page
    assert "CPU: 2 × a CPU (alone); 64" in page or "64 × a CPU (a)" in page


def test_the_load_alone_is_what_a_load_beside_a_scrub_is_compared_with(tmp_path: Path) -> None:
    points = {
        "wpq": [replace(repeat, alone=1000.0) for repeat in three(730.0, 5.0)],
        "mclock": [replace(repeat, alone=500.0) for repeat in three(730.0, 5.0)],
    }
    page = tables(Builder(points=points).write(tmp_path / "a"))
    section = page[page.index("## Change against the load alone") :].split("\n## ")[0]
    rows = [line for line in section.splitlines() if "Throughput" in line]
    assert "| 1,000 | 730 | -270 | -27.0 % |" in rows[0] and rows[0].endswith("| lower |")
    assert rows[1].endswith("| not put to the test |")
    assert "The load alone is slower than what is compared with it in 1 row" in page
    assert (
        "- Throughput against the load alone: -27.0 % with wpq (lower) and"
        " +46.0 % with mclock (not put to the test)." in page
    )


def test_a_change_has_the_sign_of_the_figures_that_are_shown(tmp_path: Path) -> None:
    """Most completions of `b` are in its fast repeat: merged it is faster, by repeats slower."""
    points = {
        "a": [SyntheticRepeat(1000.0, 10.0)] * 3,
        "b": [SyntheticRepeat(9000.0, 5.0), *[SyntheticRepeat(500.0, 15.0)] * 2],
    }
    run = analyse(open_archive(Builder(points=points).write(tmp_path / "a")))
    a, b = (
        next(r for r in run.rows if r.axes["policy"] == name and r.key.window == WHOLE)
        for name in "ab"
    )
    for metric in LATENCIES[:2]:
        new, old = b.figures[metric.key], a.figures[metric.key]
        assert fmean(new.samples) > fmean(old.samples)
        found = change_between(b, a, metric)
        assert found is not None
        assert found.absolute == pytest.approx(new.value - old.value)
        assert found.ratio == pytest.approx(new.value / old.value - 1)
    (difference,) = compare(run, [run], [metrics.MEAN]).differences[:1]
    assert difference.change.absolute == 0


# -- schedulers ------------------------------------------------------------------------------------


def by_scheduler(folder: Path, spread: float) -> Table:
    """Two object sizes; bfq does half of the others."""
    axes, points = {}, {}
    for size, rate in (("4K", 1000.0), ("4M", 100.0)):
        for scheduler, share in (("none", 1.0), ("mq-deadline", 0.99), ("bfq", 0.5)):
            name = f"{scheduler}-{size}"
            axes[name] = {"scheduler": scheduler, "object": size}
            points[name] = three(rate * share, 5.0, spread)
    run = analyse(open_archive(Builder(points=points, axes=axes).write(folder)))
    document = build([run], ReportSettings())
    return next(t for t in document.tables if t.name == "by-scheduler-client-iops")


def test_schedulers_are_columns_and_the_best_and_worst_of_each_line_stand_out(
    tmp_path: Path,
) -> None:
    table = by_scheduler(tmp_path / "a", 0.02)
    assert [column.title for column in table.columns] == ["object", "none", "mq-deadline", "bfq"]
    assert [[(cell.text, cell.mark) for cell in row] for row in table.rows] == [
        [("4K", ""), ("1,000 ± 20.0", "best"), ("990 ± 19.8", ""), ("500 ± 10.0", "worst")],
        [("4M", ""), ("100 ± 2.00", "best"), ("99.0 ± 1.97", ""), ("50.0 ± 1.00", "worst")],
    ]


def test_nothing_stands_out_where_one_deviation_overlaps(tmp_path: Path) -> None:
    """1,000 - 400 lies below 500 + 200."""
    table = by_scheduler(tmp_path / "a", 0.4)
    assert {cell.mark for row in table.rows for cell in row} == {""}


def test_nothing_stands_out_with_one_repeat(tmp_path: Path) -> None:
    axes = {f"{s}{n}": {"scheduler": s, "object": n} for s in ("none", "bfq") for n in "12"}
    points = {name: [SyntheticRepeat(100.0 * (n + 1))] for n, name in enumerate(axes)}
    run = analyse(open_archive(Builder(points=points, axes=axes).write(tmp_path / "a")))
    tables_ = [
        t
        for t in build([run], ReportSettings()).tables
        if t.name in ("loads", "by-scheduler-client-iops")
    ]
    marks = {cell.mark for table in tables_ for row in table.rows for cell in row}
    assert len(tables_) == 2 and marks <= {"", "caveat"}
