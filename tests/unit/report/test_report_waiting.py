"""Where clients waited, in a report."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.synthetic_archive import START, Builder, SyntheticRepeat

from cephqos_base.series import AccountSeries
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures.analysis import ReportRun, ReportSettings, analyse
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_waiting import waiting_table


def grown(osd: int, state: str, by: str, seconds: float) -> Series:
    """A counter that grows while the load runs, and before it."""
    labels = {"ceph_daemon": f"osd.{osd}", "state": state, "by": by}
    times = np.array([START - 10, START, START + 30])
    return Series(AccountSeries.SECONDS, labels, times, np.array([0.0, 900.0, 900.0 + seconds]))


def run(folder: Path, *series: Series) -> ReportRun:
    builder = Builder(points={"a": [SyntheticRepeat(100.0)]})
    found = analyse(open_archive(builder.write(folder / "archive")))
    (observed,) = found.observations
    samples = Samples({AccountSeries.SECONDS: list(series)})
    return replace(found, observations=(replace(observed, samples=samples),))


def test_shares_are_of_all_osds_and_the_queue_names_what_was_served_instead(tmp_path: Path) -> None:
    table = waiting_table(
        Subject(
            [
                run(
                    tmp_path,
                    grown(0, "queue", "background_recovery", 30.0),
                    grown(1, "queue", "background_recovery", 20.0),
                    grown(1, "replica", "osd.0", 30.0),
                    grown(0, "replica", "osd.1", 19.7),
                    grown(0, "reply", "", 0.3),
                )
            ],
            ReportSettings(),
        )
    )
    titles = ["Point", "Load", "queue: background_recovery", "replica"]
    assert [column.title for column in table.columns] == titles
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["policy=a", "client", "50.0", "49.7"]
    ]


def test_without_an_account_there_is_no_table(tmp_path: Path) -> None:
    assert not waiting_table(Subject([run(tmp_path)], ReportSettings())).rows
