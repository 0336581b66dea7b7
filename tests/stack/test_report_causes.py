"""`cephqos report --causes`: recording rules evaluated over an archive by a real Prometheus."""

import asyncio
import sys
from pathlib import Path

from tests.stack.test_replay import needs_prometheus
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat


async def report(archive: Path, *options: str) -> str:
    argv = [sys.executable, "-m", "cephqos_base", "report", str(archive), *options]
    process = await asyncio.create_subprocess_exec(*argv, "--out", f"{archive}-out")
    assert await asyncio.wait_for(process.wait(), 250) == 0
    return (Path(f"{archive}-out") / "report.md").read_text().replace("\\", "")


async def test_a_class_that_waits_has_a_cause_and_one_that_does_not_has_none(
    tmp_path: Path,
) -> None:
    """Requests wait at every second, the OSD gives less than reserved, and nothing explains it."""
    needs_prometheus()
    causes = {}
    for name, waiting in (("waits", 5.0), ("idle", 0.0)):
        osds = Osds(attained=300.0, waiting=waiting, capacity=600.0)
        builder = Builder(points={"a": [SyntheticRepeat(1000.0, seconds=90)]}, osds=osds)
        page = await report(builder.write(tmp_path / name), "--causes")
        rows = [line for line in page.splitlines() if line.startswith("| policy=a | client | osd.")]
        causes[name] = [row.rstrip(" |").rpartition("|")[2].strip() for row in rows]
    assert causes["idle"] == ["–", "–"]
    assert len(causes["waits"]) == 2
    for cell in causes["waits"]:
        cause, _, seconds = cell.partition(",")[0].rpartition(" ")
        assert cause and float(seconds) > 20
    svg = Path(f"{tmp_path / 'waits'}-out/charts/time-01.svg").read_text()
    assert "main causes" in svg and "client: " in svg
