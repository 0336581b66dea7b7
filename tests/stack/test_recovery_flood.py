"""A policy's target for a whole cluster, under a flood of recovery with WPQ.

With mClock it would prove nothing on one machine: docs/internals/measured.md says why.
"""

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.lab.conftest import LabPool
from tests.waiting import PATIENCE, until

from cephqos_loadgen.lab.lab import RunningLab

from .conftest import CAPACITY, Watched, lab_spec, watching

VICTIM = 2  # the OSD that goes and comes back
SECONDS = 32.0
FLOOD_OBJECTS = 40_000  # of 64 KiB at most: two floods are 5 GB, and the OSDs have room for that
# Where CPUs are what runs out, a flood costs clients about half of what they get alone.
TARGET = 0.75
# As study A lets recovery loose, with fewer slots: it had 1,000.
FLOOD = {
    "osd_op_queue": "wpq",
    "osd_mclock_override_recovery_settings": "true",
    "osd_max_backfills": "64",
    "osd_recovery_max_active": "64",
    "osd_async_recovery_min_cost": "1",
    "osd_mclock_profile": "high_client_ops",
}


@pytest.fixture  # one for each attempt: a second one must not begin with what the first left
def lab(labs: LabPool) -> Iterator[RunningLab]:
    running = labs.start(lab_spec("flood", op_queue=None, osd_size=10 << 30))
    yield running
    labs.end(running)


async def _clean(lab: RunningLab) -> bool:
    status = json.loads((await lab.exec(["ceph", "status", "--format", "json"])).stdout)
    states = {entry["state_name"] for entry in status["pgmap"].get("pgs_by_state", ())}
    return status["osdmap"]["num_up_osds"] == lab.spec.osds and states == {"active+clean"}


async def _write(lab: RunningLab, pool: str, seconds: float, size: int, *more: str) -> float:
    argv = ["rados", "-p", pool, "bench", f"{seconds:g}", "write", "-b", str(size), "-t", "128"]
    argv += ["--no-cleanup", "--run-name", f"r{asyncio.get_running_loop().time()}", *more]
    done = await lab.exec(argv, within=seconds + PATIENCE)
    line = next(x for x in done.stdout.splitlines() if x.startswith("Average IOPS"))
    return float(line.split(":")[1])


async def _prepare(lab: RunningLab) -> float:
    """Pools, the flood's settings, WPQ; what clients get of the whole cluster alone."""
    await lab.exec(["ceph", "config", "set", "osd", CAPACITY, "2500"])
    for option, value in FLOOD.items():
        await lab.exec(["ceph", "config", "set", "osd", option, value])
    await _pool(lab, "client")
    for osd in range(lab.spec.osds):
        await lab.faults.restart(osd)
    await until(lambda: _clean(lab), "all clean under WPQ")
    await _write(lab, "client", 4, 4096)  # the first seconds after a restart wait for leases
    # The better of two: a target of what a busy moment allowed is kept under any flood.
    return max([await _write(lab, "client", 8, 4096) for _ in range(2)])


async def _pool(lab: RunningLab, name: str) -> None:
    await lab.exec(["ceph", "osd", "pool", "create", name, "32"])
    await lab.exec(["ceph", "osd", "pool", "set", name, "size", "2"])


async def _degrade(lab: RunningLab, pool: str, seconds: float) -> None:
    """Write while one OSD is gone. A pool for each flood: to remove one is background work too."""
    await _pool(lab, pool)
    await until(lambda: _clean(lab), "the new pool clean")
    await lab.exec(["ceph", "osd", "set", "noout"])
    await lab.faults.kill(VICTIM)
    await lab.exec(["ceph", "osd", "down", str(VICTIM)])
    await asyncio.sleep(2)
    await _write(lab, pool, seconds, 65536, "--max-objects", str(FLOOD_OBJECTS))


async def _under_flood(watched: Watched) -> tuple[float, list[dict[str, str]]]:
    """Client IOPS while the OSD comes back, and the targets missed, as the webhook heard."""
    lab = watched.lab
    begin = asyncio.get_running_loop().time()
    load = asyncio.create_task(_write(lab, "client", SECONDS, 4096))
    await lab.faults.restart(VICTIM)
    attained = await load
    await asyncio.sleep(6)  # for Alertmanager to tell
    heard = watched.webhook.firing_since(begin)
    await lab.exec(["ceph", "osd", "unset", "noout"])
    return attained, [dict(a.said) for a in heard if a.has(alertname="CephQosPolicyTargetViolated")]


@pytest.mark.full
@pytest.mark.timeout(900)
def test_wpq_under_a_flood_of_recovery_misses_a_target_of_the_cluster(
    labs: LabPool, lab: RunningLab
) -> None:
    baseline = labs.call(_prepare(lab))
    policy = lab.paths.work / "policy.yaml"
    target = f"{{class: client, scope: cluster, reservation: {TARGET}, baseline: {baseline}}}"
    policy.write_text(f"version: 1\ntargets:\n  - {target}\n")
    for seconds in (14, 28):  # a flood that takes nothing proves nothing: then a larger one
        labs.call(_degrade(lab, f"flood-{seconds}", seconds))
        for watched in watching(labs, lab, "flood", f"--qos.policy={policy}"):
            attained, missed = labs.call(_under_flood(watched))
        if missed:
            break
    print(f"clients alone: {baseline:.0f} IOPS; under the flood: {attained:.0f}; missed: {missed}")
    alert = next(a for a in missed if a["scope"] == "cluster")
    assert alert["class"] == "client"
    assert alert["cause"] == "other_class"
