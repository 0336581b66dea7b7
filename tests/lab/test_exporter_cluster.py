"""Scrub and recovery of real clusters, held against what the clusters say of themselves.

The real command, in both roles at once, as it would run where a cluster has one host.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from cephqos_exporter.ceph.cluster import READ_ONLY_COMMANDS
from cephqos_exporter.ceph.monclient import MonClient
from cephqos_loadgen.lab.lab import RunningLab

from .cluster_exporter import ClusterExporter, exporting
from .conftest import LabPool
from .live_exporter import LivePage

POOL = "exporter-cluster"
OBJECTS = 400
PGS = 4
OPTIONS = (("mgr", "mgr_stats_period", "1"), ("osd", "osd_recovery_sleep", "0.001"))


async def make_pool(lab: RunningLab) -> None:
    """A pool of two copies with small objects; statistics come every second from now on."""
    async with lab.client() as client:
        for who, key, value in OPTIONS:
            await client.command("config set", who=who, name=key, value=value)
        await client.command("osd pool create", pool=POOL, pg_num=PGS, pgp_num=PGS)
        for key, value in (("size", "2"), ("pg_autoscale_mode", "off")):
            await client.command("osd pool set", pool=POOL, var=key, val=value)
        await client.command("osd pool application enable", pool=POOL, app="test")
        bench = ["rados", "--conf", str(lab.paths.conf), "-p", POOL, "bench", "90", "write"]
        bench += ["-b", "4096", "--max-objects", str(OBJECTS), "--no-cleanup"]
        await lab.exec(bench, within=150)
        await settled(client)


async def remove_pool(lab: RunningLab) -> None:
    async with lab.client() as client:
        sure: dict[str, Any] = {"pool2": POOL, "yes_i_really_really_mean_it": True}
        await client.command("osd pool delete", pool=POOL, **sure)
        for who, key, _ in OPTIONS:
            await client.command("config rm", who=who, name=key)


@pytest.fixture(scope="module")
def pools(labs: LabPool) -> Iterator[list[RunningLab]]:
    """The labs in which this module made its pool; removed at the end."""
    made: list[RunningLab] = []
    yield made
    for lab in made:
        labs.call(remove_pool(lab))


@pytest.fixture
async def lab(shared_lab: RunningLab, pools: list[RunningLab]) -> RunningLab:
    """The shared lab of each release, with the pool in it."""
    if shared_lab not in pools:
        pools.append(shared_lab)
        await make_pool(shared_lab)
    return shared_lab


@pytest.fixture
async def client(lab: RunningLab) -> AsyncIterator[MonClient]:
    async with lab.client() as connected:
        yield connected


async def totals(client: MonClient) -> dict[str, int]:
    """The sums over the pool's placement groups, as the whole cluster dumps them."""
    dump = (await client.command("pg dump", target="mgr"))["pg_map"]
    number = await pool_id(client)
    rows = [row["stat_sum"] for row in dump["pg_stats"] if row["pgid"].startswith(f"{number}.")]
    return {key: sum(row[key] for row in rows) for key in rows[0]}


async def pool_id(client: MonClient) -> int:
    listed = await client.command("osd lspools")
    return next(int(entry["poolnum"]) for entry in listed if entry["poolname"] == POOL)


async def settled(client: MonClient) -> None:
    """Wait until all is clean and the manager's sums have stopped moving."""
    last: Any = None

    async def still() -> bool:
        nonlocal last
        status = await client.command("status")
        states = {entry["state_name"] for entry in status["pgmap"]["pgs_by_state"]}
        before, last = last, await totals(client)
        clean = all(state.startswith("active+clean") for state in states)
        await asyncio.sleep(1.0)
        return clean and last == before and last["num_objects"] > 0

    await until(still, "all is clean and still")


async def test_scrub_totals_are_those_of_pg_dump(
    lab: RunningLab, client: MonClient, release: str
) -> None:
    async with exporting(lab) as exporter:
        objects = (await totals(client))["num_objects"]
        assert objects >= OBJECTS
        name, deep = "cephqos_scrub_pool_objects_total", {"pool": POOL, "level": "deep"}
        before = await exporter.until(
            lambda page: (
                bool(page.values(f"{name}", **deep))
                and page.sum("cephqos_cluster_schedule_pgs") >= PGS
            ),
            "all placement groups are known",
        )
        assert before.sum(name, **deep) == 0
        read_before = before.values("cephqos_scrub_reads_total")
        asked = time.monotonic()
        await client.command("osd pool deep-scrub", who=[POOL])
        page = await exporter.until(
            lambda page: page.sum("cephqos_scrub_pool_pgs_total", **deep) == PGS,
            "every placement group was deep-scrubbed once",
        )
        assert page.sum(name, **deep) == objects
        assert page.sum(name, pool=POOL, level="shallow") == 0
        assert page.sum("cephqos_scrub_pool_running_pgs", **deep) == 0
        # Stamps are cut to seconds, and the page is some polls old.
        since = time.monotonic() - asked
        assert page.sum("cephqos_scrub_pool_oldest_seconds", **deep) < since + 30
        await check_scrub_of(release, page, client)
        if release == "tentacle":
            # Each of two copies of each object is read once, and by whom is counted.
            reads = page.values("cephqos_scrub_reads_total")
            assert sum(reads) - sum(read_before) == pytest.approx(2 * objects, rel=0.02)


async def check_scrub_of(release: str, page: LivePage, client: MonClient) -> None:
    """What only some releases report is right where they do and absent where they do not."""
    deep = {"pool": POOL, "level": "deep"}
    durations = page.values("cephqos_scrub_pool_last_duration_seconds", **deep)
    if release == "pacific":
        assert not page.values("cephqos_scrub_pool_running_objects_left", **deep)
        assert not page.values("cephqos_scrub_read_bytes_total")
        return
    rows = (await client.command("pg ls-by-pool", target="mgr", poolstr=POOL))["pg_stats"]
    assert page.sum("cephqos_scrub_pool_duration_seconds_count", **deep) == PGS
    seconds = page.sum("cephqos_scrub_pool_duration_seconds_sum", **deep)
    # Ceph rounds each one up to whole seconds.
    assert sum(row["last_scrub_duration"] for row in rows) - PGS <= seconds
    assert seconds <= sum(row["last_scrub_duration"] for row in rows)
    latest = max(rows, key=lambda row: str(row["last_scrub_stamp"]))
    assert latest["last_scrub_duration"] - 1 <= durations[0] <= latest["last_scrub_duration"]
    assert page.values("cephqos_scrub_pool_running_objects_left", **deep) == [0]


async def test_recovery_totals_are_those_of_pg_dump(lab: RunningLab, client: MonClient) -> None:
    counter = "cephqos_recovery_pool_objects_total"
    async with exporting(lab) as exporter:
        known = await exporter.until(lambda page: bool(page.values(counter, pool=POOL)), "counters")
        pushed = known.sum("cephqos_recovery_pushes_total")
        base = await totals(client)
        first = known.sum(counter, pool=POOL)
        try:
            left = await what_there_is_to_recover(client, exporter)
            await settled(client)
            end = await totals(client)
            recovered = end["num_objects_recovered"] - base["num_objects_recovered"]
            assert recovered == left, "each copy was made once"
            page = await exporter.until(
                lambda page: page.sum(counter, pool=POOL) - first == recovered,
                f"{recovered} objects recovered",
            )
        finally:
            await client.command("osd in", ids=["1"])
        bytes_total = "cephqos_recovery_pool_bytes_total"
        size = page.sum(bytes_total, pool=POOL) - known.sum(bytes_total, pool=POOL)
        assert size == end["num_bytes_recovered"] - base["num_bytes_recovered"]
        assert page.sum("cephqos_recovery_pool_degraded_objects", pool=POOL) == 0
        assert page.sum("cephqos_recovery_pool_eta_seconds", pool=POOL) == 0
        # Other pools' objects are pushed too: the manager's own, a handful.
        assert recovered <= page.sum("cephqos_recovery_pushes_total") - pushed <= recovered + 50
        await settled(client)


async def what_there_is_to_recover(client: MonClient, exporter: ClusterExporter) -> int:
    """Take an OSD out, and hold recovery back for as long as it takes to see what is to be done."""
    for flag in ("norecover", "nobackfill"):
        await client.command("osd set", key=flag)
    try:
        await client.command("osd out", ids=["1"])
        degraded, misplaced = (
            f"cephqos_recovery_pool_{word}_objects" for word in ("degraded", "misplaced")
        )
        await exporter.until(
            lambda page: (
                page.sum(degraded, pool=POOL) + page.sum(misplaced, pool=POOL) > 0
                and page.values("cephqos_cluster_flag", flag="norecover") == [1]
            ),
            "something to recover, and the flag that holds it back",
        )
        dump = await once_all_primaries_reported(client)

        def as_dumped(page: LivePage) -> bool:
            found = [page.sum(name, pool=POOL) for name in (degraded, misplaced)]
            return found == [dump["num_objects_degraded"], dump["num_objects_misplaced"]]

        page = await exporter.until(as_dumped, f"what is to be recovered: {dump}")
        assert page.values("cephqos_cluster_osd_up") == [1, 1, 1]

        def without_third_osd(page: LivePage) -> float:
            """Whether such a group is undersized or remapped is the release's choice."""
            states = ("undersized", "remapped")
            of_pool = (
                page.values("cephqos_recovery_pool_pgs", pool=POOL, state=it) for it in states
            )
            return sum(map(sum, of_pool))

        # States by pool are read less often than sums where the manager takes long.
        await exporter.until(lambda page: without_third_osd(page) > 0, "states of the pool")
        assert without_third_osd(await exporter.scrape()) <= 2 * PGS
        left = dump["num_objects_degraded"] + dump["num_objects_misplaced"]
        assert left > OBJECTS / 4, "an OSD in three led or held copies of about two thirds"
        return left
    finally:
        for flag in ("norecover", "nobackfill"):
            await client.command("osd unset", key=flag)


async def once_all_primaries_reported(client: MonClient) -> dict[str, int]:
    """The totals when they stand still and no placement group counts on the OSD that is out."""
    number, last = await pool_id(client), None

    async def reported() -> dict[str, int] | None:
        nonlocal last
        rows = (await client.command("pg dump", target="mgr"))["pg_map"]["pg_stats"]
        own = [row for row in rows if row["pgid"].startswith(f"{number}.")]
        known = all(1 not in row["up"] and "active" in row["state"] for row in own)
        before, last = last, await totals(client)
        await asyncio.sleep(1.0)  # as often as the manager gets statistics
        return last if known and last == before else None

    return await until(reported, "every primary has reported")


# What makes every placement group of the pool overdue and lets none be scrubbed.
_LET_GO = (
    ("noscrub", "1", "0"),
    ("nodeep-scrub", "1", "0"),
    ("scrub_min_interval", "1", "0"),
    ("scrub_max_interval", "2", "0"),
    ("deep_scrub_interval", "2", "0"),
)


async def test_overdue_placement_groups_are_those_that_ceph_warns_of(
    lab: RunningLab, client: MonClient
) -> None:
    async with exporting(lab) as exporter:
        try:
            for key, value, _ in _LET_GO:
                await client.command("osd pool set", pool=POOL, var=key, val=value)
            await check_overdue(client, exporter)
        finally:
            for key, _, value in _LET_GO:
                await client.command("osd pool set", pool=POOL, var=key, val=value)


async def check_overdue(client: MonClient, exporter: ClusterExporter) -> None:
    counts = [PGS, PGS]

    async def warned() -> bool:
        checks = (await client.command("health"))["checks"]
        both = ("PG_NOT_SCRUBBED", "PG_NOT_DEEP_SCRUBBED")
        return [checks[it]["summary"]["count"] for it in both if it in checks] == counts

    await until(warned, "the warning of every placement group")
    name = "cephqos_scrub_pool_schedule_pgs"

    def overdue(page: LivePage) -> list[float]:
        return [page.sum(name, level=level, state="overdue") for level in ("shallow", "deep")]

    page = await exporter.until(
        lambda page: bool(page.values(name)) and overdue(page) == counts,
        f"{counts} overdue",
    )
    deep = {"pool": POOL, "level": "deep"}
    assert page.sum(name, **deep, state="on_time") == 0
    objects = (await totals(client))["num_objects"]
    assert page.sum("cephqos_scrub_pool_backlog_objects", **deep) == objects
    assert page.sum("cephqos_scrub_pool_allowed", **deep) == 0
    assert page.sum("cephqos_scrub_pool_overdue_after_seconds", **deep) == 3.5


async def test_checks_that_alerts_read_have_these_names(lab: RunningLab, client: MonClient) -> None:
    """A pool beyond its quota, and a flag of one OSD."""
    name = "cephqos_cluster_health_check"

    def failing(page: LivePage) -> set[str]:
        return {labels["check"] for labels in page.labels(name)}

    full, flag = "POOL_FULL", "OSD_FLAGS"
    quota: dict[str, Any] = {"pool": POOL, "field": "max_objects"}
    group: dict[str, Any] = {"flags": "noout", "who": ["osd.0"]}
    async with exporting(lab) as exporter:
        assert not {full, flag} & failing(await exporter.scrape())
        try:
            await client.command("osd pool set-quota", **quota, val="1")
            await client.command("osd set-group", **group)
            await exporter.until(lambda page: {full, flag} <= failing(page), "both fail")
        finally:
            await client.command("osd pool set-quota", **quota, val="0")
            await client.command("osd unset-group", **group)
        await exporter.until(lambda page: not {full, flag} & failing(page), "both are passed")


@pytest.fixture
def lone_lab(labs: LabPool) -> RunningLab:
    return labs.shared("reef")


async def test_monitors_that_stop_cost_the_cluster_figures_and_nothing_else(
    lone_lab: RunningLab,
) -> None:
    monitor = (await lone_lab.pids())["mon.a"]
    async with exporting(lone_lab) as exporter:
        up = "cephqos_cluster_up"
        page = await exporter.until(lambda page: page.values(up) == [1], "the cluster is up")
        osd_series = len(page.labels("cephqos_daemon_up"))
        os.kill(monitor, signal.SIGSTOP)
        try:
            times, ups = [], [1.0]
            began = time.monotonic()
            while (passed := time.monotonic() - began) < 6 or (ups[-1] and passed < 90):
                page = await exporter.scrape()
                times.append(exporter.seconds)
                ups.append(page.sum(up))
                assert page.values("cephqos_daemon_up") == [1.0] * osd_series
                assert len(exporter.children) <= 1
                await asyncio.sleep(0.1)
            # One that waited for monitors would take the cluster's timeout of 2 s. A single one may
            # be slow because the machine is.
            assert statistics.median(times) < 1.0
            assert ups[-1] == 0
            assert page.labels(up)[0]["reason"] == "timeout"
            assert page.sum("cephqos_collector_host_success", collector="cluster") == 0
            assert not page.values("cephqos_recovery_pool_misplaced_objects")
        finally:
            os.kill(monitor, signal.SIGCONT)
        await exporter.until(lambda page: page.values(up) == [1], "it is up again")


async def test_a_killed_exporter_leaves_no_child_that_waits_for_monitors(
    lone_lab: RunningLab,
) -> None:
    monitor = (await lone_lab.pids())["mon.a"]
    async with exporting(lone_lab, cluster_timeout="60") as exporter:
        await exporter.until(lambda page: page.values("cephqos_cluster_up") == [1], "up")
        before = tree_of(exporter.process.pid)
        assert len(before) >= 2
        os.kill(monitor, signal.SIGSTOP)
        try:
            await asyncio.sleep(1.0)  # a poll is under way, and hangs
            exporter.process.kill()
            exporter.process.wait()

            async def all_gone() -> bool:
                return not any(Path(f"/proc/{pid}").exists() for pid in before[1:])

            await until(all_gone, "all children gone")
        finally:
            os.kill(monitor, signal.SIGCONT)


def tree_of(pid: int) -> list[int]:
    """A process and all that it has started, theirs included."""
    found = [pid]
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += tree_of(int(child))
    return found


async def test_where_no_python_has_the_bindings_the_ceph_command_serves(
    lone_lab: RunningLab,
) -> None:
    flags = {
        "cluster_python": f"{sys.executable} -IS",
        "cluster_ceph": shlex.join(lone_lab.enter_argv(["ceph"])),
        "cluster_timeout": "10",
    }
    async with exporting(lone_lab, **flags) as exporter:
        # The manager makes its pool some seconds after the lab has started.
        page = await exporter.until(
            lambda page: (
                page.values("cephqos_cluster_up") == [1]
                and page.sum("cephqos_cluster_schedule_pgs") == page.sum("cephqos_cluster_pgs") >= 1
            ),
            "up by the command, with the schedule of all placement groups",
        )
        assert page.sum("cephqos_cluster_child_starts_total") > 5


async def test_every_command_needs_no_more_than_permission_to_read(
    client: MonClient, release: str
) -> None:
    for target, expected in (("mon", 7), ("mgr", 3)):
        known = await client.command("get_command_descriptions", target=target)
        needed = {}
        for entry in known.values():
            prefix = " ".join(word for word in entry["sig"] if isinstance(word, str))
            if prefix in READ_ONLY_COMMANDS:
                needed[prefix] = entry["perm"]
        assert len(needed) == expected, f"{release} has no {READ_ONLY_COMMANDS - needed.keys()}"
        assert set(needed.values()) == {"r"}
