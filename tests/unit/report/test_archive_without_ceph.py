"""An archive is read where there is no Ceph. That one fresh from a run is, a lab test shows."""

import csv
from pathlib import Path

import pytest
from tests.without_ceph import cephqos, read_everything

RECORDED = Path(__file__).parents[2] / "recordings/archive/format-1"


@pytest.mark.parametrize("archive", sorted(RECORDED.iterdir()), ids=lambda path: path.name)
def test_a_recorded_archive_is_verified_shown_and_exported(archive: Path, tmp_path: Path) -> None:
    shown = read_everything(archive, tmp_path)
    assert shown.startswith(f"{archive.name}: complete")
    with (tmp_path / "csv/steps.csv").open() as file:
        assert sum(float(row["ios"]) for row in csv.DictReader(file)) > 0


def test_the_guard_refuses_what_needs_ceph(tmp_path: Path) -> None:
    """Or nothing would be shown by the others."""
    done = cephqos(tmp_path, "run", "baseline", "--scale", "tiny", "--out", str(tmp_path / "out"))
    assert done.returncode != 0
    assert list(tmp_path.iterdir()) == []
