"""The probe: what it counts, what it does in which order, and how it survives its child."""

import asyncio
import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from cephqos_base.bounds import OP_BOUNDS
from cephqos_exporter.ceph.monclient import ClusterAccess, ClusterSilent, ClusterUnreachable
from cephqos_exporter.families import Family
from cephqos_exporter.probe.child import ProbeChild
from cephqos_exporter.probe.latencies import Measured
from cephqos_exporter.probe.probe_source import ProbeSource, ProbeSpec, plan

# A rados module that keeps objects in a file and hangs or fails when told.
RADOS = """
import json, os, time
STATE = os.path.join(os.path.dirname(__file__), "objects.json")


class Rados:
    def __init__(self, conffile, name, conf):
        pass

    def connect(self, timeout):
        if os.path.exists(STATE + ".refuse"):
            raise OSError("no monitors")

    def get_fsid(self):
        return "f-s-i-d"

    def open_ioctx(self, pool):
        return Ioctx(pool)


class Ioctx:
    def __init__(self, pool):
        self.pool, self.objects = pool, {}

    def set_namespace(self, namespace):
        self.namespace = namespace

    def save(self):
        with open(STATE, "w") as file:
            json.dump(self.objects, file)

    def write_full(self, name, data):
        if os.path.exists(STATE + ".hang"):
            time.sleep(60)
        if os.path.exists(STATE + ".slow"):
            time.sleep(0.5)
        self.objects[f"{self.pool}/{self.namespace}/{name}"] = len(data)
        self.save()

    def read(self, name, size):
        if os.path.exists(STATE + ".fail"):
            raise KeyError(name)
        return b""

    def remove_object(self, name):
        del self.objects[f"{self.pool}/{self.namespace}/{name}"]
        self.save()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> ClusterAccess:
    (tmp_path / "rados.py").write_text(RADOS)
    return ClusterAccess(conf="none", python=("env", f"PYTHONPATH={tmp_path}", sys.executable))


def objects(tmp_path: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((tmp_path / "objects.json").read_text())
    return found


def sample(families: list[Family], name: str, *parts: str) -> float:
    return next(
        value
        for family in families
        if family.name == name
        for suffix, labels, value in family.samples
        if all(part in f"{suffix}{{{labels}}}" for part in parts)
    )


def test_latencies_are_cumulative_and_a_failure_is_slower_than_any_bound() -> None:
    measured = Measured()
    measured.add("p", "write", 0.0002)
    measured.add("p", "write", 0.5)
    measured.failed("p", "write", "timeout", 30)
    families = list(measured.families("c", True))
    name = "cephqos_probe_latency_seconds"
    assert sample(families, name, "_bucket", 'le="0.0001"') == 0
    assert sample(families, name, "_bucket", 'le="0.0002"') == 1
    assert sample(families, name, "_bucket", 'le="0.8192"') == 2
    assert sample(families, name, "_bucket", f'le="{OP_BOUNDS[-1]:.10g}"') == 2
    assert sample(families, name, "_bucket", 'le="+Inf"') == 3
    assert sample(families, name, "_count") == 3
    assert sample(families, "cephqos_probe_failures_total", 'reason="timeout"') == 1


def test_every_object_of_every_pool_is_written_before_it_is_read() -> None:
    spec = ProbeSpec(pools=("a", "b"), objects=2)
    assert list(islice(plan(spec, "h"), 10)) == [
        ("a", "write", "h.0"),
        ("a", "read", "h.0"),
        ("b", "write", "h.0"),
        ("b", "read", "h.0"),
        ("a", "write", "h.1"),
        ("a", "read", "h.1"),
        ("b", "write", "h.1"),
        ("b", "read", "h.1"),
        ("a", "write", "h.0"),
        ("a", "read", "h.0"),
    ]


async def test_objects_are_in_their_namespace_and_removed_at_the_end(
    cluster: ClusterAccess, tmp_path: Path
) -> None:
    child = ProbeChild(cluster, namespace="ns", size=10)
    answer = await child.ask("p", "write", "o", 10)
    assert answer.error is None
    assert answer.seconds < 5
    assert objects(tmp_path) == {"p/ns/o": 10}
    await child.close()
    assert objects(tmp_path) == {}


async def test_a_failed_operation_is_named_and_the_child_goes_on(
    cluster: ClusterAccess, tmp_path: Path
) -> None:
    child = ProbeChild(cluster, namespace="ns", size=10)
    (tmp_path / "objects.json.fail").touch()
    assert (await child.ask("p", "read", "o", 10)).error == "KeyError"
    assert (await child.ask("p", "write", "o", 10)).error is None
    await child.close()


async def test_a_hanging_operation_costs_its_deadline_and_its_child(
    cluster: ClusterAccess, tmp_path: Path
) -> None:
    child = ProbeChild(cluster, namespace="ns", size=10)
    assert await child.fsid(10) == "f-s-i-d"
    (tmp_path / "objects.json.hang").touch()
    with pytest.raises(ClusterSilent, match="write of p/o: no answer"):
        await child.ask("p", "write", "o", 0.3)
    (tmp_path / "objects.json.hang").unlink()
    assert (await child.ask("p", "write", "o", 10)).error is None, "of another child"
    await child.close()


async def test_a_cluster_that_cannot_be_reached_is_said_so(
    cluster: ClusterAccess, tmp_path: Path
) -> None:
    (tmp_path / "objects.json.refuse").touch()
    with pytest.raises(ClusterUnreachable, match="no monitors"):
        await ProbeChild(cluster, namespace="ns", size=10).fsid(10)


async def test_a_source_that_ends_in_the_middle_of_an_operation_removes_its_objects(
    cluster: ClusterAccess, tmp_path: Path
) -> None:
    source = ProbeSource(cluster, ProbeSpec(pools=("p",), rate=20, objects=1000))
    async with asyncio.timeout(10):
        while not sample(list(await source.collect(0)), "cephqos_probe_up"):
            await asyncio.sleep(0.05)
    (tmp_path / "objects.json.slow").touch()
    await asyncio.sleep(0.3)
    await source.close()
    assert objects(tmp_path) == {}


async def test_a_source_measures_no_faster_than_its_rate_and_cleans_up(
    cluster: ClusterAccess, tmp_path: Path
) -> None:
    source = ProbeSource(cluster, ProbeSpec(pools=("p",), rate=20, objects=4))
    assert sample(list(await source.collect(0)), "cephqos_probe_up") == 0
    async with asyncio.timeout(10):
        while not sample(list(await source.collect(0)), "cephqos_probe_up"):
            await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)
    families = list(await source.collect(0))
    name = "cephqos_probe_latency_seconds"
    ops = sum(sample(families, name, "_count", f'op="{op}"') for op in ("write", "read"))
    assert 4 <= ops <= 22
    assert sample(families, "cephqos_probe_up", 'cluster="f-s-i-d"') == 1
    await source.close()
    assert objects(tmp_path) == {}
    assert sample(list(await source.collect(0)), "cephqos_probe_up") == 0, "not connected yet"
    await source.close()


async def test_a_source_counts_what_hung_and_comes_back(
    cluster: ClusterAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cephqos_exporter.probe.probe_source._PAUSE_AFTER_FAILURE", 0.1)
    (tmp_path / "objects.json.hang").touch()
    source = ProbeSource(cluster, ProbeSpec(pools=("p",), rate=20, timeout=2))
    async with asyncio.timeout(20):
        while not await _failures(source):
            await asyncio.sleep(0.1)
        (tmp_path / "objects.json.hang").unlink()
        while not sample(list(await source.collect(0)), "cephqos_probe_up"):
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)
    families = list(await source.collect(0))
    assert sample(families, "cephqos_probe_latency_seconds", "_count", 'op="read"') > 0
    await source.close()


async def test_a_child_that_cannot_be_killed_is_no_connection_and_has_no_other_beside_it(
    cluster: ClusterAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that hangs in the kernel: the probe went on saying that it is connected."""
    monkeypatch.setattr("cephqos_exporter.probe.probe_source._PAUSE_AFTER_FAILURE", 0.1)
    started: list[object] = []
    spawn = asyncio.create_subprocess_exec

    async def counted(*argv: Any, **how: Any) -> asyncio.subprocess.Process:
        started.append(child := await spawn(*argv, **how))
        return child

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(asyncio, "create_subprocess_exec", counted)
    monkeypatch.setattr("cephqos_exporter.ceph.monclient.os.killpg", refuse)
    (tmp_path / "objects.json.hang").touch()
    source = ProbeSource(cluster, ProbeSpec(pools=("p",), rate=20, timeout=2))
    async with asyncio.timeout(20):
        while not await _failures(source):
            await asyncio.sleep(0.1)
    await asyncio.sleep(1.5)  # it is waited for a second
    assert sample(list(await source.collect(0)), "cephqos_probe_up") == 0
    assert len(started) == 1
    monkeypatch.undo()
    [child] = started
    assert isinstance(child, asyncio.subprocess.Process)
    child.kill()
    await child.wait()
    assert child.stdout is not None
    await child.stdout.read()  # to its end: what stays open would fail a later test
    await source.close()


async def test_a_child_that_says_what_it_should_not_costs_the_probe_its_child(
    tmp_path: Path,
) -> None:
    for said in ("no answer", "x" * 100_000):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\necho {said}\n")
        program.chmod(0o755)
        access = ClusterAccess(conf="none", python=(str(program),))
        with pytest.raises(ClusterUnreachable, match="fsid"):
            await ProbeChild(access, namespace="ns", size=10).fsid(10)


async def _failures(source: ProbeSource) -> float:
    families = list(await source.collect(0))
    try:
        return sample(families, "cephqos_probe_failures_total", 'reason="timeout"')
    except StopIteration:
        return 0
