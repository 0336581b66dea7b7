"""Queues of real block devices, set by a run and given back: every attribute, not only its own."""

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cephqos_loadgen.cluster import device_queues
from cephqos_loadgen.cluster.steps.host import QueueSet
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.plan.parts import Device


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Path]:
    """The queue of a loop device of this test's own."""
    image = tmp_path / "disk"
    image.touch()
    os.truncate(image, 64 << 20)
    attach = ["losetup", "--find", "--show", str(image)]
    device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield Path("/sys/block") / Path(device).name / "queue"
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def set_up(queue: Path, **values: str) -> None:
    for key, value in values.items():
        (queue / key.replace("iosched_", "iosched/")).write_text(value)


def every_attribute(queue: Path) -> dict[str, str]:
    """All that can be written, by plain reading."""
    files = [path for path in queue.rglob("*") if path.is_file() and path.stat().st_mode & 0o200]
    return {str(path.relative_to(queue)): path.read_text() for path in files}


class Saved:
    """A journal, and what the queue said when an entry was saved."""

    def __init__(self, queue: Path) -> None:
        self.seen: list[dict[str, str]] = []
        self._queue = queue
        self.journal = Journal(self._save)

    async def _save(self, steps: Mapping[int, StepBack]) -> None:
        self.seen.append(every_attribute(self._queue))

    async def roll_back(self) -> list[str]:
        return await self.journal.roll_back(None)  # type: ignore[arg-type]


BEFORE = {
    "mq-deadline": {"nr_requests": "37", "iosched_fifo_batch": "7", "iosched_read_expire": "321"},
    "bfq": {"nr_requests": "41", "iosched_slice_idle": "3", "wbt_lat_usec": "0"},
    "kyber": {"iosched_read_lat_nsec": "1234567", "wbt_lat_usec": "3000"},
    "none": {"nr_requests": "64", "wbt_lat_usec": "4000"},
}


@pytest.mark.parametrize("to", ["none", "mq-deadline", "kyber", "bfq"])
@pytest.mark.parametrize("scheduler", list(BEFORE))
async def test_whatever_a_switch_of_the_scheduler_resets_is_given_back(
    queue: Path, scheduler: str, to: str
) -> None:
    set_up(queue, scheduler=scheduler)
    set_up(queue, **BEFORE[scheduler])
    before = every_attribute(queue)
    saved = Saved(queue)
    wanted = Device(scheduler=to, nr_requests=99, read_ahead_kb=64)
    await device_queues.apply(wanted, [queue.parent.name], saved.journal)
    assert f"[{to}]" in (queue / "scheduler").read_text()
    assert (queue / "nr_requests").read_text() == "99\n"
    assert saved.seen == [before], "written down once, and before any change"
    assert await saved.roll_back() == []
    assert every_attribute(queue) == before


async def test_the_way_back_can_be_typed_by_a_person(queue: Path) -> None:
    set_up(queue, scheduler="mq-deadline")
    set_up(queue, **BEFORE["mq-deadline"])
    before = every_attribute(queue)
    saved = Saved(queue)
    await device_queues.apply(Device(scheduler="bfq"), [queue.parent.name], saved.journal)
    assert every_attribute(queue) != before
    (shown,) = saved.journal.commands()
    typed = await asyncio.create_subprocess_exec("sh", "-ec", shown)
    assert await typed.wait() == 0
    assert every_attribute(queue) == before


async def test_a_queue_that_does_not_come_back_is_a_failure_and_stays_in_the_journal(
    queue: Path,
) -> None:
    set_up(queue, scheduler="mq-deadline")
    saved = Saved(queue)
    await device_queues.apply(Device(scheduler="none"), [queue.parent.name], saved.journal)
    (entry,) = saved.journal.entries
    assert isinstance(entry, QueueSet)
    damaged = replace(entry, before={**entry.before, "nr_requests": "0"})  # which no kernel takes
    await saved.journal.replace(entry, damaged)
    (failure,) = await saved.roll_back()
    assert "nr_requests" in failure
    assert saved.journal.entries == [damaged]
