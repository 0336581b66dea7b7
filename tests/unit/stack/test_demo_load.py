"""The demo's load: its figures and the story's steps, as dashboards of runs read them."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from cephqos_loadgen.live.metrics import LiveMetrics
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.run_recording.files import JsonLines
from cephqos_stack.demo.load import DemoLoad


@pytest.fixture
def load(tmp_path: Path) -> Iterator[DemoLoad]:
    live = Live(RunPlace(run="demo-1", scenario="demo", cluster="f", phases={"clients": 50.0}))
    live.start_client("clients", "fio", "rbd")
    with contextlib.closing(JsonLines(tmp_path / "events.jsonl")) as events:
        yield DemoLoad(cast(Any, None), live, events)


def _status(ios: int, milliseconds: int) -> bytes:
    """What fio writes every second; a part of it that is enough."""
    entry = {
        "io_bytes": ios * 4096,
        "total_ios": ios,
        "runtime": milliseconds,
        "clat_ns": {"N": ios, "mean": 1e6, "stddev": 0.0, "max": 2e6, "bins": {"1003520": ios}},
    }
    nothing = {
        **entry,
        "io_bytes": 0,
        "total_ios": 0,
        "clat_ns": {"N": 0, "mean": 0, "stddev": 0, "max": 0},
    }
    job = {"jobname": "demo", "job_start": 0, "error": 0, "write": entry, "read": nothing}
    document = {"timestamp_ms": milliseconds, "jobs": [job]}
    return json.dumps(document, indent=2).encode() + b"\n"


def _shown(load: DemoLoad, name: str, **labels: str) -> set[str]:
    registry = CollectorRegistry()
    registry.register(LiveMetrics(load.live))
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    return {
        sample.labels.get("phase", f"{sample.value:g}")
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    }


async def test_what_fio_writes_is_shown_as_a_runs(load: DemoLoad) -> None:
    output = asyncio.StreamReader()
    output.feed_data(b"a warning of librbd\n" + _status(100, 1000) + _status(300, 2000))
    output.feed_eof()
    await load.read(output)
    assert _shown(load, "cephqos_client_ops_total", op="write") == {"300"}
    assert _shown(load, "cephqos_client_iops", op="write") == {"200"}


async def test_the_end_of_what_fio_wrote_is_kept_for_the_error(load: DemoLoad) -> None:
    output = asyncio.StreamReader()
    output.feed_data(b"x" * 2000 + b"fio: pool does not exist\n")
    output.feed_eof()
    await load.read(output)
    assert load.last_output.endswith(b"fio: pool does not exist\n") and len(load.last_output) <= 500


def test_a_step_of_the_story_is_a_phase_beside_the_clients_and_an_event(
    load: DemoLoad, tmp_path: Path
) -> None:
    with load.phase("slow device of osd.1"):
        assert _shown(load, "cephqos_run_info") == {"clients", "slow device of osd.1"}
    assert _shown(load, "cephqos_run_info") == {"clients"}
    events = [json.loads(it) for it in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(it["event"], it["phase"]) for it in events] == [
        ("phase_started", "slow device of osd.1"),
        ("phase_ended", "slow device of osd.1"),
    ]
