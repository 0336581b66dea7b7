"""What a host counts of itself: errors of its memory, packets that it missed, tracked connections,
asynchronous requests, and clients of Ceph in its kernel."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cephqos_exporter import procfs, sysfs
from cephqos_exporter.daemon import Host

_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Received:
    """Packets of an interface since the host started. Missed: no room in the ring was free."""

    packets: int
    missed: int


@dataclass(frozen=True, kw_only=True)
class Machine:
    """None, or empty: not known."""

    uncorrected: int | None = None  # errors of the memory since its driver counts
    corrected_daily: float | None = None  # the mean of a day; all of them if it counts for less
    received: Mapping[str, Received] = field(default_factory=dict)  # by interface with hardware
    tracked: tuple[int, int] | None = None  # connections, and the most that fit
    aio_requests: tuple[int, int] | None = None  # that are taken, and the most that fit
    page_size: int | None = None  # of the kernel, in bytes
    kernel_clients: bool | None = None  # whether the kernel has mapped RBD or mounted CephFS
    available: float | None = None  # share of the memory
    memory: int | None = None  # of the host, in bytes


def look(host: Host) -> Machine:
    uncorrected, corrected_daily = _memory_errors(host.sys)
    return Machine(
        uncorrected=uncorrected,
        corrected_daily=corrected_daily,
        received=_received(host.sys / "class/net"),
        tracked=_of_most(host.proc / "sys/net/netfilter", "nf_conntrack_count", "nf_conntrack_max"),
        aio_requests=_of_most(host.proc / "sys/fs", "aio-nr", "aio-max-nr"),
        page_size=procfs.PAGE_SIZE,
        kernel_clients=_kernel_clients(host),
        available=_available(host.proc),
        memory=next(iter(meminfo(host.proc, "MemTotal") or ()), None),
    )


def _number(path: Path) -> int | None:
    text = sysfs.read_text(path) or ""
    return int(text) if text.isdecimal() else None


def _memory_errors(sys: Path) -> tuple[int | None, float | None]:
    """Of all memory controllers (EDAC)."""
    uncorrected: int | None = None
    corrected: float | None = None
    for controller in (sys / "devices/system/edac/mc").glob("mc[0-9]*"):
        if (errors := _number(controller / "ue_count")) is not None:
            uncorrected = (uncorrected or 0) + errors
        seconds = _number(controller / "seconds_since_reset")
        if (errors := _number(controller / "ce_count")) is not None and seconds is not None:
            corrected = (corrected or 0) + errors / max(seconds / _DAY, 1)
    return uncorrected, corrected


def _received(net: Path) -> Mapping[str, Received]:
    found = {}
    for device in sorted(net.glob("*/device")):  # no bonds: they count those of their links again
        counts = device.parent / "statistics"
        # A driver counts such a packet here or there, or at both.
        missed = [_number(counts / f"rx_{kind}_errors") for kind in ("missed", "fifo")]
        packets = _number(counts / "rx_packets")
        if packets is not None and (known := [one for one in missed if one is not None]):
            found[device.parent.name] = Received(packets, max(known))
    return found


def _of_most(folder: Path, *names: str) -> tuple[int, int] | None:
    count, most = (_number(folder / name) for name in names)
    return (count, most) if count is not None and most else None


def _kernel_clients(host: Host) -> bool | None:
    mounts = sysfs.read_text(host.proc / "1/mounts")
    if next((host.sys / "bus/rbd/devices").glob("*"), None):
        return True
    return None if mounts is None else any(it.split()[2] == "ceph" for it in mounts.splitlines())


def _available(proc: Path) -> float | None:
    known = meminfo(proc, "MemTotal", "MemAvailable")
    return known[1] / known[0] if known else None


def meminfo(proc: Path, *names: str) -> list[int] | None:
    """These lines of /proc/meminfo, in bytes; None if one is missing."""
    text = sysfs.read_text(proc / "meminfo") or ""
    found = [re.search(rf"^{name}: +(\d+) kB$", text, re.MULTILINE) for name in names]
    known = [int(one[1]) * 1024 for one in found if one]
    return known if len(known) == len(names) else None
