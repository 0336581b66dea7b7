"""Changes of the cluster and the way back: what undoes a change is written down before it is made.

Each entry is data, so that it can be carried out, shown as a command line, archived, and kept in
the cluster for the next run, if this one dies.
"""

import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen import queue_files
from cephqos_loadgen.cluster import affinity, restarts, upmaps
from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView
from cephqos_loadgen.plan.errors import ClusterAway


@dataclass(frozen=True, slots=True)
class ClusterCommand:
    """One command of Ceph: as it is sent, and as a person types it."""

    prefix: str
    arguments: Mapping[str, Any]

    @property
    def argv(self) -> list[str]:
        words = ["ceph", *self.prefix.split()]
        for name, value in self.arguments.items():
            if value is True:
                words.append(f"--{name.replace('_', '-')}")
            elif name != "target":
                words += map(str, value if isinstance(value, list) else [value])
        return words


def ceph(prefix: str, **arguments: Any) -> ClusterCommand:
    """A command as `ClusterConnection.command` takes it."""
    return ClusterCommand(prefix, arguments)


@dataclass(frozen=True, slots=True)
class Undo:
    """One step back. The fields are stored in the cluster, for a later run."""

    kind: Literal["command", "restart", "queue", "affinity", "upmaps"]
    shown: str  # the exact command for a person
    arguments: dict[str, Any] = field(default_factory=dict)  # of what `carry_out` calls
    ours: str = ""  # if an option of Ceph is set back: the value that the run had set


def command(prefix: str, **arguments: Any) -> Undo:
    """A step back that is one command of Ceph."""
    shown = shlex.join(ceph(prefix, **arguments).argv)
    return Undo("command", shown, {"prefix": prefix, **arguments})


# The way back from a change: one step or more, of which the last is carried out first. Or a
# function that finds the steps before the change is made. It gets the steps that are written down
# already. It finds none if the change would change nothing, or if it is written down already.
WayBack = (
    tuple[Undo, *tuple[Undo, ...]]
    | Callable[[ClusterView, Collection[Undo]], Awaitable[Sequence[Undo]]]
)


@dataclass(frozen=True, slots=True)
class Change:
    """Commands that change the cluster, and what undoes them."""

    commands: Sequence[ClusterCommand]
    undo: WayBack


# While one of these flags is set, data does not move. It moves when the flag is cleared.
HOLDING_DATA: Final = frozenset({"norecover", "nobackfill", "norebalance", "noin", "noout"})


def flag(name: str, *, on: bool) -> Change:
    """Set or clear a flag of the cluster. If it was so before, the way back leaves it so."""
    do, opposite = ("osd set", "osd unset") if on else ("osd unset", "osd set")

    async def back(cluster: ClusterView, written: Collection[Undo]) -> Sequence[Undo]:
        flags = (await cluster.command("osd dump"))["flags"].split(",")
        return [command(opposite, key=name)] if (name in flags) != on else []

    return Change([ceph(do, key=name)], back)


class Journal:
    """The steps back of a run in the order of its changes. They are carried out in reverse."""

    def __init__(self, save: Callable[[list[Undo]], Awaitable[None]]) -> None:
        self._save = save
        self.entries: list[Undo] = []
        self.used = False  # something was changed, whether or not it is undone by now

    async def make(self, change: Change, cluster: ClusterConnection) -> None:
        """Write down what undoes the change, then make it."""
        back = change.undo
        entries = back if isinstance(back, tuple) else await back(cluster, self.entries)
        for entry in entries:
            await self.push(entry)
        for step in change.commands:
            await cluster.command(step.prefix, **step.arguments)

    async def push(self, entry: Undo) -> None:
        """Write down a step, before the change that it undoes."""
        self.entries.append(entry)
        self.used = True
        await self._save(self.entries)

    async def drop(self, entry: Undo) -> None:
        """Forget a step, because its change is to stay."""
        self.entries.remove(entry)
        await self._save(self.entries)

    async def roll_back(self, cluster: ClusterConnection, to: int = 0) -> list[str]:
        """Undo all but the first `to` entries, last first. Returns the errors.

        An entry that could not be undone stays. So does the one during which this is cancelled:
        each can be carried out twice. A cluster that is away is waited for only once, and what was
        changed on this host is undone all the same.
        """
        failures = []
        kept: list[Undo] = []
        away: ClusterAway | None = None
        try:
            while len(self.entries) > to:
                entry = self.entries[-1]
                try:
                    if away and not of_this_host(entry):
                        raise away
                    await carry_out(entry, cluster)
                except (CephqosError, CommandFailed, OSError) as error:
                    away = error if isinstance(error, ClusterAway) else away
                    failures.append(f"{entry.shown}: {error}")
                    kept.append(entry)
                self.entries.pop()
        finally:
            self.entries += reversed(kept)
        try:
            await self._save(self.entries)
        except (CephqosError, CommandFailed) as error:
            failures.append(f"the way back in the cluster is not up to date: {error}")
        return failures

    def commands(self) -> list[str]:
        """The commands that would restore the cluster, in the order to run them."""
        return [entry.shown for entry in reversed(self.entries)]


async def carry_out(entry: Undo, cluster: ClusterConnection) -> None:
    """Do one step back."""
    if entry.kind == "command":
        await cluster.command(**entry.arguments)
    elif entry.kind == "restart":
        await restarts.restart(cluster, **entry.arguments)
    elif entry.kind == "queue":
        queue_files.put(**entry.arguments)
    elif entry.kind == "upmaps":
        await upmaps.give_back(cluster, entry.arguments)
    else:
        affinity.restore(affinity.ProcessCpus.from_json(**entry.arguments))


def of_this_host(entry: Undo) -> bool:
    """Whether it can be done on the host of the run only."""
    return entry.kind in ("queue", "affinity")


def to_json(entries: list[Undo]) -> list[dict[str, Any]]:
    return [asdict(entry) for entry in entries]


def from_json(data: list[dict[str, Any]]) -> list[Undo]:
    return [Undo(**entry) for entry in data]
