"""Runs that go wrong: nothing hangs, the cluster is given back, what was recorded is kept."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.archive.reader import Archive, find_archives, open_archive, problems
from cephqos_loadgen.errors import CephqosError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.run.errors import ClusterBusy, RunError, SettingRefused
from cephqos_loadgen.run.lock import KEY
from cephqos_loadgen.run.options import RunOptions
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.scenario.parse import parse

from .conftest import LabPool, lab_name
from .test_scenarios import assert_restored

SCENARIO = """\
scenario: mini
variables: {seconds: 8s, profile: high_client_ops}
repeats: 1
settings: {osd: {osd_mclock_profile: "${profile}", osd_scrub_chunk_max: 7}}
flags: [noscrub]
pools:
  - {name: client, size: 2, pg_num: 8, images: {size: 32M}}
phases:
  - name: client
    fio: {engine: rbd, pool: client, rw: randwrite, bs: 4K, depth: 8}
    until: {duration: "${seconds}"}
"""


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    """A lab to be hurt."""
    running = labs.start(LabSpec(name=lab_name("flt"), osds=3, osd_size=2 << 30))
    yield running
    labs.end(running)


def runner(lab: RunningLab, out: Path, text: str = SCENARIO, **options: Any) -> Runner:
    chosen = RunOptions(out=out, lab=lab.paths.name, listen="127.0.0.1:0", **options)
    return Runner(parse(text, "mini.yaml"), chosen, Silent())


def seconds(length: int) -> str:
    return SCENARIO.replace("seconds: 8s", f"seconds: {length}s")


@asynccontextmanager
async def started(run: Runner) -> AsyncIterator[asyncio.Task[Path]]:
    """A run under way; ended, if it has not, at the end of the block."""
    task = asyncio.create_task(run.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_phase(run: Runner, task: asyncio.Task[Path], phase: str) -> None:
    async with asyncio.timeout(60):
        while phase not in run.live.where.phases:
            assert not task.done(), await task
            await asyncio.sleep(0.05)


async def until_load(run: Runner, task: asyncio.Task[Path]) -> None:
    """Until fio has reported: then its process is surely there."""
    async with asyncio.timeout(60):
        while run.live.iops("client") <= 0:
            assert not task.done(), await task
            await asyncio.sleep(0.05)


def only_archive(out: Path) -> Archive:
    (path,) = find_archives(out)
    archive = open_archive(path)
    assert list(problems(archive)) == []
    return archive


async def ask(lab: RunningLab, prefix: str, **arguments: Any) -> Any:
    async with lab.client() as client:
        return await client.command(prefix, **arguments)


async def assert_free(lab: RunningLab) -> None:
    """No lock is left, no setting, no pool, no flag."""
    with pytest.raises(CommandFailed):
        await ask(lab, "config-key get", key=KEY)
    names = {entry["name"] for entry in await ask(lab, "config dump")}
    assert not names & {"osd_mclock_profile", "osd_scrub_chunk_max"}
    dump = await ask(lab, "osd dump")
    assert "noscrub" not in dump["flags"].split(",")
    assert "client" not in [pool["pool_name"] for pool in dump["pools"]]


def fio_pids(lab: RunningLab) -> list[int]:
    """fio's main processes in the lab: they see its root as theirs."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().split(b"\0")
            environment = (path / "environ").read_bytes()
            if words[0] == b"fio" and lab.paths.name.encode() in environment:
                found.append(int(path.name))
    return found


async def test_fio_killed_fails_the_run_and_a_second_run_is_refused_meanwhile(
    lab: RunningLab, tmp_path: Path
) -> None:
    run = runner(lab, tmp_path / "a", seconds(40))
    async with started(run) as task:
        await until_load(run, task)
        with pytest.raises(ClusterBusy, match=rf"run {run.id} .* holds this cluster since"):
            await runner(lab, tmp_path / "b").run()
        for pid in fio_pids(lab):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RunError, match=r"phase client: client.client.0 ended with status"):
            async with asyncio.timeout(60):
                await task
    archive = only_archive(tmp_path / "a")
    assert archive.manifest["status"] == "failed"
    (repeat,) = archive.repeats
    assert repeat.outcome["status"] == "failed"
    assert repeat.intervals(), "what fio had said by then is kept"
    assert_restored(archive)
    await assert_free(lab)
    assert only_archive(tmp_path / "b").manifest["status"] == "failed"


async def test_an_option_the_daemon_does_not_take_is_found_before_any_load(
    lab: RunningLab, tmp_path: Path
) -> None:
    text = SCENARIO.replace("profile: high_client_ops", "profile: nonsense")
    with pytest.raises(SettingRefused, match="osd_mclock_profile = nonsense"):
        await runner(lab, tmp_path, text).run()
    archive = only_archive(tmp_path)
    assert archive.manifest["status"] == "failed"
    assert archive.repeats == []
    assert_restored(archive)
    await assert_free(lab)


async def test_a_setting_that_a_conf_file_overrides_is_found_before_any_load(
    lab: RunningLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monitors take it, the daemons have another value: only reading back shows that."""
    monkeypatch.setattr("cephqos_loadgen.run.settings._VERIFY_SECONDS", 2.0)
    text = SCENARIO.replace("osd_scrub_chunk_max: 7", "osd_memory_cache_min: 200000000")
    with pytest.raises(SettingRefused, match="osd_memory_cache_min = 134217728, not 200000000"):
        await runner(lab, tmp_path, text).run()
    assert_restored(only_archive(tmp_path))
    await assert_free(lab)


@pytest.mark.parametrize("moment", ["preparing", "client"])
async def test_ctrl_c_restores_the_cluster_and_archives_the_run_as_aborted(
    lab: RunningLab, tmp_path: Path, moment: str
) -> None:
    scenario = tmp_path / "mini.yaml"
    scenario.write_text(seconds(40))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "cephqos_loadgen.cli", "run", str(scenario)]
    command += ["--lab", lab.paths.name, "--out", str(out), "--listen", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(60):
            while not _reached(out, moment):
                assert process.returncode is None
                await asyncio.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, said = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert process.returncode == 130, said.decode()
    archive = only_archive(out)
    assert archive.manifest["status"] == "aborted"
    assert_restored(archive)
    await assert_free(lab)
    assert fio_pids(lab) == []


def _reached(out: Path, moment: str) -> bool:
    if moment == "preparing":
        return any(out.glob("*.partial/prepare-*/output/prefill*"))
    return any(out.glob("*.partial/repeats/*/output/client.client.0.stdout.gz"))


async def test_a_run_killed_with_9_is_refused_then_taken_over_and_undone(
    lab: RunningLab, tmp_path: Path
) -> None:
    scenario = tmp_path / "mini.yaml"
    scenario.write_text(seconds(40))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "cephqos_loadgen.cli", "run", str(scenario)]
    command += ["--lab", lab.paths.name, "--out", str(out), "--listen", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(60):
            while not _reached(out, "client"):
                assert process.returncode is None
                await asyncio.sleep(0.05)
    finally:
        process.kill()
        await process.wait()
    held = await ask(lab, "config-key get", key=KEY)
    held["heartbeat"] -= 100  # as it would be when that time has passed
    await ask(lab, "config-key set", key=KEY, val=json.dumps(held))
    with pytest.raises(ClusterBusy) as error:
        await runner(lab, tmp_path / "refused").run()
    assert "--take-over" in str(error.value)
    assert "\n  ceph config rm osd osd_mclock_profile" in str(error.value)
    await runner(lab, tmp_path / "next", seconds(2), take_over=True).run()
    assert_restored(only_archive(tmp_path / "next"))
    await assert_free(lab)
    assert fio_pids(lab) == [], "clients die with the run that started them"


async def test_an_interrupted_run_is_resumed_at_the_next_repeat(
    lab: RunningLab, tmp_path: Path
) -> None:
    text = seconds(4).replace("repeats: 1", "repeats: 2")
    run = runner(lab, tmp_path, text)
    async with started(run) as task:
        async with asyncio.timeout(60):
            while run.live.where.repeat < 2:
                await asyncio.sleep(0.05)
        await until_phase(run, task, "client")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    first = only_archive(tmp_path)
    assert [r.outcome["status"] for r in first.repeats] == ["finished", "aborted"]
    path = await runner(lab, tmp_path / "more", text, resume=first.folder).run()
    resumed = open_archive(path)
    assert list(problems(resumed)) == []
    assert [r.outcome["status"] for r in resumed.repeats] == ["finished", "finished"]
    assert resumed.repeats[0].outcome["phases"] == first.repeats[0].outcome["phases"]
    await assert_free(lab)


async def test_a_full_disk_ends_the_run_and_what_was_recorded_is_sealed(
    lab: RunningLab, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(small)], check=True)  # noqa: ASYNC221 - once
    try:
        run = runner(lab, small, seconds(40))
        async with started(run) as task:
            await until_load(run, task)
            with contextlib.suppress(OSError), (small / "fill").open("wb", 0) as file:
                while True:
                    file.write(bytes(4096))
            with pytest.raises((CephqosError, OSError)):
                async with asyncio.timeout(60):
                    await task
        (small / "fill").unlink()
        archive = only_archive(small)
        assert archive.manifest["status"] == "failed"
        assert "No space left" in archive.manifest["error"]
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)  # noqa: ASYNC221 - once
    await assert_free(lab)


async def test_monitors_lost_for_20_seconds_cost_their_samples_and_nothing_else(
    lab: RunningLab, tmp_path: Path
) -> None:
    monitor = (await lab.pids())["mon.a"]
    run = runner(lab, tmp_path, seconds(28))
    async with started(run) as task:
        await until_load(run, task)
        os.kill(monitor, signal.SIGSTOP)
        try:
            await asyncio.sleep(20)
        finally:
            os.kill(monitor, signal.SIGCONT)
        async with asyncio.timeout(90):
            archive = open_archive(await task)
    (repeat,) = archive.repeats
    kinds = [event["event"] for event in repeat.events()]
    assert kinds.index("cluster_unreachable") < kinds.index("cluster_reachable")
    assert repeat.outcome["metrics"]["failures"] == {"exporter": 0}
    assert repeat.outcome["phases"]["client"]["total"]["ios"] > 0
    assert_restored(archive)


async def test_an_osd_that_dies_is_recorded_and_said(lab: RunningLab, tmp_path: Path) -> None:
    """Last: it hurts the lab most."""
    run = runner(lab, tmp_path, seconds(15))
    async with started(run) as task:
        await until_load(run, task)
        await lab.faults.kill(2)
        with pytest.raises(RunError, match=r"up differs: gone \[2\]"):
            async with asyncio.timeout(90):
                await task
    archive = only_archive(tmp_path)
    (repeat,) = archive.repeats
    assert repeat.outcome["status"] == "finished"
    assert repeat.outcome["phases"]["client"]["total"]["ios"] > 0
    assert {row["osds_up"] for row in repeat.cluster()} == {2, 3}
    await lab.faults.restart(2)
