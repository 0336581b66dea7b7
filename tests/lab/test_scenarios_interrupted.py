"""Ctrl-C at any time: the run ends soon, the cluster is given back, the archive is sealed."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from cephqos_loadgen.archive.reader import RecordedRepeat
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.run.restore import restore
from cephqos_loadgen.run.resume import take_along
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter

from .conftest import LabPool, lab_name
from .test_scenarios import assert_restored
from .test_scenarios_faults import (
    SOON,
    assert_free,
    client_pids,
    only_archive,
    runner,
    seconds,
    started,
)

# To give back everything takes 3 to 8 seconds on an idle lab; a busy machine may be slow.
WITHIN = 90.0

HEAD = """\
scenario: mini
repeats: 2
settings:
  osd: {osd_mclock_profile: high_client_ops, osd_scrub_chunk_max: 7}
flags: [noscrub]
pools:
  - {name: client, size: 2, pg_num: 8, images: {size: 32M}}
  - {name: objects, size: 2, pg_num: 8, objects: {count: 400, size: 64K}}
phases:
"""
FIO = "  - {name: client, fio: {engine: rbd, pool: client, rw: randwrite, bs: 4K}, until: %s}\n"
# Recovery that a fast machine, too, can be interrupted in: each OSD gives it 60 MB/s.
SLOW = HEAD.replace(
    "osd_mclock_profile: high_client_ops",
    "osd_mclock_profile: custom, osd_mclock_scheduler_background_recovery_lim: 0.05,"
    " osd_mclock_scheduler_background_best_effort_lim: 0.05",
)
LOAD = FIO % "{duration: 40s}"
STEADY = FIO % "{steady_state: {window: 30s}}"
BENCH = """\
  - name: bench
    rados_bench: {pools: [objects], op: write, size: 64K, in_flight: 4}
    until: {duration: 40s}
"""
SCRUB = "  - {name: scrub, scrub: {pool: objects}}\n"
AWAY = """\
  - {name: out, osd_out: {osd: last}}
  - {name: more, prefill: {pool: objects, objects: {count: 400, size: 64K}}}
  - {name: hold, flags: {set: [norecover, nobackfill]}}
  - {name: in, osd_in: {osd: last}}
"""
HELD = AWAY + "  - {name: held, wait: {}, until: {duration: 40s}}\n"
RECOVERY = (
    AWAY
    + """\
  - {name: release, flags: {clear: [norecover, nobackfill]}}
  - {name: recovery, wait: {}, until: recovery_done, at_most: 100s}
"""
)
GONE = """\
  - {name: out, osd_out: {osd: last}}
  - {name: rest, wait: {}, until: {duration: 5s}}
  - {name: in, osd_in: {osd: last}}
"""
SHORT = "  - {name: rest, wait: {}, until: {duration: 200ms}}\n" + (FIO % "{duration: 1s}")
ONCE = HEAD.replace("repeats: 2", "repeats: 1") + SHORT


def undoes(text: str) -> Callable[[Runner, Path], bool]:
    """The way back has this step: the change is just being made."""

    def look(run: Runner, out: Path) -> bool:
        with contextlib.suppress(OSError, ValueError):
            (path,) = out.glob("*.partial/undo.json")
            return any(text in entry["shown"] for entry in json.loads(path.read_text()))
        return False

    return look


def there(pattern: str) -> Callable[[Runner, Path], bool]:
    return lambda run, out: any(out.glob(f"*.partial/{pattern}"))


def in_phase(name: str) -> Callable[[Runner, Path], bool]:
    return lambda run, out: name in run.live.where.phases


def loaded(run: Runner, out: Path) -> bool:
    return run.live.iops("client") > 0


def recovering(run: Runner, out: Path) -> bool:
    """Long enough for looks at the cluster to have seen it."""
    began = run.live.where.phases.get("recovery")
    return began is not None and time.time() - began > 5


def moved_since(repeat: RecordedRepeat, phase: str) -> bool:
    """Whether the looks at the cluster since that phase show recovery. One that is over between two
    of them shows in what was recovered since the look before."""
    began = min(e["time"] for e in repeat.events() if phase in e.values())
    rows = repeat.cluster()
    since = [row for row in rows if row["time"] > began]
    states = {it["state_name"] for row in since for it in row["pgmap"].get("pgs_by_state", [])}
    if any(part in ("recovering", "backfilling") for it in states for part in it.split("+")):
        return True
    recovered = [
        {name: pool["num_objects_recovered"] for name, pool in row["pools"].items()}
        for row in rows[-len(since) - 1 :]
    ]
    return any(
        after[name] > before[name]
        for before, after in pairwise(recovered)
        for name in before.keys() & after.keys()
    )


@dataclass(frozen=True)
class InterruptedMoment:
    """A scenario, and when to interrupt it."""

    text: str
    reached: Callable[[Runner, Path], bool]
    finished: int = 0  # repeats that must be whole


MOMENTS = {
    "while the cluster is quietened": InterruptedMoment(HEAD + LOAD, undoes("unset nodeep-scrub")),
    "while a pool is made": InterruptedMoment(HEAD + LOAD, undoes("pool rm client")),
    "while a pool is filled": InterruptedMoment(HEAD + LOAD, there("prepare-*/output/prefill*")),
    "while settings are applied": InterruptedMoment(
        HEAD + LOAD, undoes("config rm osd osd_mclock_profile")
    ),
    "while fio waits for a steady state": InterruptedMoment(HEAD + STEADY, loaded),
    "while rados bench writes": InterruptedMoment(
        HEAD + BENCH, there("repeats/*/output/bench.objects.stdout.gz")
    ),
    "while a scrub goes on": InterruptedMoment(HEAD + SCRUB, in_phase("scrub")),
    "before the OSD is out": InterruptedMoment(HEAD + AWAY, in_phase("out")),
    "while recovery is held back": InterruptedMoment(HEAD + HELD, in_phase("held")),
    "while the OSD is filled again": InterruptedMoment(SLOW + RECOVERY, recovering),
    "between repeats": InterruptedMoment(HEAD + SHORT, there("repeats/001*/repeat.json"), 1),
    "while restoring": InterruptedMoment(ONCE, lambda run, out: run.stage == "restoring", 1),
}


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    spec = LabSpec(name=lab_name("int"), osds=3, osd_size=2 << 30)
    running = labs.start(spec)
    yield running
    labs.end(running)


@pytest.mark.parametrize("name", MOMENTS)
async def test_an_interrupted_run_gives_the_cluster_back_and_is_sealed_as_aborted(
    lab: RunningLab, tmp_path: Path, name: str
) -> None:
    moment = MOMENTS[name]
    run = runner(lab, tmp_path, moment.text)
    async with started(run) as task:
        async with asyncio.timeout(SOON):
            while not moment.reached(run, tmp_path):
                assert not task.done(), await task
                await asyncio.sleep(0.005)
        task.cancel()  # what SIGINT does
        async with asyncio.timeout(WITHIN):
            with pytest.raises(asyncio.CancelledError):
                await task
    archive = only_archive(tmp_path)  # which it verifies
    assert archive.manifest.status == "aborted"
    assert_restored(archive)
    if moment.reached is recovering:
        assert moved_since(archive.repeats[0], "release")
    await assert_free(lab)
    assert client_pids(lab, b"fio", b"rados", b"rbd") == []
    assert not list(lab.paths.work.glob(f"{run.id}*")), "what the clients used is gone"
    finished = sum(repeat.record.status == "finished" for repeat in archive.repeats)
    assert finished == moment.finished
    following = ArchiveWriter(tmp_path / "next", "next")
    try:
        assert len(take_along(archive.folder, run.plan, following, print)) == finished
    finally:
        following.discard()


@asynccontextmanager
async def command_line(
    lab: RunningLab, out: Path, text: str, *before: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`cephqos run` as a person starts it; `before`: lines of Python that run first."""
    scenario = out.with_suffix(".yaml")
    scenario.write_text(text)
    code = "\n".join((*before, "from cephqos_base.command import main", "raise SystemExit(main())"))
    command = [sys.executable, "-c", code, "run", str(scenario), "--lab", lab.paths.name]
    process = await asyncio.create_subprocess_exec(
        *(*command, "--out", str(out), "--listen", "127.0.0.1:0"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _groups(lab: RunningLab) -> list[dict[str, Any]]:
    listed = await lab.exec(["ceph", "pg", "ls-by-pool", "placed", "--format", "json"])
    found: list[dict[str, Any]] = json.loads(listed.stdout)["pg_stats"]
    return found


async def _all_on_two(lab: RunningLab) -> bool:
    return [len(pg["up"]) for pg in await _groups(lab)] == [2] * 8


@pytest.fixture
async def pool_placed(lab: RunningLab) -> AsyncIterator[None]:
    """A pool on two OSDs, which no balancer moves meanwhile."""
    await lab.exec(["ceph", "balancer", "off"])
    await lab.exec(["ceph", "osd", "pool", "create", "placed", "8"])
    await lab.exec(["ceph", "osd", "pool", "set", "placed", "size", "2"])
    yield
    removal = ["placed", "placed", "--yes-i-really-really-mean-it"]
    await lab.exec(["ceph", "osd", "pool", "rm", *removal])
    # As it was for the other cases: on at once, and nothing written.
    await lab.exec(["ceph", "balancer", "on"])
    await lab.exec(["ceph", "config", "rm", "mgr", "mgr/balancer/active"])


@pytest.mark.usefixtures("pool_placed")
async def test_placements_that_monitors_remove_with_an_osd_are_given_back(
    lab: RunningLab, tmp_path: Path
) -> None:
    async def placed() -> list[dict[str, Any]]:
        dump = json.loads((await lab.exec(["ceph", "osd", "dump", "--format", "json"])).stdout)
        return sorted(dump["pg_upmap_items"], key=lambda entry: entry["pgid"])

    await until(lambda: _all_on_two(lab), "all groups of the pool are on two OSDs")
    for pg in await _groups(lab):
        (away,) = {0, 1, 2} - set(pg["up"])
        pair = [str(pg["up"][-1]), str(away)]
        await lab.exec(["ceph", "osd", "pg-upmap-items", pg["pgid"], *pair])
    before = await placed()
    run = runner(lab, tmp_path, HEAD.replace("repeats: 2", "repeats: 1") + GONE)
    async with started(run) as task:
        await task
    assert_restored(only_archive(tmp_path))
    assert len(before) == 8
    assert await placed() == before


async def test_a_second_ctrl_c_stops_restoring_and_the_way_back_is_printed_and_archived(
    lab: RunningLab, tmp_path: Path
) -> None:
    """The monitor is stopped: without it nothing could be restored for two minutes."""
    out = tmp_path / "out"
    async with command_line(lab, out, seconds(40)) as process:
        async with asyncio.timeout(SOON):
            while not any(out.glob("*.partial/repeats/*/output/client.client.0.stdout.gz")):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        monitor = (await lab.pids())["mon.a"]
        os.kill(monitor, signal.SIGSTOP)
        try:
            process.send_signal(signal.SIGINT)
            said = b""
            assert process.stderr
            async with asyncio.timeout(WITHIN):
                while b"interrupted: restoring the cluster" not in said:
                    said += await process.stderr.read(1000)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, rest = await process.communicate()
        finally:
            os.kill(monitor, signal.SIGCONT)
    assert time.monotonic() - began < 60, "half of what the monitor would be waited for"
    assert process.returncode == 7, rest.decode()
    archive = only_archive(out)
    commands = list(archive.manifest.restore_commands)
    assert archive.manifest.status == "aborted"
    assert "ceph config rm osd osd_mclock_profile" in commands
    assert commands[-1] != commands[0]
    for line in commands:
        assert f"\n  {line}\n" in rest.decode()
    undo = json.loads((archive.folder / "undo.json").read_text())
    assert [entry["shown"] for entry in reversed(undo)] == commands
    assert client_pids(lab, b"fio", b"rados", b"rbd") == []
    await follow(lab, commands)
    # All is as it was: what is left to do is to forget the steps.
    await restore(RunOptions(out=tmp_path, lab=lab.paths.name))
    await assert_free(lab)


async def follow(lab: RunningLab, commands: list[str]) -> None:
    """What a person would do with the commands that were printed."""
    for line in commands:
        await lab.exec(["sh", "-ec", line])


async def test_ctrl_c_while_the_archive_is_sealed_costs_nothing(
    lab: RunningLab, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    early = """\
import os, signal
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter as Writer
seal = Writer.seal
def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return seal(*arguments)
Writer.seal = interrupted
"""
    async with command_line(lab, out, ONCE, early) as process:
        async with asyncio.timeout(SOON):
            _, said = await process.communicate()
    assert b"Traceback" not in said
    assert process.returncode in (0, 130)
    archive = only_archive(out)
    assert archive.manifest.status == "complete"
    assert_restored(archive)
    await assert_free(lab)
