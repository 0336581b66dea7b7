"""Where operations wait and for whom, on real clusters with one slow device."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.waiting import until

from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.collectors.network import NetworkCollector
from cephqos_exporter.collectors.ops import OpsCollector
from cephqos_loadgen.lab.lab import RunningLab

from .conftest import LabPool
from .live_exporter import LiveExporter, LivePage
from .test_exporter_qos import ceph, settled

POOLS = ("waits", "waits-ec")
WAITED = "cephqos_ops_sampled_wait_seconds_total"
SLOW = "osd.1"
OTHERS = ("osd.0", "osd.2")


@pytest.fixture
def lab(shared_lab: RunningLab, labs: LabPool) -> Iterator[RunningLab]:
    """The shared lab; pools of this test are removed, and devices are fast again."""
    yield shared_lab
    labs.call(shared_lab.faults.throttle(1))
    for pool in POOLS:
        argv = ("osd", "pool", "delete", pool, pool, "--yes-i-really-really-mean-it")
        labs.call(ceph(shared_lab, *argv))


async def make_erasure_coded_pool(lab: RunningLab) -> None:
    profile = ("k=2", "m=1", "crush-failure-domain=osd")
    await ceph(lab, "osd", "erasure-code-profile", "set", "waits", *profile)
    await ceph(lab, "osd", "pool", "create", POOLS[1], "8", "8", "erasure", "waits")
    await settled(lab)


async def load(lab: RunningLab, pool: str, seconds: int) -> None:
    conf = ["rados", "--conf", str(lab.paths.conf), "bench", "-p", pool, "-b", "8192"]
    await lab.exec([*conf, str(seconds), "write", "-t", "64"], within=seconds + 60)


async def watch(lab: RunningLab, pool: str, exporter: LiveExporter, seconds: int) -> LivePage:
    """The last page of some that were scraped while the pool was written to."""
    work = asyncio.create_task(load(lab, pool, seconds))
    await asyncio.sleep(3)
    for _ in range(seconds - 5):
        page = await exporter.scrape()
        await asyncio.sleep(1)
    await work
    return page


def share(page: LivePage, osd: str, event: str) -> float:
    """Of the time that operations waited on an OSD, the part in this event."""
    return sum(page.values(WAITED, ceph_daemon=osd, event=event)) / page.sum(
        WAITED, ceph_daemon=osd
    )


async def test_who_waits_for_a_slow_osd_is_told_from_the_slow_one(lab: RunningLab) -> None:
    await ceph(lab, "osd", "pool", "create", POOLS[0], "32", "32")
    await settled(lab)
    bound = "cephqos_qos_delivered_is_lower_bound"
    ops = OpsCollector(sample_interval=1)
    async with LiveExporter(
        lab, [MclockCollector(interval=0), ops, NetworkCollector()]
    ) as exporter:
        before = await exporter.scrape()
        await lab.faults.throttle(1, wiops=75)
        page = await watch(lab, POOLS[0], exporter, 20)
        assert page.values(bound) in ([0.0] * 3, before.values(bound))

        def latency(osd: str) -> float:
            seconds, writes = "cephqos_qos_replica_write_seconds_total", "replica_writes_total"
            spent = page.sum(seconds, ceph_daemon=osd) - before.sum(seconds, ceph_daemon=osd)
            name = f"cephqos_qos_{writes}"
            return spent / (page.sum(name, ceph_daemon=osd) - before.sum(name, ceph_daemon=osd))

        slow, fast = latency(SLOW), max(map(latency, OTHERS))
        commit = {osd: share(page, osd, "commit") for osd in (SLOW, *OTHERS)}
        waiting = [share(page, osd, "subops") for osd in OTHERS]
        print(f"replica writes {slow:.3f} s, {fast:.3f} s; commit {commit}; subops {waiting}")
        # On a busy machine the others' stores are slow too, but not as slow.
        assert slow > 2 * fast
        assert commit[SLOW] > 1.5 * max(commit[osd] for osd in OTHERS)
        assert min(waiting) > 2 * share(page, SLOW, "subops")
        # Each of the two may wait for two peers, and only one of those is the same.
        blamed = {o: sum(page.values(WAITED, peer=o)) for o in (SLOW, *OTHERS)}
        assert max(blamed, key=blamed.__getitem__) == SLOW


async def test_erasure_coded_pools_make_what_is_delivered_a_lower_bound(lab: RunningLab) -> None:
    await ceph(lab, "osd", "pool", "create", POOLS[0], "8", "8")
    await make_erasure_coded_pool(lab)
    ops = OpsCollector(sample_interval=1)
    async with LiveExporter(lab, [MclockCollector(interval=0), ops]) as exporter:
        before = await exporter.scrape()
        await lab.faults.throttle(1, wiops=100)
        page = await watch(lab, POOLS[1], exporter, 10)
        assert page.values("cephqos_qos_delivered_is_lower_bound") == [1.0] * 3
        stored = "cephqos_qos_store_transactions_total"
        counted = "cephqos_qos_replica_writes_total"
        assert page.sum(stored) - before.sum(stored) > 200
        assert page.sum(counted) - before.sum(counted) < 100
        assert page.values(WAITED, ceph_daemon=SLOW, kind="ec", event="commit")


async def test_ping_times_between_osds_are_shown_once_ceph_has_them(shared_lab: RunningLab) -> None:
    async with LiveExporter(shared_lab, [NetworkCollector(interval=0)]) as exporter:

        async def pinged() -> LivePage | None:
            page = await exporter.scrape()
            return page if page.values("cephqos_network_peers") == [2.0] * 6 else None

        # A mean over one minute takes one.
        page = await until(pinged, "ping times of every OSD to two others", 200)
        worst = page.values("cephqos_network_ping_worst_seconds", window="1m")
        assert len(worst) == 6 and 0 < min(worst) <= max(worst) < 30
        peers = page.labels("cephqos_network_worst_peer_info")
        assert len(peers) == 6 and all(p["peer"] != p["ceph_daemon"] for p in peers)
