"""Scenarios on real clusters, at their smallest; what counts is what the archive holds."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cpu import reading
from tests.shipped_plans import shipped_plan
from tests.without_ceph import read_everything

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.archive.reader import Archive, RecordedRepeat, open_archive, problems
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.osd_bench import OsdBenchResult
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.results.phase import PhaseRecord
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.scenario.variables import variable_from_text

from .conftest import LabPool, lab_name


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    """Three OSDs on loop devices that say they are SSDs; every run gives it back as it was."""
    spec = LabSpec(name=lab_name("scn"), osds=3, osd_size=4 << 30, backing="loop", rotational=False)
    running = labs.start(spec)
    yield running
    labs.end(running)


async def run(
    scenario: str, lab: RunningLab, out: Path, only: dict[str, str] | None = None, **variables: str
) -> Archive:
    """Run a shipped scenario at its smallest scale; the archive, which must be sound."""
    plan = shipped_plan(
        scenario,
        only={axis: tuple(value.split(",")) for axis, value in (only or {}).items()},
        variables={name: variable_from_text(value) for name, value in variables.items()},
    )
    options = RunOptions(out=out, lab=lab.paths.name, listen="127.0.0.1:0")
    archive = open_archive(await Runner(plan, options, Silent()).run())
    assert archive.manifest.status == "complete"
    assert list(problems(archive)) == []
    assert_restored(archive)
    return archive


def assert_restored(archive: Archive) -> None:
    (restored,) = [e for e in archive.events() if e["event"] == "restored"]
    assert restored["same"], restored["differences"]
    assert archive.manifest.restore_commands == ()


def assert_in_force(repeat: RecordedRepeat, **options: str) -> None:
    daemons = repeat.record.in_force.options
    assert len(daemons) == 3
    for daemon, values in daemons.items():
        assert {name: values[name] for name in options} == options, daemon


def growth(repeat: RecordedRepeat, metric: str) -> float:
    """How much a counter grew over the repeat, all OSDs or pools together."""
    rows = [s for n, s in repeat.metrics().series.items() if n.startswith(f"{metric}{{")]
    assert rows, f"no {metric} was recorded"
    return sum(samples[-1][1] - samples[0][1] for samples in rows)


def waited_for(archive: Archive, osd: str) -> set[str]:
    """What its client operations waited for, by `cephqos blame`."""
    argv = [sys.executable, "-m", "cephqos_base", "blame", "--archive", str(archive.folder)]
    done = subprocess.run([*argv, "--json"], capture_output=True, text=True, timeout=60, check=True)
    return {edge["waits_for"] for edge in json.loads(done.stdout) if edge["waiter"] == osd}


def phases(repeat: RecordedRepeat) -> Mapping[str, PhaseRecord]:
    return repeat.record.phases


def load(repeat: RecordedRepeat, phase: str) -> FioResult:
    result = repeat.record.phases[phase].result
    assert isinstance(result, FioResult)
    return result


def scrub_of(repeat: RecordedRepeat, phase: str) -> ScrubResult:
    result = repeat.record.phases[phase].result
    assert isinstance(result, ScrubResult)
    return result


async def test_baseline_finds_what_the_clients_did_in_the_osds_own_counters(
    lab: RunningLab, tmp_path: Path
) -> None:
    before = reading()
    archive = await run("baseline", lab, tmp_path, seconds="12s", bench="2M")
    (repeat,) = archive.repeats
    assert_in_force(repeat, bluestore_throttle_bytes=str(256 << 10))
    client = load(repeat, "client")
    assert client.total.ios > 100
    # The image's header and watchers are operations too.
    assert growth(repeat, "ceph_osd_op_w") == pytest.approx(client.total.ios, rel=0.02, abs=50)
    capacity = phases(repeat)["capacity"].result
    assert isinstance(capacity, OsdBenchResult)
    assert len(capacity.osds) == 3
    seconds = [entry for entry in repeat.intervals() if entry.phase == "client"]
    assert sum(entry.write.ios for entry in seconds if entry.write) == client.total.ios
    assert archive.manifest.summary.found is not None
    assert archive.manifest.summary.found.value == "256K"
    host = repeat.host()["client"]
    assert host.processes["osd.0"].threads["bstore_kv_sync"].user_seconds >= 0
    assert any(name.startswith("loop") for name in host.disks)
    assert host.processes["client.client.0"].threads, "fio's threads"
    # About half a reading per second on a quiet machine; one that read every OSD at each
    # interval would take several.
    assert repeat.record.cost.core_share < 2 * max(before, reading())
    assert b'"clat_ns"' in repeat.output("client.client.0")
    shown = read_everything(archive.folder, tmp_path)
    assert f"{client.total.iops:,.0f} IOPS" in shown
    assert "osd.1" in waited_for(archive, "osd.0"), "sampled often enough for a run of seconds"


async def test_a_deep_scrub_reads_every_object_beside_the_clients(
    lab: RunningLab, tmp_path: Path
) -> None:
    """With the study's own profile and an experiment's settings in force."""
    only = {"policy": "custom", "experiment": "cost_20m"}
    variables = {"client": "12s", "objects": "200", "max_scrubs": "1"}
    archive = await run("client-vs-scrub", lab, tmp_path, only, **variables)
    (repeat,) = archive.repeats
    assert_in_force(
        repeat,
        osd_mclock_profile="custom",
        osd_mclock_scheduler_background_recovery_res="0.050000",
        osd_mclock_scheduler_background_recovery_lim="1.000000",
        osd_mclock_scheduler_background_best_effort_res="0.900000",
        osd_mclock_scheduler_background_best_effort_wgt="2",
        osd_max_scrubs="1",
        osd_requested_scrub_priority="120",
        osd_scrub_cost=str(20 << 20),
    )
    scrub = scrub_of(repeat, "scrub")
    assert scrub.objects >= 200
    # The last few placement groups may be done too late to be seen.
    assert growth(repeat, "cephqos_scrub_pool_objects_total") > 50, "the cluster's own word"
    assert scrub.bytes >= 200 * 32 * 1024
    found = phases(repeat)
    assert found["scrub"].start_unix_seconds < found["client"].start_unix_seconds
    assert found["alone"].end_unix_seconds <= found["scrub"].start_unix_seconds + 0.1
    warnings = [e["text"] for e in archive.events() if e["event"] == "warning"]
    assert any("osd_scrub_cost = 20M has no effect" in text for text in warnings)
    assert_capacity_is_what_was_measured(repeat)


def assert_capacity_is_what_was_measured(repeat: RecordedRepeat) -> None:
    """Not Ceph's default of 21,500 for an SSD: by the OSDs' own word."""
    measured = repeat.record.in_force.capacity_iops
    assert set(measured) == {"osd.0", "osd.1", "osd.2"}
    metric = "cephqos_qos_capacity_normalised_ops_per_second"
    for osd, iops in measured.items():
        (samples,) = (
            rows
            for name, rows in repeat.metrics().series.items()
            if name.startswith(f"{metric}{{") and f'"{osd}"' in name
        )
        assert samples[-1][1] == pytest.approx(iops, rel=0.001)
        assert iops != 21_500


async def test_recovery_moves_the_objects_while_clients_work(
    lab: RunningLab, tmp_path: Path
) -> None:
    only = {"policy": "high_client_ops", "media": "ssd"}
    # The cluster is the test's: the scenario's own wish for one is not looked at.
    archive = await run("client-vs-recovery", lab, tmp_path, only)
    (repeat,) = archive.repeats
    assert_in_force(repeat, osd_max_backfills="1000", osd_mclock_profile="high_client_ops")
    client = phases(repeat)["client"]
    assert client.recovery is not None
    moved = client.recovery.objects
    assert moved >= 80, "most of 150 objects have a copy on the third OSD"
    assert growth(repeat, "cephqos_recovery_pool_objects_total") >= 0.8 * moved
    assert load(repeat, "client").total.ios > 0
    assert client.start_unix_seconds > phases(repeat)["in"].end_unix_seconds - 1
    began = [e["time"] for e in repeat.events() if e["event"] == "recovery_started"][-1]
    (done,) = [e for e in repeat.events() if e["event"] == "recovery_done"][-1:]
    ended = done["time"]
    assert phases(repeat)["in"].start_unix_seconds < began < ended
    assert client.recovery.finished
    assert client.ended_by == "condition"
    assert client.recovery.seconds == done["seconds"]
    # From the look before, where only what had moved told of it; without the second calm look.
    # On a busy machine a look takes longer, so its own time counts and no other.
    before = [look["time"] for look in repeat.cluster() if look["time"] < began][-2]
    assert 0 < client.recovery.seconds < ended - before
    assert {row["osds_up"] for row in repeat.cluster()} >= {2, 3}


async def test_every_policy_recovers_the_same_objects(lab: RunningLab, tmp_path: Path) -> None:
    """Their placement groups lie on the same OSDs: the pool stays, and is emptied in between."""
    only = {"policy": "balanced,high_recovery_ops", "media": "ssd"}
    removed = await pools_removed(lab)
    await lab.exec(["ceph", "osd", "reweight", "2", "0.9"])
    try:
        archive = await run("client-vs-recovery", lab, tmp_path, only)
        weights = {osd["osd"]: osd["weight"] for osd in (await state(lab))["osds"]}
    finally:
        await lab.exec(["ceph", "osd", "reweight", "2", "1"])
    assert weights[2] == pytest.approx(0.9, abs=0.001), "also the weight is given back"
    moved = [repeat.record.phases["client"].recovery for repeat in archive.repeats]
    assert len(moved) == 2
    assert all(recovery and recovery.objects >= 20 for recovery in moved)
    # How many differs between two repeats (70 and 113 once), so the pools are counted: one that is
    # made again has other placement groups.
    assert await pools_removed(lab) - removed == 2, "the clients' and the one that recovers, once"
    stored = {pool["pool_name"] for pool in (await state(lab))["pools"]}
    assert "recovery" not in stored


async def pools_removed(lab: RunningLab) -> int:
    async with lab.client() as client:
        osd_map = await client.command("osd dump")
    return int(osd_map["pool_max"]) - len(osd_map["pools"])


async def state(lab: RunningLab) -> dict[str, list[dict[str, Any]]]:
    async with lab.client() as client:
        found: dict[str, list[dict[str, Any]]] = await client.command("osd dump")
        return found


@pytest.mark.full
async def test_scrub_and_recovery_start_together(lab: RunningLab, tmp_path: Path) -> None:
    only = {"policy": "high_client_ops"}
    archive = await run("client-vs-scrub-recovery", lab, tmp_path, only, client="5s")
    (repeat,) = archive.repeats
    found = phases(repeat)
    assert scrub_of(repeat, "scrub").objects >= 100
    recovery = found["recovery"].recovery
    assert recovery is not None
    assert recovery.objects >= 20
    release, scrub = (found[name].start_unix_seconds for name in ("release", "scrub"))
    assert release >= scrub
    assert release - scrub < 60


async def test_wpq_is_in_force_after_a_restart_and_gone_after_the_run(
    lab: RunningLab, tmp_path: Path
) -> None:
    """Its backfill limits too: an OSD that still ran mClock would throw them out again."""
    only = {"policy": "wpq_boosted", "media": "ssd"}
    archive = await run("client-vs-recovery", lab, tmp_path, only, objects="60")
    (repeat,) = archive.repeats
    assert_in_force(repeat, osd_max_backfills="1000", osd_recovery_max_active="1000")
    recovery = phases(repeat)["client"].recovery
    assert recovery is not None
    assert recovery.objects > 0
    assert set(repeat.record.in_force.schedulers.values()) == {"wpq"}
    async with lab.client() as client:
        dump = await client.command("dump_op_pq_state", target="osd.0")
        assert "mClockQueues" in str(dump), "the OSD was restarted with its own scheduler"
        with pytest.raises(CommandFailed):
            await client.command("osd pool stats", pool_name="recovery")


async def test_a_curve_has_a_step_per_depth_and_throughput_grows(
    lab: RunningLab, tmp_path: Path
) -> None:
    archive = await run("response-curve", lab, tmp_path, {"load": "randread"}, dwell="3s")
    curve = load(archive.repeats[0], "curve")
    assert [step.depth for step in curve.steps] == [1, 16]
    one, sixteen = (step.total for step in curve.steps)
    assert sixteen.iops > one.iops > 0
    assert all((step.total.latency_deviation_seconds or 0) > 0 for step in curve.steps)


async def test_a_latency_target_is_kept_by_what_is_reported(
    lab: RunningLab, tmp_path: Path
) -> None:
    archive = await run("latency-target", lab, tmp_path, target="2s", most="4", dwell="2s")
    search = load(archive.repeats[0], "search")
    assert search.reached
    assert search.total.latency_percentiles_seconds["95"] <= 2
    tried = {step.depth: step.within_target for step in search.steps}
    assert tried[search.chosen.depth]


@pytest.mark.full
async def test_the_demo_does_all_four_and_its_capacity_is_overstated(
    lab: RunningLab, tmp_path: Path
) -> None:
    # The exporter asks for an OSD's settings every 5 s: the last phase must be longer.
    archive = await run("qos-demo", lab, tmp_path, seconds="9s", objects="60")
    (repeat,) = archive.repeats
    assert scrub_of(repeat, "scrub").objects >= 60
    for phase in ("baseline", "client_scrub", "client_recovery", "client_overstated"):
        assert load(repeat, phase).total.ios > 0, phase
    assert (repeat.record.recovered_objects or 0) > 0
    rows = [
        samples
        for name, samples in repeat.metrics().series.items()
        if name.startswith("cephqos_qos_capacity_normalised_ops_per_second{")
    ]
    assert rows
    assert all(samples[-1][1] == 80_000 > samples[0][1] for samples in rows)
