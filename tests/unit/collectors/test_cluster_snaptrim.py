"""Deleted snapshots that are trimmed: what is left, what was done, which OSDs do it."""

from typing import Any

import pytest

from cephqos_exporter.ceph.cluster import TRIMMING_PGS
from cephqos_exporter.cluster.snaptrim import SnapTrim, TrimmingGroup, parse_trimming
from cephqos_exporter.labels import Labels, LabelText
from cephqos_exporter.not_understood import NotUnderstood

from ..osd_views import samples
from .cluster_replies import P1, pg
from .test_cluster_poller import Clock, RecordedReader, poller

LEFT = 'cephqos_snaptrim_pool_snapshots{pool="p1"}'
DONE = 'cephqos_snaptrim_pool_trimmed_snapshots_total{pool="p1"}'
ETA = 'cephqos_snaptrim_pool_eta_seconds{pool="p1"}'


def group(pgid: str, queue: int, primary: int = 0, trims: bool = True) -> TrimmingGroup:
    return TrimmingGroup(pgid, int(pgid.partition(".")[0]), primary, queue, trims)


def shown(trim: SnapTrim) -> dict[str, float]:
    return dict(samples(trim.families({2: P1}, Labels(LabelText("")))))


def test_the_queues_of_all_groups_are_added_up_and_what_became_less_was_done() -> None:
    trim = SnapTrim()
    assert shown(trim) == {LEFT: 0}
    trim.observe([group("2.0", 8), group("2.1", 4, trims=False)], 0.0)
    found = shown(trim)
    assert found[LEFT] == 12
    assert DONE not in found and ETA not in found, "nothing was trimmed yet"
    trim.observe([group("2.0", 4)], 20.0)
    assert shown(trim) == {
        LEFT: 4,
        DONE: 8,
        ETA: 10,
        'cephqos_snaptrim_osd_pgs{ceph_daemon="osd.0"}': 1,
    }
    trim.observe([], 30.0)
    assert shown(trim) == {LEFT: 0, DONE: 12}


def test_a_snapshot_that_is_deleted_now_makes_nothing_undone() -> None:
    trim = SnapTrim()
    for now, queue in ((0.0, 4), (10.0, 2), (20.0, 9)):
        trim.observe([group("2.0", queue)], now)
    assert shown(trim)[DONE] == 2


def test_osds_that_only_wait_for_their_turn_do_not_trim() -> None:
    trim = SnapTrim()
    trim.observe([group("2.0", 3, primary=1), group("2.1", 3, primary=2, trims=False)], 0.0)
    found = [name for name in shown(trim) if "osd_pgs" in name]
    assert found == ['cephqos_snaptrim_osd_pgs{ceph_daemon="osd.1"}']


def test_a_queue_counts_where_nothing_trims_but_not_while_the_group_recovers() -> None:
    trim = SnapTrim()
    recovers = frozenset({"active", "recovering", "degraded"})
    waits = frozenset({"active", "clean", "snaptrim_wait"})
    trim.observe_any(
        [
            pg("2.0", trim_queue=3),
            pg("2.1", trim_queue=5, states=recovers),
            pg("2.2", trim_queue=7, states=waits),
        ]
    )
    trim.observe([group("2.2", 7, trims=False)], 0.0)
    assert shown(trim)[LEFT] == 10
    trim.end_round()
    assert shown(trim)[LEFT] == 10, "the pass under way has not come to it yet"
    trim.observe([group("2.0", 3)], 10.0)
    assert shown(trim)[LEFT] == 3, "it counts once while it trims"
    trim.observe([], 20.0)
    assert shown(trim)[LEFT] == 0, "it has trimmed, though the next pass has not come to it"


def test_a_group_that_is_gone_or_trimmed_is_forgotten() -> None:
    trim = SnapTrim()
    trim.observe_any([pg("2.0", trim_queue=3), pg("2.1", trim_queue=4)])
    trim.end_round()
    trim.observe_any([pg("2.0", trim_queue=0)])
    assert shown(trim)[LEFT] == 4
    trim.end_round()
    assert shown(trim)[LEFT] == 0


async def test_the_pass_over_all_groups_finds_those_that_stand_still() -> None:
    reader = RecordedReader()

    def change(name: str, reply: Any) -> Any:
        for each in reply.get("pg_stats", ()) if name.startswith("primary") else ():
            each["snaptrimq_len"] = 2
        return reply

    reader.change = change
    polling = poller(reader, Clock())
    assert await polling.poll()
    assert "trimming" not in reader.asked
    pools = polling.state.osd_map.pools  # type: ignore[union-attr]
    found = dict(samples(polling.state.trimming.families(pools, Labels(LabelText("")))))  # type: ignore[union-attr]
    assert sum(found.values()) == 2 * sum(pool.pg_num for pool in pools.values())


def test_what_is_not_known_is_absent() -> None:
    trim = SnapTrim()
    trim.observe([group("2.0", 3)], 0.0)
    trim.observe(None, 10.0)
    assert shown(trim) == {}


def row(**changed: Any) -> dict[str, Any]:
    ordinary = {"pgid": "2.a", "state": "active+clean+snaptrim", "acting_primary": 1}
    return {**ordinary, "snaptrimq_len": 5, **changed}


def test_one_group_that_is_not_understood_leaves_the_sum_unknown() -> None:
    found = NotUnderstood()
    assert parse_trimming({"pg_stats": [row(), row(snaptrimq_len=None)]}, found) is None
    assert dict(found.take())
    waits = row(state="active+clean+snaptrim_wait")
    assert parse_trimming({"pg_stats": [row(), waits]}, found) == [
        group("2.a", 5, primary=1),
        group("2.a", 5, primary=1, trims=False),
    ]
    assert parse_trimming({"pg_ready": True}, found) == []


@pytest.mark.parametrize(("trimming", "asked"), [(0, 0), (2, 1), (5000, 0)])
async def test_groups_are_listed_while_some_trim_and_not_too_many(
    trimming: int, asked: int
) -> None:
    reader = RecordedReader()

    def change(name: str, reply: Any) -> Any:
        if name == "status" and trimming:
            state = {"state_name": "active+clean+snaptrim_wait", "count": trimming}
            reply["pgmap"]["pgs_by_state"].append(state)
        return {"pg_stats": [row()]} if name == "trimming" else reply

    reader.change = change
    polling = poller(reader, Clock())
    assert await polling.poll()
    assert reader.asked.count("trimming") == asked
    found = dict(samples(polling.state.trimming.families({2: P1}, Labels(LabelText("")))))  # type: ignore[union-attr]
    assert (LEFT in found) == (trimming < 5000)
    assert found.get(LEFT, 0) == 5 * asked
    assert TRIMMING_PGS.target == "mgr"
