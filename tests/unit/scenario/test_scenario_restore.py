"""The way back: every change is undone, in reverse, whatever interrupts."""

import asyncio
from typing import Any

import pytest

from cephqos_loadgen.cluster.undo import Journal, Undo, command, from_json, to_json
from cephqos_loadgen.run.session import finish


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
