"""The whole report of the committed archive: Markdown, every table, the data of every chart.

To renew it after a change that is meant:

    cephqos report tests/recordings/archive/format-1/* --out tests/golden/report
    rm tests/golden/report/report.html tests/golden/report/charts/*.svg
"""

from pathlib import Path

from cephqos_base.command import main

TESTS = Path(__file__).parents[1]
(COMMITTED,) = (TESTS / "recordings" / "archive").glob("format-1/*")
GOLDEN = TESTS / "golden" / "report"


def texts(folder: Path) -> dict[str, str]:
    files = [*folder.rglob("*.md"), *folder.rglob("*.csv")]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_the_report_of_the_committed_archive_is_the_golden_one(tmp_path: Path) -> None:
    assert main(["report", str(COMMITTED), "--out", str(tmp_path)]) == 0
    expected = texts(GOLDEN)
    assert len(expected) > 9
    assert texts(tmp_path) == expected
