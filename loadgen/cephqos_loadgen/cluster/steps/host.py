"""What a run has changed on its own host: queues of block devices, CPUs, mapped images.

A host that was started again has lost all of it: then nothing is left to undo.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from cephqos_base.errors import UsageError
from cephqos_base.units import format_cpu_list, parse_cpu_list
from cephqos_loadgen import processes, queue_files
from cephqos_loadgen.cluster import affinity, this_host
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.steps.step import (
    ElsewhereOnly,
    StepBack,
    integer,
    part,
    pool_id,
    several,
    table,
    word,
)
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.reading import NAME

BLOCK: Final = Path("/sys/block")
RBD_DEVICES: Final = Path("/sys/bus/rbd/devices")
_COMMAND_SECONDS: Final = 60.0
SCHEDULER: Final = "scheduler"
# The files of `queue/` that a run may set, or that a switch of the scheduler resets.
KNOWN: Final = (SCHEDULER, "nr_requests", "read_ahead_kb", "wbt_lat_usec")
_ATTRIBUTE: Final = word(
    rf"({'|'.join(KNOWN)})|iosched/[a-z][a-z0-9_]{{0,40}}",
    f"{', '.join(KNOWN)} or a file of iosched/",
)
_VALUE: Final = word(r"[A-Za-z0-9_.:-]{1,64}", "a word or a number")
_DEVICE: Final = word(
    r"[A-Za-z0-9][A-Za-z0-9_!.-]{0,63}", "the name of a block device, such as nvme0n1"
)
_BOOT: Final = word(r"[0-9a-f-]{36}", "the id of a boot")
_HOST: Final = word(r"[A-Za-z0-9_.-]{1,255}", "the name of a host")
_THREAD: Final = word(r"[0-9]{1,10}", "the id of a thread")


def _cpus(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[0-9,-]{1,4000}", value):
        try:
            if parse_cpu_list(value):
                return value
        except UsageError:
            pass
    raise ValueError("a list of CPUs, such as 0,2-3")


@dataclass(frozen=True, slots=True)
class HostStep(StepBack):
    """A step of one host, as long as it has not been started again."""

    of_this_host: ClassVar[bool] = True

    host: str = part(_HOST)
    boot: str = part(_BOOT)

    async def carry_out(self, cluster: ClusterConnection) -> str:
        if self.host != this_host.name():
            raise ElsewhereOnly(f"it can be undone on {self.host} only")
        if self.boot != this_host.boot():
            return f"{self.host} was started again since then, which has undone it"
        return await self.on_this_boot(cluster)

    async def on_this_boot(self, cluster: ClusterConnection) -> str:
        """As `carry_out`, on the right host."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class QueueSet(HostStep):
    """The queue of a block device. A switch of the scheduler resets the other files."""

    kind: ClassVar[str] = "queue"

    device: str = part(_DEVICE)
    before: Mapping[str, str] = part(table(_ATTRIBUTE, _VALUE, 64))  # in the order to write them
    ours: Mapping[str, str] = part(table(_ATTRIBUTE, _VALUE, 8))  # what the run has set

    @property
    def shown(self) -> str:
        steps = (f"echo {shlex.quote(value)} > {key}" for key, value in self.before.items())
        return f"cd {BLOCK / self.device / 'queue'}; {'; '.join(steps)}"

    async def on_this_boot(self, cluster: ClusterConnection) -> str:
        return give_back_queue(self, BLOCK)


def give_back_queue(step: QueueSet, block: Path) -> str:
    """Write the files of a queue back, unless someone else has changed one that the run had set."""
    queue = block / step.device / "queue"
    if not queue.is_dir():
        return f"the block device {step.device} is gone"
    others = []
    for key, ours in step.ours.items():
        now, before = queue_files.read(queue / key), step.before.get(key)
        if now not in (ours, before):
            others.append(f"{step.device} {key} was set to {now} by someone else")
    if others and SCHEDULER in step.ours:
        return "; ".join(others)  # the other files are those of a scheduler
    keys = [key for key in step.before if not any(f" {key} " in text for text in others)]
    for key in keys:
        if (queue / key).exists() and queue_files.read(queue / key) != step.before[key]:
            queue_files.write(queue / key, step.before[key])
    return "; ".join(others)


@dataclass(frozen=True, slots=True)
class CpusSet(HostStep):
    """The CPUs that the threads of an OSD may use."""

    kind: ClassVar[str] = "cpus"

    pid: int = part(integer(2, 1 << 32))
    started: int = part(integer(0, 1 << 62))  # ticks since the host's boot
    rest: str = part(_cpus)  # of most threads
    others: Mapping[str, str] = part(table(_THREAD, _cpus, 400))  # by thread id
    ours: str = part(_cpus)

    @property
    def before(self) -> affinity.ProcessCpus:
        different = {int(tid): parse_cpu_list(cpus) for tid, cpus in self.others.items()}
        return affinity.ProcessCpus(self.pid, self.started, parse_cpu_list(self.rest), different)

    @property
    def shown(self) -> str:
        return self.before.shown()

    async def on_this_boot(self, cluster: ClusterConnection) -> str:
        return affinity.restore(self.before, parse_cpu_list(self.ours))


def cpus_step(before: affinity.ProcessCpus, ours: affinity.Cpus) -> CpusSet:
    """What gives a process of this host its CPUs back."""
    return CpusSet(
        host=this_host.name(),
        boot=this_host.boot(),
        pid=before.pid,
        started=before.started,
        rest=format_cpu_list(before.common),
        others={str(tid): format_cpu_list(cpus) for tid, cpus in before.different.items()},
        ours=format_cpu_list(ours),
    )


@dataclass(frozen=True, slots=True)
class ImageMapped(HostStep):
    """An image of a pool of the run that the kernel has mapped as a block device."""

    kind: ClassVar[str] = "krbd"

    pool: str = part(word(NAME, "a pool's name"))
    pool_id: int = part(pool_id)
    image: str = part(word(r"volume\.[0-9]{1,6}", "an image of a run, such as volume.0"))
    present: Sequence[int] = part(several(integer(0, 1 << 20), 256))  # mapped before, by others

    @property
    def shown(self) -> str:
        return f"rbd device unmap {self.pool}/{self.image}"

    async def on_this_boot(self, cluster: ClusterConnection) -> str:
        for number in mapped(cluster.fsid, self.pool_id, self.image):
            if number not in self.present:
                argv = cluster.access.argv(["rbd", "device", "unmap", f"/dev/rbd{number}"])
                done = await processes.run(argv, within=_COMMAND_SECONDS)
                if done.returncode:
                    raise RunError(f"/dev/rbd{number} was not unmapped: {done.stderr.strip()}")
        return ""


def mapped(fsid: str, pool: int, image: str) -> list[int]:
    """The numbers of the block devices to which this host's kernel has mapped an image."""
    found = []
    for folder in sorted(RBD_DEVICES.glob("[0-9]*")):
        wanted = {"cluster_fsid": fsid, "pool_id": str(pool), "name": image}
        try:
            if all((folder / key).read_text().strip() == value for key, value in wanted.items()):
                found.append(int(folder.name))
        except OSError:
            continue  # it was just unmapped
    return found
