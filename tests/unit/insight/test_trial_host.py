"""`trial --host`: a host beside others, in simulated time, and which OSDs these are."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.trial.simulated import Load, TwoHosts, run_on_host
from tests.unit.changed_cluster import ChangedCluster

from cephqos_base.errors import CephqosError, UsageError
from cephqos_insight.trial import host, report
from cephqos_insight.trial.guard import Harm
from cephqos_insight.trial.plan import TriedSetting, parse_candidate
from cephqos_loadgen.plan.errors import ClusterUnfit

CANDIDATE = parse_candidate("scheduler=wpq")


def answer(trial: host.HostTrial) -> str:
    named = TriedSetting("c", CANDIDATE.options)
    return next(iter(report.lines(trial, [named], {})))


# -- answers -------------------------------------------------------------------------------------


def test_of_100_trials_of_what_changes_nothing_at_least_95_say_no_difference() -> None:
    """Each host's load wanders by itself, and both become slower and faster together."""
    worlds = [
        TwoHosts(1.0, seed, slower=lambda at: 2.0 if at % 3000 > 1500 else 1.0)
        for seed in range(100)
    ]
    trials = [run_on_host(world) for world in worlds]
    assert all(trial.rounds == 6 for trial in trials)
    assert sum(trial.verdicts.get("c") != "clear" for trial in trials) >= 95


@pytest.mark.parametrize(("effect", "by"), [(0.7, "mean"), (1.5, "p99")])
def test_the_true_effect_is_in_the_interval_of_nine_in_ten(effect: float, by: str) -> None:
    changes = [run_on_host(TwoHosts(effect, seed), by).change("c", by) for seed in range(60)]
    assert sum(bool(c and c.low <= effect <= c.high) for c in changes) >= 54


def test_a_host_that_becomes_slower_all_the_time_is_no_effect_of_the_setting() -> None:
    quiet = Load(noise=0.01, wander=0.01)
    drifting = TwoHosts(1.0, 1, quiet, mine_slower=lambda at: 1 + at / 5400)
    trial = run_on_host(drifting)
    change = trial.change("c", "mean")
    assert change is not None and 0.95 < change.ratio < 1.05


def test_a_host_that_is_another_afterwards_gives_no_answer() -> None:
    """Its disk became slow while the setting was in force, and stayed so."""
    world = TwoHosts(1.0, 1, Load(noise=0.02, wander=0.02), lambda at: 1.6 if at > 3000 else 1.0)
    trial = run_on_host(world)
    assert answer(trial).startswith("c: no answer yet, as it ended early: the host differs from")
    assert world.mine.log[-1][1] == "back"


def test_the_answer_stands_before_what_the_same_settings_gave_twice() -> None:
    trial = run_on_host(TwoHosts(0.5, 1))
    named = TriedSetting("c", host.on_osds(CANDIDATE, [0]).options)
    first, second, *rest = report.lines(
        trial, [named], {"c": ["ceph config rm osd.0 osd_op_queue"]}
    )
    assert first.startswith("c: mean -5")
    assert second.startswith("as it is, again: no difference found, up to 39 % is possible: mean +")
    assert "    ceph config set osd.0 osd_op_queue wpq" in rest
    assert "Host a (osd.0) beside osd.1." in rest


def test_a_harmful_setting_ends_it_and_clients_that_do_nothing_do_not_let_it_begin() -> None:
    harmful = run_on_host(TwoHosts(4.0, 1), harm=Harm(1.5, 20.0))
    assert list(harmful.harmed) == ["c"] and harmful.blocks[-1].arm == "c"
    idle = TwoHosts(1.0, 1)
    idle.mine.ops = idle.others.ops = lambda at: 0.0
    assert run_on_host(idle).ended.startswith("clients did 0 ops/s") and idle.mine.log == []


@pytest.mark.parametrize("whose", ["clients", "the other host's disk"])
def test_what_is_as_bad_without_the_setting_is_not_blamed_on_it(whose: str) -> None:
    world = TwoHosts(1.0, 1)
    if whose == "clients":
        world.mine.ops = world.others.ops = lambda at: 2000.0 if at < 1900 else 10.0
    else:
        world.others.slower = lambda at: 1.0 if at < 1900 else 9.0
    trial = run_on_host(world, harm=Harm(1.5, 20.0))
    assert not trial.harmed and world.mine.log[-1][1] == "back"
    assert "; without the setting it was no better" in answer(trial)


def test_a_host_that_could_not_be_measured_as_it_is_gets_nothing_set() -> None:
    world = TwoHosts(1.0, 1)
    world.mine.ops = world.others.ops = lambda at: 2000.0 if at % 300 < 180 else 500.0
    assert run_on_host(world).ended.startswith("what is set now could not be measured: the load")
    assert world.mine.log == []


# -- which OSDs ----------------------------------------------------------------------------------


class Hosts(ChangedCluster):
    """Hosts a and b with OSDs of 1 TiB; c has a larger one and one that is down."""

    def __init__(self) -> None:
        super().__init__()
        self.access = SimpleNamespace(at_once=False)

    def _osd_tree(self) -> dict[str, Any]:
        def osd(number: int, weight: float, status: str = "up") -> dict[str, Any]:
            return {
                "id": number, "type": "osd", "name": f"osd.{number}", "device_class": "ssd",
                "crush_weight": weight, "status": status, "reweight": 1.0,
            }  # fmt: skip

        hosts = {"a": [0, 1], "b": [2], "c": [3, 4]}
        buckets = [
            {"id": -n, "type": "host", "name": name, "children": children}
            for n, (name, children) in enumerate(hosts.items(), 2)
        ]
        osds = [osd(0, 1), osd(1, 1), osd(2, 1.05), osd(3, 4), osd(4, 1, "down")]
        return {"nodes": [*buckets, *osds], "stray": []}


async def test_a_host_is_laid_beside_osds_of_other_hosts_that_are_like_its_own() -> None:
    groups = await host.find_groups(Hosts(), "a")  # type: ignore[arg-type]
    assert str(groups) == "Host a (osd.0, osd.1) beside osd.2."


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("d", UsageError, "--host d: expected one of a, b, c"),
        ("c", ClusterUnfit, "the weight of one that is up on this host; found osd.0 ssd 1, osd.1"),
    ],
)
async def test_a_host_that_cannot_be_compared_is_refused(
    name: str, error: type[CephqosError], message: str
) -> None:
    with pytest.raises(error, match=message):
        await host.find_groups(Hosts(), name)  # type: ignore[arg-type]


async def test_osds_are_not_restarted_where_a_pool_would_stand_still() -> None:
    cluster = Hosts()
    cluster.pools[1] = {"pool_name": "single", "size": 2, "min_size": 2}
    with pytest.raises(ClusterUnfit, match="single need all their copies"):
        await host.check_restart(cluster, [0])  # type: ignore[arg-type]
