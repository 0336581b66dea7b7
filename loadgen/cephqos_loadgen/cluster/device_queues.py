"""Queue settings of the OSDs' block devices on this host, through sysfs; given back at the end."""

from collections.abc import Iterable
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_loadgen.cluster.undo import Journal, Undo
from cephqos_loadgen.plan.parts import Device

_KEYS = ("scheduler", "nr_requests", "read_ahead_kb")


def queue_settings(device: Device) -> dict[str, str]:
    """File below `queue/` and what to write there; the scheduler first, it resets the others."""
    wanted = {
        "scheduler": device.scheduler,
        "nr_requests": device.nr_requests,
        "read_ahead_kb": device.read_ahead_kb,
    }
    return {name: str(value) for name, value in wanted.items() if value is not None}


def in_force(text: str) -> str:
    """What a queue file says: of a list of schedulers the one in brackets."""
    if "[" in text:
        return text[text.index("[") + 1 : text.index("]")]
    return text.strip()


def present(names: Iterable[str], block: Path = Path("/sys/block")) -> list[str]:
    """Those of the devices that are on this host."""
    return sorted(name for name in names if (block / name / "queue").is_dir())


def read_queues(
    names: Iterable[str], block: Path = Path("/sys/block")
) -> dict[str, dict[str, str]]:
    """What is in force for each of these devices."""
    return {name: {key: _read(block / name / "queue" / key) for key in _KEYS} for name in names}


async def apply(
    device: Device, names: Iterable[str], journal: Journal, block: Path = Path("/sys/block")
) -> None:
    """Set the queues of these devices (loop0, nvme0n1 …) and read them back."""
    wanted = queue_settings(device)
    for name in names:
        for key, value in wanted.items():
            path = block / name / "queue" / key
            before = _read(path)
            if before != value:
                await journal.push(
                    Undo("write", f"echo {before} > {path}", {"path": str(path), "text": before})
                )
                _write(path, value)


def _read(path: Path) -> str:
    try:
        return in_force(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise UsageError(
            f"{path}: {value} is not accepted ({error.strerror});"
            f" it says {path.read_text().strip()}"
        ) from None
    found = _read(path)
    if found != value:
        raise UsageError(f"{path}: wrote {value}, reads {found}")
