"""Changes of the cluster, and the way back: it is written down before a change is made."""

import contextlib
import shlex
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView
from cephqos_loadgen.cluster.steps.options import FlagChanged
from cephqos_loadgen.cluster.steps.registry import stored
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.plan.errors import ClusterAway, RunError

# Steps that are kept at the same time. Each is a key of the monitors.
MAX_STEPS: Final = 10_000


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

    @property
    def shown(self) -> str:
        """As a shell takes it."""
        return shlex.join(self.argv)


def ceph(prefix: str, **arguments: Any) -> ClusterCommand:
    """A command as `ClusterConnection.command` takes it."""
    return ClusterCommand(prefix, arguments)


# The way back from a change: one step or more, of which the last is carried out first. Or a
# function that finds the steps before the change is made. It gets the steps that are written down
# already. It finds none if the change would change nothing, or if it is written down already.
WayBack = (
    tuple[StepBack, *tuple[StepBack, ...]]
    | Callable[[ClusterView, Collection[StepBack]], Awaitable[Sequence[StepBack]]]
)


@dataclass(frozen=True, slots=True)
class Change:
    """Commands that change the cluster, and what undoes them.

    `of` says what they change, in words: of two phases that change the same at the same time, none
    can take its change back.
    """

    of: str
    commands: Sequence[ClusterCommand]
    undo: WayBack


def flag(name: str, *, on: bool) -> Change:
    """Set or clear a flag of the cluster. If it was so before, the way back leaves it so."""

    async def back(cluster: ClusterView, written: Collection[StepBack]) -> Sequence[StepBack]:
        flags = (await cluster.command("osd dump"))["flags"].split(",")
        return [FlagChanged(name, on)] if (name in flags) != on else []

    return Change(f"flag {name}", [ceph("osd set" if on else "osd unset", key=name)], back)


# Keeps the steps, by number, somewhere else than in this process.
Save = Callable[[Mapping[int, StepBack]], Awaitable[None]]


class Journal:
    """The steps back of a run in the order of its changes. They are carried out in reverse."""

    def __init__(self, save: Save, steps: Mapping[int, StepBack] | None = None) -> None:
        self._save = save
        self._steps = dict(steps or {})  # by number; the order is that of the numbers
        self._next = max(self._steps, default=0) + 1
        self.used = False  # something was changed, whether or not it is undone by now
        self.left: list[str] = []  # what someone else had changed since, so it was not undone

    @property
    def entries(self) -> list[StepBack]:
        return list(self._steps.values())

    def steps(self, numbers: Collection[int]) -> list[StepBack]:
        """The steps with these numbers."""
        return [self._steps[number] for number in numbers]

    async def make(self, change: Change, cluster: ClusterConnection) -> list[int]:
        """Write down what undoes the change, then make it. Returns the numbers of the steps."""
        back = change.undo
        entries = back if isinstance(back, tuple) else await back(cluster, self.entries)
        numbers = [await self.push(entry) for entry in entries]
        for step in change.commands:
            await cluster.command(step.prefix, **step.arguments)
        return numbers

    async def push(self, entry: StepBack) -> int:
        """Write down a step, before the change that it undoes; returns its number. RunError if
        there is no room."""
        if len(self._steps) >= MAX_STEPS:
            raise RunError(
                f"{MAX_STEPS} steps that undo changes are written down already, and no more are"
                " kept: the change was not made"
            )
        stored(entry)  # whether it can be read again
        number, self._next = self._next, self._next + 1
        self._steps[number] = entry
        self.used = True
        await self._save(self._steps)
        return number

    async def drop(self, entry: StepBack) -> None:
        """Forget a step, because its change is to stay, or is undone."""
        del self._steps[self._number(entry)]
        await self._save(self._steps)

    async def replace(self, entry: StepBack, new: StepBack) -> None:
        """Write down more about the same change."""
        stored(new)
        self._steps[self._number(entry)] = new
        await self._save(self._steps)

    def _number(self, entry: StepBack) -> int:
        return next(number for number, step in self._steps.items() if step == entry)

    def forget(self, to: int = 0) -> None:
        """Forget all but the first `to` entries: the run that took over has undone them."""
        for number in list(self._steps)[to:]:
            del self._steps[number]

    async def roll_back(self, cluster: ClusterConnection, to: int = 0) -> list[str]:
        """Undo all but the first `to` entries, last first. Returns the errors."""
        return await self._undo(cluster, list(self._steps)[to:])

    async def take_back(self, cluster: ClusterConnection, numbers: Collection[int]) -> list[str]:
        """Undo the steps with these numbers, last first. Returns the errors; RunError, and nothing
        is undone, if the journal cannot be written now: then another run may have the cluster."""
        await self._save(self._steps)
        return await self._undo(cluster, numbers)

    async def _undo(self, cluster: ClusterConnection, numbers: Collection[int]) -> list[str]:
        """Undo steps, last first. Returns the errors.

        An entry that could not be undone stays. So does the one during which this is cancelled:
        each can be carried out twice. A cluster that is away is waited for only once, and what was
        changed on this host is undone all the same.
        """
        failures = []
        away: ClusterAway | None = None
        for number in sorted(numbers, reverse=True):
            entry = self._steps[number]
            try:
                if away and not entry.of_this_host:
                    raise away
                self._check_restarts(number)
                left = await entry.carry_out(cluster)
                if left and left not in self.left:
                    self.left.append(left)
            except (CephqosError, CommandFailed, OSError) as error:
                away = error if isinstance(error, ClusterAway) else away
                failures.append(f"{entry.shown}: {error}")
                continue
            del self._steps[number]
            if not away:
                # Before the next step: what is undone must not be undone again after a crash.
                with contextlib.suppress(CephqosError, CommandFailed):
                    await self._save(self._steps)
        try:
            await self._save(self._steps)
        except (CephqosError, CommandFailed) as error:
            failures.append(f"the way back in the cluster is not up to date: {error}")
        return failures

    def _check_restarts(self, number: int) -> None:
        """RunError for what OSDs need that have not restarted yet: it is undone after them."""
        later = (step for other, step in self._steps.items() if other > number)
        if self._steps[number].after_restarts and any(step.restarts for step in later):
            raise RunError("it stays until the OSDs have restarted")

    def commands(self) -> list[str]:
        """The commands that would restore the cluster, in the order to run them."""
        return [entry.shown for entry in reversed(self.entries)]
