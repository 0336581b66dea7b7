"""The pure parts of a run: what counts as the same value, as steady, as placed, as found."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replay.host_tree import HostTree

from cephqos_base.errors import ConfigError, UsageError
from cephqos_exporter.strategy import strategy_of
from cephqos_exporter.sysfs import read_topology
from cephqos_loadgen.check import plan_text
from cephqos_loadgen.cluster import device_queues, queue_files
from cephqos_loadgen.cluster.option_values import read_info, same_value, unfit
from cephqos_loadgen.cluster.settings import concerned, warnings_for
from cephqos_loadgen.cluster.undo import Journal, Undo, command, from_json, to_json
from cephqos_loadgen.engines.fio_output import ClientStatus, IoTotals, JobStatus
from cephqos_loadgen.engines.place import ProgramPaths
from cephqos_loadgen.live.metrics import families
from cephqos_loadgen.live.notify import annotation, push
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.load import curves
from cephqos_loadgen.load.curves import Search, Sweep
from cephqos_loadgen.load.recovery import read_look
from cephqos_loadgen.load.start_and_end import is_steady
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.plan.cpu_placement import parse_lscpu, place_osds
from cephqos_loadgen.plan.parts import CephOption, Device
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.run.session import finish, scheduler_of
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import Choices, parse
from cephqos_loadgen.scenario.source import scalar

# -- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "wanted", "found", "same"),
    [
        ("size", "256K", "262144", True),
        ("size", "256K", "262145", False),
        ("uint", "5", "5", True),
        ("bool", "true", "1", True),
        ("bool", "false", "true", False),
        ("float", "0", "0.000000", True),
        ("float", "0.9", "0.900000", True),
        ("float", "0.9", "0.800000", False),
        ("str", "wpq", "mclock_scheduler", False),
        ("int", "five", "5", False),
    ],
)
def test_spellings_of_one_value_are_told_from_other_values(
    kind: str, wanted: str, found: str, same: bool
) -> None:
    assert same_value(kind, wanted, found) is same


INFO = {"name": "o", "can_update_at_runtime": True, "min": "", "max": ""}


@pytest.mark.parametrize(
    ("info", "value", "expected"),
    [
        ({"type": "str", "enum_values": ["wpq", "mclock_scheduler"]}, "wpq", ""),
        ({"type": "str", "enum_values": ["wpq", "prioritized"]}, "wqp", "one of wpq, prioritized"),
        ({"type": "str", "enum_values": []}, "anything", ""),
        ({"type": "uint"}, "often", "a value of type uint"),
        ({"type": "size"}, "256K", ""),
        ({"type": "float", "min": 0, "max": 1.0}, "0.5", ""),
        ({"type": "float", "min": 0, "max": 1.0}, "1.5", "at most 1"),
        ({"type": "int", "min": 1}, "0", "at least 1"),
        ({"type": "bool"}, "perhaps", "a value of type bool"),
        ({"type": "secs"}, "1h", ""),
    ],
)
def test_a_value_that_the_monitors_would_not_take_is_known_from_what_they_say_of_the_option(
    info: dict[str, Any], value: str, expected: str
) -> None:
    assert unfit(read_info({**INFO, **info}), value) == expected


@pytest.mark.parametrize(
    ("section", "daemons"),
    [
        ("osd", ["osd.0", "osd.1"]),
        ("osd.1", ["osd.1"]),
        ("mon", ["mon.a"]),
        ("mgr", ["mgr.x"]),
        ("mgr.x", ["mgr.x"]),
        ("global", ["osd.0", "osd.1", "mon.a", "mgr.x"]),
        ("osd.7", []),
    ],
)
def test_a_setting_is_read_back_from_every_daemon_that_its_section_means(
    section: str, daemons: list[str]
) -> None:
    option = CephOption(section, "debug_ms", "0")
    assert concerned(option, ["osd.0", "osd.1", "mon.a", "mgr.x"]) == daemons


MCLOCK = {"osd_op_queue": "mclock_scheduler", "osd_mclock_max_sequential_bandwidth_ssd": "1"}


def test_options_that_the_bandwidth_model_ignores_are_said() -> None:
    options = [CephOption("osd", "osd_scrub_cost", "50M"), CephOption("osd", "osd_max_scrubs", "5")]
    (only,) = warnings_for(options, MCLOCK)
    assert only.startswith("osd_scrub_cost = 50M has no effect")
    assert warnings_for(options, {**MCLOCK, "osd_op_queue": "wpq"}) == []
    assert warnings_for(options, {"osd_op_queue": "mclock_scheduler"}) == [], "the early model"


def test_a_sleep_of_zero_is_what_mclock_has_anyway() -> None:
    said = [
        warnings_for([CephOption("osd", "osd_scrub_sleep", v)], MCLOCK) for v in ("0", "0.0", "0.1")
    ]
    assert [len(warnings) for warnings in said] == [0, 0, 1]


def test_backfill_limits_need_the_override_under_mclock() -> None:
    options = [CephOption("osd", "osd_max_backfills", "1000")]
    assert len(warnings_for(options, MCLOCK)) == 1
    override = {"osd_mclock_override_recovery_settings": "true"}
    assert warnings_for(options, MCLOCK | override) == []


@pytest.mark.parametrize(
    ("queue", "scheduler"),
    [
        ({}, "mclock_scheduler"),  # 16.2, which prints nothing
        ({"mClockClients": {"clients": ""}, "queue_sizes": {"immediate": 0}}, "mclock_scheduler"),
        ({"high_queues": [], "queues": []}, "wpq"),
        ("nonsense", "unknown"),
    ],
)
def test_the_scheduler_in_force_is_told_by_the_queue_dump_of_every_release(
    queue: Any, scheduler: str
) -> None:
    dump = {"OSD:ShardedOpWQ:0": queue, "OSD:ShardedOpWQ:1": queue}
    assert scheduler_of(dump) == scheduler


# -- steady state --------------------------------------------------------------------------------


def rates(values: list[float]) -> list[tuple[float, float]]:
    return [(float(second), value) for second, value in enumerate(values)]


def test_a_flat_window_is_steady_and_a_short_one_is_not_yet() -> None:
    assert is_steady(rates([100, 101, 99, 100, 100, 101]), 5, 0.05)
    assert not is_steady(rates([100, 101, 99]), 5, 0.05)


def test_a_slow_fall_is_not_steady_though_it_hardly_spreads() -> None:
    falling = [100.0 - n for n in range(11)]
    assert not is_steady(rates(falling), 10, 0.05)


def test_only_the_last_window_counts() -> None:
    assert is_steady(rates([5000, 4000, 900, 100, 100, 100, 100, 100, 100]), 4, 0.05)


def test_nothing_is_steady_at_zero() -> None:
    assert not is_steady(rates([0.0] * 20), 5, 0.05)


# -- curves and searches -------------------------------------------------------------------------


def step_of(depth: int, iops: float, mean: float, deviation: float = 0.0) -> Step:
    """A step whose 95th percentile is twice the mean."""
    bins = {round(mean * 2e9): 1}
    total = LoadFigures(1, iops, 0.0, mean, deviation, mean * 2, {"95": mean * 2}, bins)
    return Step(depth, 0.0, 1.0, 1.0, total, None, total, {})


def nobody(*_: object, **__: object) -> None:
    """Takes events."""


async def test_a_sweep_keeps_the_step_that_went_too_far_and_stops_there() -> None:
    async def run(depth: int, _: float) -> Step:
        return step_of(depth, 1000, 0.001 * depth, 0.0005 * depth if depth >= 4 else 0)

    spec = Sweep((1, 2, 4, 8), 1.0, dispersion=0.5)
    steps, stopped = await curves.sweep(spec, run, nobody)
    assert [step.depth for step in steps] == [1, 2, 4]
    assert "dispersion 0.50" in stopped


@pytest.mark.parametrize(
    ("limit", "depths"), [(0.0035, [1, 2, 4]), (10.0, [1, 2, 4, 8]), (None, [1, 2, 4, 8])]
)
async def test_a_sweep_stops_at_its_latency_limit_if_it_has_one(
    limit: float | None, depths: list[int]
) -> None:
    async def run(depth: int, _: float) -> Step:
        return step_of(depth, 1000, 0.001 * depth)

    steps, stopped = await curves.sweep(Sweep((1, 2, 4, 8), 1.0, latency=limit), run, nobody)
    assert [step.depth for step in steps] == depths
    assert bool(stopped) is (len(depths) < 4), "a sweep that did all its depths did not stop"


@given(st.integers(1, 256), st.integers(1, 300))
async def test_a_search_finds_the_greatest_depth_within_the_target(most: int, knee: int) -> None:
    measured = []

    async def run(depth: int, _: float) -> Step:
        measured.append(depth)
        return step_of(depth, 100 * depth, 0.001 * depth)

    spec = Search(target=0.002 * knee + 1e-9, percentile=95.0, least=1, most=most, dwell=1)
    found = FioResult("rbd", "search", await curves.search(spec, run, nobody), reached=True)
    assert found.chosen.within_target
    assert found.headline()["depth"] == min(knee, most)
    assert len(measured) == len(set(measured)) <= 10, "each depth once, by halving"


async def test_a_target_that_even_depth_one_misses_is_not_reached() -> None:
    async def run(depth: int, _: float) -> Step:
        return step_of(depth, 100, 1.0)

    spec = Search(target=0.001, percentile=None, least=1, most=64, dwell=1)
    steps = await curves.search(spec, run, nobody)
    assert [step.within_target for step in steps] == [False]
    assert "depth" not in FioResult("rbd", "search", steps, reached=False).headline()


# -- placement -----------------------------------------------------------------------------------


def lscpu(sockets: int, cores: int, threads: int) -> str:
    """Numbered as Linux does: first all first threads, then the siblings."""
    lines = ["# CPU,Core,Socket"]
    for thread in range(threads):
        for core in range(sockets * cores):
            lines.append(f"{thread * sockets * cores + core},{core},{core // cores}")
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
    text, file = library.read("cpu-placement")
    variables = {"apply": scalar("false"), "exclude": scalar("0,4")}
    plan = parse(text, file, Choices(scale="tiny", variables=variables))
    cpus = parse_lscpu(lscpu(2, 4, 1))
    lines = "\n".join(plan_text.lines(plan, ProgramPaths(), commands=True, cpus=cpus))
    assert "would pin osd.0 to CPUs 1" in lines
    assert "never to CPUs 0,4" in lines
    with pytest.raises(ConfigError, match="found 'all,'; allowed: CPUs such as 0,2-3"):
        parse(text, file, Choices(scale="tiny", variables={"exclude": scalar("all")}))


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


def test_a_plan_shows_where_osds_would_go_without_pinning_any() -> None:
    text, file = library.read("cpu-placement")
    choices = Choices(scale="tiny", variables={"apply": scalar("false")})
    plan = parse(text, file, choices)
    cpus = parse_lscpu(lscpu(2, 4, 1))
    lines = "\n".join(plan_text.lines(plan, ProgramPaths(), commands=True, cpus=cpus))
    assert "would pin osd.1 to CPUs 4" in lines, "by_osd takes the other socket"
    few = "\n".join(plan_text.lines(plan, ProgramPaths(), commands=True, cpus=cpus[:1]))
    assert "cannot be: 2 OSDs with 1 cores each need 2 cores; this host has 1" in few


# -- the way back --------------------------------------------------------------------------------


async def test_the_journal_undoes_in_reverse_and_keeps_what_failed() -> None:
    saved: list[list[Undo]] = []

    async def save(entries: list[Undo]) -> None:
        saved.append(list(entries))

    class RunCluster:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def command(self, prefix: str, **_: Any) -> None:
            self.asked.append(prefix)
            if prefix == "b":
                raise OSError("away")

    journal, cluster = Journal(save), RunCluster()
    for name in "abc":
        await journal.push(command(f"ceph {name}", name))
    failures = await journal.roll_back(cluster)  # type: ignore[arg-type]
    assert cluster.asked == ["c", "b", "a"]
    assert failures == ["ceph b: away"]
    assert journal.commands() == ["ceph b"]
    assert from_json(to_json(saved[2])) == saved[2], "it survives being written down"


async def test_a_way_back_that_is_cut_short_keeps_the_step_that_was_at_work() -> None:
    class Stuck:
        async def command(self, prefix: str, **_: Any) -> None:
            if prefix == "b":
                await asyncio.Event().wait()

    async def save(entries: list[Undo]) -> None:
        pass

    journal = Journal(save)
    for name in "abc":
        await journal.push(command(f"ceph {name}", name))
    task = asyncio.create_task(journal.roll_back(Stuck()))  # type: ignore[arg-type]
    while len(journal.entries) == 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.commands() == ["ceph b", "ceph a"]


@pytest.mark.parametrize(("spare", "interruptions"), [(0, 0), (1, 0), (1, 1)])
async def test_restoring_is_carried_through_interruptions_that_are_to_spare(
    spare: int, interruptions: int
) -> None:
    go = asyncio.Event()
    said: list[str] = []
    task = asyncio.create_task(finish(wait_for(go), said.append, spare))
    for _ in range(interruptions):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    go.set()
    results = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError) == bool(interruptions), "it is handed on"
    assert len(said) == interruptions


@pytest.mark.parametrize("spare", [0, 1])
async def test_the_interruption_after_those_stops_restoring_and_more_do_no_harm(spare: int) -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)  # closing takes a moment
            ended.append(True)

    said: list[str] = []
    task = asyncio.create_task(finish(work(), said.append, spare))
    for _ in range(spare + 3):
        await asyncio.sleep(0.01)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
    assert said[-1] == "restoring the cluster was stopped"


async def wait_for(event: asyncio.Event) -> None:
    await event.wait()


# -- what is shown -------------------------------------------------------------------------------


def status(ios: int, runtime: float) -> ClientStatus:
    done = IoTotals(ios, ios * 4096, ios, ios * 0.001, 0.0, 0.001, {1_000_000: ios})
    return ClientStatus(
        0.0, {"volume.0": JobStatus({"read": IoTotals(), "write": done}, 0.0, runtime)}
    )


def samples(live: Live, name: str) -> list[float]:
    return [v for f in families(live) if f.name == name for _, _, v in f.samples]


def test_counters_of_a_client_go_on_when_its_process_starts_anew() -> None:
    live = Live(RunPlace("r", "s", "fsid"))
    live.start_client("load", "client.0", "rbd")
    live.status("load", "client.0", status(100, 1.0))
    interval = live.status("load", "client.0", status(250, 2.0))
    assert interval.ios == 150
    assert live.iops("load") == 150
    live.start_client("load", "client.0", "rbd")
    assert samples(live, "cephqos_client_ops_total") == [250]
    live.status("load", "client.0", status(10, 1.0))
    assert samples(live, "cephqos_client_ops_total") == [260]
    assert max(samples(live, "cephqos_client_latency_seconds")) == 260


def test_progress_is_read_from_status_and_pools() -> None:
    sums = {"num_objects_recovered": 3, "num_objects_misplaced": 2}
    pools = {"pool_stats": [{"poolid": 7, "stat_sum": sums}]}
    state = {"state_name": "active+remapped+backfilling", "count": 4}
    now = read_look(1.0, {"pgmap": {"pgs_by_state": [state]}}, pools)
    assert now.recovering
    assert not now.calm
    assert (now.objects, now.misplaced) == ({7: 3}, 2)
    calm = {"state_name": "active+clean", "count": 4}
    none: dict[str, Any] = {"pool_stats": [{"poolid": 7, "stat_sum": {}}]}
    assert read_look(1.0, {"pgmap": {"pgs_by_state": [calm]}}, none).calm


def test_annotations_and_log_lines_name_run_and_phase() -> None:
    details = {"run": "r1", "phase": "scrub"}
    assert annotation("phase_started", details, 1.5) == {
        "time": 1500,
        "tags": ["cephqos", "phase_started", "r1", "scrub"],
        "text": "phase_started run=r1 phase=scrub",
    }
    (stream,) = push("phase_started", details, 1.5, "c1")["streams"]
    line = '{"time": 1.5, "event": "phase_started", "run": "r1", "phase": "scrub"}'
    assert stream["values"] == [["1500000000", line, {"event": "phase_started", **details}]]


def test_the_scheduler_is_set_before_what_it_would_reset() -> None:
    wanted = device_queues.queue_settings(Device("bfq", 64, None))
    assert list(wanted.items()) == [("scheduler", "bfq"), ("nr_requests", "64")]
    assert queue_files.in_force("none [bfq] kyber") == "bfq"
