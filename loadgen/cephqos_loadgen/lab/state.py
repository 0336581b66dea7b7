"""The labs of this machine: their state files, their locks, and the removal of their files."""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cephqos_base import marked
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.locks import is_locked, try_lock
from cephqos_base.marked import NotOurs
from cephqos_base.textfile import reason_of
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.isolation.cgroups import remove_cgroups
from cephqos_loadgen.lab.paths import LabPaths, is_name, labs_dir
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


_KIND: Final = "lab"  # what the mark of a lab's folder says
# Another process makes or removes the folder, or holds the lock for a moment to see whether it is
# free. The next attempt finds it done.
_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.02


def make_lab(paths: LabPaths) -> int:
    """Make the folder of a new lab. Returns its lock, as an open file descriptor.

    LockHeld if a lab of that name is up. What a lab of that name left that was killed is removed.
    NotOurs if something else has the name.
    """
    for _ in range(_ATTEMPTS):
        try:
            paths.base.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(paths.dir):
                marked.make(paths.dir, _KIND)
        except PermissionError:
            raise needs_root() from None
        except OSError as error:
            raise UsageError(
                f"{paths.base}: labs cannot be kept there: {reason_of(error)}"
            ) from None
        fd = take_lock(paths)
        if fd is None:  # it was removed since
            continue
        if list(paths.dir.iterdir()) == [paths.lock]:
            return fd
        with _closing(fd):
            remove_files(paths)
    raise LockHeld(paths.name)


def take_lock(paths: LabPaths) -> int | None:
    """The lab's lock, as an open file descriptor; None: there is no lab of that name.

    LockHeld if it is up; NotOurs if what has its name was not made by us.
    """
    for attempt in itertools.count(1):
        last = attempt >= _ATTEMPTS
        if not os.path.lexists(paths.dir):
            return None
        try:
            fd = _open_lock(paths)
            locked = try_lock(fd)
            if locked and owns_lock(paths, fd):
                return fd
            os.close(fd)
            if last and not locked:
                raise LockHeld(paths.name)
        except NotOurs:
            if last:
                raise
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("unreachable")


def _open_lock(paths: LabPaths) -> int:
    _check_mark(paths.dir)
    try:
        return os.open(paths.lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:  # it is being removed
        raise NotOurs(f"{paths.lock}: {reason_of(error)}") from None


def _check_mark(folder: Path) -> None:
    """NotOurs if this is no lab's folder; a lab of root is for root only."""
    try:
        marked.read(folder, _KIND)
    except NotOurs:
        if os.geteuid() != 0 and os.path.lexists(folder / marked.MARK):
            raise needs_root() from None
        raise


def owns_lock(paths: LabPaths, fd: int) -> bool:
    """Whether the lock that `fd` holds is still the one that others see under the lab's name."""
    try:
        return os.path.samestat(os.fstat(fd), paths.lock.lstat())
    except OSError:
        return False


def is_alive(paths: LabPaths) -> bool:
    """Whether the lab's keeper or process 1 runs."""
    try:
        fd = _open_lock(paths)
    except NotOurs:
        return False
    with _closing(fd):
        return is_locked(fd)


def signal_holder(paths: LabPaths, pid: int, number: signal.Signals) -> None:
    """Send a signal to the lab's keeper or process 1, if it still runs.

    A pid that was written down may be another process's by now. The lab's own has the lock open.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError:  # it has ended
        return
    with _closing(process):
        if _has_open(pid, paths.lock):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, number)


def _has_open(pid: int, file: Path) -> bool:
    with contextlib.suppress(OSError):
        wanted = file.lstat()
        for opened in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed since
                if os.path.samestat(opened.stat(), wanted):
                    return True
    return False


@contextlib.contextmanager
def _closing(fd: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(fd)


def labs_and_others() -> tuple[list[str], dict[str, str]]:
    """Names of the labs that run or left files behind; and for anything else in their folder, by
    name, why it is not touched."""
    labs, others = [], {}
    for path in sorted(labs_dir().glob("[!.]*")):
        try:
            _check_mark(path)
            if not is_name(path.name):
                raise NotOurs(f"{path} has no name of a lab: it is left as it is")
            labs.append(path.name)
        except NotOurs as reason:
            others[path.name] = str(reason)
    return labs, others


def lab_names() -> list[str]:
    """All labs that run or left files behind."""
    return labs_and_others()[0]


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
    remove_cgroups(paths)
    try:
        marked.remove(paths.dir, _KIND)
    except OSError as error:
        raise LabError(
            f"{paths.dir}: {error.filename} cannot be removed: {reason_of(error)}; the next"
            f" `cephqos lab down --name {paths.name}` tries again"
        ) from error


def clean_dead_lab(paths: LabPaths) -> bool:
    """Remove the files of a lab that was killed. False: there is none, or it is up."""
    try:
        fd = take_lock(paths)
    except LockHeld:
        return False
    if fd is None:
        return False
    with _closing(fd):
        remove_files(paths)
    return True


def clean_dead_labs(say: Callable[[str], None]) -> None:
    """Remove the files of all labs that were killed, and say so."""
    for name in lab_names():
        try:
            if clean_dead_lab(LabPaths.of(name)):
                say(f"lab {name!r} had been killed: removed {LabPaths.of(name).dir}")
        except CephqosError as error:
            say(str(error))
