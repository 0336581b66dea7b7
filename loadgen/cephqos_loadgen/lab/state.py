"""The labs of this machine: their state files, their locks, and the removal of their files."""

import errno
import fcntl
import itertools
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_base.textfile import reason_of
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.isolation.cgroups import remove_cgroups
from cephqos_loadgen.lab.paths import LabPaths, labs_dir
from cephqos_loadgen.lab.spec import LabSpec


@dataclass(slots=True)
class LabState:
    """lab.json: enough to find, enter and end a lab from another process."""

    spec: LabSpec
    fsid: str
    port: int  # the first of its ports, which is the monitor's
    keeper_pid: int
    init_pid: int  # of process 1, as the host counts
    tree: str  # path of the release tree
    ready: bool = False
    devices: dict[str, str] = field(default_factory=dict)  # "osd.0.block" -> /dev/loop3

    def save(self, paths: LabPaths) -> None:
        data = asdict(self) | {"spec": self.spec.to_json()}
        new = paths.state.with_suffix(".new")
        new.write_text(json.dumps(data, indent=1))
        new.rename(paths.state)

    @classmethod
    def load(cls, paths: LabPaths) -> "LabState":
        data: dict[str, Any] = json.loads(paths.state.read_text())
        return cls(**{**data, "spec": LabSpec.from_json(data["spec"])})


def needs_root() -> UsageError:
    return UsageError("the lab needs root, for namespaces and mounts: run it with sudo")


class LockHeld(Exception):
    """The lab is in use: its keeper or its process 1 holds the lock."""


# `is_alive` of another process holds the lock for a moment. Then the next attempt finds it free.
_LOCK_ATTEMPTS = 5


def take_lock(paths: LabPaths) -> int:
    """The lab's lock, as an open file descriptor, or LockHeld."""
    for attempt in itertools.count(1):
        fd = _open_lock(paths)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if owns_lock(paths, fd):
                return fd
        except BlockingIOError:
            if attempt >= _LOCK_ATTEMPTS:
                os.close(fd)
                raise LockHeld(paths.name) from None
            time.sleep(0.02)
        os.close(fd)  # a lab that just ended removed it between our open and our lock
    raise AssertionError("unreachable")


def _open_lock(paths: LabPaths) -> int:
    try:
        paths.base.mkdir(parents=True, exist_ok=True)
        return os.open(paths.lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except PermissionError:
        raise needs_root() from None
    except OSError as error:
        raise UsageError(f"{paths.base}: labs cannot be kept there: {reason_of(error)}") from None


def owns_lock(paths: LabPaths, fd: int) -> bool:
    """Whether the lock that `fd` holds is still the one that others see under the lab's name."""
    try:
        return os.fstat(fd).st_ino == paths.lock.stat().st_ino
    except FileNotFoundError:
        return False


def is_alive(paths: LabPaths) -> bool:
    """Whether the lab's keeper or process 1 runs."""
    try:
        fd = os.open(paths.lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        raise needs_root() from None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return True
        raise
    finally:
        os.close(fd)
    return False


def lab_names() -> list[str]:
    """All labs that run or left files behind."""
    base = labs_dir()
    names = {path.stem if path.suffix == ".lock" else path.name for path in base.glob("[!.]*")}
    return sorted(names)


def load_living(name: str, *, hint: str | None = None) -> tuple[LabPaths, LabState]:
    """A lab that is up, for exec, status, faults; a UsageError otherwise."""
    paths = LabPaths.of(name)
    if not is_alive(paths):
        others = ", ".join(n for n in lab_names() if is_alive(LabPaths.of(n))) or "none"
        raise UsageError(
            f"no lab {name!r} is up (up: {others});"
            f" {hint or f'start it with: cephqos lab up --name {name}'}"
        )
    try:
        return paths, LabState.load(paths)
    except (FileNotFoundError, ValueError):
        raise LabError(f"lab {name!r} is still starting") from None


def remove_files(paths: LabPaths) -> None:
    """Remove the files and cgroups of a lab that has ended, its lock last.

    Only the holder of the lock may do so.
    """
    remove_cgroups(paths.name)
    shutil.rmtree(paths.dir, ignore_errors=True)
    paths.lock.unlink(missing_ok=True)


def clean_dead_labs(base: Path) -> list[str]:
    """Remove the files of labs that were killed. Returns their names."""
    cleaned = []
    for name in lab_names():
        paths = LabPaths(base, name)
        try:
            fd = take_lock(paths)
        except LockHeld:
            continue
        try:
            remove_files(paths)
            cleaned.append(name)
        finally:
            os.close(fd)
    return cleaned
