"""One run per cluster: who holds it, who is refused, who takes over."""

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster import lock, undo
from cephqos_loadgen.cluster.lock import KEY, STALE_SECONDS, ClusterLock
from cephqos_loadgen.plan.errors import ClusterBusy, RunError


class LockCluster:
    """The monitors' key-value store, and what else was asked."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.asked: list[str] = []

    async def command(self, prefix: str, **arguments: Any) -> Any:
        await asyncio.sleep(0)
        if prefix == "config-key get":
            if arguments["key"] not in self.keys:
                raise CommandFailed(prefix, -2, "no such key")
            return json.loads(self.keys[arguments["key"]])
        if prefix == "config-key set":
            self.keys[arguments["key"]] = arguments["val"]
        elif prefix == "config-key rm":
            del self.keys[arguments["key"]]
        else:
            self.asked.append(prefix)
        return ""

    def age(self, seconds: float) -> None:
        held = json.loads(self.keys[KEY])
        held["heartbeat"] = time.time() - seconds
        self.keys[KEY] = json.dumps(held)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.02)


def taken(
    cluster: LockCluster, run: str, take_over: bool = False, work: Path = Path("/nowhere")
) -> ClusterLock:
    return ClusterLock(cluster, run, take_over=take_over, work=str(work))  # type: ignore[arg-type]


async def test_the_key_is_there_while_the_run_lives_and_gone_after_it() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one"):
        assert json.loads(cluster.keys[KEY])["run"] == "one"
    assert cluster.keys == {}


async def test_a_second_run_is_refused_and_told_who_and_when_it_may_take_over() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one"):
        with pytest.raises(ClusterBusy, match=r"run one \(pid \d+ on .*60 s after its last") as e:
            async with taken(cluster, "two", take_over=True):
                pass
        assert "--take-over" in str(e.value)
        assert json.loads(cluster.keys[KEY])["run"] == "one"


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
            age = time.time() - json.loads(cluster.keys[KEY])["heartbeat"]
            return bool(age < STALE_SECONDS / 2)

        await until(fresh, "the key is fresh again")


async def dead_run(
    cluster: LockCluster, *entries: undo.Undo, work: Path = Path("/nowhere")
) -> None:
    """A run that died: its key is there, old, with its way back."""
    held = taken(cluster, "dead", work=work)
    await held.__aenter__()
    await held.save_undo(list(entries))
    assert held._beating
    held._beating.cancel()
    await asyncio.gather(held._beating, return_exceptions=True)
    cluster.age(STALE_SECONDS + 1)


async def test_what_a_dead_run_left_is_shown_and_undone_only_when_told_to() -> None:
    cluster = LockCluster()
    first = undo.command("config rm", who="osd", name="a")
    last = undo.command("osd unset", key="noscrub")
    await dead_run(cluster, first, last)
    with pytest.raises(ClusterBusy, match=r"it is dead\.") as error:
        await taken(cluster, "next").__aenter__()
    assert str(error.value).endswith("\n  ceph osd unset noscrub\n  ceph config rm osd a")
    assert cluster.asked == []
    async with taken(cluster, "next", take_over=True) as held:
        assert cluster.asked == ["osd unset", "config rm"], "in reverse"
        assert held.taken_over[1:] == ["ceph osd unset noscrub", "ceph config rm osd a"]


async def test_what_only_the_dead_runs_host_can_undo_is_not_tried_on_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = LockCluster()
    entry = undo.Undo("queue", "echo bfq > /sys/block/sda/queue/scheduler", {})
    await dead_run(cluster, entry)
    host = json.loads(cluster.keys[KEY])["host"]
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    with pytest.raises(ClusterBusy, match=f"--take-over on {host}, where these can be undone: ec"):
        await taken(cluster, "next", take_over=True).__aenter__()
    assert json.loads(cluster.keys[KEY])["run"] == "dead"


async def test_a_way_back_that_fails_is_named_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(entry: undo.Undo, cluster: object) -> None:
        raise CommandFailed("osd unset", -1, "not permitted")

    cluster = LockCluster()
    entry = undo.command("osd unset", key="noout")
    await dead_run(cluster, entry)
    monkeypatch.setattr(undo, "carry_out", fail)
    with pytest.raises(ClusterBusy, match=r"cannot be undone: ceph osd unset noout: .*not perm"):
        await taken(cluster, "next", take_over=True).__aenter__()
    assert undo.from_json(json.loads(cluster.keys[KEY])["undo"]) == [entry]


@pytest.mark.parametrize("changed", [True, False])
async def test_the_folder_of_a_dead_run_goes_with_it(tmp_path: Path, changed: bool) -> None:
    cluster, work = LockCluster(), tmp_path / "dead"
    (work / "sockets").mkdir(parents=True)
    await dead_run(cluster, *([undo.command("a")] if changed else []), work=work)
    async with taken(cluster, "next", take_over=True):
        assert list(tmp_path.iterdir()) == []


async def test_a_folder_of_another_host_or_name_is_not_that_of_the_dead_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, host in (("dead", "another"), ("home", socket.gethostname())):
        cluster, work = LockCluster(), tmp_path / name
        work.mkdir()
        await dead_run(cluster, work=work)
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        async with taken(cluster, "next", take_over=True):
            assert work.exists()


async def test_a_dead_run_that_left_nothing_is_no_obstacle() -> None:
    cluster = LockCluster()
    await dead_run(cluster)
    async with taken(cluster, "next"):
        assert json.loads(cluster.keys[KEY])["run"] == "next"


async def test_a_run_that_could_not_undo_everything_leaves_the_key_with_the_way_back() -> None:
    cluster = LockCluster()
    entry = undo.command("osd unset", key="noout")
    async with taken(cluster, "one") as held:
        await held.save_undo([entry])
    assert undo.from_json(json.loads(cluster.keys[KEY])["undo"]) == [entry]


async def test_a_run_that_lost_the_cluster_notices_and_leaves_the_others_key() -> None:
    cluster = LockCluster()
    async with taken(cluster, "one") as held:
        other = json.loads(cluster.keys[KEY]) | {"token": "other", "run": "two"}
        cluster.keys[KEY] = json.dumps(other)
        await asyncio.sleep(0.1)
        assert held.lost
    assert json.loads(cluster.keys[KEY])["run"] == "two"


async def test_a_run_that_was_stalled_does_not_take_its_lock_back_with_its_next_change() -> None:
    """It would: a change comes before its next heartbeat. The other run would lose its way back."""
    cluster = LockCluster()
    entry = undo.command("osd unset", key="noout")
    async with taken(cluster, "one") as held:
        assert held._beating
        held._beating.cancel()
        other = json.loads(cluster.keys[KEY]) | {"token": "other", "run": "two"}
        cluster.keys[KEY] = json.dumps(other)
        with pytest.raises(RunError, match="another run took this cluster over"):
            await held.save_undo([entry])
        assert held.lost
    assert json.loads(cluster.keys[KEY]) == other


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
                assert json.loads(cluster.keys[KEY])["run"] == "next"
    finally:
        beating.cancel()


@pytest.mark.parametrize("value", ['"x"', "7", "{}", '{"run": "a"}', "[1]", "no JSON"])
async def test_a_key_that_no_run_wrote_is_named_with_the_command_that_removes_it(
    value: str,
) -> None:
    class Strange(LockCluster):
        async def command(self, prefix: str, **arguments: Any) -> Any:
            return value if prefix == "config-key get" else await super().command(prefix)

    with pytest.raises(ClusterBusy, match=r"ceph config-key rm cephqos/run"):
        await taken(Strange(), "next", take_over=True).__aenter__()


async def test_a_run_cancelled_while_it_takes_the_lock_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock, "_SETTLE_SECONDS", 30.0)
    cluster = LockCluster()
    entering = asyncio.create_task(taken(cluster, "one").__aenter__())
    while KEY not in cluster.keys:
        await asyncio.sleep(0)
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    assert cluster.keys == {}
