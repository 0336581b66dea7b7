"""Release trees: one Debian with one Ceph each, built once and kept in the cache.

A tree is built under another name and renamed when complete, so that an interrupted build is never
taken for a tree. A lock per release prevents two builds at the same time.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cephqos_base import marked
from cephqos_base.errors import UsageError
from cephqos_loadgen.lab import builds
from cephqos_loadgen.lab.paths import cache_dir
from cephqos_loadgen.lab.releases import Release
from cephqos_loadgen.processes import in_background
from cephqos_loadgen.progress import Progress, Say

PACKAGES = (
    "ceph-mon",
    "ceph-mgr",
    "ceph-osd",
    "ceph-common",  # ceph, rados, rbd and python3-rados
    "fio",  # Debian builds it with the rbd, rados and nbd engines
    "prometheus",  # with promtool
    "prometheus-alertmanager",  # with amtool
    "qemu-utils",
    "qemu-block-extra",  # QEMU's rbd driver
    "xfsprogs",
    "btrfs-progs",
    "e2fsprogs",
)
TREE_BYTES = 3 << 30  # 1.2 GiB when ready, more while packages unpack
BUILD_TIMEOUT = 1200.0
_KIND = "building"  # what the mark of an unfinished tree says, by its name then
_STAMP = "cephqos-tree"  # a file in /etc of a tree that is complete


def tree_path(release: Release, packages: Sequence[str] = PACKAGES) -> Path:
    """Where the release's tree is or will be. Another package list gives another path."""
    recipe = hashlib.sha256(" ".join((release.suite, *packages)).encode()).hexdigest()[:8]
    return cache_dir() / "trees" / f"{release.name}-{recipe}"


def tree_ready(release: Release, packages: Sequence[str] = PACKAGES) -> bool:
    return (tree_path(release, packages) / "etc" / _STAMP).exists()


async def ensure_tree(
    release: Release, progress: Progress, packages: Sequence[str] = PACKAGES
) -> Path:
    """The release's tree, built if it is not there yet."""
    tree = tree_path(release, packages)
    if tree_ready(release, packages):
        return tree
    _check_can_build(tree)
    title = f"building the tree {release.name} ({release.version}), only the first time"
    with progress.step(title) as say:
        async with builds.alone(tree.with_suffix(".lock"), say):
            if not tree_ready(release, packages):
                await _build(release, tree, packages, say)
    return tree


def _check_can_build(tree: Path) -> None:
    if shutil.which("debootstrap") is None:
        raise UsageError("debootstrap not found: install it (apt-get install debootstrap)")
    tree.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(tree.parent).free
    if free < TREE_BYTES:
        raise UsageError(
            f"{tree.parent} has {free / 2**30:.1f} GiB free; building a release tree needs"
            f" {TREE_BYTES / 2**30:.0f} GiB (set CEPHQOS_CACHE to put it elsewhere)"
        )


async def _build(release: Release, tree: Path, packages: Sequence[str], say: Say) -> None:
    building = tree.with_suffix(".building")
    marked.renew(building, _KIND)
    log = tree.with_suffix(".log")
    chroot = ["chroot", str(building)]
    apt = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    log.unlink(missing_ok=True)
    on_host = _SetupStep(log, Path("/proc"), say)
    in_tree = _SetupStep(log, building / "proc", say)
    # debootstrap's own default is the Debian mirror; a site's mirror can be set.
    mirror = os.environ.get("CEPHQOS_DEBIAN_MIRROR", "")
    base = ["debootstrap", "--variant=minbase", release.suite, str(building), mirror]
    await _run([*base, release.script], on_host)
    # Packages must not start services while they are being set up.
    policy = building / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    await _run([*chroot, *apt], in_tree)
    await _run([*chroot, "apt-get", "clean"], in_tree)
    for waste in ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists"):
        shutil.rmtree(building / waste, ignore_errors=True)
    (building / "etc" / _STAMP).write_text(f"{release.name} {release.version}\n")
    building.rename(tree)
    log.unlink()


@dataclass(frozen=True, slots=True)
class _SetupStep:
    """What a build step needs."""

    log: Path  # for its output
    proc: Path  # where its /proc is mounted
    say: Say  # shows progress


async def _run(argv: list[str], step: _SetupStep) -> None:
    """Run one build step. Its processes and mounts end with it, or with this process."""
    isolate = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    isolate += [f"--mount-proc={step.proc}"]
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    tell = partial(_say_last_line, step.log, step.say)
    async with in_background(
        [*isolate, *argv], step.log, environment=quiet, append=True
    ) as process:
        await builds.to_its_end(argv[0], process, step.log, BUILD_TIMEOUT, tell)


def _say_last_line(log: Path, say: Say) -> None:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 400))
        lines = file.read().decode(errors="replace").split("\n")
    say(next((line.strip() for line in reversed(lines) if line.strip()), ""))
