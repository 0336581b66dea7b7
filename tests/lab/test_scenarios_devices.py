"""Scenarios that need clusters or paths of their own: device schedulers, QEMU, CPU placement."""

import asyncio
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from tests.shipped_plans import shipped_plan

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive.reader import RecordedRepeat, open_archive
from cephqos_loadgen.check.preflight import check_engine
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster import device_queues
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.plan.errors import NotRestored
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.results.phase import LoadResult
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.scenario.parse import parse
from cephqos_loadgen.scenario.variables import variable_from_text

from .conftest import LabPool, lab_name
from .test_scenarios import assert_restored, growth, run
from .test_scenarios_faults import started


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    """Two OSDs on loop devices that say they rotate."""
    spec = LabSpec(name=lab_name("dev"), osds=2, osd_size=4 << 30, backing="loop", rotational=True)
    running = labs.start(spec)
    yield running
    labs.end(running)


def load(repeat: RecordedRepeat, phase: str) -> LoadResult:
    result = repeat.record.phases[phase].result
    assert isinstance(result, LoadResult)
    return result


def queue(lab: RunningLab, osd: int) -> Path:
    return Path("/sys/block") / Path(lab.state.devices[f"osd.{osd}.block"]).name / "queue"


async def test_device_schedulers_are_set_measured_and_taken_back(
    lab: RunningLab, tmp_path: Path
) -> None:
    (queue(lab, 0) / "scheduler").write_text("mq-deadline")
    (queue(lab, 0) / "nr_requests").write_text("37")
    (queue(lab, 0) / "iosched/fifo_batch").write_text("7")
    names = [queue(lab, osd).parent.name for osd in (0, 1)]
    before = device_queues.state(names)
    variables = {"seconds": "2s", "nr_requests": "[64]", "read_ahead": "[256]"}
    archive = await run("io-scheduler", lab, tmp_path, {"scheduler": "none,bfq"}, **variables)
    assert [repeat.record.axes["scheduler"] for repeat in archive.repeats] == ["none", "bfq"]
    for repeat in archive.repeats:
        write, read = load(repeat, "write"), load(repeat, "read")
        assert len(write.chosen.jobs) == len(read.chosen.jobs) == 2
        assert write.total.ios > 0
        assert read.total.latency_mean_seconds > 0
        wanted = repeat.record.axes["scheduler"]
        own = {"scheduler": wanted, "nr_requests": "64", "read_ahead_kb": "256"}
        assert list(repeat.record.in_force.devices.values()) == [own] * 2
        seconds = [entry for entry in repeat.intervals() if entry.phase == "write"]
        assert {entry.client for entry in seconds} == {"bench0", "bench1"}
        assert sum(entry.write.ios for entry in seconds if entry.write) <= write.total.ios
        done = [entry.write for entry in seconds if entry.write and entry.write.ios]
        assert done and all(figures.latency_mean_seconds > 0 for figures in done)
    assert device_queues.state(names) == before
    assert (names[0], "iosched/fifo_batch", "7") in before
    assert_restored(archive)


async def test_a_queue_that_somebody_changed_during_the_run_is_not_called_the_same(
    lab: RunningLab, tmp_path: Path
) -> None:
    text = "scenario: rest\nphases: [{name: rest, wait: {}, until: {duration: 6s}}]\n"
    options = RunOptions(out=tmp_path, lab=lab.paths.name, listen="127.0.0.1:0")
    runner = Runner(parse(text, "rest.yaml"), options, Silent())
    ahead = queue(lab, 1) / "read_ahead_kb"
    before = ahead.read_text()
    async with started(runner) as task:
        while not list(tmp_path.glob("*.partial/repeats/*")):
            assert not task.done()
            await asyncio.sleep(0.1)
        ahead.write_text("12")
        try:
            with pytest.raises(NotRestored, match=r"queues differs: gone .*read_ahead_kb.* '12'"):
                await task
        finally:
            ahead.write_text(before)


async def test_the_qemu_path_and_librbd_are_measured_side_by_side(
    lab: RunningLab, tmp_path: Path
) -> None:
    paths = "librbd,qemu,qemu_cache,one_guest,one_guest_cache"
    only = {"path": paths, "rw": "randread", "volumes": "2"}
    archive = await run("rbd-surface", lab, tmp_path, only, dwell="2s")
    for repeat in archive.repeats:
        steps = load(repeat, "surface").steps
        assert [step.depth for step in steps] == [1, 8]
        assert all(step.total.ios > 0 for step in steps)
    argvs = [
        " ".join(child.argv)
        for repeat in archive.repeats
        for child in repeat.record.children
        if "qemu" in child.name
    ]
    assert any("--cache=none" in argv for argv in argvs)
    assert any("--cache=writeback" in argv for argv in argvs)
    guests = [argv for argv in argvs if "qemu-storage-daemon" in argv]
    assert len(guests) == 4, "one at each depth, with its cache off and on"
    assert ["cache.direct=off" in argv for argv in guests].count(True) == 2
    assert all("image=volume.0" in argv and "image=volume.1" in argv for argv in guests)
    last = archive.repeats[-1]
    assert last.record.axes["path"] == "one_guest_cache"
    assert {name.rpartition("/")[2] for name in load(last, "surface").steps[0].jobs} == {
        "volume.0",
        "volume.1",
    }
    for depth in (1, 8):
        step = last.host()[f"surface depth {depth}"]
        assert step.cpu is not None
        assert {"osd.0", "osd.1"} <= set(step.processes)
        assert any(".client." in name and use.threads for name, use in step.processes.items())


async def test_osds_are_pinned_for_the_phase_and_free_again_after_it(
    lab: RunningLab, tmp_path: Path
) -> None:
    before = {name: os.sched_getaffinity(pid) for name, pid in (await lab.pids()).items()}
    only = {"strategy": "default", "load": "randread"}
    archive = await run("cpu-placement", lab, tmp_path, only, dwell="3s", ramp="2s")
    (repeat,) = archive.repeats
    placement = repeat.record.phases["placement"].result
    assert isinstance(placement, PinResult)
    assert placement.applied
    cpus = [tuple(own) for own in placement.cpus.values()]
    assert len(set(cpus)) == len(cpus) == 2, "no core is shared"
    steps = load(repeat, "curve").steps
    assert [step.depth for step in steps] == [1, 8]
    for step in steps:
        assert 2.5 < step.seconds < 4.9, "the ramp of 2 s is not in the figures"
        use = repeat.host()[f"curve depth {step.depth}"]
        assert 2 < use.seconds < 8, "nor in what the host used"
    seen = [name for name in repeat.metrics().series if name.startswith("cephqos_placement_info{")]
    assert seen
    after = {name: os.sched_getaffinity(pid) for name, pid in (await lab.pids()).items()}
    assert set(map(frozenset, after.values())) == set(map(frozenset, before.values()))


ENGINES = """\
scenario: engines
pools:
  - {{name: data, size: 2, pg_num: 8}}
phases:
  - name: rados
    fio: {{engine: rados, pool: data, rw: randwrite, bs: 16K, depth: 4, clients: 2, size: 4M}}
    until: {{duration: 3s}}
  - name: uring
    fio: {{engine: io_uring, path: {file}, rw: randwrite, bs: 4K, depth: 4, size: 8M, cpus: "0"}}
    start: {{with: rados}}
    until: {{duration: 3s}}
  - name: aio
    fio: {{engine: libaio, path: {file}, rw: randread, bs: 4K, depth: 4, size: 8M, rate_iops: 100}}
    until: {{phase: rest}}
  - name: rest
    wait: {{}}
    start: {{with: aio}}
    until: {{duration: 4s}}
  - name: calm
    fio: {{engine: libaio, path: {file}, rw: randread, bs: 4K, depth: 1, size: 8M, rate_iops: 50}}
    start: {{with: aio}}
    until: {{steady_state: {{window: 2s, dispersion: 0.9}}}}
    at_most: 30s
"""


async def test_the_other_engines_beside_each_other_and_one_ended_from_outside(
    lab: RunningLab, tmp_path: Path
) -> None:
    raw = str(lab.paths.work / "raw")
    text = ENGINES.format(file=raw)
    options = RunOptions(out=tmp_path, lab=lab.paths.name, listen="127.0.0.1:0", paths=(raw,))
    runner = Runner(parse(text, "engines.yaml"), options, Silent())
    running = asyncio.create_task(runner.run())
    served = await page_with(runner, running, 'engine="libaio",load="aio"')
    archive = open_archive(await running)
    assert re.search(r'latency_seconds_bucket{(?=.*load="aio")(?=.*le="\+Inf").*} [1-9]', served)
    assert re.search(r'cephqos_run_info{(?=.*scenario="engines")(?=.*phase="aio").*} 1', served)
    assert re.search(r'cephqos_client_ops_total{.*engine="rados",load="rados"', served), "it stays"
    assert 'load="rados"' not in "".join(re.findall(r"cephqos_client_iops{.*", served)), "it ended"
    (repeat,) = archive.repeats
    found = repeat.record.phases
    jobs = load(repeat, "rados").chosen.jobs
    assert set(jobs) == {"client.0/volume.0", "client.1/volume.1"}
    assert all(job.ios > 0 for job in jobs.values())
    assert growth(repeat, "ceph_osd_op_w") >= load(repeat, "rados").total.ios
    assert load(repeat, "uring").total.ios > 0
    assert load(repeat, "aio").total.iops == pytest.approx(100, rel=0.3)
    children = {child.name: child for child in repeat.record.children}
    assert children["aio.client.0"].interrupted, "it was told to end, and still wrote its result"
    assert children["uring.client.0"].argv.count("taskset") == 1
    assert found["uring"].start_unix_seconds < found["rados"].end_unix_seconds
    assert 2 <= load(repeat, "calm").chosen.seconds < 25, "steady, and ended before its bound"


async def test_a_drive_is_loaded_until_it_is_steady(lab: RunningLab, tmp_path: Path) -> None:
    drive = lab.paths.work / "drive"
    drive.write_bytes(bytes(16 << 20))
    chosen = {"drive": variable_from_text(str(drive))}
    plan = shipped_plan("precondition", variables=chosen)
    options = RunOptions(out=tmp_path, lab=lab.paths.name, listen="127.0.0.1:0")
    taken = next(device for device in lab.state.devices.values())
    with pytest.raises(UsageError, match=f"--path {taken}: a file system or an OSD uses it"):
        await Runner(plan, replace(options, paths=(str(drive), taken)), Silent()).run()
    done = await Runner(plan, replace(options, paths=(str(drive),)), Silent()).run()
    (repeat,) = open_archive(done).repeats
    settled = load(repeat, "settle")
    assert isinstance(settled, FioResult)
    assert settled.steady
    assert settled.total.ios > 0


async def page_with(runner: Runner, running: "asyncio.Task[Path]", text: str) -> str:
    """The live metrics as soon as these labels have a rate."""
    async with aiohttp.ClientSession() as session:
        while not running.done():
            await asyncio.sleep(0.2)
            if not runner.url:
                continue
            async with session.get(runner.url) as response:
                page = await response.text()
            if re.search(rf"cephqos_client_iops{{.*{text}", page):
                return page
    raise AssertionError(f"never served: {text}") from running.exception()


@pytest.mark.skipif(Path("/sys/bus/rbd").exists(), reason="this kernel has krbd")
def test_a_kernel_without_rbd_is_said_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="has no rbd module; use rbd"):
        check_engine("krbd")
