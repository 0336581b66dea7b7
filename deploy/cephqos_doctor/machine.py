"""Checks of the machine below a host's OSDs: its memory and network, its kernel and its clients."""

from collections.abc import Iterator
from typing import Final

from cephqos_doctor.finding import Check, Finding
from cephqos_doctor.host_facts import HostFacts

# From which mcelog, as it is delivered, reports a module. Each was corrected: none does harm.
_CORRECTED_DAILY: Final = 10.0
# Share of all packets received: those that were missed in a few minutes may be all there are.
_MISSED_SHARE: Final = 1e-5
_NEARLY: Final = 0.8  # of what the kernel has room for
_LITTLE_MEMORY: Final = 0.1  # available
_PAGE: Final = 4096


def _memory_errors(facts: HostFacts) -> Iterator[Finding]:
    machine = facts.machine
    modules = "grep . /sys/devices/system/edac/mc/mc*/dimm*/dimm_[cu]e_count   # which module?"
    if machine.uncorrected:
        yield Finding(
            "this host",
            f"its memory had {machine.uncorrected} errors that could not be corrected: its OSDs may"
            " crash or write wrong data",
            f"{modules} Replace it. Move the OSDs away first: ceph osd out osd.N, one at a time",
        )
    elif (machine.corrected_daily or 0) > _CORRECTED_DAILY:
        yield Finding(
            "this host",
            f"its memory had {machine.corrected_daily:,.0f} errors a day. All were corrected, but a"
            " module with so many may fail",
            f"{modules} Replace it at the next maintenance",
        )


def _no_memory_errors(facts: HostFacts) -> str:
    return "no EDAC driver counts errors of memory" if facts.machine.uncorrected is None else ""


def _missed_packets(facts: HostFacts) -> Iterator[Finding]:
    for name, received in facts.machine.received.items():
        if received.missed > _MISSED_SHARE * received.packets:
            yield Finding(
                name,
                f"it missed {received.missed:,} of {received.packets:,} packets since the host"
                " started: its receive ring was full, its CPU late, or its link at its speed",
                f"ethtool -g {name}   # maximum and present size of the ring\n"
                f"ethtool -G {name} rx MAXIMUM   # and in the network's configuration. Missed now:"
                f" ip -s -s link show {name}",
            )


def _no_received(facts: HostFacts) -> str:
    return "" if facts.machine.received else "no network interface with hardware is visible"


def _many_tracked(facts: HostFacts) -> Iterator[Finding]:
    count, most = facts.machine.tracked or (0, 1)
    if count > _NEARLY * most:
        yield Finding(
            "this host",
            f"its kernel tracks {count:,} connections, and {most:,} fit: beyond that it drops new"
            " ones, and OSDs do not reach each other",
            f"sysctl net.netfilter.nf_conntrack_max={2 * most}   # and in /etc/sysctl.d. Or no"
            " tracking (notrack) of Ceph's ports",
        )


def _none_tracked(facts: HostFacts) -> str:
    return "" if facts.machine.tracked else "the kernel tracks no connections, or does not say"


def _many_requests(facts: HostFacts) -> Iterator[Finding]:
    count, most = facts.machine.aio_requests or (0, 1)
    if count > _NEARLY * most:
        yield Finding(
            "this host",
            f"{count:,} of {most:,} asynchronous requests of its kernel are taken: an OSD that"
            " starts next may end with io_setup(2) failed",
            f"sysctl fs.aio-max-nr={max(1048576, 2 * most)}   # and in /etc/sysctl.d",
        )


def _requests_unknown(facts: HostFacts) -> str:
    return "" if facts.machine.aio_requests else "/proc/sys/fs/aio-nr cannot be read"


def _clients_beside(facts: HostFacts) -> Iterator[Finding]:
    available = facts.machine.available
    scarce = available is not None and available < _LITTLE_MEMORY
    if facts.machine.kernel_clients and scarce and (facts.osds or facts.processes):
        yield Finding(
            "this host",
            f"its kernel has mapped RBD or mounted CephFS beside OSDs, and {available:.0%} of its"
            " memory is available: to free memory it may have to write to its own OSD, and both"
            " wait for ever",
            "ceph config set osd/host:HOST osd_memory_target BYTES   # less; or run these clients"
            " on other hosts. XFS and kernels before 5.6 make it likelier",
        )


def _clients_unknown(facts: HostFacts) -> str:
    machine = facts.machine
    if machine.kernel_clients is None:
        return "mounts of the host (/proc/1/mounts) cannot be read"
    return "/proc/meminfo does not say" if machine.available is None else ""


def _large_pages(facts: HostFacts) -> Iterator[Finding]:
    size = facts.machine.page_size
    if size is not None and size > _PAGE:
        yield Finding(
            "this host",
            f"its kernel has pages of {size >> 10} KiB: most builds of Ceph expect 4. OSDs may not"
            " start, or their allocator gives no memory back",
            "getconf PAGESIZE   # 4096 after a start with a kernel that has such pages, or with"
            " kernel=kernel8.img in /boot/firmware/config.txt (Raspberry Pi). OSDs that grow until"
            " then: restart one at a time",
        )


def _pages_unknown(facts: HostFacts) -> str:
    return "" if facts.machine.page_size else "the size of the kernel's pages is not known"


HOST_CHECKS: Final = (
    Check("memory-errors", _memory_errors, _no_memory_errors),
    Check("receive-ring", _missed_packets, _no_received),
    Check("connections-tracked", _many_tracked, _none_tracked),
    Check("aio-requests", _many_requests, _requests_unknown),
    Check("page-size", _large_pages, _pages_unknown),
    Check("clients-apart", _clients_beside, _clients_unknown),
)
