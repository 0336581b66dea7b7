"""Each caveat is raised by a run that deserves it, marks its rows, and a sound one raises none."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat

from cephqos_alerts.rules.settings import WINDOWS
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.caveats.every import caveats
from cephqos_loadgen.report.figures.analysis import ReportRun, analyse
from cephqos_loadgen.report.figures.causes import RULES_WINDOW

STEADY = [SyntheticRepeat(1000.0), SyntheticRepeat(1010.0), SyntheticRepeat(990.0)]
SATURATED = Osds(attained=800.0, waiting=5.0)


def run(tmp_path: Path, builder: Builder) -> ReportRun:
    return analyse(open_archive(builder.write(tmp_path / "archive")))


def texts(tmp_path: Path, builder: Builder) -> list[str]:
    return [f"{f.text} {f.evidence}" for f in caveats(run(tmp_path, builder))]


def test_a_sound_run_raises_none(tmp_path: Path) -> None:
    assert texts(tmp_path, Builder(points={"balanced": STEADY}, osds=SATURATED)) == []


def test_operations_that_pile_up_in_the_store_are_demand(tmp_path: Path) -> None:
    """Nothing waits in the queue, all of it behind the scheduler: that is a test, too."""
    osds = Osds(attained=30.0, in_progress=20.0, in_store=16.0)
    said = texts(tmp_path, Builder(points={"a": STEADY}, osds=osds))
    assert not any("put to the test" in text for text in said)
    assert any("delivered at most 30" in text for text in said)


@pytest.mark.parametrize(
    ("media", "latency", "piles_up"),
    [("hdd", 0.02, False), ("hdd", 0.06, True), ("ssd", 0.02, True), ("ssd", 0.004, False)],
)
def test_many_transactions_in_the_store_pile_up_only_where_each_takes_long_for_its_media(
    tmp_path: Path, media: str, latency: float, piles_up: bool
) -> None:
    osds = Osds(attained=30.0, in_progress=20.0, in_store=16.0, store_latency=latency, media=media)
    said = texts(tmp_path, Builder(points={"a": STEADY}, osds=osds))
    assert any("put to the test" in text for text in said) is not piles_up


def test_demand_has_the_windows_of_the_rules() -> None:
    assert {WINDOWS["rate"], WINDOWS["sustained"]} == {RULES_WINDOW}


def test_a_disk_that_osds_share_is_counted_once(tmp_path: Path) -> None:
    """Two OSDs of one host on one device, and two that are on a device each."""
    for name, share, requests in (("shared", True, 0.5), ("apart", False, 1.0)):
        osds = Osds(share_disk=share)
        found = run(tmp_path / name, Builder(points={"a": STEADY}, osds=osds))
        row = next(row for row in found.rows if row.key.window == "all of it")
        assert row.value("device_written") == pytest.approx(requests * 2 * 4096)


def test_without_reservations_it_is_said_that_nothing_is_known_of_them(tmp_path: Path) -> None:
    said = texts(tmp_path, Builder(points={"a": STEADY}))
    assert any("whether reservations were kept there is not known" in text for text in said)


@pytest.mark.parametrize(
    ("osd", "shared"),
    [
        ({"bluestore_bdev_access_mode": "file"}, True),
        ({"bluestore_bdev_access_mode": "blk", "bluestore_bdev_devices": "loop3"}, True),
        ({"bluestore_bdev_access_mode": "blk", "bluestore_bdev_devices": "nvme0n1"}, False),
    ],
)
def test_loop_devices_are_files_of_one_host(
    tmp_path: Path, osd: dict[str, str], shared: bool
) -> None:
    found = run(tmp_path, Builder(points={"a": STEADY}, osds=SATURATED))
    environment = {**found.environment, "cluster": {"osds": [{"rotational": "0", **osd}]}}
    said = [f.text for f in caveats(replace(found, environment=environment))]
    assert any("on files of one host" in text for text in said) is shared


def test_a_caveat_marks_the_rows_that_it_touches(tmp_path: Path) -> None:
    found = run(tmp_path, Builder(points={"a": STEADY, "b": STEADY[:1]}, osds=SATURATED))
    (caveat,) = caveats(found)
    assert {key.point for key in caveat.rows} == {"policy=b"}
