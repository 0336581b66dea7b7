"""`cephqos report --causes` on archives: the rules' causes for the seconds in which they hold."""

import asyncio
import csv
import sys
from pathlib import Path

import pytest
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat

from cephqos_base.errors import UsageError
from cephqos_loadgen.programs import find_program

# Clients' operations pile up in the store of an OSD that delivers 300 operations/s.
BUSY = {"attained": 300.0, "in_progress": 20.0, "in_store": 16.0, "media": "ssd"}


@pytest.fixture(autouse=True)
def needs_prometheus() -> None:
    try:
        find_program("promtool")
        find_program("prometheus")
    except UsageError as error:
        pytest.skip(str(error))


async def reported(folder: Path, osds: Osds, seconds: int = 40) -> dict[str, dict[str, str]]:
    """By OSD: the clients' row of the table of reservations."""
    points = {"balanced": [SyntheticRepeat(600.0, seconds=seconds)]}
    archive = Builder(run="busy", points=points, osds=osds).write(folder / "archive")
    argv = [sys.executable, "-m", "cephqos_base", "report", str(archive), "--causes"]
    process = await asyncio.create_subprocess_exec(*argv, "--out", str(folder / "report"))
    assert await asyncio.wait_for(process.wait(), 280) == 0
    with (folder / "report/tables/reservations.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["OSD"]: row for row in rows if row["Class"] == "client"}


def seconds_of(row: dict[str, str]) -> dict[str, float]:
    (title,) = [name for name in row if name.startswith("Main causes")]
    found = {}
    for part in filter(None, row[title].split(", ")):
        name, _, seconds = part.rpartition(" ")
        found[name] = float(seconds)
    return found


async def test_a_capacity_that_was_never_real_is_the_cause_of_the_seconds_with_demand(
    tmp_path: Path,
) -> None:
    osds = Osds(capacity=1000.0, reservation=500.0, busy=(5, 42), **BUSY)  # type: ignore[arg-type]
    found = await reported(tmp_path, osds, seconds=60)
    assert sorted(found) == ["osd.0", "osd.1"]
    for row in found.values():
        causes = seconds_of(row)
        assert causes.get("capacity", 0.0) >= 20
        # As long as they want more, and no longer.
        demand = float(row["Demand, s"])
        assert 25 <= demand <= 30
        assert abs(sum(causes.values()) - demand) <= 3
        assert float(row["Violated, s"]) == demand


async def test_a_capacity_that_is_delivered_is_no_cause(tmp_path: Path) -> None:
    found = await reported(tmp_path, Osds(capacity=320.0, reservation=160.0, **BUSY))  # type: ignore[arg-type]
    for row in found.values():
        assert set(seconds_of(row)) == {"unknown"}
        assert float(row["Violated, s"]) == 0


async def test_without_demand_there_is_no_cause(tmp_path: Path) -> None:
    found = await reported(tmp_path, Osds(capacity=1000.0, reservation=500.0, attained=300.0))
    assert found and not any(seconds_of(row) for row in found.values())
