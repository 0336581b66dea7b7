"""Tasks that run beside a block end with it, and neither they nor it are silenced."""

import asyncio

import pytest

from cephqos_loadgen.load.context import beside


async def _fails() -> None:
    raise OSError("no such process")


async def test_a_task_that_failed_fails_the_block_and_the_others_are_ended() -> None:
    other = asyncio.create_task(asyncio.sleep(3600))
    with pytest.raises(OSError, match="no such process"):
        async with beside(other, asyncio.create_task(_fails())):
            await asyncio.sleep(0)
    assert other.cancelled()


async def test_the_error_of_the_block_itself_comes_first() -> None:
    with pytest.raises(KeyError):
        async with beside(asyncio.create_task(_fails())):
            await asyncio.sleep(0)
            raise KeyError


async def test_nothing_beside_is_nothing_to_end() -> None:
    async with beside():
        pass


async def test_who_is_cancelled_while_the_tasks_end_is_cancelled() -> None:
    ending, go_on = asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await go_on.wait()

    task = asyncio.create_task(slow_to_end())

    async def block() -> None:
        async with beside(task):
            await asyncio.sleep(0)

    outer = asyncio.create_task(block())
    await ending.wait()
    outer.cancel()
    await asyncio.wait([outer])
    assert outer.cancelled()
    go_on.set()
    await asyncio.wait([task])
