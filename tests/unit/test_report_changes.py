"""Changes against a baseline, and tables of schedulers: the published arithmetic, and noise."""

from pathlib import Path

import pytest
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_base.command import main
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.figures.analysis import ReportSettings, analyse
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
    assert len(tables_) == 2 and marks <= {"", "doubt"}
