"""Control groups of a process, versions 1 and 2: where they are, and what limits are set there.

A process is in one cgroup per hierarchy. Each cgroup above limits it as well, so the tightest limit
counts. What a container does not see of the cgroups above it is not known here either.
"""

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cephqos_exporter.daemon import Host
from cephqos_exporter.procfs import parse_cgroup, parse_mountinfo
from cephqos_exporter.sysfs import read_text

# Version 1 writes "no limit" as the largest number of pages that it can count.
_NO_MEMORY_LIMIT: Final = 1 << 60
# Files of version 1, by their names in io.max of version 2.
_V1_IO: Final = {
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
}


@dataclass(frozen=True, slots=True)
class Cgroup:
    """A process's cgroup in one hierarchy: `levels` has its own first, then those above."""

    levels: tuple[Path, ...] = ()
    v2: bool = False


@dataclass(frozen=True, slots=True)
class Cgroups:
    """A process's cgroups, by what they are for; without levels where they cannot be seen."""

    cpu: Cgroup = Cgroup()
    memory: Cgroup = Cgroup()
    io: Cgroup = Cgroup()
    pressure: Path | None = None  # version 2 only, never the root: that is the whole host


@dataclass(frozen=True, slots=True)
class CgroupLimits:
    """The tightest limits, and the cgroups that set them."""

    cpus: float | None = None
    cpu_levels: tuple[Path, ...] = ()  # all that have a limit: each may hold the process back
    memory: int | None = None
    memory_level: Path | None = None
    # ("8:0", "riops"): the limit of a device by major:minor, and the cgroup that sets it.
    io: Mapping[tuple[str, str], tuple[int, Path]] = field(default_factory=dict)


def find_cgroups(host: Host, text: str) -> Cgroups:
    """The cgroups that /proc/PID/cgroup names, below --path.sysfs.

    Paths there are as this process sees them: in a cgroup namespace they begin at its root, and
    lead out of it by `/..`.
    """
    paths = parse_cgroup(text)
    mounts = parse_mountinfo(read_text(host.proc / "self" / "mountinfo") or "")
    roots = {mount.point: mount.root for mount in mounts}
    unified = host.sys / "fs" / "cgroup"
    if (unified / "unified").is_dir():
        unified = unified / "unified"
    v2 = _levels(unified, roots, paths[""]) if "" in paths else ()
    cgroups = {}
    for name, controller in (("cpu", "cpu"), ("memory", "memory"), ("io", "blkio")):
        row = next((names for names in paths if controller in names.split(",")), None)
        if row is None:
            cgroups[name] = Cgroup(v2, v2=True)
        else:
            places = (host.sys / "fs" / "cgroup" / place for place in (row, controller))
            place = next((place for place in places if place.is_dir()), None)
            cgroups[name] = Cgroup(_levels(place, roots, paths[row]) if place else ())
    own = v2[0] if v2 and (v2[0] / "cgroup.type").exists() else None
    return Cgroups(**cgroups, pressure=own)


def read_limits(groups: Cgroups) -> CgroupLimits:
    """The limits now. A limit that cannot be read is left out."""
    cpus, memory = dict(_cpu_limits(groups.cpu)), dict(_memory_limits(groups.memory))
    level = min(memory, key=lambda each: memory[each], default=None)
    io: dict[tuple[str, str], tuple[int, Path]] = {}
    for key, limit, place in _io_limits(groups.io):
        io[key] = min((limit, place), io.get(key, (limit, place)))
    return CgroupLimits(
        cpus=min(cpus.values(), default=None),
        cpu_levels=tuple(cpus),
        memory=None if level is None else memory[level],
        memory_level=level,
        io=io,
    )


def _levels(mount: Path, roots: Mapping[str, str], path: str) -> tuple[Path, ...]:
    own = _directory(mount, roots.get(os.path.realpath(mount), "/"), path)
    if own is None:
        return ()
    return (own, *(above for above in own.parents if above.is_relative_to(mount)))


def _directory(mount: Path, root: str, path: str) -> Path | None:
    """Where the cgroup `path` is below `mount`, which shows the hierarchy from `root` on."""
    up, below = _parts(root)
    out, rest = _parts(path)
    if below:  # a container that sees only its own part, under the host's names
        if up or out or rest[: len(below)] != below:
            return None
        rest = rest[len(below) :]
    # The namespace begins `up` levels below the mount; the path leaves it by `out` of them.
    unknown = up - out
    if unknown < 0 or (unknown and not rest):
        return None
    if not unknown:
        directory = mount.joinpath(*rest)
        return directory if directory.is_dir() else None
    # The names of the levels between are not known. The name of a container is unique.
    wanted = os.path.join(*["*"] * unknown, *map(glob.escape, rest))  # noqa: PTH118 - a pattern
    matches = glob.glob(wanted, root_dir=mount)  # noqa: PTH207 - escaped parts
    return mount / matches[0] if len(matches) == 1 else None


def _parts(path: str) -> tuple[int, list[str]]:
    """How many levels it goes up, and the names that follow."""
    names = [name for name in path.split("/") if name]
    up = sum(name == ".." for name in names)
    return up, names[up:]


def _cpu_limits(group: Cgroup) -> Iterator[tuple[Path, float]]:
    for level in group.levels:
        if group.v2:
            quota, _, period = (read_text(f"{level}/cpu.max") or "").partition(" ")
        else:
            quota = read_text(f"{level}/cpu.cfs_quota_us") or ""
            period = read_text(f"{level}/cpu.cfs_period_us") or ""
        if quota.isdecimal() and period.isdecimal() and int(period):
            yield level, int(quota) / int(period)


def _memory_limits(group: Cgroup) -> Iterator[tuple[Path, int]]:
    # Above memory.high a process is held back, too, until memory is freed.
    names = ("memory.max", "memory.high") if group.v2 else ("memory.limit_in_bytes",)
    for level in group.levels:
        texts = (read_text(f"{level}/{name}") or "" for name in names)
        limits = [int(text) for text in texts if text.isdecimal() and int(text) < _NO_MEMORY_LIMIT]
        if limits:
            yield level, min(limits)


def _io_limits(group: Cgroup) -> Iterator[tuple[tuple[str, str], int, Path]]:
    for level in group.levels:
        if group.v2:
            for line in (read_text(f"{level}/io.max") or "").splitlines():
                device, *words = line.split()
                for name, _, value in (word.partition("=") for word in words):
                    if name in _V1_IO and value.isdecimal():
                        yield (device, name), int(value), level
        else:
            for name, file in _V1_IO.items():
                for line in (read_text(f"{level}/{file}") or "").splitlines():
                    fields = line.split()
                    if len(fields) == 2 and fields[1].isdecimal():
                        yield (fields[0], name), int(fields[1]), level
