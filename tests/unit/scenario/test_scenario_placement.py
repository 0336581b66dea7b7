"""Which CPUs the OSDs of a host get."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replay.host_tree import HostTree
from tests.shipped_plans import shipped_plan

from cephqos_base.errors import ConfigError, UsageError
from cephqos_exporter.collectors.strategy import strategy_of
from cephqos_exporter.sysfs import read_topology
from cephqos_loadgen.check import plan_text
from cephqos_loadgen.phase_kinds import pin
from cephqos_loadgen.phase_kinds.pin import Pin
from cephqos_loadgen.plan.cpu_placement import Cpu, parse_lscpu, place_osds
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.scenario.variables import scalar


def lscpu(sockets: int, cores: int, threads: int) -> str:
    """Numbered as Linux does: first all first threads, then the siblings."""
    lines = ["# CPU,Core,Socket,Node"]
    for thread in range(threads):
        for core in range(sockets * cores):
            socket = core // cores
            lines.append(f"{thread * sockets * cores + core},{core},{socket},{socket}")
    return "\n".join(lines)


def test_siblings_stay_with_one_osd() -> None:
    cpus = parse_lscpu(lscpu(1, 2, 2))
    assert place_osds(cpus, [0, 1], "default", 1) == {0: (0, 2), 1: (1, 3)}


def test_by_osd_takes_turns_on_the_sockets_and_by_socket_spreads_each() -> None:
    cpus = parse_lscpu(lscpu(2, 4, 1))
    assert place_osds(cpus, [0, 1], "default", 2) == {0: (0, 1), 1: (2, 3)}
    assert place_osds(cpus, [0, 1], "by_osd", 2) == {0: (0, 1), 1: (4, 5)}
    assert place_osds(cpus, [0, 1], "by_socket", 2) == {0: (0, 4), 1: (1, 5)}


def test_the_parity_of_the_id_says_the_socket_whatever_ids_are_missing() -> None:
    cpus = parse_lscpu(lscpu(2, 4, 1))
    found = place_osds(cpus, [1, 2, 5], "by_osd", 1)
    assert found == {1: (4,), 2: (0,), 5: (5,)}
    assert place_osds(cpus, [3, 4], "by_socket", 3) == {3: (0, 4, 5), 4: (1, 2, 6)}


def test_eight_osds_of_five_cores_are_spread_as_the_exporter_recognises(tmp_path: Path) -> None:
    host = HostTree(tmp_path)
    host.cpus(sockets=2, cores=28, smt=2)
    topology = read_topology(host.host.sys)
    cpus = parse_lscpu(lscpu(2, 28, 2))
    for excluded in ((), (0, 1, 29, 84)):
        for strategy in ("default", "by_osd", "by_socket"):
            placed = place_osds(cpus, range(8), strategy, 5, excluded)
            homes = {str(osd): frozenset(own) for osd, own in placed.items()}
            without = {c for cpu in excluded for c in (cpu, *topology.siblings(cpu))}
            assert strategy_of(homes, topology, frozenset(without)) == strategy
            assert not without & {cpu for own in homes.values() for cpu in own}


def test_a_core_with_an_excluded_cpu_is_given_to_nobody() -> None:
    cpus = parse_lscpu(lscpu(1, 3, 2))
    assert place_osds(cpus, [0, 1], "default", 1, (3,)) == {0: (1, 4), 1: (2, 5)}
    with pytest.raises(UsageError, match="this host has 1 that are not excluded"):
        place_osds(cpus, [0, 1], "default", 1, (0, 1))


def test_cpus_to_exclude_are_a_variable_of_the_scenario() -> None:
    variables = {"apply": scalar("false"), "exclude": scalar("0,4")}
    plan = shipped_plan("cpu-placement", variables=variables)
    cpus = parse_lscpu(lscpu(2, 4, 1))
    lines = "\n".join(plan_text.lines(plan, ProgramPaths(), commands=True, cpus=cpus))
    assert "would pin osd.0 to CPUs 1" in lines
    assert "never to CPUs 0,4" in lines
    with pytest.raises(ConfigError, match="found 'all,'; allowed: CPUs such as 0,2-3"):
        shipped_plan("cpu-placement", variables={"exclude": scalar("all")})


@given(
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(1, 2),
    st.sampled_from(["default", "by_osd", "by_socket"]),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_no_cpu_is_given_twice_and_every_osd_gets_its_cores(
    sockets: int, cores: int, threads: int, strategy: str, each: int, osds: int
) -> None:
    cpus = parse_lscpu(lscpu(sockets, cores, threads))
    if each * osds > sockets * cores:
        with pytest.raises(UsageError, match="this host has"):
            place_osds(cpus, range(osds), strategy, each)
        return
    found = place_osds(cpus, range(osds), strategy, each)
    given_ = [cpu for own in found.values() for cpu in own]
    assert len(given_) == len(set(given_)) == each * osds * threads


@pytest.mark.parametrize(
    ("sockets", "strategy", "same"),
    [(1, "by_socket", True), (1, "by_osd", True), (1, "default", False), (2, "by_osd", False)],
)
async def test_strategies_that_come_to_the_same_on_a_host_are_a_finding(
    sockets: int, strategy: str, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points that are named after them do the same there."""

    async def cpus() -> list[Cpu]:
        return parse_lscpu(lscpu(sockets, 4, 2))

    async def osds() -> list[int]:
        return [0, 1]

    monkeypatch.setattr(pin, "cpus_of_this_host", cpus)
    context: Any = SimpleNamespace(
        cluster=SimpleNamespace(osds=osds),
        recorder=SimpleNamespace(event=lambda *_, **__: None),
    )
    result = await Pin(strategy, 2, apply=False).carry_out(context, None, None)  # type: ignore[arg-type]
    found = f"strategy {strategy} gives the OSDs the same CPUs as default on this host"
    assert [line.startswith(found) for line in result.findings()] == [True] * same


def test_a_plan_shows_where_osds_would_go_without_pinning_any() -> None:
    plan = shipped_plan("cpu-placement", variables={"apply": scalar("false")})
    cpus = parse_lscpu(lscpu(2, 4, 1))
    lines = "\n".join(plan_text.lines(plan, ProgramPaths(), commands=True, cpus=cpus))
    assert "would pin osd.1 to CPUs 4" in lines, "by_osd takes the other socket"
    few = "\n".join(plan_text.lines(plan, ProgramPaths(), commands=True, cpus=cpus[:1]))
    assert "cannot be: 2 OSDs with 1 cores each need 2 cores; this host has 1" in few
