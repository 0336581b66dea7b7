"""What the exporter says of QoS on real clusters, against what fio, rados and the cluster say."""

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.recorded import RELEASES
from tests.waiting import until

from cephqos_exporter.collectors.histograms import HistogramsCollector
from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.collectors.ops import OpsCollector
from cephqos_exporter.collectors.perf import PerfCollector
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec

from .conftest import LabPool, lab_name
from .live_exporter import LiveExporter, LivePage

KIB, MIB = 1024, 1024 * 1024
POOL = "exporter-qos"
DONE = "cephqos_qos_normalised_ops_total"
LAG = "cephqos_qos_reservation_lag_seconds"
CAPACITY = "cephqos_qos_capacity_normalised_ops_per_second"
LATENCY = "cephqos_osd_op_latency_seconds"
OPS = f"{LATENCY}_count"
OTHERS = 50  # operations at most, of the manager's own database in the same minute

# One job of a workload: how many operations of which size.
Job = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FioSummary:
    """What fio says of a workload as a whole."""

    ops: int
    percentiles: dict[float, float]  # of completion latency, in seconds
    slowest: float


async def ceph(lab: RunningLab, *argv: str) -> str:
    return (await lab.exec(["ceph", "--conf", str(lab.paths.conf), *argv])).stdout


async def fio(lab: RunningLab, kind: str, jobs: Sequence[Job], depth: int = 8) -> FioSummary:
    """Run the jobs side by side with fio's rados engine: no cache between it and the OSDs."""
    argv = ["env", f"CEPH_CONF={lab.paths.conf}", "fio", "--output-format=json"]
    argv += ["--ioengine=rados", "--clientname=admin", f"--pool={POOL}", f"--rw={kind}"]
    argv += [f"--iodepth={depth}", "--group_reporting=0", "--norandommap=1", "--randrepeat=0"]
    for i, (count, size) in enumerate(jobs):
        argv += [f"--name=job{i}", f"--bs={size}", f"--number_ios={count}"]
        argv += ["--nrfiles=8", "--size=64m", f"--io_size={count * size}"]
    report = json.loads((await lab.exec(argv, within=120)).stdout)
    return _read_fio(report, "write" if "write" in kind else "read")


def _read_fio(report: dict[str, Any], side: str) -> FioSummary:
    sides = [job[side] for job in report["jobs"]]
    latencies = sides[0]["clat_ns"]
    return FioSummary(
        ops=sum(s["total_ios"] for s in sides),
        percentiles={float(p): ns / 1e9 for p, ns in latencies.get("percentile", {}).items()},
        slowest=latencies["max"] / 1e9,
    )


@pytest.fixture(scope="module")
def pools(labs: LabPool) -> Iterator[list[RunningLab]]:
    """The labs in which this module made its pool; removed at the end."""
    made: list[RunningLab] = []
    yield made
    really = "--yes-i-really-really-mean-it"
    for lab in made:
        labs.call(ceph(lab, "osd", "pool", "delete", POOL, POOL, really))


@pytest.fixture
async def lab(shared_lab: RunningLab, pools: list[RunningLab]) -> RunningLab:
    """The shared lab with a pool of three replicas in it."""
    if shared_lab not in pools:
        await make_pool(shared_lab)
        pools.append(shared_lab)
    return shared_lab


async def make_pool(lab: RunningLab) -> None:
    await ceph(lab, "osd", "pool", "create", POOL, "32", "32")
    await ceph(lab, "osd", "pool", "application", "enable", POOL, "test")
    await settled(lab)
    # Every object made once, so that what follows is writes alone.
    await fio(lab, "randwrite", [(8, 4 * KIB)] * 3)


@contextlib.asynccontextmanager
async def watched(lab: RunningLab, *collectors: Any) -> AsyncIterator[LiveExporter]:
    """An exporter that has seen the OSDs once."""
    async with LiveExporter(lab, collectors) as exporter:
        await exporter.scrape()
        yield exporter


async def pg_states(lab: RunningLab) -> set[str]:
    """The states that PGs are in."""
    status = json.loads(await ceph(lab, "pg", "stat", "--format", "json"))
    return {state["name"] for state in status.get("pg_summary", status)["num_pg_by_state"]}


async def settled(lab: RunningLab) -> None:
    """Wait until every PG is active and clean."""

    async def clean() -> bool:
        return await pg_states(lab) == {"active+clean"}

    await until(clean, "every PG active and clean")


async def at_rest(exporter: LiveExporter) -> LivePage:
    """The first page on which nothing waits and nothing is under way, as in a moment of rest."""

    async def calm() -> LivePage | None:
        page = await exporter.scrape()
        busy = ("cephqos_ops_in_progress", "cephqos_qos_queue_length", LAG)
        return None if any(value > 0.05 for it in busy for value in page.values(it)) else page

    return await until(calm, "nothing waits and nothing is under way")


async def sampled(exporter: LiveExporter, work: asyncio.Task[Any]) -> list[LivePage]:
    """Scrape twice a second while the work lasts, as a Prometheus in a hurry would."""
    pages = []
    while not work.done():
        pages.append(await exporter.scrape())
        await asyncio.sleep(0.5)
    return pages


def charge(page: LivePage, size: int) -> float:
    """What the scheduler charges for a write, from the cost settings that the page shows."""
    if page.values("cephqos_qos_cost_per_io_bytes"):
        return max(1.0, size / page.values("cephqos_qos_cost_per_io_bytes")[0])
    per_io = page.values("cephqos_qos_cost_per_io_units")[0]
    per_byte = page.values("cephqos_qos_cost_per_byte_units")[0]
    return max(1.0, math.floor(per_io + per_byte * size + 0.5))


MIXES: list[list[Job]] = [
    [(3000, 4 * KIB)],
    [(1000, 64 * KIB)],
    [(200, MIB)],
    [(1500, 4 * KIB), (400, 64 * KIB), (80, MIB)],
]


async def test_attained_work_is_what_fio_did_at_every_size(lab: RunningLab) -> None:
    async with watched(
        lab, MclockCollector(interval=0), HistogramsCollector(interval=0)
    ) as exporter:
        for jobs in MIXES:
            before = await exporter.scrape()
            work = asyncio.create_task(fio(lab, "randwrite", jobs))
            during = await sampled(exporter, work)
            result, after = await work, await exporter.scrape()
            assert len(during) >= 1
            assert result.ops == sum(count for count, _ in jobs)
            done = after.sum(OPS, op="write") - before.sum(OPS, op="write")
            assert done == pytest.approx(result.ops, rel=0.05, abs=OTHERS)
            exact = sum(count * charge(after, size) for count, size in jobs)
            client = after.sum(DONE, class_="client") - before.sum(DONE, class_="client")
            print(f"{jobs}: client work {client:.1f}, exact {exact:.1f}: {client / exact - 1:+.3%}")
            assert client == pytest.approx(exact, rel=0.05, abs=OTHERS), f"{jobs}"
            # (fio touches each of its objects once more than it says.)
            # Two replicas of each write are immediate work; they carry some metadata as well.
            replicas = after.sum(DONE, class_="immediate") - before.sum(DONE, class_="immediate")
            assert replicas == pytest.approx(2 * exact, rel=0.1, abs=2 * OTHERS), f"{jobs}"


async def test_reads_cost_one_op_each(lab: RunningLab) -> None:
    async with watched(lab, MclockCollector(interval=0)) as exporter:
        await fio(lab, "randwrite", [(64, MIB)])
        before = await exporter.scrape()
        result = await fio(lab, "randread", [(500, 64 * KIB)])
        after = await exporter.scrape()
        client = after.sum(DONE, class_="client") - before.sum(DONE, class_="client")
        assert client == pytest.approx(result.ops, rel=0.05, abs=OTHERS)


@pytest.mark.parametrize("release", RELEASES)
async def test_op_counts_are_those_of_rados(lab: RunningLab) -> None:
    collectors = PerfCollector(), HistogramsCollector(interval=0), OpsCollector()
    async with watched(lab, *collectors) as exporter:
        before = await exporter.scrape()
        bench = ["rados", "--conf", str(lab.paths.conf), "bench", "90", "write"]
        options = ["-b", "4096", "-t", "16", "-p", POOL, "--no-cleanup", "--format", "json"]
        done = await lab.exec([*bench, *options, "--max-objects", "1000"], within=150)
        after = await at_rest(exporter)
        told = int(json.loads(done.stdout[done.stdout.index("{") :])["total_writes_made"])
        assert told == 1000
        for name, labels in (("ceph_osd_op_w", {}), (OPS, {"op": "write"})):
            counted = after.sum(name, **labels) - before.sum(name, **labels)
            assert told <= counted <= told + OTHERS, name
        assert after.sum("cephqos_ops_in_progress") == 0
        assert after.values("cephqos_ops_oldest_age_seconds") == [0] * lab.spec.osds


async def test_latency_quantiles_agree_with_fios_to_a_bucket(lab: RunningLab) -> None:
    """Where nothing else takes the client's CPU, which fio's latencies have in them."""
    apart: list[list[str]] = []
    async with watched(lab, HistogramsCollector(interval=0)) as exporter:
        while len(apart) < 6:
            before = (await exporter.scrape()).buckets(LATENCY, op="write")
            # One at a time: what fio measures beyond the OSD's own time is small and steady.
            result = await fio(lab, "randwrite", [(700, 4 * KIB)], depth=1)
            after = (await exporter.scrape()).buckets(LATENCY, op="write")
            added = {bound: after[bound] - before[bound] for bound in after}
            apart.append(list(far_apart(result, added)))
            if not apart[-1]:
                return
    pytest.fail(f"further than a bucket apart, each time: {apart}")


def far_apart(result: FioSummary, added: dict[float, float]) -> Iterator[str]:
    """The quantiles of a histogram that are more than a bucket away from fio's."""
    counts, bounds = list(added.values()), list(added)
    assert counts == sorted(counts), "cumulative counts must not fall"
    for percentile in (50.0, 90.0, 95.0, 99.0):
        rank = percentile / 100 * counts[-1]
        ours = next(i for i, count in enumerate(counts) if count >= rank)
        told = result.percentiles[percentile]
        theirs = next(i for i, bound in enumerate(bounds) if bound >= told)
        if abs(ours - theirs) > 1:
            yield f"p{percentile}: fio {told} s, ours <= {bounds[ours]} s"


async def wait_for(exporter: LiveExporter, what: str, wanted: float, **labels: str) -> LivePage:
    """Scrape until every OSD shows that value."""

    async def shown() -> LivePage | None:
        page = await exporter.scrape()
        found = page.values(what, **labels)
        return page if found and all(value == pytest.approx(wanted) for value in found) else None

    return await until(shown, f"{what} {wanted}")


async def check_capacity_change(lab: RunningLab, exporter: LiveExporter) -> None:
    """Halve the capacity while nothing runs: reservations follow at once, no counter moves."""
    await fio(lab, "randwrite", [(100, MIB), (300, 4 * KIB)])
    before = await exporter.scrape()
    media = before.labels("cephqos_qos_scheduler_info")[0]["media"]
    option = f"osd_mclock_max_capacity_iops_{media}"
    was = before.values(CAPACITY)[0]
    ratio = before.values("cephqos_qos_reservation_ratio", class_="client")[0]
    try:
        await ceph(lab, "config", "set", "osd", option, str(was / 2))
        after = await wait_for(exporter, CAPACITY, was / 2)
        reserved = after.values(
            "cephqos_qos_reservation_normalised_ops_per_second", class_="client"
        )
        shards = after.values("cephqos_qos_shards")[0]
        assert reserved == [pytest.approx(ratio * was / 2, abs=shards)] * lab.spec.osds
        origins = {own["capacity_origin"] for own in after.labels("cephqos_qos_scheduler_info")}
        assert origins == {"mon"}
        # Of the hundreds that were done before, none is counted again; the cluster may do a few.
        for cls in ("client", "immediate", "background_recovery"):
            assert after.values(DONE, class_=cls) == pytest.approx(
                before.values(DONE, class_=cls), abs=OTHERS
            )
        await fio(lab, "randwrite", [(100, MIB)])
        page = await exporter.scrape()
        gained = page.sum(DONE, class_="client") - after.sum(DONE, class_="client")
        assert gained == pytest.approx(100 * charge(page, MIB), rel=0.05, abs=OTHERS)
    finally:
        await ceph(lab, "config", "rm", "osd", option)
    await wait_for(exporter, CAPACITY, was)


@pytest.mark.parametrize("release", ["reef", "tentacle"])
async def test_a_change_of_capacity_is_seen_at_once_and_no_counter_jumps(
    lab: RunningLab,
) -> None:
    async with watched(lab, MclockCollector(interval=0)) as exporter:
        await check_capacity_change(lab, exporter)


@pytest.mark.parametrize("release", ["reef", "tentacle"])
async def test_a_change_of_profile_is_seen_at_once(lab: RunningLab) -> None:
    name = "cephqos_qos_reservation_ratio"
    async with watched(lab, MclockCollector(interval=0)) as exporter:
        assert set((await exporter.scrape()).values(name, class_="client")) == {0.5}
        try:
            await ceph(lab, "config", "set", "osd", "osd_mclock_profile", "high_client_ops")
            page = await wait_for(exporter, name, 0.6, class_="client")
            profiles = {own["profile"] for own in page.labels("cephqos_qos_scheduler_info")}
            assert profiles == {"high_client_ops"}
        finally:
            await ceph(lab, "config", "rm", "osd", "osd_mclock_profile")


@pytest.mark.parametrize("release", ["reef", "tentacle"])
async def test_the_lag_is_nothing_when_idle_and_grows_when_there_is_too_much_to_do(
    lab: RunningLab,
) -> None:
    async with watched(lab, MclockCollector(interval=0), OpsCollector()) as exporter:
        idle = await at_rest(exporter)
        assert idle.values(LAG, class_="client")
        try:
            # Little is let through to a slow device, so what waits waits in the scheduler.
            await ceph(lab, "config", "set", "osd", "bluestore_throttle_bytes", "65536")
            await ceph(lab, "config", "set", "osd", "bluestore_throttle_deferred_bytes", "65536")
            await lab.faults.throttle(0, wiops=120)
            bench = ["rados", "--conf", str(lab.paths.conf), "bench", "4", "write"]
            options = ["-b", "4096", "-t", "256", "-p", POOL, "--no-cleanup"]
            work = asyncio.create_task(lab.exec([*bench, *options], within=90))
            pages = await sampled(exporter, work)
            await work
        finally:
            await lab.faults.throttle(0)
            for option in ("bluestore_throttle_bytes", "bluestore_throttle_deferred_bytes"):
                await ceph(lab, "config", "rm", "osd", option)
        lags = [max(page.values(LAG, class_="client", ceph_daemon="osd.0")) for page in pages]
        queued = [sum(page.values("cephqos_qos_queue_length", class_="client")) for page in pages]
        print(f"reservation lag over time: {lags}; client ops queued: {queued}")
        assert max(lags) > 0.5, f"lags {lags}, queued {queued}"
        assert max(lags[: len(lags) // 4], default=0) < max(lags), f"lags {lags}"
        assert max(queued) > 20, f"queued {queued}"


async def test_an_early_mclock_is_not_understood(
    labs: LabPool, caplog: pytest.LogCaptureFixture
) -> None:
    """16.2 under mClock: its costs and reservations are not those of later releases."""
    spec = LabSpec(name=lab_name("early"), release="pacific", osds=2, op_queue="mclock_scheduler")
    lab = labs.start(spec)
    try:
        await make_pool(lab)
        async with watched(lab, MclockCollector(interval=0)) as exporter:
            page = await exporter.scrape()
            about = page.labels("cephqos_qos_scheduler_info")[0]
            assert about["in_force"] == about["configured"] == "mclock_scheduler"
            assert (about["model"], about["reservations"]) == ("", "none")
            assert "the mClock of this release is not supported" in caplog.text
            for absent in (LAG, "cephqos_qos_queue_length", "cephqos_qos_normalised_ops_total"):
                assert not page.values(absent)
    finally:
        labs.end(lab)
