"""One run per cluster: who holds it, who is refused, who takes over."""

import asyncio
import json
import time
from typing import Any

import pytest
from tests.unit.changed_cluster import ChangedCluster
from tests.waiting import until

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.cluster import lock, this_host
from cephqos_loadgen.cluster.lock import STALE_SECONDS, ClusterLock
from cephqos_loadgen.cluster.run_keys import HEARTBEAT, KEY, STEPS, check_size, look, step_key
from cephqos_loadgen.cluster.steps.host import QueueSet
from cephqos_loadgen.cluster.steps.options import FlagChanged, OptionSet
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.this_host import ThisProcess
from cephqos_loadgen.cluster.undo import Journal, flag
from cephqos_loadgen.plan.errors import ClusterBusy, ClusterUnfit, RunError


class LockCluster(ChangedCluster):
    """A cluster, and the age of the heartbeat in it."""

    def age(self, seconds: float) -> None:
        beat = json.loads(self.keys[HEARTBEAT])
        self.keys[HEARTBEAT] = json.dumps(beat | {"time": time.time() - seconds})

    @property
    def beat(self) -> float:
        return float(json.loads(self.keys[HEARTBEAT])["time"])

    @property
    def run(self) -> str:
        return str(json.loads(self.keys[KEY])["run"])

    def taken_by(self, run: str) -> str:
        """Another run writes its own key; returns that."""
        other = json.loads(self.keys[KEY]) | {"token": "f" * 16, "run": run}
        self.keys[KEY] = json.dumps(other)
        return self.keys[KEY]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.02)


SCRUBS = FlagChanged("noscrub", True)
BACKFILLS = OptionSet("osd", "osd_max_backfills", None, "9")


def taken(cluster: LockCluster, run: str, take_over: bool = False, **options: Any) -> ClusterLock:
    connection: Any = cluster
    return ClusterLock(connection, run, take_over=take_over, **options)


async def test_the_keys_are_there_while_the_run_lives_and_gone_after_it() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one"):
        assert cluster.run == "one" and HEARTBEAT in cluster.keys
    assert cluster.keys == {}


async def test_a_second_run_is_refused_and_told_who_and_when_it_may_take_over() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one"):
        with pytest.raises(ClusterBusy, match=r"run one \(pid \d+ on .*60 s after its last") as e:
            async with taken(cluster, "two", take_over=True):
                pass
        assert "--take-over" in str(e.value)
        assert cluster.run == "one"


async def test_of_two_that_start_at_once_one_runs() -> None:
    for _ in range(20):
        cluster = LockCluster()
        first, second = taken(cluster, "one"), taken(cluster, "two")
        results = await asyncio.gather(
            first.__aenter__(), second.__aenter__(), return_exceptions=True
        )
        assert sum(isinstance(result, ClusterBusy) for result in results) == 1
        for result in results:
            if isinstance(result, ClusterLock):
                await result.__aexit__(None, None, None)
        assert cluster.keys == {}


async def test_the_heartbeat_keeps_the_key_fresh() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one"):
        cluster.age(STALE_SECONDS + 1)

        async def fresh() -> bool:
            return time.time() - cluster.beat < STALE_SECONDS / 2

        await until(fresh, "the key is fresh again")


async def dead_run(cluster: LockCluster, *steps: StepBack) -> None:
    """A run that died: its keys are there, old, with its way back."""
    held = taken(cluster, "dead")
    await held.__aenter__()
    await held.save(dict(enumerate(steps, 1)))
    assert held._beating
    held._beating.cancel()
    await asyncio.gather(held._beating, return_exceptions=True)
    cluster.age(STALE_SECONDS + 1)


async def test_what_a_dead_run_left_is_shown_and_undone_only_when_told_to() -> None:
    cluster = LockCluster()
    cluster.options["osd", "osd_max_backfills"] = "9"
    cluster.flags.add("noscrub")
    await dead_run(cluster, BACKFILLS, SCRUBS)
    with pytest.raises(ClusterBusy, match=r"it is dead\. cephqos run --restore-only") as error:
        await taken(cluster, "next").__aenter__()
    lines = "\n  ceph osd unset noscrub\n  ceph config rm osd osd_max_backfills"
    assert str(error.value).endswith(lines)
    assert cluster.asked == []
    async with taken(cluster, "next", take_over=True) as held:
        assert cluster.asked == ["osd unset noscrub", "config rm osd osd_max_backfills"]
        assert held.given_back
        assert held.given_back.undone == tuple(f"ceph {line}" for line in cluster.asked)
        assert sorted(cluster.keys) == [KEY, HEARTBEAT]
    assert cluster.keys == {}


async def test_what_someone_else_has_changed_since_is_left_and_said() -> None:
    cluster = LockCluster()
    cluster.options["osd", "osd_max_backfills"] = "7"
    await dead_run(cluster, BACKFILLS)
    async with taken(cluster, "next", take_over=True) as held:
        assert held.given_back
        (said,) = held.given_back.left
        assert said.startswith("osd osd_max_backfills was set to 7 by someone else")
    assert cluster.options["osd", "osd_max_backfills"] == "7" and cluster.keys == {}


REFUSED = {
    "a command": {"kind": "command", "prefix": "osd pool rm"},
    "a file": {"kind": "queue", "path": "/etc", "attributes": {"passwd": "x"}},
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_step_that_no_run_writes_is_not_carried_out_and_stays_and_the_run_is_refused(
    name: str,
) -> None:
    cluster = LockCluster()
    cluster.flags.add("noscrub")
    await dead_run(cluster, SCRUBS)
    key = f"{STEPS}00002"
    cluster.keys[key] = json.dumps(REFUSED[name])
    with pytest.raises(ClusterBusy, match=f"refused: {key}: no step of a run"):
        await taken(cluster, "next").__aenter__()
    with pytest.raises(ClusterBusy, match=f"these steps are kept:\n  {key}: no step of a run"):
        await taken(cluster, "next", take_over=True).__aenter__()
    assert cluster.asked == ["osd unset noscrub"], "the others are undone"
    assert sorted(cluster.keys) == [KEY, HEARTBEAT, key]


async def test_restoring_only_undoes_what_can_be_and_says_what_is_kept() -> None:
    cluster = LockCluster()
    cluster.flags.add("noscrub")
    boot = this_host.boot()
    elsewhere = QueueSet("elsewhere", boot, "sda", {"scheduler": "none"}, {"scheduler": "bfq"})
    await dead_run(cluster, SCRUBS, elsewhere)
    cluster.keys[f"{STEPS}00003"] = "{}"
    async with taken(cluster, "restore", restore_only=True) as held:
        assert held.given_back
        on_host, refused = held.given_back.kept
        assert on_host.endswith("it can be undone on elsewhere only")
        expected = f"{STEPS}00003: no step of a run: kind: expected "
        assert refused.startswith(expected) and refused.endswith("found null")
        assert held.given_back.undone == ("ceph osd unset noscrub",)
    assert sorted(cluster.keys) == [KEY, HEARTBEAT, f"{STEPS}00002", f"{STEPS}00003"]
    async with taken(cluster, "again", restore_only=True) as held:
        assert held.given_back and len(held.given_back.kept) == 2, "without a wait"


async def test_a_take_over_that_dies_leaves_the_rest_for_the_next() -> None:
    """It holds the lock while it undoes what the dead run left."""
    cluster = LockCluster()
    cluster.flags |= {"noscrub", "noout"}
    await dead_run(cluster, FlagChanged("noout", True), SCRUBS)
    stuck = asyncio.Event()
    command = cluster.command

    async def hang(prefix: str, **arguments: Any) -> Any:
        if arguments.get("key") == "noout":
            stuck.set()
            await asyncio.Event().wait()
        return await command(prefix, **arguments)

    cluster.command = hang  # type: ignore[method-assign]
    second = asyncio.create_task(taken(cluster, "second", take_over=True).__aenter__())
    await stuck.wait()
    with pytest.raises(ClusterBusy, match=r"run second .* holds this cluster"):
        await taken(cluster, "third", take_over=True).__aenter__()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    cluster.command = command  # type: ignore[method-assign]
    assert cluster.flags == {"sortbitwise", "noout"}
    assert list((await look(cluster)).steps.values()) == [FlagChanged("noout", True)]  # type: ignore[arg-type]
    async with taken(cluster, "third", take_over=True):
        assert cluster.flags == {"sortbitwise"}


async def test_a_way_back_that_fails_is_named_and_stays() -> None:
    cluster = LockCluster()
    cluster.flags.add("noout")
    await dead_run(cluster, FlagChanged("noout", True))
    cluster.fails["osd unset"] = CommandFailed("osd unset", -1, "not permitted")
    with pytest.raises(ClusterBusy, match=r"kept:\n  ceph osd unset noout: .*not permitted"):
        await taken(cluster, "next", take_over=True).__aenter__()
    assert json.loads(cluster.keys[step_key(1)])["name"] == "noout"


async def test_steps_whose_key_was_removed_by_hand_are_found_all_the_same() -> None:
    cluster = LockCluster()
    cluster.flags.add("noscrub")
    await dead_run(cluster, SCRUBS)
    del cluster.keys[KEY]
    with pytest.raises(ClusterBusy, match="a run whose key was removed left changes"):
        await taken(cluster, "next").__aenter__()
    async with taken(cluster, "next", take_over=True):
        assert cluster.flags == {"sortbitwise"}
    assert cluster.keys == {}


async def test_a_dead_run_that_left_nothing_is_no_obstacle() -> None:
    cluster = LockCluster()
    await dead_run(cluster)
    async with taken(cluster, "next"):
        assert cluster.run == "next"


async def test_a_process_of_this_host_that_is_gone_is_dead_at_once() -> None:
    cluster = LockCluster()
    await dead_run(cluster)
    cluster.age(1)
    held = json.loads(cluster.keys[KEY])
    held["process"]["started"] += 1  # another process has its pid
    cluster.keys[KEY] = json.dumps(held)
    async with taken(cluster, "next"):
        assert cluster.run == "next"
    assert not ThisProcess.now().is_gone()


async def test_a_run_that_could_not_undo_everything_leaves_its_steps_for_the_next() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one") as held:
        await held.save({1: SCRUBS})
    assert (await look(cluster)).steps == {1: SCRUBS}  # type: ignore[arg-type]
    async with taken(cluster, "next", take_over=True):
        pass
    assert cluster.keys == {}


async def test_a_run_that_lost_the_cluster_notices_ends_and_leaves_the_others_key() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one") as held:
        other = cluster.taken_by("two")
        assert await asyncio.wait_for(held.until_ended(), 5) == lock.LOST
        assert held.lost
    assert cluster.keys[KEY] == other


async def test_a_run_that_was_stalled_does_not_take_its_lock_back_with_its_next_change() -> None:
    """It would: a change comes before its next heartbeat. The other run would lose its way back."""
    cluster = LockCluster()
    async with taken(cluster, "one") as held:
        assert held._beating
        held._beating.cancel()
        other = cluster.taken_by("two")
        with pytest.raises(RunError, match="another run took this cluster over"):
            await held.save({1: SCRUBS})
        assert held.lost
    assert cluster.keys[KEY] == other and step_key(1) not in cluster.keys


async def test_a_heartbeat_that_the_monitors_refuse_ends_the_run_and_loses_no_step() -> None:
    cluster = LockCluster()
    command = cluster.command

    async def full(prefix: str, **arguments: Any) -> Any:
        if prefix == "config-key set" and arguments["key"] == HEARTBEAT:
            raise CommandFailed(prefix, -28, "no space left")
        return await command(prefix, **arguments)

    async with taken(cluster, "one") as held:
        await held.save({1: SCRUBS})
        cluster.command = full  # type: ignore[method-assign]
        why = await asyncio.wait_for(held.until_ended(), 5)
        assert why.startswith("the monitors refuse the heartbeat: config-key set: no space left")
        await held.save({1: SCRUBS, 2: BACKFILLS})
        assert not held.lost
    assert (await look(cluster)).steps == {1: SCRUBS, 2: BACKFILLS}  # type: ignore[arg-type]


async def test_monitors_that_are_away_for_a_moment_end_no_run_but_for_long_they_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock, "_LONGEST_SILENCE_SECONDS", 0.5)
    cluster = LockCluster()
    async with taken(cluster, "one") as held:
        cluster.fails["config-key set"] = ClusterUnreachable("no monitor answers")
        await asyncio.sleep(0.1)
        cluster.fails.clear()
        await asyncio.sleep(0.1)
        assert held.failure == ""
        cluster.fails["config-key set"] = ClusterUnreachable("no monitor answers")
        why = await asyncio.wait_for(held.until_ended(), 5)
        assert why.startswith("the heartbeat could not be written: no monitor answers")
        cluster.fails.clear()


async def test_any_number_of_steps_is_kept_and_each_change_writes_one_key() -> None:
    """One key with all of them ended at 64 KiB."""
    cluster = LockCluster()
    async with taken(cluster, "one") as held:
        many: dict[int, StepBack] = {
            n: OptionSet(f"osd.{n}", "osd_max_backfills", "3", "9") for n in range(1, 2001)
        }
        await held.save(many)
        written = dict(cluster.keys)
        await held.save(many | {2001: SCRUBS})
        await held.save({n: step for n, step in many.items() if n != 7})
        changed = {key for key in written if cluster.keys.get(key) != written[key]}
        assert changed - {HEARTBEAT} == {step_key(7)}
        assert len((await look(cluster)).steps) == 1999  # type: ignore[arg-type]
        await held.save({})


async def test_a_cluster_that_keeps_no_values_of_that_size_is_refused_before_the_run() -> None:
    cluster: Any = LockCluster()
    await check_size(cluster)
    cluster.options["mon", "mon_config_key_max_entry_size"] = "4096"
    with pytest.raises(ClusterUnfit, match="mon_config_key_max_entry_size is 4096"):
        await check_size(cluster)


@pytest.mark.parametrize("age", [STALE_SECONDS + 600, -3600.0])
@pytest.mark.parametrize("lives", [True, False])
async def test_a_run_of_a_host_whose_clock_is_wrong_lives_if_its_heartbeat_comes(
    age: float, lives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = LockCluster()
    await dead_run(cluster)
    cluster.age(age)
    monkeypatch.setattr("socket.gethostname", lambda: "another")

    async def beat() -> None:
        while lives:
            await asyncio.sleep(0.02)
            cluster.age(age)

    beating = asyncio.create_task(beat())
    try:
        if lives:
            with pytest.raises(ClusterBusy, match="holds this cluster"):
                await taken(cluster, "next", take_over=True).__aenter__()
        else:
            async with taken(cluster, "next"):
                assert cluster.run == "next"
    finally:
        beating.cancel()


HOLDER = {"format": 2, "run": "a", "token": "0" * 16, "host": "h", "process": {}, "began": 1}


@pytest.mark.parametrize(
    "value", ['"x"', "7", "{}", '{"run": "a"}', "[1]", "no JSON", json.dumps(HOLDER), "[" * 5000]
)
async def test_a_key_that_no_run_wrote_is_named_with_the_command_that_removes_it(
    value: str,
) -> None:
    cluster = LockCluster()
    cluster.keys[KEY] = value
    with pytest.raises(ClusterBusy, match=r"ceph config-key rm cephqos/run"):
        await taken(cluster, "next", take_over=True).__aenter__()
    assert cluster.keys == {KEY: value} and cluster.asked == []


async def test_a_run_cancelled_while_it_takes_the_lock_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock, "_SETTLE_SECONDS", 30.0)
    cluster = LockCluster()
    entering = asyncio.create_task(taken(cluster, "one").__aenter__())
    while HEARTBEAT not in cluster.keys:
        await asyncio.sleep(0)
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    assert cluster.keys == {}


class SlowToAnswer(LockCluster):
    """A cluster that does what it is told and answers late."""

    slow = False

    async def command(self, prefix: str, *, target: str = "mon", **given: Any) -> Any:
        answer = await super().command(prefix, target=target, **given)
        if self.slow and prefix == "config-key set":
            await asyncio.sleep(30.0)
        return answer


async def test_a_run_cancelled_while_a_step_is_written_leaves_no_key() -> None:
    cluster = SlowToAnswer()
    async with taken(cluster, "one") as held:
        connection: Any = cluster
        journal = Journal(held.save)
        cluster.slow = True
        making = asyncio.create_task(journal.make(flag("noscrub", on=True), connection))
        while step_key(1) not in cluster.keys:
            await asyncio.sleep(0)
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        cluster.slow = False
        assert await journal.roll_back(connection) == []
    assert cluster.keys == {} and "noscrub" not in cluster.flags
