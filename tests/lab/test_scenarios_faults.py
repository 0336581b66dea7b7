"""Runs that go wrong: nothing hangs, the cluster is given back, what was recorded is kept."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cephqos_base.errors import CephqosError, UsageError
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.archive.reader import Archive, find_archives, open_archive, problems
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster.connection import ClusterConnection, LabAccess
from cephqos_loadgen.cluster.run_keys import KEY
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.plan.errors import ClusterBusy, RunError, SettingRefused
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.results.phase import LoadResult
from cephqos_loadgen.run.restore import restore
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


# Far more than anything here takes; a busy machine may be slow.
SOON = 200.0


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
    async with asyncio.timeout(SOON):
        while phase not in run.live.where.phases:
            assert not task.done(), await task
            await asyncio.sleep(0.05)


async def until_load(run: Runner, task: asyncio.Task[Path]) -> None:
    """Until fio has reported: then its process is surely there."""
    async with asyncio.timeout(SOON):
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
    """No lock is left, no setting, no pool, no flag; the balancer is on again."""
    with pytest.raises(CommandFailed):
        await ask(lab, "config-key get", key=KEY)
    names = {entry["name"] for entry in await ask(lab, "config dump")}
    assert not names & {"osd_mclock_profile", "osd_scrub_chunk_max", "mgr/balancer/active"}
    dump = await ask(lab, "osd dump")
    flags = set(dump["flags"].split(","))
    assert not flags & {"noscrub", "nodeep-scrub", "norecover", "nobackfill"}
    assert not {"client", "objects"} & {pool["pool_name"] for pool in dump["pools"]}
    assert all(osd["in"] and osd["up"] for osd in dump["osds"])
    assert (await ask(lab, "balancer status", target="mgr"))["active"]


def client_pids(lab: RunningLab, *names: bytes) -> list[int]:
    """Client processes of runs in the lab: what they are told, or their environment, names it."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes()
            told = words + (path / "environ").read_bytes()
            if words.split(b"\0")[0] in names and f"{lab.paths.name}/work/".encode() in told:
                found.append(int(path.name))
    return found


def fio_pids(lab: RunningLab) -> list[int]:
    """fio's processes in the lab: they see its root as theirs."""
    return client_pids(lab, b"fio")


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
        died = r"phase client: client\.client\.0 (was killed by signal 9|ended with status)"
        with pytest.raises(RunError, match=died):
            async with asyncio.timeout(SOON):
                await task
    archive = only_archive(tmp_path / "a")
    assert archive.manifest.status == "failed"
    (repeat,) = archive.repeats
    assert repeat.record.status == "failed"
    assert repeat.intervals(), "what fio had said by then is kept"
    assert_restored(archive)
    await assert_free(lab)
    assert not (tmp_path / "b").exists(), "a run that was refused leaves nothing"


REFUSED = {
    "a value that the monitors do not take": (
        CephOption("osd", "osd_mclock_profile", "nonsense"),
        "osd_mclock_profile = nonsense",
    ),
    "a value that they do not take for the manager": (
        CephOption("mgr", "mgr_stats_period", "often"),
        "mgr_stats_period = often",
    ),
    "a name that nobody knows": (CephOption("mon", "mon_wishes", "3"), "option mon_wishes"),
    "a daemon that there is not": (
        CephOption("osd.7", "osd_max_scrubs", "3"),
        r"settings for osd\.7: the cluster has osd\.0",
    ),
    "a conf file of the OSDs says otherwise": (
        CephOption("osd", "osd_memory_cache_min", "200000000"),
        r"osd\.0 has osd_memory_cache_min = 134217728, not 200000000",
    ),
    "a conf file of the monitors says otherwise": (
        CephOption("mon", "mon_max_pg_per_osd", "300"),
        r"mon\.a has mon_max_pg_per_osd = 2000, not 300",
    ),
    "monitors read it at their start only": (
        CephOption("mon", "mon_keyvaluedb", "leveldb"),
        r"mon\.a has mon_keyvaluedb = rocksdb, not leveldb, and reads it at its start only",
    ),
}


async def test_what_a_daemon_does_not_take_is_found_before_any_load_and_taken_back(
    lab: RunningLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monitors take some of these, the daemons have another value: reading back shows it."""

    async def saved(steps: Mapping[int, StepBack]) -> None:
        pass

    before = await ask(lab, "config dump")
    async with ClusterConnection(LabAccess(lab, "settings")) as cluster:
        with monkeypatch.context() as patched:
            patched.setattr("cephqos_loadgen.cluster.settings._VERIFY_SECONDS", 1.0)
            for name, (option, message) in REFUSED.items():
                journal = Journal(saved)
                with pytest.raises(SettingRefused, match=message):
                    await ClusterSettings(cluster, journal).apply([option])
                    pytest.fail(f"taken: {name}")
                assert await journal.roll_back(cluster) == []
        assert await ask(lab, "config dump") == before
        journal, options = (
            Journal(saved),
            [
                CephOption("mon", "mon_osd_down_out_interval", "901"),
                CephOption("mgr", "mgr_stats_period", "4"),
                CephOption("global", "osd_max_scrubs", "2"),
            ],
        )
        found = await ClusterSettings(cluster, journal).apply(options)
        await journal.roll_back(cluster)
    assert found.pop("mon.a") == {"mon_osd_down_out_interval": "901", "osd_max_scrubs": "2"}
    assert found.pop("mgr.x") == {"mgr_stats_period": "4", "osd_max_scrubs": "2"}
    assert found == {f"osd.{osd}": {"osd_max_scrubs": "2"} for osd in range(3)}
    assert await ask(lab, "config dump") == before


async def test_a_run_with_a_value_that_cannot_be_set_is_refused_before_it_changes_anything(
    lab: RunningLab, tmp_path: Path
) -> None:
    """Also where only its last point or a phase would set it, hours later."""
    phase = "  - {name: late, change: {osd: {osd_op_queue: fifo}}}\n"
    for text, message in (
        (SCENARIO.replace("profile: high_client_ops", "profile: nonsense"), "= nonsense: expected"),
        (SCENARIO + phase, "osd_op_queue = fifo: expected one of wpq, "),
    ):
        with pytest.raises(SettingRefused, match=message) as error:
            await runner(lab, tmp_path / "out", text).run()
        assert error.value.exit_status == 6
        assert not (tmp_path / "out").exists()
    await assert_free(lab)


async def test_a_run_whose_setting_has_no_effect_is_archived_without_a_repeat(
    lab: RunningLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conf file says otherwise: only reading back shows that."""
    # Long enough for the option beside it, which a busy machine's OSDs may hear of late.
    monkeypatch.setattr("cephqos_loadgen.cluster.settings._VERIFY_SECONDS", 5.0)
    text = SCENARIO.replace("osd_scrub_chunk_max: 7", "osd_memory_cache_min: 200000000")
    with pytest.raises(SettingRefused, match="osd_memory_cache_min = 134217728, not 200000000"):
        await runner(lab, tmp_path, text.replace("32M", "4M")).run()
    archive = only_archive(tmp_path)
    assert archive.manifest.status == "failed"
    assert archive.repeats == []
    assert_restored(archive)
    await assert_free(lab)


async def test_a_kept_pool_is_used_again_while_it_is_the_same_and_refuses_a_run_when_not(
    lab: RunningLab, tmp_path: Path
) -> None:
    """Beside it: what the cluster would do by itself is off while a run goes on."""
    await ask(lab, "osd pool create", pool="others", pg_num=1)
    modes: dict[str, Any] = {"pool": "others", "var": "pg_autoscale_mode"}
    await ask(lab, "osd pool set", val="on", **modes)
    text = seconds(4).replace("images:", "keep: true, images:")
    first = runner(lab, tmp_path / "a", text)
    async with lab.client() as client, started(first) as task:
        await client.command("balancer status", target="mgr")  # it is connected when it matters
        await until_load(first, task)
        assert not (await client.command("balancer status", target="mgr"))["active"]
        assert (await client.command("osd pool get", **modes))["pg_autoscale_mode"] == "off"
        await task
    assert (await ask(lab, "osd pool get", **modes))["pg_autoscale_mode"] == "on"
    (quietened,) = [e for e in only_archive(tmp_path / "a").events() if e["event"] == "quietened"]
    assert (quietened["balancer"], quietened["autoscaler"]) == ("switched off", ["others"])
    await runner(lab, tmp_path / "b", seconds(2)).run()
    for name, reused in (("a", []), ("b", ["client"])):
        archive = only_archive(tmp_path / name)
        assert_restored(archive)
        (ready,) = [event for event in archive.events() if event["event"] == "point_ready"]
        assert ready["reused"] == reused
        filled = list(archive.folder.glob("prepare-*/output/prefill.client*"))
        assert bool(filled) == (name == "a")
    await lab.exec(["rados", "-p", "client", "put", "stray", "/etc/passwd"])
    for wanted, message in ((text, "it holds 1[0-9] objects"), (DOUBLE, "pg_num is 8, not 16")):
        with pytest.raises(UsageError, match=message) as error:
            await runner(lab, tmp_path / "c", wanted).run()
        assert not (tmp_path / "c").exists()
    remove = str(error.value).partition("Remove it (")[2].partition(")")[0]
    await lab.exec(remove.split())
    await lab.exec(remove.replace("client", "others").split())
    await assert_free(lab)


DOUBLE = SCENARIO.replace("pg_num: 8", "pg_num: 16")
FOR_A_WHILE = """\
  - name: others
    change: {osd: {osd_max_scrubs: 5}}
    start: {with: client}
    until: {phase: client}
    take_back: true
"""


async def test_a_change_for_a_while_is_back_at_every_osd_while_the_load_goes_on(
    lab: RunningLab, tmp_path: Path
) -> None:
    text = seconds(20) + FOR_A_WHILE.replace("phase: client", "duration: 6s")
    run = runner(lab, tmp_path, text)
    async with lab.client() as client, started(run) as task:

        async def scrubs() -> set[str]:
            asked: dict[str, Any] = {"var": "osd_max_scrubs"}
            values = [
                await client.command("config get", target=f"osd.{n}", **asked) for n in range(3)
            ]
            return {value["osd_max_scrubs"] for value in values}

        before = await scrubs()
        assert before != {"5"}
        for wanted in ({"5"}, before):
            async with asyncio.timeout(SOON):
                while await scrubs() != wanted:
                    assert not task.done(), await task
        assert "client" in run.live.where.phases, "its load goes on"
        archive = open_archive(await task)
    assert archive.repeats[0].record.phases["others"].ended_by == "duration"
    assert_restored(archive)
    await assert_free(lab)


@pytest.mark.parametrize("restore_only", [False, True])
async def test_after_a_run_killed_with_9_another_is_refused_and_what_it_changed_is_undone(
    lab: RunningLab, tmp_path: Path, restore_only: bool
) -> None:
    scenario = tmp_path / "mini.yaml"
    scenario.write_text(seconds(40) + FOR_A_WHILE)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "cephqos_base", "run", str(scenario)]
    command += ["--lab", lab.paths.name, "--out", str(out), "--listen", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(SOON):
            while not any(out.glob("*.partial/repeats/*/output/client.client.0.stdout.gz")):
                assert process.returncode is None
                await asyncio.sleep(0.05)
            while not any(e["name"] == "osd_max_scrubs" for e in await ask(lab, "config dump")):
                assert process.returncode is None
    finally:
        process.kill()
        await process.wait()
    with pytest.raises(ClusterBusy) as error:
        await runner(lab, tmp_path / "refused").run()
    assert "--take-over" in str(error.value)
    assert "\n  ceph config rm osd osd_mclock_profile" in str(error.value)
    assert "\n  ceph config rm osd osd_max_scrubs" in str(error.value)
    if restore_only:
        await restore(RunOptions(out=tmp_path, lab=lab.paths.name))
        await assert_free(lab)
    else:
        await runner(lab, tmp_path / "next", seconds(2), take_over=True).run()
        assert_restored(only_archive(tmp_path / "next"))
    assert not any(lab.paths.work.glob("*-mini-*"))
    await assert_free(lab)
    assert fio_pids(lab) == [], "clients die with the run that started them"


async def test_an_interrupted_run_is_resumed_at_the_next_repeat(
    lab: RunningLab, tmp_path: Path
) -> None:
    text = seconds(2).replace("repeats: 1", "repeats: 2")
    run = runner(lab, tmp_path, text)
    async with started(run) as task:
        async with asyncio.timeout(SOON):
            while run.live.where.repeat < 2:
                assert not task.done(), await task
                await asyncio.sleep(0.05)
        await until_phase(run, task, "client")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    first = only_archive(tmp_path)
    assert [r.record.status for r in first.repeats] == ["finished", "aborted"]
    path = await runner(lab, tmp_path / "more", text, resume=first.folder).run()
    resumed = open_archive(path)
    assert list(problems(resumed)) == []
    assert [r.record.status for r in resumed.repeats] == ["finished", "finished"]
    assert resumed.repeats[0].record.phases == first.repeats[0].record.phases
    await assert_free(lab)


async def test_a_full_disk_ends_the_run_and_what_was_recorded_is_sealed(
    lab: RunningLab, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(small)], check=True)  # noqa: ASYNC221 - once
    try:
        run = runner(lab, small, seconds(40))
        async with started(run) as task:
            await until_load(run, task)
            with contextlib.suppress(OSError), (small / "fill").open("wb", 0) as file:
                while True:
                    file.write(bytes(4096))
            with pytest.raises((CephqosError, OSError)):
                async with asyncio.timeout(SOON):
                    await task
        (small / "fill").unlink()
        archive = only_archive(small)
        assert archive.manifest.status == "failed"
        assert "No space left" in archive.manifest.error
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)  # noqa: ASYNC221 - once
    await assert_free(lab)


async def test_monitors_lost_for_20_seconds_cost_their_samples_and_nothing_else(
    lab: RunningLab, tmp_path: Path
) -> None:
    monitor = (await lab.pids())["mon.a"]
    run = runner(lab, tmp_path, seconds(32))
    async with started(run) as task:
        await until_load(run, task)
        os.kill(monitor, signal.SIGSTOP)
        try:
            await asyncio.sleep(20)
        finally:
            os.kill(monitor, signal.SIGCONT)
        async with asyncio.timeout(SOON):
            archive = open_archive(await task)
    (repeat,) = archive.repeats
    kinds = [event["event"] for event in repeat.events()]
    assert kinds.index("cluster_unreachable") < kinds.index("cluster_reachable")
    assert repeat.record.metrics.failures == {"exporter": 0}
    client = repeat.record.phases["client"].result
    assert isinstance(client, LoadResult)
    assert client.total.ios > 0
    assert_restored(archive)


async def test_an_osd_that_dies_is_recorded_and_said(lab: RunningLab, tmp_path: Path) -> None:
    """Last: it hurts the lab most."""
    run = runner(lab, tmp_path, seconds(15))
    async with started(run) as task:
        await until_load(run, task)
        await lab.faults.kill(2)
        with pytest.raises(RunError, match=r"up differs: gone \[2\]"):
            async with asyncio.timeout(SOON):
                await task
    archive = only_archive(tmp_path)
    (repeat,) = archive.repeats
    assert repeat.record.status == "finished"
    client = repeat.record.phases["client"].result
    assert isinstance(client, LoadResult)
    assert client.total.ios > 0
    assert {row["osds_up"] for row in repeat.cluster()} == {2, 3}
    await lab.faults.restart(2)
