"""QueueSet settings of the OSDs' block devices on this host, through sysfs; given back at the end.

A switch of the scheduler resets what belongs to it: the depth, the write-back throttle, and all of
`iosched/`. So the whole queue is written down before the first change.
"""

from collections.abc import Iterable
from pathlib import Path

from cephqos_loadgen.cluster import this_host
from cephqos_loadgen.cluster.steps.host import BLOCK, KNOWN, SCHEDULER, QueueSet
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.plan.parts import Device
from cephqos_loadgen.queue_files import read, readable, write

_KEYS = (SCHEDULER, "nr_requests", "read_ahead_kb")


def queue_settings(device: Device) -> dict[str, str]:
    """Values by file below `queue/`. The scheduler is first, because it resets the others."""
    wanted = {
        SCHEDULER: device.scheduler,
        "nr_requests": device.nr_requests,
        "read_ahead_kb": device.read_ahead_kb,
    }
    return {name: str(value) for name, value in wanted.items() if value is not None}


def present(names: Iterable[str], block: Path = BLOCK) -> list[str]:
    """The devices of these that are on this host."""
    return sorted(name for name in names if (block / name / "queue").is_dir())


def read_queues(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The values in force, by device and file below `queue/`."""
    return {name: {key: read(BLOCK / name / "queue" / key) for key in _KEYS} for name in names}


def state(names: Iterable[str], block: Path = BLOCK) -> list[tuple[str, str, str]]:
    """Device, file and value: of all files below `queue/` that can be written."""
    return [
        (name, str(path.relative_to(block / name / "queue")), read(path))
        for name in names
        for path in sorted((block / name / "queue").rglob("*"))
        if path.is_file() and path.stat().st_mode & 0o200 and readable(path)
    ]


async def apply(
    device: Device, names: Iterable[str], journal: Journal, block: Path = BLOCK
) -> None:
    """Set the queues of these devices (loop0, nvme0n1 …) and read them back."""
    wanted = queue_settings(device)
    for name in names:
        queue = block / name / "queue"
        if all(read(queue / key) == value for key, value in wanted.items()):
            continue
        before = _settings_of(queue)
        host, boot = this_host.name(), this_host.boot()
        await journal.push(QueueSet(host, boot, device=name, before=before, ours=wanted))
        for key, value in wanted.items():
            if read(queue / key) != value:
                write(queue / key, value)


def _settings_of(queue: Path) -> dict[str, str]:
    """All that a change of the scheduler can change, in the order in which to write it back: the
    depth decides some of `iosched/`."""
    iosched = sorted(path for path in (queue / "iosched").glob("*") if path.stat().st_mode & 0o200)
    files = [*(queue / key for key in KNOWN), *iosched]
    return {str(path.relative_to(queue)): read(path) for path in files if readable(path)}
