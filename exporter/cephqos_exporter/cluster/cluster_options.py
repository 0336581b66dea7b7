"""The options of `--role cluster`, and the source made from them."""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cephqos_base.errors import ConfigError, Described, NoSuchFile
from cephqos_exporter.config import Option, Settings, integer, seconds, text

if TYPE_CHECKING:
    from cephqos_exporter.ceph.monclient import ClusterAccess
    from cephqos_exporter.cluster.cluster_source import ClusterSource
    from cephqos_exporter.cluster.poller import Poller

MOST_POOLS_SHOWN: Final = 1000  # 0.1 s of CPU and 7 MB for a scrape

CONF = text(
    "cluster.conf",
    "/etc/ceph/ceph.conf",
    "Ceph's configuration file. It gives the addresses of the monitors.",
    allowed="a path",
)
NAME = text(
    "cluster.name",
    "client.cephqos",
    "Ceph user to connect as. Caps `mon 'allow r' mgr 'allow r'` work. Less is "
    "possible: see Security in the documentation.",
    allowed="a name such as client.cephqos",
)
KEYRING = text(
    "cluster.keyring", "", "Keyring of the Ceph user; empty: where Ceph looks.", allowed="a path"
)
PYTHON = text(
    "cluster.python",
    "/usr/bin/python3",
    "Command line of a Python with Ceph's rados module, such as `docker exec -i NAME python3`.",
    allowed="a command line",
)
CEPH = text(
    "cluster.ceph",
    "ceph",
    "Command line of the ceph command. Used where no Python has the rados module.",
    allowed="a command line",
)
INTERVAL = seconds(
    "cluster.interval",
    5.0,
    "Seconds between polls of the cluster. OSDs report to the manager every 5 seconds.",
    least=0.1,
)
SCHEDULE_INTERVAL = seconds(
    "cluster.schedule-interval",
    300.0,
    "Seconds for one full pass over all placement groups' scrub times. They are read a "
    "few at a time.",
    least=0.1,
    most=86400,
)
TIMEOUT = seconds(
    "cluster.timeout",
    10.0,
    "Deadline in seconds of a command to the cluster. The child process that misses it is killed.",
    least=0.1,
    most=600,
)
MOST_PGS = integer(
    "cluster.schedule-pgs",
    100_000,
    "Keep scrub times and states by pool for clusters of at most this many placement groups.",
    least=0,
    most=10_000_000,
)

MOST_POOLS: Final = integer(
    "cluster.pools",
    MOST_POOLS_SHOWN,
    "Report at most this many pools, those with most placement groups. Each takes 57 series.",
    least=1,
    most=100_000,
)

PYTHON_HINT: Final = "a Python with Ceph's rados module (package python3-rados)"
CEPH_HINT: Final = "the ceph command (package ceph-common)"
_TRY_SECONDS: Final = 20  # for a command to start and end

OPTIONS: Final[tuple[Option[Any], ...]] = (
    CONF,
    NAME,
    KEYRING,
    PYTHON,
    CEPH,
    INTERVAL,
    SCHEDULE_INTERVAL,
    TIMEOUT,
    MOST_PGS,
    MOST_POOLS,
)


def check(settings: Settings) -> None:
    """Raise the ConfigError of a setting that cannot work, before anything is started."""
    for option in (PYTHON, CEPH):
        _argv(settings, option)
    for option in (CONF, KEYRING):
        if settings[option]:
            _check_file(settings, option)
    kind, _, rest = settings[NAME].partition(".")
    if not kind or not rest:
        raise settings.error(NAME, NAME.allowed)


def _check_file(settings: Settings, option: Option[str]) -> None:
    path = Path(settings[option])
    try:
        there = path.is_file()
    except OSError as exc:  # a directory on the way is closed to this user
        found = Described(f"{path} ({exc.strerror})")
        raise settings.error(option, "a readable file", found=found) from exc
    if not there:
        if settings.origin(option) == "default":
            raise NoSuchFile(path, hint=f"name it with --{option.name}=PATH")
        raise NoSuchFile(path, key=option.name)


def try_commands(settings: Settings) -> None:
    """Raise a ConfigError where neither the rados module nor the ceph command can be run."""
    try:
        try_python(settings)
    except ConfigError as exc:
        why = _failure_of([*_argv(settings, CEPH), "--version"])
        if why:
            found = Described(f"{settings[CEPH]!r} ({why}), and no Python with rados either")
            hint = f"{CEPH_HINT}; or in {PYTHON.name} {PYTHON_HINT}"
            raise settings.error(CEPH, hint, found=found) from exc


def try_python(settings: Settings) -> None:
    """Raise a ConfigError where no Python has the rados module."""
    from cephqos_exporter.ceph.monclient import SAFE_START

    why = _failure_of([*_argv(settings, PYTHON), "-c", f"{SAFE_START}import rados"])
    if why:
        raise settings.error(PYTHON, PYTHON_HINT, found=Described(f"{settings[PYTHON]!r} ({why})"))


def _failure_of(argv: Sequence[str]) -> str:
    """Why a command failed, in its own words; an empty text if it worked."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TRY_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {_TRY_SECONDS} s"
    except FileNotFoundError:
        return "no such command"
    except OSError as exc:
        return exc.strerror or str(exc)
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    return lines[-1][-80:]


def _argv(settings: Settings, option: Option[str]) -> tuple[str, ...]:
    try:
        argv = tuple(shlex.split(settings[option]))
    except ValueError:
        argv = ()
    if not argv:
        raise settings.error(option, option.allowed)
    return argv


def connection_of(settings: Settings) -> "ClusterAccess":
    """How to reach the cluster."""
    from cephqos_exporter.ceph.monclient import ClusterAccess

    return ClusterAccess(
        conf=settings[CONF],
        python=_argv(settings, PYTHON),
        name=settings[NAME],
        keyring=settings[KEYRING],
    )


def build_source(settings: Settings) -> "ClusterSource":
    """A source that connects when it is first asked."""
    # Loaded in this role only: they take memory.
    from cephqos_exporter.ceph.cluster import ClusterReader
    from cephqos_exporter.cluster.cluster_source import ClusterSource
    from cephqos_exporter.cluster.poller import Poller

    connection = connection_of(settings)
    ceph = _argv(settings, CEPH)

    def make() -> "Poller":
        return Poller(
            ClusterReader(connection, ceph=ceph, timeout=settings[TIMEOUT]),
            interval=settings[INTERVAL],
            schedule_interval=settings[SCHEDULE_INTERVAL],
            most_pgs=settings[MOST_PGS],
        )

    return ClusterSource(make, most_pools=settings[MOST_POOLS])
