"""Every interval of a report can be computed again from its CSV, by the script of the docs."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.figures.analysis import ReportSettings, analyse
from cephqos_loadgen.report.figures.metrics import METRICS
from cephqos_loadgen.report.pages.write import write

PAGE = Path("docs/measure/report.md")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("per-repeat")
    rates = {"a": (1000, 1020, 990), "b": (900, 870, 915), "c": (1005, 1000, 1020)}
    points = {
        name: [SyntheticRepeat(float(iops), 64e3 / iops, scrub_seconds=iops / 50) for iops in three]
        for name, three in rates.items()
    }
    run = analyse(open_archive(Builder(run="r", points=points).write(folder / "run")))
    write(build([run], ReportSettings()), folder / "report")
    return folder / "report" / "tables"


def table(report: Path, name: str) -> list[dict[str, str]]:
    with (report / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_script_of_the_page_gives_the_intervals_of_the_report(
    report: Path, tmp_path: Path
) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = [line for line in script.splitlines() if line.strip()]
    assert len(code) <= 40, "a short script"
    path = tmp_path / "intervals.py"
    path.write_text(script)
    per_repeat = str(report / "per-repeat.csv")
    done = subprocess.run(
        [sys.executable, str(path), per_repeat, "policy=a"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    computed = {}
    for line in done.stdout.splitlines():
        phase, _, direction, part, figure, point, words = line.split("; ")
        if direction == "total" and part == "all of it":
            named = METRICS[figure].named
            computed[point.removeprefix("policy="), phase, named] = words
    changes = table(report, "changes")
    assert len(changes) > 10
    for row in changes:
        shown = row["95 % interval, %"].lstrip("'")  # a cell that begins with a minus is quoted
        words = f"{float(row['Change, %']):+.1f} % ({shown})"
        assert computed[row["Point"], row["Load"], row["Figure"]] == words


def test_the_mean_of_the_repeats_is_the_throughput_of_the_table(report: Path) -> None:
    loads = table(report, "loads")
    assert len(loads) >= 3
    for line in loads:
        each = [
            float(it["Value"])
            for it in table(report, "per-repeat")
            if (it["Point"], it["Phase"], it["Part"], it["Figure"], it["Direction"])
            == (f"policy={line['Point']}", line["Load"], line["Part"], "iops", "total")
        ]
        assert len(each) == int(line["Repeats"])
        assert sum(each) / len(each) == pytest.approx(float(line["Throughput, IOPS"]))
