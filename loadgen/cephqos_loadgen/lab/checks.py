"""Checks before a lab changes anything. Each failure is one line and exit status 2."""

import os
import shutil
from pathlib import Path

import psutil

from cephqos_base.errors import UsageError
from cephqos_base.units import GIB
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.spec import LabSpec, osds_in_words
from cephqos_loadgen.lab.state import needs_root
from cephqos_loadgen.processes import run

TOOLS = ("unshare", "nsenter", "setpriv", "chroot", "mount", "umount", "taskset")
MEMORY_BASE = 600 << 20  # monitor, manager and a client or two
MEMORY_PER_OSD = 350 << 20  # an OSD at work on a small data set; idle ones take 80 MB
DISK_BASE = 1 * GIB  # monitor store and logs
DISK_PER_OSD = 1 * GIB  # backing files are sparse: this is room to work, not their whole size
_UNIX_PATH_MAX = 107
_AIO_MAX = Path("/proc/sys/fs/aio-max-nr")
_AIO_WANTED = 1048576  # ceph-osd's sysctl.d file


def check_root() -> None:
    if os.geteuid() != 0:
        raise needs_root()


def check_host(spec: LabSpec) -> None:
    """Root, tools, memory and disk."""
    check_root()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise UsageError(f"not found: {', '.join(missing)}; install util-linux and coreutils")
    _check_memory(spec.osds)
    allowed = os.sched_getaffinity(0)
    for osd, cpus in spec.cpus:
        if not allowed.issuperset(cpus):
            raise UsageError(
                f"--cpus {osd}={','.join(map(str, cpus))}: this process may use CPUs"
                f" {','.join(map(str, sorted(allowed)))} only"
            )


def _check_memory(osds: int) -> None:
    need = MEMORY_BASE + osds * MEMORY_PER_OSD
    have = psutil.virtual_memory().available
    if have < need:
        raise UsageError(
            f"{osds_in_words(osds)} need{'s' * (osds == 1)} {need / GIB:.1f} GiB of memory;"
            f" {have / GIB:.1f} GiB are available: ask for fewer with --osds"
        )


def raise_aio_limit() -> str | None:
    """Raise the kernel's limit of asynchronous I/O contexts to what Ceph's own packages set.

    An OSD takes about 4,300 (measured) of the 65,536 that many kernels allow, so the 16th OSD of a
    machine would fail. Returns a message if the limit was raised, or could not be.
    """
    before = int(_AIO_MAX.read_text())
    if before >= _AIO_WANTED:
        return None
    try:
        _AIO_MAX.write_text(str(_AIO_WANTED))
    except OSError as error:
        return f"fs.aio-max-nr stays at {before}, which is enough for 15 OSDs: {error}"
    return f"raised fs.aio-max-nr from {before} to {_AIO_WANTED}, as Ceph's own packages do"


def check_disk(spec: LabSpec, base: Path) -> None:
    """Enough free disk space for the lab."""
    base.mkdir(parents=True, exist_ok=True)
    need = DISK_BASE + spec.osds * DISK_PER_OSD
    free = shutil.disk_usage(base).free
    if free < need:
        raise UsageError(
            f"{base} has {free / GIB:.1f} GiB free; {osds_in_words(spec.osds)}"
            f" need{'s' * (spec.osds == 1)} {need / GIB:.0f} GiB"
            " (set CEPHQOS_LABS to put labs elsewhere)"
        )


def check_socket_length(paths: LabPaths) -> None:
    """The kernel allows 107 characters for a Unix socket's path, and Ceph only logs a failure."""
    longest = str(paths.socket("osd.15"))
    if len(longest) > _UNIX_PATH_MAX:
        raise UsageError(
            f"{paths.base} is too long a path for admin sockets (by"
            f" {len(longest) - _UNIX_PATH_MAX} characters): set CEPHQOS_LABS to a shorter one"
        )


async def check_options(spec: LabSpec, tree: Path) -> None:
    """Every `--set` option must exist in this release and be valid. Ceph ignores unknown ones."""
    for setting in spec.settings:
        argv = [
            *("chroot", str(tree), "ceph-osd", "--id", "0", "--no-mon-config"),
            *("--conf", "/dev/null", f"--{setting.name}={setting.value}"),
            *("--show-config-value", setting.name),
        ]
        done = await run(argv, within=30)
        errors = done.stderr.strip().splitlines()
        if done.returncode or any("error" in line.lower() for line in errors):
            reason = errors[0] if errors else "the option does not exist"
            raise UsageError(
                f"--set {setting.section}:{setting.name}={setting.value}:"
                f" Ceph {spec.ceph.version} refuses it: {reason}"
            )
