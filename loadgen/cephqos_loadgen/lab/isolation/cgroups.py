"""Limits of one OSD's device (cgroup v1 `blkio`, v2 `io`), CPU (v1 and v2 `cpu`), memory (v1)."""

import contextlib
import os
import time
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.paths import LabPaths

_V1 = Path("/sys/fs/cgroup/blkio")
_V1_CPU = Path("/sys/fs/cgroup/cpu")
_V1_MEMORY = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000  # microseconds of a CPU quota's period, the kernel's default
_V1_FILES = {
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
}


def _base() -> tuple[Path, bool]:
    """The hierarchy that can throttle block I/O, and whether it is version 2."""
    if (_V1 / "blkio.throttle.write_iops_device").exists():
        return _V1, False
    controllers = _V2 / "cgroup.controllers"
    if controllers.exists() and "io" in controllers.read_text().split():
        return _V2, True
    raise UsageError("this host has neither the cgroup v1 blkio nor the cgroup v2 io controller")


def throttle(lab: LabPaths, osd: int, pid: int, device: int, limits: dict[str, int]) -> None:
    """Limit a process to `limits` (riops, wiops, rbps, wbps; empty: no limit) on a device."""
    base, v2 = _base()
    group = _group(base, lab, osd)
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        _make(lab, group)
        if v2:
            _enable(base, "io")
            wanted = " ".join(f"{key}={limits.get(key) or 'max'}" for key in _V1_FILES)
            (group / "io.max").write_text(f"{number} {wanted}")
        else:
            for key, file in _V1_FILES.items():
                (group / file).write_text(f"{number} {limits.get(key, 0)}")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        raise LabError(f"cannot throttle osd.{osd} in {group}: {error}") from error


def limit_cpu(lab: LabPaths, osd: int, pid: int, cpus: float | None) -> None:
    """Limit a process to this many CPUs; None: no limit.

    The process stays in its group, which is removed with the lab: leaving a group that is at its
    limit can take minutes.
    """
    v1 = (_V1_CPU / "cpu.cfs_quota_us").exists()
    base = _V1_CPU if v1 else _V2
    group = _group(base, lab, osd)
    quota = -1 if cpus is None else round(cpus * _PERIOD_US)
    try:
        _make(lab, group)
        if not v1:
            _enable(base, "cpu")
        if cpus is not None:  # before the limit: a process at its limit moves slowly
            (group / "cgroup.procs").write_text(str(pid))
        if v1:
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{'max' if cpus is None else quota} {_PERIOD_US}")
    except OSError as error:
        raise LabError(f"cannot limit the CPU of osd.{osd} in {group}: {error}") from error


def _enable(base: Path, controller: str) -> None:
    with contextlib.suppress(OSError):  # it is enabled already, or systemd delegates it
        (base / "cgroup.subtree_control").write_text(f"+{controller}")


def limits(lab: LabPaths, osd: int) -> dict[str, int]:
    """The limits in force on an OSD's device, as the kernel has them; empty: none."""
    values: dict[str, int] = {}
    for key, file in _V1_FILES.items():
        with contextlib.suppress(OSError):
            for line in (_group(_V1, lab, osd) / file).read_text().splitlines():
                values[key] = int(line.split()[1])
    with contextlib.suppress(OSError):
        for line in (_group(_V2, lab, osd) / "io.max").read_text().splitlines():
            pairs = (word.partition("=") for word in line.split()[1:])
            values |= {key: int(value) for key, _, value in pairs if value != "max"}
    return values


def _group(base: Path, lab: LabPaths, osd: int) -> Path:
    return base / f"cephqos-{lab.name}-osd.{osd}"


def _make(lab: LabPaths, group: Path) -> None:
    """Make a group and note that it is this lab's, so that no other is ever changed or removed.

    A group cannot carry a mark. The kernel gives its directory another number each time.
    """
    try:
        group.mkdir()
    except FileExistsError:
        if group not in _made(lab):
            raise LabError(
                f"{group} is there, and this lab did not make it: end the lab that did, or remove"
                f" it with rmdir, or start this lab with another --name"
            ) from None
        return
    with lab.cgroups.open("a") as file:
        file.write(f"{group.stat().st_ino} {group}\n")


def _made(lab: LabPaths) -> list[Path]:
    """The groups that this lab has made and that are still the same ones."""
    bases = (_V1, _V1_CPU, _V1_MEMORY, _V2)
    found = []
    with contextlib.suppress(FileNotFoundError):
        for line in lab.cgroups.read_text().splitlines():
            number, _, path = line.partition(" ")
            group = Path(path)
            with contextlib.suppress(OSError):
                if group.parent in bases and str(group.stat().st_ino) == number:
                    found.append(group)
    return found


def rejoin(lab: LabPaths, osd: int, pid: int) -> None:
    """Put an OSD that was restarted into the groups with the limits that it had before."""
    for group in _made(lab):
        if group.name == _group(_V2, lab, osd).name:
            (group / "cgroup.procs").write_text(str(pid))


def remove_cgroups(lab: LabPaths) -> None:
    """Remove the cgroups of a lab whose processes are ending."""
    for group in _made(lab):
        for _ in range(20):
            try:
                group.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:  # a process is still on its way out
                time.sleep(0.05)
