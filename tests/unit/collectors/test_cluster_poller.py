"""The poller and the source, on recorded replies: cost, failures, recovery, what is absent."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter import resting
from cephqos_exporter.ceph.cluster import (
    MOVING_PGS,
    TRIMMING_PGS,
    ClusterQuery,
    ClusterReader,
    Cost,
)
from cephqos_exporter.ceph.monclient import ClusterSilent, ClusterUnreachable, CommandFailed
from cephqos_exporter.cluster.cluster_source import ClusterSource
from cephqos_exporter.cluster.poller import Poller
from cephqos_exporter.daemon_errors import SourceUnavailable

from ..osd_views import samples
from .cluster_replies import NOW, recorded

OPTIONS = {
    "osd_scrub_min_interval": 86400.0,
    "osd_scrub_max_interval": 604800.0,
    "osd_deep_scrub_interval": 604800.0,
    "mon_warn_pg_not_scrubbed_ratio": 0.5,
    "mon_warn_pg_not_deep_scrubbed_ratio": 0.75,
}
_FILES = {
    "status": "status",
    "osd dump": "osd_dump",
    "osd tree": "osd_tree",
    "pg ls": "scrubbing",
}


class RecordedReader(ClusterReader):
    """Answers from recordings; a test may change answers or have them fail."""

    def __init__(self, release: str = "reef", moment: str = "idle") -> None:
        self.release, self.moment = release, moment
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.hang: asyncio.Event | None = None
        self.change: Callable[[str, Any], Any] = lambda prefix, reply: reply
        self.costs: dict[str, Cost] = {}
        self.closed = 0

    @property
    def starts(self) -> int:
        return 1

    async def ask(self, query: ClusterQuery) -> Any:
        name = self._name(query)
        self.asked.append(name)
        if self.hang:
            await self.hang.wait()
        if self.error:
            raise self.error
        if query.prefix == "config get":
            return OPTIONS[query.arguments["key"]]
        if name in ("moving", "trimming"):
            return self.change(name, {"pg_stats": []})
        at_rest = name in ("osd_tree", "osd_use") or name.startswith("primary")
        moment = "idle" if at_rest else self.moment
        return self.change(name, recorded(self.release, moment, name))

    def _name(self, query: ClusterQuery) -> str:
        if query.prefix == "pg dump":
            names = {"pools": "pools", "pgs_brief": "brief", "osds": "osd_use"}
            return names[query.arguments["dumpcontents"][0]]
        if query.prefix == "pg ls-by-primary":
            return f"primary_{query.arguments['osd']}"
        if query == MOVING_PGS:
            return "moving"
        if query == TRIMMING_PGS:
            return "trimming"
        return _FILES.get(query.prefix, query.prefix)

    async def close(self) -> None:
        self.closed += 1


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def poller(reader: RecordedReader, clock: Clock | None = None, **more: Any) -> Poller:
    options: dict[str, Any] = {"interval": 5.0, "schedule_interval": 300.0, "most_pgs": 1000}
    return Poller(reader, clock=clock or Clock(), **(options | more))


def source(reader: RecordedReader, **more: Any) -> ClusterSource:
    return ClusterSource(lambda: poller(reader, interval=0.01, **more), clock=Clock())


async def read(found: ClusterSource, within: float = 5.0) -> dict[str, float]:
    deadline = asyncio.get_running_loop().time() + within
    return dict(samples(await found.collect(deadline)))


@pytest.mark.parametrize("release", RELEASES)
async def test_one_poll_of_a_small_cluster_knows_all_of_it(release: str) -> None:
    reader = RecordedReader(release)
    polling = poller(reader)
    assert await polling.poll()
    assert polling.state is not None
    assert polling.state.schedule is not None
    assert polling.state.schedule.counted == 9
    assert polling.state.recovery.sums[2]["num_object_copies"] > 4000


async def test_a_quiet_cluster_is_asked_two_small_things_per_poll() -> None:
    reader, clock = RecordedReader(), Clock()
    reader.change = _without_states
    polling = poller(reader, clock)
    await polling.poll()
    reader.asked.clear()
    clock.now += 5
    await polling.poll()
    assert reader.asked == ["status", "pools"]
    assert polling.state is not None
    assert polling.state.states_by_pool == {}


def _without_states(name: str, reply: Any) -> Any:
    if name == "status":
        reply["pgmap"]["pgs_by_state"] = [{"state_name": "active+clean", "count": 9}]
    return reply


async def test_the_osd_map_is_read_again_only_when_it_has_changed() -> None:
    reader, clock = RecordedReader(), Clock()
    polling = poller(reader, clock)
    await polling.poll()
    for _ in range(10):
        clock.now += 20
        await polling.poll()
    assert reader.asked.count("osd_dump") == 1

    def newer(name: str, reply: Any) -> Any:
        if name == "status":
            reply["osdmap"]["epoch"] += 1
        return reply

    reader.change = newer
    clock.now += 20
    await polling.poll()
    assert reader.asked.count("osd_dump") == 2


async def test_a_wrong_osd_map_is_not_kept_for_good_though_its_epoch_stays() -> None:
    reader, clock = RecordedReader(), Clock()
    polling = poller(reader, clock)

    def without_pools(name: str, reply: Any) -> Any:
        return reply | {"pools": []} if name == "osd_dump" else reply

    reader.change = without_pools
    await polling.poll()
    reader.change = lambda _, reply: reply
    clock.now += 3601
    await polling.poll()
    assert polling.state is not None
    assert len(polling.state.osd_map.pools) == 2


async def test_placement_groups_are_listed_while_any_is_scrubbed_and_once_more() -> None:
    reader, clock = RecordedReader("reef", "scrub"), Clock()
    polling = poller(reader, clock)
    await polling.poll()
    assert polling.state is not None
    assert len(polling.state.scrub.running) == 3
    reader.moment = "idle"
    for _ in range(3):
        clock.now += 5
        await polling.poll()
    assert reader.asked.count("scrubbing") == 2
    assert not polling.state.scrub.running


async def test_osds_whose_scrubs_have_ended_are_looked_at_out_of_turn() -> None:
    reader, clock = RecordedReader("reef", "scrub"), Clock()
    polling = poller(reader, clock)
    await polling.poll()
    primaries = {
        row["acting_primary"] for row in recorded("reef", "scrub", "scrubbing")["pg_stats"]
    }
    reader.moment = "idle"
    reader.asked.clear()
    clock.now += 0.1
    await polling.poll()
    assert {name for name in reader.asked if name.startswith("primary")} == {
        f"primary_{osd}" for osd in primaries
    }


async def test_states_by_pool_are_read_while_there_are_any() -> None:
    reader, clock = RecordedReader("reef", "recovery"), Clock()
    polling = poller(reader, clock)
    await polling.poll()
    assert polling.state is not None and polling.state.states_by_pool is not None
    assert polling.state.states_by_pool[2]["recovering"] >= 1
    await polling.poll()  # too soon: what is dear is not read twice in one interval
    assert reader.asked.count("brief") == 1
    clock.now += 6
    await polling.poll()
    assert reader.asked.count("brief") == 2


async def test_above_the_stated_size_what_grows_with_placement_groups_is_absent() -> None:
    reader = RecordedReader("reef", "recovery")
    found = source(reader, most_pgs=5)
    shown = await read(found)
    await found.close()
    assert not [name for name in reader.asked if name == "brief" or name.startswith("primary")]
    assert [name for name in shown if name.startswith("cephqos_recovery_pool_degraded_objects")]
    for absent in ("recovery_pool_pgs", "scrub_pool_schedule", "scrub_pool_backlog"):
        assert not [name for name in shown if name.startswith(f"cephqos_{absent}")]


async def test_above_it_scrubs_that_were_seen_to_run_are_followed_to_their_end() -> None:
    reader, clock = RecordedReader("reef", "scrub"), Clock()
    polling = poller(reader, clock, most_pgs=5)
    await polling.poll()
    running = recorded("reef", "scrub", "scrubbing")["pg_stats"]
    rows = {row["pgid"]: row for row in running}

    def ended(name: str, reply: Any) -> Any:
        for row in reply.get("pg_stats", ()) if name.startswith("primary") else ():
            if row["pgid"] in rows:
                row["last_scrub_stamp"] = row["last_deep_scrub_stamp"] = "2027-01-01T00:00:00+0000"
        return reply

    reader.moment, reader.change = "idle", ended
    clock.now += 5
    await polling.poll()
    assert polling.state is not None
    done = polling.state.scrub.done[2, "deep"]
    assert done.pgs == len(rows)
    left = [row["stat_sum"]["num_objects"] - row["objects_scrubbed"] for row in running]
    assert done.objects == sum(left)
    assert not polling.state.scrub.records
    assert polling.state.schedule is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ClusterSilent("status: no answer"), "timeout"),
        (ClusterUnreachable("cannot connect"), "unreachable"),
        (CommandFailed("status", -13, "access denied"), "failed"),
        (KeyError("pgmap"), "malformed"),
    ],
)
async def test_a_cluster_that_does_not_answer_is_down_with_a_reason_and_comes_back(
    error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader = RecordedReader()
    polling = poller(reader)
    assert await polling.poll()
    reader.error = error
    for _ in range(3):
        assert not await polling.poll()
    assert polling.state is None
    assert polling.failure is not None and polling.failure.reason == reason
    warnings = [r for r in caplog.records if "no figures of the cluster" in r.getMessage()]
    assert len(warnings) == 1, "said once, not at every poll"
    reader.error = None
    assert await polling.poll()
    assert polling.state is not None and polling.failure is None


async def test_without_a_manager_nothing_is_asked_of_it() -> None:
    """Its commands would not be answered before there is one again."""
    reader = RecordedReader()

    def unmanaged(name: str, reply: Any) -> Any:
        reply["mgrmap"]["available"] = False
        return reply

    reader.change = unmanaged
    polling = poller(reader)
    assert not await polling.poll()
    assert reader.asked == ["status"]
    assert polling.failure is not None and polling.failure.reason == "no_manager"


async def test_a_clock_that_is_set_back_makes_nothing_stale() -> None:
    """As when a virtual machine goes on, or its first time server answers."""
    reader, clock = RecordedReader(moment="recovery"), Clock()
    polling = poller(reader, clock)
    assert await polling.poll()
    reader.asked.clear()

    def later(name: str, reply: Any) -> Any:
        if name == "status":
            reply["osdmap"]["epoch"] += 1
        return reply

    reader.change = later
    clock.now -= 86_400
    assert await polling.poll()
    assert {"osd_dump", "config get", "brief"} <= set(reader.asked)


async def test_one_wrong_map_of_osds_is_not_remembered() -> None:
    """Without a change it would not be read again, and each poll asks for its OSDs' groups."""
    reader, clock = RecordedReader(), Clock()

    def wrong(name: str, reply: Any) -> Any:
        if name == "osd_dump":
            reply["osds"].append({"osd": 99, "up": 1})
        return reply

    reader.change = wrong
    polling = poller(reader, clock, schedule_interval=0.01)
    assert not await polling.poll()
    reader.change = lambda name, reply: reply
    assert await polling.poll()


async def test_polls_that_fail_come_less_and_less_often() -> None:
    reader = RecordedReader()
    reader.error = ClusterSilent("no answer")
    polling = poller(reader, interval=0.02)
    task = asyncio.create_task(polling.run())
    await asyncio.sleep(0.7)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert 2 <= len(reader.asked) <= 6


# -- the source ----------------------------------------------------------------------------------


async def test_the_first_scrape_waits_for_the_first_poll() -> None:
    found = source(RecordedReader())
    shown = await read(found)
    await found.close()
    fsid = recorded("reef", "idle", "status")["fsid"]
    assert shown[f'cephqos_cluster_up{{cluster="{fsid}",reason=""}}'] == 1
    assert shown[f'cephqos_cluster_schedule_pgs{{cluster="{fsid}"}}'] == 9
    assert all(f'cluster="{fsid}"' in name for name in shown)


async def test_a_cluster_that_hangs_from_the_start_holds_up_one_scrape_for_a_second() -> None:
    reader = RecordedReader()
    reader.hang = asyncio.Event()
    found = source(reader)
    loop = asyncio.get_running_loop()
    times = []
    for _ in range(3):
        started = loop.time()
        with pytest.raises(SourceUnavailable) as caught:
            await found.collect(loop.time() + 10)
        times.append(loop.time() - started)
    await found.close()
    assert times[0] < 8
    assert max(times[1:]) < 0.8
    shown = samples(caught.value.families)
    assert str(caught.value) == "starting"
    # Whether the cluster answers is not known yet, and how long it takes to is not 0.
    assert not [
        name for name in shown if name.startswith(("cephqos_cluster_up", "cephqos_cluster_poll"))
    ]


async def test_it_is_read_from_the_start_on_so_that_the_first_scrape_waits_for_nothing() -> None:
    reader = RecordedReader()
    found = source(reader)
    found.start()
    await asyncio.sleep(0.2)
    assert reader.asked, "nobody has scraped yet"
    loop = asyncio.get_running_loop()
    shown = samples(await found.collect(loop.time()))  # no time at all
    later = await read(found)
    await found.close()
    assert shown.keys() == later.keys()


async def test_what_nobody_scrapes_is_left_alone_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resting, "IDLE_SECONDS", 0.1)
    reader = RecordedReader()
    found = source(reader)
    found.start()
    await asyncio.sleep(0.4)
    asked = len(reader.asked)
    assert asked
    await asyncio.sleep(0.2)
    assert len(reader.asked) == asked
    assert reader.closed
    await found.close()


async def test_a_cluster_that_hangs_later_holds_up_no_scrape() -> None:
    reader = RecordedReader()
    found = source(reader)
    await read(found)
    reader.hang = asyncio.Event()
    loop = asyncio.get_running_loop()
    for _ in range(20):
        started = loop.time()
        assert await read(found)
        assert loop.time() - started < 0.8
        await asyncio.sleep(0.005)
    await found.close()


async def test_what_is_shown_says_how_old_it_is() -> None:
    clock = Clock()
    polling = poller(RecordedReader(), clock, interval=1000)
    found = ClusterSource(lambda: polling, clock=clock)
    await read(found)
    clock.now += 42
    shown = await read(found)
    await found.close()
    ages = {n: v for n, v in shown.items() if n.startswith("cephqos_cluster_data_age_seconds")}
    assert len(ages) == 3
    assert set(ages.values()) == {42.0}


async def test_when_scrapes_stop_so_do_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "IDLE_SECONDS", 0.1)
    reader = RecordedReader()
    found = source(reader)
    await read(found)
    await asyncio.sleep(0.2)
    assert reader.closed, "the child does not wait for scrapes that may never come"
    asked = len(reader.asked)
    await asyncio.sleep(0.1)
    assert len(reader.asked) == asked
    shown = await read(found)
    assert [value for name, value in shown.items() if "cluster_up" in name] == [1]
    await found.close()


async def test_closing_ends_the_poll_under_way_and_the_child() -> None:
    reader = RecordedReader()
    reader.hang = asyncio.Event()
    found = source(reader)
    with pytest.raises(SourceUnavailable):
        await read(found, within=0.2)
    await asyncio.wait_for(found.close(), 1)
    assert reader.closed
