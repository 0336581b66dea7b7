"""The probe against a real cluster: its figures are real, its objects its own, and gone after."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter_process import exporter
from tests.lab.conftest import LabPool
from tests.waiting import until

from cephqos_loadgen.lab.lab import RunningLab

from .conftest import lab_spec

NAME = "cephqos_probe_latency_seconds"


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    running = labs.start(lab_spec("probe", osds=2))
    labs.call(running.exec(["ceph", "osd", "pool", "create", "probed", "8"]))
    yield running
    labs.end(running)


def _flags(lab: RunningLab) -> list[str]:
    python = " ".join(lab.enter_argv(["python3"]))
    return [
        *("--role=probe", f"--cluster.conf={lab.paths.conf}", "--cluster.name=client.admin"),
        *(f"--cluster.python={python}", "--probe.pools=probed", "--probe.rate=20"),
        *("--probe.objects=8", "--probe.timeout=2", "--log.level=warn"),
    ]


def _by(page: str, name: str, label: str) -> dict[str, float]:
    """Sums of a metric's samples by the value of a label."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == name:
                key = sample.labels[label]
                sums[key] = sums.get(key, 0.0) + sample.value
    return sums


async def _objects(lab: RunningLab) -> list[str]:
    done = await lab.exec(["rados", "-p", "probed", "--all", "ls"])
    return sorted(line.split("\t")[-1] for line in done.stdout.splitlines() if line)


async def test_it_measures_comes_back_from_a_stopped_osd_and_leaves_nothing(
    labs: LabPool, lab: RunningLab
) -> None:
    assert Path(sys.executable).exists()
    flags = [flag for flag in _flags(lab) if not flag.startswith("--log.level")]
    with exporter(*flags) as running:

        async def at_least(name: str, label: str, wanted: dict[str, float]) -> bool:
            found = _by(await asyncio.to_thread(running.get), name, label)
            return all(found.get(key, 0.0) >= value for key, value in wanted.items())

        async def measures(count: float) -> None:
            wanted = {"write": count, "read": count}
            await until(lambda: at_least(f"{NAME}_count", "op", wanted), f"{wanted} probed")

        await measures(20)
        assert len(await _objects(lab)) == 8
        try:
            for osd in range(2):
                await lab.faults.stop(osd)
            timeout = {"timeout": 1.0}
            failed = "cephqos_probe_failures_total"
            await until(lambda: at_least(failed, "reason", timeout), "a probe that times out")
            counted = _by(running.get(), f"{NAME}_count", "op")
        finally:
            for osd in range(2):
                await lab.faults.resume(osd)
        await measures(max(counted.values()) + 20)
    assert await _objects(lab) == []
