"""What every kind of phase must say about itself. Pure: `load.kind` adds how it is carried out."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar, Final, Literal, Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.plan.cpu_placement import Cpu
from cephqos_loadgen.plan.parts import Objects, PlannedPool
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.results.phase import PhaseResult

# What can end a phase.
Ending = Literal["done", "duration", "scrub_done", "recovery_done", "steady_state", "phase"]
# The endings of kinds that last until the run ends them, and of kinds that end with their work and
# cannot be ended before.
TOLD: Final[tuple[Ending, ...]] = ("done", "duration", "scrub_done", "recovery_done", "phase")
WORK: Final[tuple[Ending, ...]] = ("done",)


class Action(ABC):
    """What one phase does: a frozen dataclass, made from what the scenario says."""

    __slots__ = ()
    # Whether it changes how data moves, so that a recovery that is under way goes on.
    steers_data: ClassVar[bool] = False
    # Whether it marks OSDs down.
    takes_osds_down: ClassVar[bool] = False
    # Whether it scrubs: `until: scrub_done` and `when: scrub_started` wait for such phases.
    scrubs: ClassVar[bool] = False
    # Whether what it changes can be taken back when it ends (`take_back`).
    can_take_back: ClassVar[bool] = False
    # Whether client processes do its work: their threads are recorded.
    has_clients: ClassVar[bool] = False
    # What `until` may be. Most kinds do their work and then wait for the end of the phase.
    endings: ClassVar[tuple[Ending, ...]] = TOLD

    @property
    @abstractmethod
    def result(self) -> type[PhaseResult]:
        """The class of its result."""

    @property
    def kind(self) -> str:
        """Its key in scenarios: that of its result."""
        return str(self.result.kind)

    @classmethod
    @abstractmethod
    def read(cls, value: Value) -> Self:
        """Read the action from the scenario; ConfigError names what is wrong."""

    @abstractmethod
    def describe(self) -> str:
        """One line for a plan."""

    @abstractmethod
    def expected_seconds(self) -> float | None:
        """About how long its own work takes; None if it runs until the run ends it."""

    @abstractmethod
    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        """Every command line, for `--dry-run`; `seconds` is the most that the phase may take."""

    @property
    def keeps_its_own_time(self) -> bool:
        """Whether it ends with its own work, at times of its own, so that it takes no `until`."""
        return False

    # -- what few kinds have --------------------------------------------------------------------

    @property
    def moves_data(self) -> bool:
        """Whether it moves data: recovery is counted from its start."""
        return False

    def pools(self) -> tuple[str, ...]:
        """The names of the pools that it uses."""
        return ()

    def programs(self) -> tuple[str, ...]:
        """What it starts on the host of the run."""
        return ()

    @property
    def needs_osds_here(self) -> bool:
        """Whether it changes processes of OSDs, which must then run on the host of the run."""
        return False

    def ramp_seconds(self) -> float:
        """How long it runs before its own time begins to count."""
        return 0.0

    def fio_engines(self) -> tuple[str, ...]:
        """The engines of fio that it needs."""
        return ()

    def paths(self) -> tuple[str, ...]:
        """Devices and files of this host that it loads: the user must have named them."""
        return ()

    def settings(self) -> tuple[CephOption, ...]:
        """Cluster settings that it changes."""
        return ()

    @abstractmethod
    def changed(self) -> Collection[str]:
        """What of the cluster it changes, in words."""

    @abstractmethod
    def steps_back(self) -> int:
        """The most steps that undo its changes, beside those of its settings."""

    def writes(self) -> Mapping[str, Objects]:
        """Objects that it adds, by pool."""
        return {}

    def on_this_host(self, osds: int, cpus: Sequence[Cpu]) -> list[str]:
        """Lines of a plan that need the CPUs of the OSDs' host."""
        return []

    def misfit(self, pools: Mapping[str, PlannedPool]) -> tuple[str, str] | None:
        """What is allowed and what was found, if it does not fit the scenario's pools."""
        for name in self.pools():
            if name not in pools:
                return f"a pool of this scenario ({', '.join(pools) or 'it has none'})", name
        return None

    def missing(self, before: Sequence["Action"], pools: Mapping[str, PlannedPool]) -> str:
        """What an earlier phase should have done first, for an error; empty if all is there."""
        return ""
