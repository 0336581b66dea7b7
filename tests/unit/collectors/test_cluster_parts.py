"""Where a part of a cluster is known, shown or understood."""

from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.cluster.cluster_source import ClusterSource
from cephqos_exporter.labels import Labels, LabelText

from ..osd_views import samples
from .test_cluster_poller import Clock, RecordedReader, poller, read, source


@pytest.mark.parametrize("part", ["pools", "primary_1", "scrubbing", "brief"])
async def test_what_a_manager_says_before_it_knows_the_cluster_is_not_taken(part: str) -> None:
    reader = RecordedReader(moment="recovery")
    clock = Clock()
    polling = poller(reader, clock, interval=0.0, schedule_interval=0.01)
    assert await polling.poll()
    assert polling.state is not None
    done = dict(polling.state.recovery.sums[2]), dict(polling.state.scrub.done)

    def starting(name: str, reply: Any) -> Any:
        if name == part:
            reply["pg_ready"] = False
            for row in [*reply.get("pool_stats", ()), *reply.get("pg_stats", ())]:
                row["stat_sum"] = dict.fromkeys(row.get("stat_sum", ()), 0)
        if name == "status":
            reply["pgmap"]["pgs_by_state"] += [{"state_name": "active+scrubbing", "count": 1}]
        return reply

    reader.change = starting
    clock.now += 1000
    assert not await polling.poll()
    assert polling.state is None
    assert polling.failure is not None and polling.failure.reason == "manager_starting"
    reader.change = lambda name, reply: reply
    clock.now += 1000
    assert await polling.poll()
    assert done == (dict(polling.state.recovery.sums[2]), dict(polling.state.scrub.done))
    totals = polling.state.recovery.families(polling.state.osd_map.pools, Labels(LabelText("")))
    assert not any(v for key, v in samples(totals).items() if "_total{" in key)


async def test_of_many_pools_those_with_most_placement_groups_are_shown_and_it_shows() -> None:
    reader = RecordedReader()

    def with_many(name: str, reply: Any) -> Any:
        if name == "osd_dump":
            pool = reply["pools"][0]
            many = {f"many-{i}": pool["pool"] + 100 + i for i in range(50)}
            new = [pool | {"pool": i, "pool_name": name, "pg_num": i} for name, i in many.items()]
            reply["pools"] += new
        return reply

    reader.change = with_many
    found = ClusterSource(lambda: poller(reader), clock=Clock(), most_pools=10)
    shown = await read(found)
    await found.close()
    pools = {key.partition('pool="')[2].partition('"')[0] for key in shown if "pool=" in key}
    assert pools == {f"many-{i}" for i in range(40, 50)}
    [(key, left_out)] = [(k, v) for k, v in shown.items() if "pools_left_out" in k]
    assert left_out == 52 - 10, key
    few = source(RecordedReader())
    assert not [key for key in await read(few) if "pools_left_out" in key]
    await few.close()


@pytest.mark.parametrize("release", RELEASES)
async def test_all_of_a_recorded_cluster_is_understood(release: str) -> None:
    for moment in ("idle", "scrub", "recovery"):
        reader = RecordedReader(release, moment)
        found = source(reader)
        await read(found)
        assert not found.not_understood.found
        await found.close()


async def test_a_reply_that_makes_no_sense_is_counted_and_the_cluster_is_down() -> None:
    reader = RecordedReader()
    reader.change = lambda name, reply: {} if name == "osd_dump" else reply
    polling = poller(reader)
    assert not await polling.poll()
    assert list(polling.not_understood.found) == ["reply"]
