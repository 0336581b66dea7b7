"""Pins OSDs to CPUs by a strategy; the plan of it is a pure function."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cephqos_loadgen.errors import UsageError
from cephqos_loadgen.lab import process
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.run.affinity import set_affinity
from cephqos_loadgen.run.undo import Undo

if TYPE_CHECKING:
    from cephqos_loadgen.run.context import Context
    from cephqos_loadgen.scenario.model import Pin

_LSCPU_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU as lscpu has it."""

    cpu: int
    core: int
    socket: int


def parse_lscpu(text: str) -> list[Cpu]:
    """The output of `lscpu --parse=CPU,CORE,SOCKET`."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            cpu, core, socket = line.split(",")
            found.append(Cpu(int(cpu), int(core), int(socket or 0)))
    return found


def plan(
    cpus: Sequence[Cpu], osds: Sequence[int], strategy: str, cores: int
) -> dict[int, tuple[int, ...]]:
    """CPUs per OSD. An OSD gets whole cores: all hardware threads of one, so that no sibling is
    shared with another OSD. UsageError where the cores do not suffice.

    default: cores in order; by_osd: OSDs take turns on the sockets; by_socket: each OSD's cores are
    spread evenly over the sockets.
    """
    threads: dict[tuple[int, int], list[int]] = {}
    for entry in sorted(cpus, key=lambda c: c.cpu):
        threads.setdefault((entry.socket, entry.core), []).append(entry.cpu)
    free = {
        socket: [own for (s, _), own in sorted(threads.items()) if s == socket]
        for socket in sorted({socket for socket, _ in threads})
    }
    total = len(threads)
    if cores * len(osds) > total:
        raise UsageError(
            f"{len(osds)} OSDs with {cores} cores each need {cores * len(osds)} cores;"
            f" this host has {total}"
        )
    sockets = list(free)
    found: dict[int, tuple[int, ...]] = {}
    for index, osd in enumerate(osds):
        own: list[int] = []
        for n in range(cores):
            socket = _socket(strategy, sockets, free, index, n)
            own += free[socket].pop(0)
        found[osd] = tuple(sorted(own))
    return found


def _socket(
    strategy: str, sockets: list[int], free: dict[int, list[list[int]]], index: int, n: int
) -> int:
    wanted = 0
    if strategy == "by_osd":
        wanted = index
    elif strategy == "by_socket":
        wanted = index + n
    for offset in range(len(sockets)):
        socket = sockets[(wanted + offset) % len(sockets)]
        if free[socket]:
            return socket
    raise AssertionError("the caller has counted the cores")


async def this_host() -> list[Cpu]:
    """The CPUs of this host."""
    listed = await process.run(["lscpu", "--parse=CPU,CORE,SOCKET"], within=_LSCPU_SECONDS)
    return parse_lscpu(listed.stdout)


async def pin_osds(context: Context, action: Pin) -> PinResult:
    """Pin this host's OSDs, or only say how; the plan goes into the archive either way."""
    osds = sorted(await context.cluster.osds())
    placed = plan(await this_host(), osds, action.strategy, action.cpus_per_osd)
    result = {f"osd.{osd}": cpus for osd, cpus in placed.items()}
    shown = {osd: list(cpus) for osd, cpus in result.items()}
    context.recorder.event("placement", strategy=action.strategy, plan=shown)
    if not action.apply:
        return PinResult(action.strategy, result, applied=False)
    pids = await context.cluster.access.pids()
    for osd, cpus in placed.items():
        pid = pids.get(f"osd.{osd}")
        if pid is None:
            raise UsageError(f"osd.{osd} is not a process of this host: it cannot be pinned")
        before = sorted(os.sched_getaffinity(pid))
        command = f"taskset --all-tasks --cpu-list --pid {','.join(map(str, before))} {pid}"
        await context.journal.push(Undo("affinity", command, {"pid": pid, "cpus": before}))
        set_affinity(pid, cpus)
    return PinResult(action.strategy, result, applied=True)
