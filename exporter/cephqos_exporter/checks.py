"""What must hold for the exporter to run with its settings, and what `--config.check` tries out."""

import errno
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cephqos_base.errors import ConfigError, Described
from cephqos_exporter import core_options
from cephqos_exporter.cluster import cluster_options
from cephqos_exporter.collectors import build_enabled
from cephqos_exporter.collectors.base import CollectorInputs
from cephqos_exporter.config import Option, Settings
from cephqos_exporter.flight_recorder import options as recorder_options
from cephqos_exporter.probe import probe_options
from cephqos_exporter.web import config as web_config
from cephqos_exporter.web.addresses import bind_to, split_address
from cephqos_exporter.web.server import OTHER_PATHS
from cephqos_exporter.web.tls import server_context

if TYPE_CHECKING:
    import psutil

# Each root with something that is in it on every machine, or in every fixture tree of one.
_ROOTS: Final[Mapping[Option[str], tuple[str, Callable[[Path], bool]]]] = {
    core_options.PROC: (
        "a directory with a procfs in it, such as /proc",
        lambda root: (root / "diskstats").exists() or any(root.glob("[1-9]*/task")),
    ),
    core_options.SYS: (
        "a directory with a sysfs in it, such as /sys",
        lambda root: any((root / name).is_dir() for name in ("block", "class", "devices")),
    ),
    core_options.DEV: ("a directory, such as /dev", Path.is_dir),
}


def check(settings: Settings) -> None:
    """Raise the ConfigError that starting with these settings would end in."""
    addresses(settings)
    _check_telemetry_path(settings)
    for pattern in settings[core_options.SOCKETS]:
        if not Path(pattern).is_absolute():
            raise settings.error(core_options.SOCKETS, core_options.SOCKETS.allowed)
    if "osd" in settings[core_options.ROLE]:
        for option in _ROOTS:
            check_root(settings, option)
    if "cluster" in settings[core_options.ROLE]:
        cluster_options.check(settings)
    if "probe" in settings[core_options.ROLE]:
        probe_options.check(settings)
    _check_recorder(settings)
    path = web_config_path(settings)
    if path is not None:
        checked = web_config.load(path)
        if checked.tls is not None:
            server_context(checked.tls, path)
    build_enabled(CollectorInputs(settings))


def check_root(settings: Settings, option: Option[str]) -> None:
    """ConfigError if the path is not what the option needs, such as a procfs."""
    allowed, holds = _ROOTS[option]
    root = Path(settings[option])
    try:
        there = holds(root)
    except OSError as exc:  # such as where this user may not look
        found = Described(f"{root} ({exc.strerror})")
        raise settings.error(option, allowed, found=found) from exc
    if not there:
        raise settings.error(option, allowed)


def try_out(settings: Settings) -> None:
    """For `--config.check`: raise the ConfigError of what must be tried out on this machine.

    A start tries the addresses itself, and goes on without a command or module: it may be installed
    later.
    """
    if not settings[core_options.SYSTEMD_SOCKET]:
        _check_addresses(settings)
    if "cluster" in settings[core_options.ROLE]:
        cluster_options.try_commands(settings)
    if "probe" in settings[core_options.ROLE]:
        cluster_options.try_python(settings)


def addresses(settings: Settings) -> Sequence[str]:
    """The addresses to listen on; ConfigError if one has another form than `[host]:port`."""
    given = settings[core_options.LISTEN_ADDRESS]
    for address in given:
        try:
            split_address(address)
        except ValueError:
            allowed = core_options.LISTEN_ADDRESS.allowed
            raise settings.error(core_options.LISTEN_ADDRESS, allowed, found=address) from None
    if not given:
        raise settings.error(core_options.LISTEN_ADDRESS, core_options.LISTEN_ADDRESS.allowed)
    return given


def _check_recorder(settings: Settings) -> None:
    if not Path(settings[recorder_options.PATH]).is_absolute():
        raise settings.error(recorder_options.PATH, recorder_options.PATH.allowed)
    for address in settings[recorder_options.FORWARD]:
        if not settings[recorder_options.MINUTES] or not _is_address(address):
            allowed = recorder_options.FORWARD.allowed
            raise settings.error(recorder_options.FORWARD, allowed, found=address)


def _is_address(address: str) -> bool:
    try:
        return bool(split_address(address)[0])
    except ValueError:
        return False


def web_config_path(settings: Settings) -> Path | None:
    path = settings[core_options.WEB_CONFIG]
    return Path(path) if path else None


def _check_telemetry_path(settings: Settings) -> None:
    path = settings[core_options.TELEMETRY_PATH]
    if not re.fullmatch(r"/[^\s?#%]+", path) or path in OTHER_PATHS:
        taken = ", ".join(sorted(OTHER_PATHS))
        raise settings.error(
            core_options.TELEMETRY_PATH, f"a path that starts with /, such as /metrics; not {taken}"
        )


def _check_addresses(settings: Settings) -> None:
    for address in addresses(settings):
        try:
            bind_to(*split_address(address)).close()
        except (OSError, UnicodeError) as exc:
            busy = getattr(exc, "errno", None) == errno.EADDRINUSE
            if busy and _runs_already(split_address(address)[1]):
                continue
            raise address_error(settings, address, exc) from exc


def address_error(settings: Settings, address: str, exc: Exception) -> ConfigError:
    """The error of an address of the right form that cannot be listened on."""
    option, why = core_options.LISTEN_ADDRESS, getattr(exc, "strerror", None) or exc
    allowed = f"an address of this machine, or :10130 for all of them ({why})"
    if getattr(exc, "errno", None) == errno.EADDRINUSE:
        host, _, port = address.rpartition(":")
        holder = holder_of(int(port))
        by = f"process {holder.pid} ({holder.name()})" if holder else "another process"
        allowed = (
            f"a free port, such as --{option.name}={host}:{int(port) % 65535 + 1}; {by} has it"
        )
        return settings.error(option, allowed, found=Described(f"{address}, which is in use"))
    return settings.error(option, allowed, found=address)


def holder_of(port: int) -> "psutil.Process | None":
    """The process that listens on a TCP port, if this user may see it."""
    import psutil

    try:
        for one in psutil.net_connections("tcp"):
            if one.pid and one.laddr and one.status == "LISTEN" and one.laddr.port == port:
                return psutil.Process(one.pid)
    except (OSError, psutil.Error):  # such as one that has just ended
        pass
    return None


def _runs_already(port: int) -> bool:
    """Whether the port is held by an exporter, as far as this user may see who holds it."""
    import psutil

    holder = holder_of(port)
    processes = [holder] if holder else psutil.process_iter()
    return any(one.pid != os.getpid() and _is_exporter(one) for one in processes)


def _is_exporter(process: "psutil.Process") -> bool:
    import psutil

    try:
        return any(Path(word).name == "cephqos-exporter" for word in process.cmdline()[:2])
    except psutil.Error:
        return False
