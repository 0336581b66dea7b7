"""What the demo starts and does not wait for says how far it is."""

import asyncio
from pathlib import Path

import pytest

from cephqos_base.errors import CephqosError
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.progress import Progress
from cephqos_stack.demo import beside
from cephqos_stack.logs import LogPipeline, LogSpec

SOURCES = Sources(prometheus="http://127.0.0.1:1")


async def test_without_grafana_one_line_says_how_to_get_one(tmp_path: Path) -> None:
    async with beside.grafana_beside(None, SOURCES, tmp_path) as grafana:
        await asyncio.wait_for(grafana.ready.wait(), 5)
        assert grafana.state.startswith("not found: install Grafana")
        assert "GRAFANA_HOME" in grafana.state and "GRAFANA_URL" in grafana.state
        assert not grafana.stays


async def test_the_progress_of_a_build_is_the_state_and_its_failure_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on = asyncio.Event()

    async def build(name: str, progress: Progress, nice: int) -> Path:
        assert nice == 19
        with progress.step(f"building {name}, once") as say:
            say("3 of at most 9 packages compiled")
            await going_on.wait()
        raise CephqosError("Go not found")

    monkeypatch.setattr(beside, "ensure_tool", build)
    pipeline = LogPipeline(LogSpec(folder=tmp_path, logs=tmp_path, cluster="c"))
    async with beside.logs_beside(pipeline, None) as logs:  # type: ignore[arg-type]
        await logs.within(0.2)  # nobody waits longer
        assert not logs.ready.is_set()
        wanted = "building cephqos-collector, once: 3 of at most 9 packages compiled"
        assert logs.state == wanted
        going_on.set()
        await asyncio.wait_for(logs.ready.wait(), 5)
        assert logs.state == "none: Go not found"


async def test_who_is_cancelled_while_the_work_ends_is_cancelled() -> None:
    ending, go_on = asyncio.Event(), asyncio.Event()

    async def slow_to_end(_: beside.Beside) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await go_on.wait()

    async def block() -> None:
        async with beside._beside("logs", slow_to_end):
            await asyncio.sleep(0)

    outer = asyncio.create_task(block())
    await ending.wait()
    outer.cancel()
    await asyncio.wait([outer])
    assert outer.cancelled()
    go_on.set()
