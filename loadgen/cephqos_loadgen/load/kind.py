"""A kind of phase as a whole: what an action says of itself, how it is carried out, its result."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Self

from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.settings import set_option
from cephqos_loadgen.cluster.undo import Change
from cephqos_loadgen.load.context import Context, Hands
from cephqos_loadgen.plan.action import Action
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.results.phase import PhaseResult

# Returns when the phase is to end.
End = Callable[[], Awaitable[None]]


class PhaseKind(Action):
    """Base of all kinds: each is one file of `phase_kinds`.

    What a kind changes in the cluster it declares, in `settings` and `changes`. The dry run, the
    execution and the way back are made from that; `carry_out` can only look.
    """

    __slots__ = ()

    async def found_in(self, cluster: ClusterView) -> Self:
        """The same, with what only the cluster knows: which OSD is the last, say."""
        return self

    async def before_repeat(self, hands: Hands, pools: Collection[str]) -> None:
        """Check and wait for what it needs, before a repeat with these pools is measured."""

    def changes(self) -> Sequence[Change]:
        """What it changes in the cluster, in this order, before it is carried out."""
        return ()

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        """Of its settings and changes. Kinds that do other work override it."""
        yield from (set_option(option).argv for option in self.settings())
        for change in self.changes():
            yield from (command.argv for command in change.commands)

    def changed(self) -> Collection[str]:
        """Of its settings and changes."""
        options = (f"option {option.name}" for option in self.settings())
        return {*options, *(change.of for change in self.changes())}

    def steps_back(self) -> int:
        """One for each change. Kinds with others override it."""
        return len(self.changes())

    async def make_changes(self, hands: Hands) -> list[int]:
        """What it declares, each written down first. Returns the numbers of the steps back."""
        numbers = await hands.settings.put(self.settings()) if self.settings() else []
        for change in self.changes():
            numbers += await hands.journal.make(change, hands.cluster)
        return numbers

    @abstractmethod
    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> PhaseResult:
        """Do the work. `end` returns when the phase is to end; None: it ends with its work."""


async def wait_for(end: End | None) -> None:
    """For kinds whose work takes no time: the phase lasts until its end comes."""
    if end is not None:
        await end()
