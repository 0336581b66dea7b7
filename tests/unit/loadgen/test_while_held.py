"""A run works only as long as it holds the cluster."""

import asyncio
from typing import Any

import pytest

from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.run.runner import _while_held


class HeldSession:
    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def until_not_held(self) -> str:
        await self.ended.wait()
        return "the monitors refuse the heartbeat"


async def test_work_that_is_done_is_done_and_its_error_is_its_own() -> None:
    session: Any = HeldSession()
    done = []

    async def work() -> None:
        done.append(1)

    async def fail() -> None:
        raise RunError("fio died")

    await _while_held(session, work())
    assert done == [1]
    with pytest.raises(RunError, match="fio died"):
        await _while_held(session, fail())


async def test_work_is_ended_in_order_when_the_cluster_is_not_held_any_more() -> None:
    session: Any = HeldSession()
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)  # what closes takes a moment
            ended.append(1)

    asyncio.get_running_loop().call_later(0.01, session.ended.set)
    with pytest.raises(RunError, match="the monitors refuse the heartbeat"):
        await _while_held(session, work())
    assert ended == [1]


async def test_an_interruption_ends_the_work_and_is_handed_on() -> None:
    session: Any = HeldSession()
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    task = asyncio.create_task(_while_held(session, work()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [1]
