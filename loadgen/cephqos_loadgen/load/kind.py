"""A kind of phase as a whole: what an action says of itself, how it is carried out, its result."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable

from cephqos_loadgen.load.context import Context
from cephqos_loadgen.plan.action import Action
from cephqos_loadgen.plan.model import Phase
from cephqos_loadgen.results.phase import PhaseResult

# Returns when the phase is to end.
End = Callable[[], Awaitable[None]]


class PhaseKind(Action):
    """Base of all kinds: each is one file of `phase_kinds`."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """That of its result."""
        return str(self.result.kind)

    @property
    @abstractmethod
    def result(self) -> type[PhaseResult]:
        """The class of what `carry_out` returns."""

    @abstractmethod
    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> PhaseResult:
        """Do the work. `end` returns when the phase is to end; None: it ends with its work."""


async def wait_for(end: End | None) -> None:
    """For kinds whose work takes no time: the phase lasts until its end comes."""
    if end is not None:
        await end()
