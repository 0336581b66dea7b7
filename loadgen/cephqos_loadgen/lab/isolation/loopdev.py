"""Loop devices that detach by themselves.

A loop device made with the autoclear flag detaches when its last user closes it, so a crash leaves
none behind. losetup(8) cannot set that flag, so this calls the kernel itself (LOOP_CONFIGURE,
Linux 5.8).

Each is a pair: the upper device, which is used, lies on a lower loop device, and that one on the
file. A limit of a control group delays requests before the kernel counts them. So the limit is on
the lower device: requests then wait inside the upper one, which looks as slow as a slow disk.
"""

import errno
import fcntl
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path

from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen import queue_files
from cephqos_loadgen.errors import LabError

_LOOP_CTL_GET_FREE = 0x4C82
_LOOP_CONFIGURE = 0x4C0A
_LO_FLAGS_AUTOCLEAR = 4
_LO_FLAGS_DIRECT_IO = 16
_LOOP_MAJOR = 7
# struct loop_config: fd, block_size, struct loop_info64, 8 reserved words.
_LOOP_INFO = struct.Struct("=5Q4I64s64s32s2Q")
_ATTEMPTS = 50  # to get a free device that no other process takes first


@dataclass(slots=True)
class LoopDevice:
    """A loop device held open by `fd`."""

    number: int
    fd: int
    backing: Path
    # Queue settings from before. The kernel keeps them per device number, not per file.
    before: dict[str, str] = field(default_factory=dict)
    lower: "LoopDevice | None" = None

    @property
    def path(self) -> Path:
        return Path(f"/dev/loop{self.number}")

    @property
    def rdev(self) -> int:
        return os.makedev(_LOOP_MAJOR, self.number)

    @property
    def queue(self) -> Path:
        return Path(f"/sys/block/loop{self.number}/queue")

    def restore_and_close(self) -> None:
        queue_files.put(self.queue, self.before)
        os.close(self.fd)
        if self.lower is not None:
            self.lower.restore_and_close()


def attach(backing: Path, scheduler: str, *, rotational: bool) -> LoopDevice:
    """Attach a file to a pair of devices, and set up the queue of the upper one."""
    lower = _attach(backing, "none", rotational=False)
    try:
        device = _attach(lower.path, scheduler, rotational=rotational)
    except CephqosError:
        lower.restore_and_close()
        raise
    device.lower = lower
    return device


def lower_rdev(device: Path) -> int:
    """The number of the lower device: the one to limit, so that this device becomes slow."""
    block = Path("/sys/block")
    lower = Path((block / device.name / "loop" / "backing_file").read_text().strip()).name
    major, _, minor = (block / lower / "dev").read_text().partition(":")
    return os.makedev(int(major), int(minor))


def _attach(backing: Path, scheduler: str, *, rotational: bool) -> LoopDevice:
    """Attach a file to one device with direct I/O and autoclear, and set up its queue."""
    device = LoopDevice(*_configure(backing), backing)
    wanted = {"scheduler": scheduler, "rotational": "1" if rotational else "0"}
    device.before = {key: queue_files.read(device.queue / key) for key in wanted}
    try:
        queue_files.put(device.queue, wanted)
    except UsageError:
        device.restore_and_close()
        raise
    return device


def _configure(backing: Path) -> tuple[int, int]:
    """Attach a file to a free device. Returns the device's number and file descriptor."""
    with backing.open("rb+") as file, Path("/dev/loop-control").open("rb") as control:
        for _ in range(_ATTEMPTS):
            number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
            fd = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(fd, _LOOP_CONFIGURE, _loop_config(file.fileno(), backing))
                return number, fd
            except OSError as error:
                os.close(fd)
                # Another process took it between the two calls: ask again.
                if error.errno != errno.EBUSY:
                    raise LabError(f"cannot attach {backing} to a loop device: {error}") from error
    raise LabError(f"no free loop device for {backing} after {_ATTEMPTS} attempts")


def _loop_config(fd: int, backing: Path) -> bytes:
    flags = _LO_FLAGS_AUTOCLEAR | _LO_FLAGS_DIRECT_IO
    name = str(backing).encode()[:63]
    info = _LOOP_INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, flags, name, b"", b"", 0, 0)
    return struct.pack("=II", fd, 4096) + info + bytes(64)
