"""Checks before a run changes anything: options, files, this host's programs and disk.

`check_plan` serves `--check`, and `check` a run. All is cheap and changes nothing. What only the
cluster can tell is checked later, before the run has changed anything there (`Session.begin`).
"""

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.textfile import reason_of
from cephqos_exporter.ceph.monclient import SAFE_START
from cephqos_loadgen import processes
from cephqos_loadgen.check import named_servers
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.engines.fio_engines import ENGINES
from cephqos_loadgen.lab import checks
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.paths import labs_dir
from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN, bind
from cephqos_loadgen.plan import planned
from cephqos_loadgen.plan.action import Action
from cephqos_loadgen.plan.errors import ClusterUnfit, HostLacks
from cephqos_loadgen.plan.estimate import run_seconds
from cephqos_loadgen.plan.words import size
from cephqos_loadgen.pools import free_space

_PROBE_SECONDS = 20.0  # for a program that is tried
# A lab of three OSDs with one client takes 5 kB/s; larger clusters and more clients take more.
_ARCHIVE_BYTES_PER_SECOND = 20_000
_ARCHIVE_LEAST_BYTES = 32 << 20
_FSID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# By program: its package on Debian and Ubuntu.
_PACKAGES = {
    "fio": "fio",
    "rados": "ceph-common",
    "rbd": "ceph-common",
    "qemu-nbd": "qemu-utils (and qemu-block-extra for RBD)",
    "qemu-storage-daemon": "QEMU 5.1 or later: qemu-utils (and qemu-block-extra for RBD)",
    "taskset": "util-linux",
    "setpriv": "util-linux",
}


async def check_plan(plan: planned.Plan, options: RunOptions) -> None:
    """UsageError if something is wrong that the plan or the command line names."""
    if options.sockets and not (_exists(options.sockets) and options.sockets.is_dir()):
        raise UsageError(f"--sockets {options.sockets}: expected a folder with admin sockets")
    for path in sorted({path for action in _actions(plan) for path in action.paths()}):
        if path not in options.paths:
            raise UsageError(
                f"{plan.source}: the scenario loads {path}, and may overwrite what is there; if"
                f" that is what you want, add --path {path}"
            )
    if options.conf:
        _check_conf(options.conf, options)
    elif options.lab:
        RunningLab.find(options.lab)
    else:
        _check_lab(plan)
    _writable("--out", options.out)
    bind(options.listen or DEFAULT_LISTEN, fall_back=options.listen is None).close()
    lab_fsid = RunningLab.find(options.lab).state.fsid if options.lab else None
    await named_servers.check(options, options.known_fsid or lab_fsid)


async def check(plan: planned.Plan, options: RunOptions) -> None:
    """`check_plan`, and whether this host has all that the run needs."""
    for path in options.paths:
        check_unused(Path(path))
    await check_plan(plan, options)
    for engine in _scenario_engines(plan):
        check_engine(engine)
    _check_out(plan, options.out)
    if options.conf:
        _writable("--work", options.work)
        await _check_programs(plan, options.python)
    elif not options.lab:
        _check_lab_host(plan)


# -- an existing cluster -------------------------------------------------------------------------


def _check_conf(conf: Path, options: RunOptions) -> None:
    text = _read("--conf", conf, "a cluster's ceph.conf")
    if options.keyring:
        _read("--keyring", options.keyring, "the keyring of a Ceph client")
    line = re.search(rf'^\s*fsid\s*=\s*"?({_FSID})"?\s*(?:[;#].*)?$', text, re.MULTILINE)
    if line is None:
        raise UsageError(
            f"--conf {conf}: expected a line `fsid = FSID`, which says what cluster the run would"
            f" change and load; there is none. Add it: `ceph --conf {conf} fsid` prints the FSID"
        )
    fsid = line[1]
    if options.known_fsid is None:
        raise UsageError(
            f"this run changes and loads the cluster {fsid}; if that is what you want, add"
            f" --i-know-this-cluster {fsid}"
        )
    if not re.fullmatch(_FSID, options.known_fsid):
        raise UsageError(
            f"--i-know-this-cluster {options.known_fsid}: expected an FSID, as printed by"
            f" ceph --conf {conf} fsid"
        )
    if fsid != options.known_fsid:
        raise ClusterUnfit(
            f"--i-know-this-cluster {options.known_fsid}: {conf} is of the cluster {fsid};"
            f" this run changes and loads that one; if that is what you want, add"
            f" --i-know-this-cluster {fsid}"
        )


def check_restore(options: RunOptions) -> None:
    """UsageError if a file or folder that restoring needs is not there."""
    if options.conf:
        _read("--conf", options.conf, "a cluster's ceph.conf")
    if options.keyring:
        _read("--keyring", options.keyring, "the keyring of a Ceph client")
    _writable("--work", options.work)


def _read(option: str, path: Path, what: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        problem = f"expected {what}; it cannot be read: {reason_of(error)}"
        raise UsageError(f"{option} {path}: {problem}") from None


# -- a lab of the run's own ----------------------------------------------------------------------


def _check_lab(plan: planned.Plan) -> None:
    for spec in {point.lab for point in plan.points}:
        spec.validate()
    kept = sorted({pool.name for point in plan.points for pool in point.pools if pool.keep})
    if kept:
        raise UsageError(
            f"pools are to be kept ({', '.join(kept)}), but a lab that is made for the run ends"
            " with it: name a cluster with --lab or --conf"
        )


def _check_lab_host(plan: planned.Plan) -> None:
    for spec in {point.lab for point in plan.points}:
        try:
            checks.check_host(spec)
            checks.check_disk(spec, labs_dir())
        except UsageError as error:
            raise HostLacks(str(error)) from None
    # A lab's OSDs are sparse files: their size says nothing about the room on the disk.
    need = free_space.plan_bytes(plan.points)
    free = shutil.disk_usage(labs_dir()).free
    if free < need:
        raise HostLacks(
            f"{labs_dir()}: {size(free)} are free there, and the pools of this run take"
            f" {size(need)} with all copies: use a smaller --scale or --var, or a cluster"
            " with room (--lab, --conf)"
        )


# -- this host -----------------------------------------------------------------------------------


def _check_out(plan: planned.Plan, out: Path) -> None:
    folder = _writable("--out", out)
    need = _ARCHIVE_LEAST_BYTES + round(run_seconds(plan) * _ARCHIVE_BYTES_PER_SECOND)
    free = shutil.disk_usage(folder).free
    if free < need:
        raise HostLacks(
            f"--out {out}: {free / 1e6:,.0f} MB are free there; expected at least"
            f" {need / 1e6:,.0f} MB for a run of this length: make room, or choose another folder"
        )


def _writable(option: str, folder: Path) -> Path:
    """The folder, or the nearest folder above it that exists; UsageError if it is not writable."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if _exists(path))
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return nearest
    except OSError as error:
        raise UsageError(
            f"{option} {folder}: expected a folder that can be written to; in {nearest}:"
            f" {error.strerror}"
        ) from None


def _exists(path: Path) -> bool:
    """Whether a path exists; False too if this user may not look at it."""
    try:
        return path.exists()
    except OSError:
        return False


async def _check_programs(plan: planned.Plan, python: str) -> None:
    """On an existing cluster clients are this host's programs; a lab brings its own."""
    for program in _programs(plan):
        path = shutil.which(program)
        if path is None:
            raise HostLacks(
                f"{program} is not in PATH, and this scenario needs it: install"
                f" {_PACKAGES[program]}"
            )
        if Path(path).is_relative_to(labs_dir()):
            raise HostLacks(
                f"{program} in PATH is {path}, which runs in that lab and loads it, not the"
                " cluster of --conf: take the lab's bin_dir out of PATH"
            )
    for engine in sorted(_fio_engines(plan)):
        if not await _succeeds(["fio", f"--enghelp={engine}"]):
            raise HostLacks(
                f"this host's fio has no engine {engine}: install one that was built with it"
                " (the package fio of Debian and Ubuntu is)"
            )
    if not await _succeeds([python, "-c", f"{SAFE_START}import rados"]):
        raise HostLacks(
            f"--python {python}: expected a Python that can import rados; install python3-rados for"
            " it, or name the interpreter that has it"
        )


async def _succeeds(argv: list[str]) -> bool:
    try:
        return (await processes.run(argv, within=_PROBE_SECONDS)).returncode == 0
    except (OSError, CephqosError):
        return False


def _actions(plan: planned.Plan) -> list[Action]:
    return [phase.action for point in plan.points for phase in point.phases]


def _programs(plan: planned.Plan) -> list[str]:
    names = {"setpriv"}
    for point in plan.points:
        for pool in point.pools:
            names |= {"rbd"} if pool.images else set()
            names |= {"rados"} if pool.objects else set()
    for action in _actions(plan):
        names |= set(action.programs())
    if _fio_engines(plan):
        names.add("fio")
    return sorted(names)


def _scenario_engines(plan: planned.Plan) -> set[str]:
    return {name for action in _actions(plan) for name in action.fio_engines()}


def _fio_engines(plan: planned.Plan) -> set[str]:
    """The engines that the host's fio must have, by fio's names."""
    pools = [pool for point in plan.points for pool in point.pools]
    prefill = any(pool.images and pool.images.prefill for pool in pools)
    engines = {ENGINES[name].fio_name for name in _scenario_engines(plan)}
    return engines | {"rbd"} if prefill else engines


def check_unused(path: Path) -> None:
    """UsageError for a block device that a file system or a running OSD uses."""
    try:
        if path.is_block_device():
            os.close(os.open(path, os.O_RDWR | os.O_EXCL))
    except OSError as error:
        busy = "a file system or an OSD uses it" if error.errno == errno.EBUSY else error.strerror
        raise UsageError(
            f"--path {path}: {busy}; expected a device that nothing uses, for it is overwritten"
        ) from None


def check_engine(name: str) -> None:
    """UsageError if this host cannot run the engine."""
    lacks = ENGINES[name].host_lacks()
    if lacks:
        raise UsageError(f"engine {name}: {lacks}")
