"""A repeat ends when the cluster becomes worse than its own phases make it."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_exporter.ceph.monclient import ClusterUnreachable
from cephqos_loadgen.cluster.steps.options import FlagChanged
from cephqos_loadgen.cluster.steps.osds import OsdAway
from cephqos_loadgen.load import cluster_watch
from cephqos_loadgen.load.cluster_watch import ClusterWatch
from cephqos_loadgen.load.guard_rails import GuardRails, room
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.run.one_repeat import OneRepeat

CLEAN = {"active+clean": 32}
PEERING = {"active+clean": 30, "peering": 2}


class Cluster:
    """Four OSDs, some of them down, as a run's watcher sees them."""

    def __init__(self, *, lab: bool = False) -> None:
        self.access = SimpleNamespace(at_once=lab)
        self.down: set[int] = set()
        self.states: Mapping[str, int] = CLEAN
        self.full: dict[str, int] = {}
        self.out: set[int] = set()  # by phases, as the journal says
        self.restarted: set[int] = set()
        self.dumps = 0

    async def once(self, prefix: str, **_: Any) -> Any:
        if prefix == "status":
            return self.status()
        if prefix == "pg dump":
            return {"pool_stats": []}
        assert prefix == "osd dump"
        self.dumps += 1
        return {"osds": [{"osd": osd, "up": int(osd not in self.down)} for osd in range(4)]}

    def status(self) -> dict[str, Any]:
        checks = {name: {"summary": {"count": count}} for name, count in self.full.items()}
        up = 4 - len(self.down)
        states = [{"state_name": name, "count": count} for name, count in self.states.items()]
        return {
            "health": {"status": "HEALTH_WARN", "checks": {**checks, "OSD_DOWN": {}}},
            "osdmap": {"epoch": hash(frozenset(self.down)), "num_up_osds": up, "num_in_osds": 4},
            "pgmap": {"pgs_by_state": states},
        }

    def rails(self, room_before: Mapping[str, int] | None = None) -> GuardRails:
        connection: Any = self
        return GuardRails(connection, room_before or {}, lambda: self.out, self.restarted)


async def watched(cluster: Cluster, rails: GuardRails, began: int, ended: int) -> None:
    """A look each second."""
    for second in range(began, ended):
        await rails.check(1000.0 + second, cluster.status())


async def test_an_osd_that_dies_while_a_phase_has_one_out_ends_the_repeat() -> None:
    cluster = Cluster()
    rails = cluster.rails()
    await watched(cluster, rails, 0, 3)
    cluster.down = cluster.out = {3}
    await watched(cluster, rails, 3, 10)
    cluster.down = {1, 3}
    with pytest.raises(RunError, match=r"osd\.1 went down, .* while a phase has osd\.3 out"):
        await watched(cluster, rails, 10, 11)


@pytest.mark.parametrize("case", ["none is out", "before", "both by phases", "restarted", "back"])
async def test_osds_that_are_down_without_one_lost_beside_another_go_on(case: str) -> None:
    cluster = Cluster()
    rails = cluster.rails()
    cluster.down = {1} if case == "before" else set()
    await watched(cluster, rails, 0, 2)
    cluster.out |= {1, 3} if case == "both by phases" else {3}
    cluster.restarted |= {1} if case == "restarted" else set()
    cluster.down = {3}
    await watched(cluster, rails, 2, 4)
    cluster.down = {1} if case in ("none is out", "back") else {1, 3}
    if case == "back":
        cluster.out.clear()  # the phase took its change back
    await watched(cluster, rails, 4, 20)


@pytest.mark.parametrize("state", ["peering", "down", "stale+active+clean", "incomplete"])
async def test_groups_that_stay_inactive_end_the_repeat(state: str) -> None:
    cluster = Cluster()
    rails = cluster.rails()
    await watched(cluster, rails, 0, 5)
    cluster.states = {"active+clean": 30, state: 2}
    await watched(cluster, rails, 5, 64)
    cluster.states = {"active+clean": 29, state: 3}
    with pytest.raises(RunError, match=rf"inactive for over 60 s: 3 {state.replace('+', '.')}"):
        await watched(cluster, rails, 64, 70)


async def test_phases_that_take_an_osd_out_and_back_may_make_groups_peer() -> None:
    """Each has its own minute, and no more."""
    cluster = Cluster()
    rails = cluster.rails()
    cluster.states = PEERING
    cluster.out = {3}
    for second in (0, 50, 100):
        cluster.down = {3} if second == 50 else set()
        await watched(cluster, rails, second, second + 50)
    with pytest.raises(RunError, match="2 peering"):
        await watched(cluster, rails, 150, 165)


@pytest.mark.parametrize(
    "states",
    [
        {"active+clean": 30, "active+undersized+degraded+remapped+backfill_wait": 2},
        {"active+clean": 30, "creating+peering": 2},
        {"unknown": 32},  # a manager starts
        {"active+recovery_toofull+degraded": 2},
    ],
)
async def test_groups_that_are_active_or_not_known_go_on(states: Mapping[str, int]) -> None:
    cluster = Cluster()
    cluster.states = states
    await watched(cluster, cluster.rails(), 0, 300)


@pytest.mark.parametrize("by", ["osd_out", "change"])
async def test_groups_of_a_lab_with_one_copy_are_inactive_on_purpose(by: str) -> None:
    """Ceph was not asked whether its OSDs may stop. Without one of ours down, a lab is no other."""
    for lab in (True, False):
        cluster = Cluster(lab=lab)
        rails = cluster.rails()
        await watched(cluster, rails, 0, 2)
        cluster.states, cluster.down = {"active+clean": 24, "stale+active+clean": 8}, {3}
        (cluster.out if by == "osd_out" else cluster.restarted).add(3)
        if lab:
            await watched(cluster, rails, 2, 900)
            cluster.down = set()
        with pytest.raises(RunError, match="8 stale"):
            await watched(cluster, rails, 900, 970)


async def test_osds_that_become_full_end_the_repeat_and_those_that_were_do_not() -> None:
    cluster = Cluster()
    rails = cluster.rails({"OSD_NEARFULL": 2})
    for nearfull in (0, 1, 2):
        cluster.full = {"OSD_NEARFULL": nearfull} if nearfull else {}
        await watched(cluster, rails, 0, 2)
    for full, said in (
        ({"OSD_NEARFULL": 3}, "OSD_NEARFULL: 3 OSDs, and 2 before"),
        ({"OSD_NEARFULL": 1, "OSD_BACKFILLFULL": 1}, "OSD_BACKFILLFULL: 1 OSD, and 0 before"),
        ({"OSD_FULL": 1}, "OSD_FULL: 1 OSD, and 0 before"),
    ):
        cluster.full = full
        with pytest.raises(RunError, match=said):
            await watched(cluster, rails, 2, 3)


async def test_a_lab_may_be_nearly_full_and_not_full() -> None:
    cluster = Cluster(lab=True)
    cluster.full, rails = {"OSD_NEARFULL": 1, "OSD_BACKFILLFULL": 1}, cluster.rails()
    await watched(cluster, rails, 0, 9)
    cluster.full = {"OSD_FULL": 1}
    with pytest.raises(RunError, match="OSD_FULL"):
        await watched(cluster, rails, 9, 10)


def test_what_is_full_is_counted_as_the_monitors_say_it() -> None:
    summary = {"message": "2 nearfull osd(s)", "count": 2}
    checks = {"OSD_NEARFULL": {"summary": summary}, "POOL_NEARFULL": {"summary": summary}}
    assert room({"health": {"checks": checks}}) == {"OSD_NEARFULL": 2}
    assert room({"health": {"checks": {"OSD_FULL": {"summary": {}}}}}) == {"OSD_FULL": 1}


async def test_the_map_is_read_again_only_when_it_has_changed() -> None:
    cluster = Cluster()
    rails = cluster.rails()
    await watched(cluster, rails, 0, 30)
    cluster.down = cluster.out = {2}
    await watched(cluster, rails, 30, 60)
    assert cluster.dumps == 2


async def test_the_watcher_of_a_repeat_ends_by_it_and_not_by_a_cluster_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_watch, "_INTERVAL", 0.0)
    cluster, lines = Cluster(), SimpleNamespace(write=lambda entry: None)
    connection: Any = cluster
    series: Any = lines
    watch = ClusterWatch(connection, series, lambda *_, **__: None, cluster.rails())
    replies: Iterator[Any] = iter([ClusterUnreachable("no answer"), {}, {"OSD_FULL": 1}])

    async def once(prefix: str, **given: Any) -> Any:
        if prefix == "status":
            reply = next(replies)
            if isinstance(reply, Exception):
                raise reply
            cluster.full = reply
        return await Cluster.once(cluster, prefix, **given)

    monkeypatch.setattr(cluster, "once", once)
    with pytest.raises(RunError, match="OSD_FULL"):
        await watch.run()


async def test_a_repeat_knows_from_the_journal_which_osds_its_phases_have_out() -> None:
    """And from the session how full the cluster was when the run began."""
    cluster = Cluster()
    session: Any = SimpleNamespace(
        cluster=cluster,
        watch_cluster=cluster,
        room_before={"OSD_FULL": 1},
        journal=SimpleNamespace(entries=[FlagChanged("noout", True)]),
    )
    repeat = OneRepeat.__new__(OneRepeat)
    repeat._session = session
    rails = repeat._rails()
    cluster.full = {"OSD_FULL": 1}
    await watched(cluster, rails, 0, 2)
    session.journal.entries.append(OsdAway(3, 1.0, noup=False))
    cluster.down = {3}
    await watched(cluster, rails, 2, 4)
    cluster.down = {2, 3}
    with pytest.raises(RunError, match=r"osd\.2 went down, .* while a phase has osd\.3 out"):
        await watched(cluster, rails, 4, 5)
