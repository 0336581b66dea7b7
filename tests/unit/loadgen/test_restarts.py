"""OSDs of a cluster that is not a lab restart one failure domain after the other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import restarts, undo
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.steps.registry import read_step, stored
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.load.context import Hands
from cephqos_loadgen.phase_kinds.osd_out_in import OsdOut
from cephqos_loadgen.plan.errors import RunError

from ..cephadm_cluster import CephadmCluster, connection, crush, over, rule

MCLOCK = CephOption("osd", "osd_op_queue", "mclock_scheduler")
SKIP = ("osd", "osd_mclock_skip_benchmark")
HOST_BY_HOST = [
    "ok-to-stop 0 3: yes",
    "restart osd.0",
    "restart osd.3",
    "ok-to-stop 1 4: yes",
    "restart osd.1",
    "restart osd.4",
    "ok-to-stop 2 5: yes",
    "restart osd.2",
    "restart osd.5",
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_SECONDS", "_TELL_SECONDS"):
        monkeypatch.setattr(restarts, name, 0.0)


@pytest.fixture
def cluster() -> CephadmCluster:
    return CephadmCluster()


class Run:
    """A run that changes the option, and undoes that."""

    def __init__(self, cluster: CephadmCluster, folder: Path) -> None:
        self.connection, self.told = connection(cluster, folder)
        self.journal = undo.Journal(self._save)
        self.settings = ClusterSettings(self.connection, self.journal)

    async def _save(self, steps: Mapping[int, StepBack]) -> None: ...

    async def fails(self) -> str:
        with pytest.raises(RunError) as error:
            await self.settings.put([MCLOCK])
        return str(error.value)


@pytest.fixture
def run(cluster: CephadmCluster, tmp_path: Path) -> Run:
    return Run(cluster, tmp_path)


async def test_for_an_option_they_restart_host_by_host_and_all_is_clean_between(
    cluster: CephadmCluster, run: Run
) -> None:
    await run.settings.put([MCLOCK])
    assert cluster.course == [f"config set {SKIP[1]}", "config set osd_op_queue", *HOST_BY_HOST]
    assert set(cluster.queue.values()) == {"mclock_scheduler"}
    assert run.connection.restarted == set(range(6))
    assert [line for line in run.told if line.startswith("restarting")] == [
        "restarting OSDs, step 1 of 3: host a (osd.0, osd.3)",
        "restarting OSDs, step 2 of 3: host b (osd.1, osd.4)",
        "restarting OSDs, step 3 of 3: host c (osd.2, osd.5)",
    ]


@pytest.mark.parametrize("before", [None, "false", "true"])
async def test_osds_that_restart_measure_no_capacity_that_would_stay(
    cluster: CephadmCluster, run: Run, before: str | None
) -> None:
    """With mClock each does so at its start, and all OSDs of a host start together, under load."""
    if before:
        cluster.stored[SKIP] = before
    restarted_with: list[str | None] = []
    cluster.at_restart = lambda: restarted_with.append(cluster.stored.get(SKIP))
    await run.settings.put([MCLOCK])
    assert await run.journal.roll_back(run.connection) == []
    assert restarted_with == ["true"] * 12
    assert cluster.stored.get(SKIP) == before


@pytest.mark.parametrize("name", [SKIP[1], "osd_mclock_force_run_benchmark_on_init"])
async def test_a_scenario_may_say_itself_whether_they_measure_it(
    cluster: CephadmCluster, run: Run, name: str
) -> None:
    await run.settings.put([MCLOCK, CephOption("osd", name, "false")])
    assert cluster.stored.get(SKIP, "false") == "false"


async def test_a_release_that_cannot_skip_it_restarts_all_the_same(
    cluster: CephadmCluster, run: Run
) -> None:
    cluster.unknown.add(SKIP[1])
    await run.settings.put([MCLOCK])
    assert cluster.course == ["config set osd_op_queue", *HOST_BY_HOST]


async def test_when_the_option_is_given_back_they_restart_host_by_host_too(
    cluster: CephadmCluster, run: Run
) -> None:
    await run.settings.put([MCLOCK])
    cluster.course.clear()
    assert await run.journal.roll_back(run.connection) == []
    assert cluster.course == ["config rm osd_op_queue", *HOST_BY_HOST, f"config rm {SKIP[1]}"]
    assert set(cluster.queue.values()) == {"wpq"}


async def test_a_run_that_takes_over_restarts_host_by_host_too(
    cluster: CephadmCluster, run: Run, tmp_path: Path
) -> None:
    """The next run has the entries as the dead one wrote them."""
    await run.settings.put([MCLOCK])
    cluster.course.clear()
    steps = [read_step("key", stored(step)) for step in run.journal.entries]
    next_one, _ = connection(cluster, tmp_path)
    for step in reversed(steps):
        assert await step.carry_out(next_one) == ""
    assert cluster.course == ["config rm osd_op_queue", *HOST_BY_HOST, f"config rm {SKIP[1]}"]
    assert cluster.harmed == []


async def test_the_commands_for_a_person_go_host_by_host_too(
    cluster: CephadmCluster, run: Run
) -> None:
    await run.settings.put([MCLOCK])
    skip, restart, _ = (step.shown for step in run.journal.entries)
    assert skip == f"ceph config rm osd {SKIP[1]}", "after the restart"
    assert restart.startswith(
        "for osds in '0 3' '1 4' '2 5'; do until ceph osd ok-to-stop $osds; do"
    )
    assert "ceph orch daemon restart osd.$osd" in restart
    assert "OSD_DOWN|PG_AVAILABILITY|PG_DEGRADED" in restart


async def test_no_is_waited_for_and_said(cluster: CephadmCluster, run: Run) -> None:
    cluster.noes = 2
    await run.settings.put([MCLOCK])
    assert cluster.restarts == ["ok-to-stop 0 3: no"] * 2 + HOST_BY_HOST
    waiting = [line for line in run.told if "waiting" in line]
    assert waiting[0].startswith("step 1 of 3: host a (osd.0, osd.3): waiting, 900 s at most: Ceph")
    assert "unsafe: 4 PGs would become offline" in waiting[0]


async def test_a_no_that_lasts_ends_it_before_anything_restarts(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "MAY_STOP_SECONDS", 0.05)
    cluster.noes = -1
    said = await run.fails()
    assert "host a (osd.0, osd.3): waited for 0.05 s; Ceph says that they must not stop now" in said
    assert said.endswith("Restarted before it: none. Not touched: osd.1, osd.2, osd.4, osd.5")
    assert not [line for line in cluster.course if line.startswith("restart")]


async def test_an_osd_that_does_not_come_back_ends_it_and_is_the_first_to_be_given_back(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "UP_SECONDS", 0.05)
    cluster.returns[4] = -1
    said = await run.fails()
    assert "step 2 of 3: host b (osd.1, osd.4): waited for 0.05 s; down: osd.4;" in said
    assert said.endswith("Restarted before it: osd.0, osd.3. Not touched: osd.2, osd.5")
    assert cluster.restarts == HOST_BY_HOST[:6]
    cluster.course.clear()
    cluster.returns[4] = 2
    assert await run.journal.roll_back(run.connection) == []
    assert cluster.course == [
        "config rm osd_op_queue",
        "restart osd.4",
        *HOST_BY_HOST[:3],
        "ok-to-stop 1: yes",
        "restart osd.1",
        f"config rm {SKIP[1]}",
    ], "osd.2 and osd.5 were never restarted"
    assert set(cluster.queue.values()) == {"wpq"}
    assert all(cluster.up.values())


async def test_where_one_cannot_be_given_back_no_other_is_touched_and_the_way_back_stays(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run.settings.put([MCLOCK])
    monkeypatch.setattr(restarts, "UP_SECONDS", 0.05)
    cluster.course.clear()
    cluster.returns[3] = -1
    failure, kept = await run.journal.roll_back(run.connection)
    assert cluster.restarts == HOST_BY_HOST[:3]
    assert "Not touched: osd.1, osd.2, osd.4, osd.5" in failure
    assert kept == f"ceph config rm osd {SKIP[1]}: it stays until the OSDs have restarted"
    assert [entry.kind for entry in run.journal.entries] == ["option", "restart"]
    assert cluster.stored == {SKIP: "true"}


async def test_an_osd_that_only_was_marked_down_has_not_restarted(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is up in a later map, and still the process that it was."""
    monkeypatch.setattr(restarts, "UP_SECONDS", 0.05)
    cluster.same_process.add(3)
    assert "down: none; not restarted yet: osd.3" in await run.fails()
    assert cluster.restarts == HOST_BY_HOST[:3]


async def test_pgs_that_stay_degraded_end_it(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "CLEAN_SECONDS", 0.05)
    monkeypatch.setattr(restarts, "OTHERS_SECONDS", 0.0)
    cluster.dirty_for = -1
    said = await run.fails()
    assert "host a (osd.0, osd.3): waited for 0.05 s; PGs are not clean: 4 active+unders" in said
    assert cluster.restarts == HOST_BY_HOST[:3]


async def test_a_cluster_that_is_not_clean_is_not_changed(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cephqos_loadgen.cluster.settings._CLEAN_SECONDS", 0.05)
    cluster.always_dirty = {"1.0"}
    assert "PGs did not settle within 0.05 s" in await run.fails()
    assert cluster.course == [] and run.journal.entries == []


async def test_what_was_not_clean_before_is_given_its_time_when_something_is_given_back(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run.settings.put([MCLOCK])
    monkeypatch.setattr(restarts, "OTHERS_SECONDS", 0.02)
    cluster.course.clear()
    cluster.always_dirty = {"1.3"}
    assert await run.journal.roll_back(run.connection) == []
    assert cluster.restarts == HOST_BY_HOST
    assert any("not clean before: 1 active+remapped PGs" in line for line in run.told)


async def test_what_becomes_clean_by_itself_is_waited_for_before_the_first_and_after_each(
    cluster: CephadmCluster, run: Run
) -> None:
    """Recovery of what the run itself did, say."""
    await run.settings.put([MCLOCK])
    cluster.course.clear()
    cluster.always_dirty, cluster.heals_in = {"1.3"}, 8
    assert await run.journal.roll_back(run.connection) == []
    assert cluster.restarts == HOST_BY_HOST and cluster.harmed == []


async def test_a_clean_that_is_only_an_old_figure_of_the_manager_does_not_count(
    cluster: CephadmCluster, run: Run
) -> None:
    cluster.stale_looks, cluster.dirty_for = 1, 4
    await run.settings.put([MCLOCK])
    assert cluster.restarts == HOST_BY_HOST and cluster.harmed == []


@pytest.mark.parametrize("where", ["cluster", "osd"])
async def test_osds_that_could_not_come_up_are_not_stopped(
    cluster: CephadmCluster, run: Run, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "cluster":
        cluster.flags = "sortbitwise,noup"
    else:
        known = cluster._osds
        monkeypatch.setattr(
            cluster, "_osds", lambda: [{**osd, "state": ["noup"]} for osd in known()]
        )
    assert "the flag noup of" in await run.fails()
    assert cluster.restarts == []


async def test_a_command_that_fails_says_what_was_restarted(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def restart(self: object, cluster: object, osds: list[int]) -> None:
        raise RunError(f"osd.{osds[0]} was not restarted: host is offline")

    monkeypatch.setattr(type(run.connection.access), "restart", restart)
    said = await run.fails()
    assert "osd.0 was not restarted: host is offline. Restarted before it: none." in said


async def test_osds_of_a_lab_restart_all_at_once(
    cluster: CephadmCluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(run.connection.access), "at_once", True)
    await run.settings.put([MCLOCK])
    assert [line for line in cluster.course if not line.startswith("HARM")] == [
        "config set osd_op_queue",
        *(f"restart osd.{osd}" for osd in range(6)),
    ]


async def test_an_osd_that_clients_of_others_need_is_not_taken_out(
    cluster: CephadmCluster, run: Run
) -> None:
    cluster.noes = -1
    (change,) = OsdOut("5").changes()
    with pytest.raises(RunError, match=r"Ceph says that osd\.5 must not stop now: .*unsafe"):
        await run.journal.make(change, run.connection)
    assert cluster.course == ["ok-to-stop 5: no"] and run.journal.entries == []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes where the run sleeps."""
    now = [1000.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.time", lambda: now[0])
    monkeypatch.setattr("asyncio.sleep", sleep)
    return now


async def test_an_osd_is_not_marked_down_so_often_that_it_ends_itself(
    run: Run, clock: list[float]
) -> None:
    """A sixth time in ten minutes does that, whoever it was; this run takes four of them."""
    times = []
    for _ in range(6):
        await run.connection.wait_to_mark_down(5)
        times.append(clock[0])
        clock[0] += 50
    assert times == [1000, 1050, 1100, 1150, 1600, 1650]
    assert [line[:38] for line in run.told] == ["waits 400 s: osd.5 was marked down in "]
    await run.connection.wait_to_mark_down(4)
    assert clock[0] == 1700, "another OSD has its own count"


@pytest.mark.parametrize(
    ("stamp", "until"),
    [
        ("1970-01-01T00:15:00.000000+0000", 1500.0),
        ("1970-01-01T00:01:00.000000+0000", 1000.0),
        ("0.000000", 1000.0),
    ],
)
async def test_an_osd_that_was_marked_down_before_this_run_gets_ten_minutes(
    cluster: CephadmCluster, run: Run, clock: list[float], stamp: str, until: float
) -> None:
    """A run that went on, or an OSD that flapped: how often it was is not known."""
    cluster.xinfo = [{"osd": 5, "down_stamp": stamp}]
    await run.connection.wait_to_mark_down(5)
    assert clock[0] == until


async def test_an_osd_may_be_marked_down_as_often_as_its_cluster_allows(
    cluster: CephadmCluster, run: Run, clock: list[float]
) -> None:
    cluster.markdowns = 2
    await run.connection.wait_to_mark_down(5)
    await run.connection.wait_to_mark_down(5)
    assert clock[0] == 1600.0
    cluster.markdowns = 1000
    await run.connection.wait_to_mark_down(5)
    assert clock[0] == 1600.0


async def test_an_osd_without_data_of_the_run_is_not_taken_out(
    cluster: CephadmCluster, run: Run
) -> None:
    hands = Hands(run.connection, run.journal, run.settings)
    cluster.pools = [{"pool": 7, "pool_name": "client"}, {"pool": 8, "pool_name": "others"}]
    cluster.held = ["8.1", "8.2"]
    with pytest.raises(RunError, match=r"osd\.5 has no placement group of client: .* Name an OSD"):
        await OsdOut("last").before_repeat(hands, ["client"])
    cluster.held = ["8.1", "7.a"]
    await OsdOut("last").before_repeat(hands, ["client"])
    assert cluster.course == []


# -- which OSDs restart together -----------------------------------------------------------------

HOSTS_IN_STEPS = [("host a", (0, 3)), ("host b", (1, 4)), ("host c", (2, 5))]
ALONE = [(f"osd osd.{osd}", (osd,)) for osd in range(6)]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule(0, over("host"))], HOSTS_IN_STEPS),
        ([rule(0, over("rack"))], HOSTS_IN_STEPS),
        ([rule(0, over("rack")), rule(1, over("osd"))], ALONE),
        ([rule(0, over("host", "choose_indep"), over("osd", "choose_indep", 1))], HOSTS_IN_STEPS),
        ([rule(0, over("host", "choose_indep", 3), over("osd", "chooseleaf_indep", 2))], ALONE),
        ([rule(7, over("osd"))], HOSTS_IN_STEPS),
    ],
    ids=["hosts", "racks", "racks and OSDs", "one OSD of each host", "two of each", "unused rule"],
)
def test_osds_that_may_hold_copies_of_the_same_data_do_not_restart_together(
    rules: list[dict[str, Any]], expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    steps = restarts.steps_of(range(6), crush(*rules), {0, 1})
    assert [step.osds for step in steps] == [osds for _, osds in expected]
    if expected is HOSTS_IN_STEPS:
        assert [step.where for step in steps] == [where for where, _ in expected]


def test_an_osd_that_is_below_no_host_restarts_alone() -> None:
    steps = restarts.steps_of([0, 9, 3, 8], crush(), {0})
    assert [str(step) for step in steps] == [
        "host a (osd.0, osd.3)",
        "one OSD (osd.9)",
        "one OSD (osd.8)",
    ]


async def test_an_osd_that_was_removed_meanwhile_is_left_out(
    cluster: CephadmCluster, tmp_path: Path
) -> None:
    link, told = connection(cluster, tmp_path)
    assert isinstance(link, ClusterConnection)
    await restarts.restart(link, [0, 17])
    assert cluster.restarts == ["ok-to-stop 0: yes", "restart osd.0"]
    assert "osd.17 is not in the cluster any more: not restarted" in told
