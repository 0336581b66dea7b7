"""A plan says which OSDs of a given cluster restart; a run that may not restart them is refused."""

from pathlib import Path
from typing import Any

import pytest
from tests.shipped_plans import only, shipped_plan

from cephqos_base.errors import UsageError
from cephqos_loadgen.check import ask_cluster, plan_text
from cephqos_loadgen.check.ask_cluster import ClusterSays
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster import restart_plan
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.restart_plan import PlannedRestarts
from cephqos_loadgen.cluster.settings import SettingsReader
from cephqos_loadgen.cluster.steps.osds import OsdsRestarted
from cephqos_loadgen.cluster.steps.registry import stored
from cephqos_loadgen.live.forecast import Forecast
from cephqos_loadgen.plan.errors import ClusterUnfit, SettingRefused
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.scenario.parse import parse

from ..cephadm_cluster import CephadmCluster, connection, crush, over, rule

POLICIES = """\
scenario: s
repeats: 2
matrix:
  policy:
    wpq: {settings: {osd: {osd_op_queue: wpq}}}
    mclock: {settings: {osd: {osd_op_queue: mclock_scheduler, osd_mclock_profile: balanced}}}
phases: [{name: w, wait: {}, until: {duration: 1s}}]
"""
OUT = """\
scenario: s
phases: [{name: out, osd_out: {osd: 0}}]
"""


@pytest.fixture
def cluster() -> CephadmCluster:
    return CephadmCluster()


@pytest.fixture
def link(cluster: CephadmCluster, tmp_path: Path) -> ClusterConnection:
    return connection(cluster, tmp_path)[0]


def a_plan(text: str = POLICIES) -> Plan:
    return parse(text, "s.yaml")


async def planned(link: ClusterConnection, plan: Plan) -> PlannedRestarts:
    return await restart_plan.look(link.view, SettingsReader(link.view), plan)


async def refused(
    link: ClusterConnection, plan: Plan | None = None, allowed: int | None = None
) -> UsageError | None:
    plan = plan or a_plan()
    try:
        await restart_plan.check(link.view, plan, await planned(link, plan), allowed)
    except UsageError as error:
        return error
    return None


async def test_the_plan_says_how_many_restart_in_which_steps_and_how_often(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    """OSDs run WPQ: only the point of mClock restarts them, twice, there and back."""
    found = await planned(link, a_plan())
    assert list(found.lines()) == [
        "restarts 6 OSDs, one host after the other (3 steps), 4 times over the run",
        "  because OSDs read this only when they start: osd_op_queue",
        "  about 18 min of the run, more where placement groups take longer than a minute to be"
        " clean after a step",
    ]
    assert cluster.course == [], "asking changes nothing"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"repeats: 2": "repeats: 2\norder: grouped"},
            "6 OSDs, one host after the other (3 steps), 2",
        ),
        (
            {"{osd: {osd_op_queue: m": "{osd.4: {osd_op_queue: m"},
            "1 OSD, one host after the other (1",
        ),
        ({"mclock_scheduler": "wpq"}, ""),
    ],
    ids=["repeats of a point together", "one OSD", "as they are"],
)
async def test_what_restarts_follows_from_the_order_and_the_sections(
    link: ClusterConnection, change: dict[str, str], words: str
) -> None:
    text = POLICIES
    for before, after in change.items():
        assert before in text
        text = text.replace(before, after)
    said = " ".join((await planned(link, a_plan(text))).lines())
    assert words in said and bool(words) == bool(said)


async def test_a_phase_that_changes_such_an_option_restarts_them_in_every_repeat(
    link: ClusterConnection,
) -> None:
    phases = "phases: [{name: c, change: {osd: {osd_op_queue: wpq}}}]"
    text = POLICIES.partition("phases:")[0] + phases
    found = await planned(link, a_plan(text))
    assert found.times == 4 + 4, "for the point of mClock, and in each of its repeats"


async def test_where_copies_are_spread_over_osds_each_is_a_step(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.crush = crush(rule(0, over("osd")))
    found = await planned(link, a_plan())
    assert "one OSD after the other (6 steps)" in found.how


async def test_on_a_lab_they_restart_at_once_without_a_word_on_the_command_line(
    cluster: CephadmCluster, link: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(link.access), "at_once", True)
    found = await planned(link, a_plan())
    assert found.how == "6 OSDs at once, 4 times over the run" and found.seconds == 0.0
    cluster.pools = [{"pool_name": "p", "size": 1, "min_size": 1, "crush_rule": 0}]
    assert await refused(link, allowed=0) is None


# -- refused before anything is changed ----------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("orchestrator", None, "systemctl restart ceph-osd.target` on each host. This cluster has"),
        ("orchestrator", {"available": False}, "This cluster has no orchestrator"),
        ("orchestrator", {"available": True, "backend": "rook"}, "kubectl -n rook-ceph rollout"),
        (
            "orchestrator",
            {"available": True, "backend": "cephadm", "paused": True},
            "`ceph orch resume`",
        ),
        ("unmanaged", {4}, "cephadm does not manage osd.4"),
        ("host_status", {"a": "", "b": "Offline", "c": ""}, "does not reach their host b"),
    ],
)
async def test_where_they_cannot_be_restarted_the_run_is_refused_with_what_to_do(
    cluster: CephadmCluster, link: ClusterConnection, attribute: str, value: Any, words: str
) -> None:
    assert await refused(link) is None
    setattr(cluster, attribute, value)
    error = await refused(link)
    assert isinstance(error, SettingRefused) and words in str(error)
    assert cluster.course == []


@pytest.mark.parametrize(
    "pool",
    [
        {"pool_name": "theirs", "size": 1, "min_size": 1, "crush_rule": 0},
        {"pool_name": "theirs", "size": 2, "min_size": 2, "crush_rule": 0},
    ],
)
@pytest.mark.parametrize("text", [POLICIES, OUT], ids=["restarts", "osd_out"])
async def test_where_a_pool_needs_all_its_copies_no_osd_may_stop(
    cluster: CephadmCluster, link: ClusterConnection, pool: dict[str, Any], text: str
) -> None:
    assert await refused(link, a_plan(text)) is None
    cluster.pools = [*cluster.pools, pool]
    error = await refused(link, a_plan(text))
    assert isinstance(error, ClusterUnfit) and "all their copies: theirs)" in str(error)


async def test_so_it_is_for_a_pool_that_the_run_makes(link: ClusterConnection) -> None:
    pools = "pools: [{name: client, size: 1, images: {size: 64M}}]\n"
    load = "fio: {engine: rbd, pool: client, rw: randwrite, bs: 4K, depth: 1}"
    text = (pools + POLICIES).replace("wait: {}", load)
    error = await refused(link, a_plan(text))
    assert "all their copies: client)" in str(error)


async def test_with_the_flag_noup_they_would_not_come_up(
    cluster: CephadmCluster, link: ClusterConnection
) -> None:
    cluster.flags = "noup"
    assert "the flag noup of the cluster" in str(await refused(link))


async def test_above_a_number_of_osds_the_command_line_must_say_how_many(
    link: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert restart_plan.ALLOWED_OSDS == 12
    monkeypatch.setattr(restart_plan, "ALLOWED_OSDS", 5)
    error = await refused(link)
    assert error is not None and error.exit_status == 2
    assert "this run restarts 6 OSDs, one host after the other (3 steps), 4 times" in str(error)
    assert "add --restart-osds 6." in str(error)
    assert await refused(link, allowed=6) is None
    assert await refused(link, allowed=5) is not None


async def test_more_osds_than_the_way_back_can_name_are_refused_whatever_is_allowed(
    link: ClusterConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = range(1000, 1000 + restart_plan.MOST_OSDS)
    groups = tuple(tuple(many[start : start + 10]) for start in range(0, len(many), 10))
    assert stored(OsdsRestarted(groups, {str(osd): str((1 << 32) - 1) for osd in many}, None))
    monkeypatch.setattr(restart_plan, "MOST_OSDS", 5)
    assert "a run restarts 5 at most" in str(await refused(link, allowed=100))


# -- shown ---------------------------------------------------------------------------------------


def options(tmp_path: Path, **more: Any) -> RunOptions:
    return RunOptions(out=tmp_path, conf=tmp_path / "ceph.conf", known_fsid="f", **more)


async def test_check_asks_the_cluster_and_shows_it_in_the_plan_with_its_time(
    cluster: CephadmCluster,
    link: ClusterConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ask_cluster, "ConfAccess", lambda *_: link.access)
    monkeypatch.setattr(cluster, "_status", lambda _: {"fsid": "f"}, raising=False)
    plan = a_plan()
    says = await ask_cluster.ask(plan, options(tmp_path, restart_osds=5))
    shown = "\n".join(plan_text.lines(plan, ProgramPaths(), commands=False, cluster=says))
    assert "  restarts 6 OSDs, one host after the other (3 steps), 4 times over the run" in shown
    assert "  a run is refused as it is: this run restarts 6 OSDs" in shown
    alone = "\n".join(plan_text.heading(plan))
    assert "about 56 s in all" in alone and "about 18 min 56 s in all" in shown
    assert not (tmp_path / "work").exists() and cluster.course == []


async def test_a_plan_can_be_looked_at_while_the_cluster_cannot_be_reached(tmp_path: Path) -> None:
    says = await ask_cluster.ask(a_plan(), options(tmp_path, python="/nonexistent"))
    (line,) = says.lines()
    assert line.startswith("not known whether OSDs restart: the cluster was not asked: ")


async def test_a_plan_for_a_lab_of_its_own_says_for_what_osds_restart(tmp_path: Path) -> None:
    says = await ask_cluster.ask(shipped_plan("client-vs-scrub"), RunOptions(out=tmp_path))
    assert list(says.lines()) == [
        "restarts the OSDs of the lab at once, where osd_op_queue must change"
    ]
    says = await ask_cluster.ask(shipped_plan("baseline"), RunOptions(out=tmp_path))
    assert list(says.lines()) == [] == list(ClusterSays().lines())


async def test_the_time_that_is_left_has_the_restarts(link: ClusterConnection) -> None:
    plan = a_plan()
    forecast, plain = Forecast(plan), Forecast(plan)
    found = await planned(link, plan)
    forecast.restarting(found.seconds_of)
    assert forecast.left() - plain.left() == pytest.approx(found.seconds) == 18 * 60
    for point, repeat in plan.runs[:3]:
        forecast.finished(point, repeat, None)
        plain.finished(point, repeat, None)
    assert forecast.left() - plain.left() == pytest.approx(found.seconds / 2)
    assert forecast.left(elapsed=1.0) - plain.left(elapsed=1.0) == pytest.approx(found.seconds / 4)


@pytest.mark.parametrize(
    "name",
    ["client-vs-recovery", "client-vs-scrub", "client-vs-scrub-recovery", "noisy-neighbour"],
)
async def test_the_shipped_scenarios_that_switch_the_scheduler_say_so(
    link: ClusterConnection, name: str
) -> None:
    plan = shipped_plan(name, "lab", only=only(media="ssd") if name == "client-vs-recovery" else {})
    found = await planned(link, plan)
    assert len(found.osds) == 6 and found.options == ("osd_op_queue",) and found.times > 1
