"""The account of waiting, from the counters of recorded OSDs."""

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_base.series import CLIENT, RECOVERY
from cephqos_exporter.collectors.account import AccountCollector
from cephqos_exporter.collectors.base import Clues
from cephqos_exporter.collectors.mclock.queues import limited_share
from cephqos_exporter.families import Family
from cephqos_exporter.qos.cost_models import ClassSettings
from cephqos_exporter.qos.tags import Head, QueueDump, ShardQueue

from ..osd_views import OSD, RecordedOsd, by_name, recorded_ops, value, values

SECONDS = "cephqos_account_seconds_total"
REPLICA_SECONDS = "cephqos_account_replica_seconds_total"
EXCESS_SECONDS = "cephqos_account_excess_seconds_total"


def average(osd: RecordedOsd, logger: str, key: str, seconds: float, times: float) -> None:
    found: dict[str, Any] = osd.counters(logger).get(key, {"sum": 0.0, "avgcount": 0})
    found["sum"] += seconds
    found["avgcount"] += times


def write(osd: RecordedOsd, release: str) -> None:
    """Ten seconds with 100 client writes of 100 ms, and 200 for other primaries of 65 ms."""
    old = release == "pacific"
    average(osd, "osd", "op_latency", 10.0, 100)
    average(osd, "osd", "op_process_latency", 9.0, 100)
    average(osd, "osd", "op_prepare_latency", 0.5, 100)
    average(osd, "osd", "op_before_dequeue_op_lat", 1.3, 400)
    average(osd, "osd", "subop_w_latency", 13.0, 200)
    average(osd, "bluestore", "commit_lat" if old else "txc_commit_lat", 18.0, 300)
    average(osd, "bluestore", "state_aio_wait_lat", 17.0, 300)
    osd.time += 10


def scraped_twice(osd: RecordedOsd, release: str, collector: AccountCollector) -> list[Family]:
    osd.scrape(collector)
    write(osd, release)
    return osd.scrape(collector)


@pytest.mark.parametrize("release", RELEASES)
def test_the_states_add_up_to_the_latency_that_the_osd_counts(release: str) -> None:
    osd, collector = RecordedOsd(release), AccountCollector()
    assert not osd.scrape(collector), "one look is no interval"
    assert not collector.finish()
    families = scraped_twice(osd, release, collector)
    assert sum(values(families, SECONDS).values()) == pytest.approx(10.0)
    assert sum(values(families, REPLICA_SECONDS).values()) == pytest.approx(13.0)
    assert value(collector.finish(), EXCESS_SECONDS, cluster=OSD.cluster) == 0.0
    assert value(families, SECONDS, state="store_device") == pytest.approx(17 / 3)
    # No thread of a recorded OSD can be read.
    assert value(families, SECONDS, state="unknown") == pytest.approx(0.5)
    assert not osd.not_understood


def test_what_is_cut_is_added_up_for_the_host_also_after_an_osd_is_gone() -> None:
    daemons = [OSD, replace(OSD, id="4")]
    collector, osds = AccountCollector(), [RecordedOsd("reef", daemon=it) for it in daemons]
    for osd in osds:
        osd.scrape(collector)
        average(osd, "bluestore", "txc_commit_lat", 882.0, 0)
        write(osd, "reef")
        assert EXCESS_SECONDS not in by_name(osd.scrape(collector))
    excess = value(collector.finish(), EXCESS_SECONDS)
    assert excess > 100.0
    collector.forget(OSD)
    assert value(collector.finish(), EXCESS_SECONDS) == excess
    average(osds[1], "bluestore", "txc_commit_lat", 882.0, 0)
    write(osds[1], "reef")
    osds[1].scrape(collector)
    assert value(collector.finish(), EXCESS_SECONDS) == pytest.approx(1.5 * excess, rel=0.1)


def test_clusters_have_an_order_that_does_not_depend_on_who_answers_first() -> None:
    collector = AccountCollector()
    for cluster in ("c2", "c1", "c3"):
        osd = RecordedOsd("reef", daemon=replace(OSD, cluster=cluster))
        scraped_twice(osd, "reef", collector)
    [family] = collector.finish()
    clusters = re.findall(r'cluster="(\w+)"', "".join(map(str, family.samples)))
    assert clusters == ["c1", "c2", "c3"]


def test_its_series_are_few() -> None:
    osd, clues = RecordedOsd("reef"), Clues()
    clue = clues.of(OSD)
    clue.work = dict.fromkeys(("client", "background_recovery", "immediate"), 1.0)
    osd.counters("osd")["op_wip"] = 8
    osd.replies["ops"] = recorded_ops("reef", "slow_replica", 0)
    collector = AccountCollector(clues=clues)
    for at in range(4):
        clue.work = {cls: at + done for cls, done in clue.work.items()}
        clue.ping, clue.limited = 0.001, 0.5
        families = scraped_twice(osd, "reef", collector)
    peers = [by for by in ("osd.1", "osd.2") if values(families, SECONDS, {"by": by})]
    assert peers == ["osd.1", "osd.2"]
    assert sum(len(family.samples) for family in families) <= 28


@pytest.mark.parametrize(
    ("logger", "key", "told"),
    [("osd", "op_process_latency", False), ("bluestore", "kv_sync_lat", True)],
)
def test_a_counter_that_is_missing_is_no_share_of_0(logger: str, key: str, told: bool) -> None:
    osd, collector = RecordedOsd("reef"), AccountCollector()
    del osd.counters(logger)[key]
    families = scraped_twice(osd, "reef", collector)
    assert osd.not_understood == {"counter"}
    assert (SECONDS in by_name(families)) is told
    if told:
        assert value(families, SECONDS, state="unknown") == pytest.approx(9.0)
        assert value(families, SECONDS, state="store_device") == 0.0


def test_a_queue_waits_for_its_limit_unless_its_reservation_is_due() -> None:
    now = 1_795_229_186.65
    due, later = 229_186.0, 229_187.0  # a second before and after, modulo 1,000,000
    heads = [Head(reservation=due, limit=later), Head(reservation=later, limit=later)]
    shards = [ShardQueue(str(at), True, heads={CLIENT: [head]}) for at, head in enumerate(heads)]
    shards.append(ShardQueue("2", True))  # nothing waits there
    dump = QueueDump("mclock_scheduler", shards)
    limited = ClassSettings(0.5, 10.0, 1.0, 20.0, 1.0)
    assert limited_share(dump, {CLIENT: limited}, now) == 0.5
    assert limited_share(dump, {CLIENT: replace(limited, limit=None)}, now) == 0.0
    assert limited_share(dump, {}, now) == 0.0


def test_an_osd_that_is_forgotten_begins_anew() -> None:
    osd, collector = RecordedOsd("reef"), AccountCollector()
    assert scraped_twice(osd, "reef", collector)
    collector.forget(OSD)
    write(osd, "reef")
    assert not osd.scrape(collector)


def test_clues_that_another_collector_drops_are_no_work_of_one_scrape() -> None:
    osd, clues = RecordedOsd("reef"), Clues()
    collector = AccountCollector(clues=clues)
    for at in range(4):
        if at == 2:
            clues.forget(OSD)
        else:
            clues.of(OSD).work = {CLIENT: 100.0 * at, RECOVERY: 1e6}
        families = osd.scrape(collector)
        write(osd, "reef")
    queue = values(families, SECONDS, {"state": "queue"})
    assert [name for name in queue if f'by="{CLIENT}"' in name]
    assert not [name for name in queue if f'by="{RECOVERY}"' in name]
