"""Queues of devices, set by a run: all that a switch of the scheduler resets is given back.

The files are a stand-in that resets what the kernel resets; the same is shown on real loop devices
by tests/lab/test_device_queues.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cephqos_loadgen import queue_files
from cephqos_loadgen.cluster import device_queues
from cephqos_loadgen.cluster.steps import host
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.plan.parts import Device

NAME = "sdx"
SCHEDULERS = ("none", "mq-deadline", "bfq")
OWN_FILES = {
    "none": {},
    "mq-deadline": {"fifo_batch": "16", "read_expire": "500"},
    "bfq": {"slice_idle": "8", "fifo_expire_sync": "125"},
}


class Kernel:
    """`queue/` of a block device. A new scheduler brings its own depth, throttle and files."""

    def __init__(self, block: Path) -> None:
        self.queue = block / NAME / "queue"
        (self.queue / "iosched").mkdir(parents=True)
        (self.queue / "read_ahead_kb").write_text("128\n")
        (self.queue / "rotational").write_text("1\n")
        self._switch("mq-deadline")

    def write(self, path: Path, value: str) -> None:
        """As `queue_files.write`, of a file that is there."""
        assert path.exists(), f"{path.name} is not there now"
        if path.name == "scheduler":
            self._switch(value)
        else:
            path.write_text(f"{value}\n")

    def _switch(self, to: str) -> None:
        shown = " ".join(f"[{name}]" if name == to else name for name in SCHEDULERS)
        (self.queue / "scheduler").write_text(f"{shown}\n")
        (self.queue / "nr_requests").write_text("256\n")
        (self.queue / "wbt_lat_usec").write_text("75000\n" if to == "none" else "0\n")
        for file in (self.queue / "iosched").iterdir():
            file.unlink()
        for name, value in OWN_FILES[to].items():
            (self.queue / "iosched" / name).write_text(f"{value}\n")

    def all(self) -> dict[str, str]:
        files = (path for path in self.queue.rglob("*") if path.is_file())
        return {str(path.relative_to(self.queue)): path.read_text() for path in files}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel(tmp_path)
    monkeypatch.setattr(host, "BLOCK", tmp_path)
    for module in (device_queues, queue_files):
        monkeypatch.setattr(module, "write", kernel.write)
    return kernel


class Saved:
    """A journal, and what the queue said when an entry was saved."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.seen: list[dict[str, str]] = []
        self.journal = Journal(self._save)

    async def _save(self, steps: Mapping[int, StepBack]) -> None:
        self.seen.append(self._kernel.all())

    async def roll_back(self) -> list[str]:
        cluster: Any = None
        return await self.journal.roll_back(cluster)


async def apply(kernel: Kernel, wanted: Device) -> Saved:
    saved = Saved(kernel)
    await device_queues.apply(wanted, [NAME], saved.journal, kernel.queue.parents[1])
    return saved


@pytest.mark.parametrize("to", ["none", "bfq"])
@pytest.mark.parametrize("depth", [None, 99])
async def test_the_depth_and_the_schedulers_own_settings_are_given_back(
    kernel: Kernel, to: str, depth: int | None
) -> None:
    kernel.write(kernel.queue / "nr_requests", "37")
    kernel.write(kernel.queue / "iosched" / "fifo_batch", "7")
    before = kernel.all()
    saved = await apply(kernel, Device(to, depth, None))
    assert f"[{to}]" in kernel.all()["scheduler"]
    assert kernel.all()["nr_requests"] == f"{depth or 256}\n"
    assert "iosched/fifo_batch" not in kernel.all()
    assert saved.seen == [before], "written down once, before any change"
    assert await saved.roll_back() == []
    assert kernel.all() == before


async def test_without_a_switch_only_what_was_asked_for_changes(kernel: Kernel) -> None:
    kernel.write(kernel.queue / "iosched" / "fifo_batch", "7")
    before = kernel.all()
    saved = await apply(kernel, Device(None, 99, None))
    assert kernel.all() == before | {"nr_requests": "99\n"}
    await saved.roll_back()
    assert kernel.all() == before


async def test_a_queue_that_is_as_wanted_is_not_touched(kernel: Kernel) -> None:
    saved = await apply(kernel, Device("mq-deadline", 256, None))
    assert saved.journal.entries == [] and saved.seen == []


@pytest.mark.parametrize("file", ["nr_requests", "iosched/fifo_batch"])
def test_the_state_of_a_queue_tells_every_attribute(kernel: Kernel, file: str) -> None:
    block = kernel.queue.parents[1]
    before = device_queues.state([NAME], block)
    kernel.write(kernel.queue / file, "7")
    assert set(device_queues.state([NAME], block)) - set(before) == {(NAME, file, "7")}
