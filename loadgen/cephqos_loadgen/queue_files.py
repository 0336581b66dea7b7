"""The files of a block device's queue in sysfs: read, written, written back."""

from collections.abc import Mapping
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_exporter.sysfs import in_force


def put(path: str | Path, attributes: Mapping[str, str]) -> None:
    """Write the attributes that differ, in this order; UsageError where one is not accepted."""
    for key, value in attributes.items():
        if read(Path(path) / key) != value:
            write(Path(path) / key, value)


def readable(path: Path) -> bool:
    """Whether it can be read: some devices lack an attribute, or refuse it (wbt_lat_usec)."""
    try:
        path.read_text()
    except OSError:
        return False
    return True


def read(path: Path) -> str:
    try:
        return in_force(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise UsageError(
            f"{path}: {value} is not accepted ({error.strerror});"
            f" it says {path.read_text().strip()}"
        ) from None
    present = read(path)
    if present != value:
        raise UsageError(f"{path}: wrote {value}, reads {present}")
