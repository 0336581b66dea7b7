"""The collectors `account` and `tenants` give an OSD at most 40 series, whatever happens on it."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.replay.host_tree import FakeThread, HostTree

from cephqos_base.series import CLASSES, TenantsSeries
from cephqos_exporter.collectors.account import AccountCollector
from cephqos_exporter.collectors.base import Clues
from cephqos_exporter.collectors.operation_samples import OperationSamples
from cephqos_exporter.collectors.tenants import TenantsCollector
from cephqos_exporter.qos.account.samples import NAMED_PEERS
from cephqos_exporter.qos.tenants import NAMED_TENANTS
from cephqos_exporter.sampler import ThreadSamples

from ..osd_views import OSD, RecordedOsd, samples

MOST: Final = 40
SECONDS: Final = 30.0  # between two scrapes
ROUNDS: Final = 18  # a tenant keeps its place for 10 of them
BY: Final = re.compile(r'state="(queue|replica)",by="')
PID: Final = 4711
DAEMON: Final = replace(OSD, pid=PID, start=None)
BEFORE_QUEUE: Final = ("initiated", "header_read", "throttled", "all_read", "dispatched")
BEGUN: Final = (*BEFORE_QUEUE, "queued_for_pg", "reached_pg", "started")


def operation(image: int, *events: str, shard: str = "", flags: str = "write") -> Mapping[str, Any]:
    name = f"rbd_data.{image:x}.0000000000000001"
    return {
        "description": f"osd_op(client.{image}.0:7 3.1f{shard} 3:f81c2d4a:::{name}:head"
        f" [{flags} 0~4096] snapc 0=[] ondisk+{flags}+known_if_redirected e123)",
        "type_data": {
            "flag_point": "",
            "events": [{"event": one, "time": "2026-11-22T00:03:10.6+0000"} for one in events],
        },
    }


def operations(now: int) -> Iterator[Mapping[str, Any]]:
    """Those in progress at this round: of twelve images, for twelve peers, and all other waits."""
    for number in range(12):
        image, peer = 100 * (now // 5) + number, 20 * (now // 5) + number
        sent = (*BEGUN, f"waiting for subops from {peer}", "op_commit")
        yield from [operation(image, *sent)] * (number + 1)
    yield operation(1, *BEFORE_QUEUE)
    yield operation(1, *BEFORE_QUEUE, "queued_for_pg")
    yield operation(1, *BEFORE_QUEUE, "queued_for_pg", "waiting for scrub")
    yield operation(1, *BEGUN, "waiting for subops from 1")  # for the own commit
    yield operation(1, *BEGUN, "waiting for subops from 1", "op_commit", "sub_op_commit_rec")
    yield operation(1, *BEGUN, shard="s0", flags="read")  # erasure-coded: no peer is named
    yield operation(1, *BEGUN, "an event of a later release")


def average(osd: RecordedOsd, logger: str, key: str, seconds: float, times: int = 100) -> None:
    counter = osd.counters(logger)[key]
    counter["sum"] += seconds
    counter["avgcount"] += times


def spend(osd: RecordedOsd) -> None:
    """Half a minute with reads and writes of clients, and writes for other primaries."""
    average(osd, "osd", "op_latency", 30.0, 200)
    average(osd, "osd", "op_process_latency", 20.0, 200)
    average(osd, "osd", "op_prepare_latency", 2.0, 200)
    average(osd, "osd", "op_r_process_latency", 4.0)
    average(osd, "osd", "op_r_prepare_latency", 1.0)
    average(osd, "osd", "op_before_queue_op_lat", 0.1, 400)
    average(osd, "osd", "op_before_dequeue_op_lat", 12.0, 400)
    average(osd, "osd", "subop_w_latency", 13.0)
    for key in ("txc_commit_lat", "txc_throttle_lat", "state_aio_wait_lat", "read_wait_aio_lat"):
        average(osd, "bluestore", key, 1.0)
    for key in ("state_kv_queued_lat", "state_kv_commiting_lat", "kv_flush_lat", "kv_sync_lat"):
        average(osd, "bluestore", key, 0.5)
    osd.time += SECONDS


def threads(tree: HostTree, now: int) -> None:
    """Threads of the queue and of commits that run, and wait for a CPU."""
    names = ("ceph-osd", "tp_osd_tp", "bstore_kv_sync")
    tree.process(
        PID,
        [
            FakeThread(name=it, user=1 + now, run_ns=1 + now * 10**7, wait_ns=now * 10**8)
            for it in names
        ],
    )


def pages(root: Path) -> Iterator[Sequence[str]]:
    """The series of both collectors, at each scrape of an OSD on which everything happens."""
    tree, clues, shared = HostTree(root), Clues(), OperationSamples()
    osd = RecordedOsd("reef", daemon=DAEMON, host=tree.host)
    osd.counters("osd")["op_wip"] = 100
    account = AccountCollector(samples=shared, clues=clues, threads=ThreadSamples())
    tenants = TenantsCollector(samples=shared)
    clue = clues.of(DAEMON)
    clue.ping, clue.limited = 0.001, 0.3
    for now in range(ROUNDS):
        threads(tree, now)
        osd.replies["ops"] = {"ops": list(operations(now))}
        if now > 2:  # it is counted more rarely than latencies
            clue.work = dict.fromkeys(CLASSES, 100.0 * now)
        yield [*samples(osd.scrape(account)), *samples(osd.scrape(tenants))]
        spend(osd)


def test_an_osd_on_which_everything_happens_has_at_most_forty_series(tmp_path: Path) -> None:
    every = list(pages(tmp_path))
    assert max(map(len, every)) <= MOST
    names = [series.partition("{")[0] for series in every[-1]]
    tenants = 2 * (NAMED_TENANTS + 1)
    assert names.count(TenantsSeries.SECONDS) == tenants
    by = Counter(BY.findall("\n".join(every[-1])))
    assert by["queue"] == len(CLASSES) + 3, "and the limit, a CPU, and what is not known"
    assert by["replica"] == NAMED_PEERS + 1
    assert len(every[-1]) == MOST, "nothing is missing from the worst case"
