"""What all collectors of daemons share: which daemons they are for, state per daemon, options.

A collector is one file and one class in this folder, and one line in the list in `__init__.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from cephqos_exporter import core_options
from cephqos_exporter.collectors.counters import CounterCommands
from cephqos_exporter.collectors.operation_samples import OperationSamples
from cephqos_exporter.config import Option, Settings, flag
from cephqos_exporter.daemon import Command, Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.sampler import ThreadSamples

State = TypeVar("State")


@dataclass(slots=True)
class Clue:
    """Figures of an OSD that one collector passes to another, in the same scrape."""

    work: Mapping[str, float] = field(default_factory=dict)  # normalised operations by class
    limited: float = 0.0  # share of the queues with clients in which the limit holds them back
    ping: float = 0.0  # seconds: median over its peers, in the last minute


class Clues:
    """A Clue for each OSD. A collector that reads them is declared with `reads`: those whose clues
    they are run before it."""

    def __init__(self) -> None:
        self._of: dict[Daemon, Clue] = {}

    def of(self, daemon: Daemon) -> Clue:
        clue = self._of.get(daemon)
        if clue is None:
            clue = self._of[daemon] = Clue()
        return clue

    def forget(self, daemon: Daemon) -> None:
        self._of.pop(daemon, None)


class CollectorInputs:
    """What the collectors of one exporter are built from: settings, and what they share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def host(self) -> Host:
        """Where the host's files are."""
        settings = self.settings
        return Host(
            proc=Path(settings[core_options.PROC]),
            sys=Path(settings[core_options.SYS]),
            dev=Path(settings[core_options.DEV]),
        )

    @cached_property
    def samples(self) -> ThreadSamples:
        """The threads of all daemons, read once per scrape however many collectors need them."""
        return ThreadSamples.from_settings(self.settings)

    @cached_property
    def operations(self) -> OperationSamples:
        """Samples of operations, likewise."""
        return OperationSamples.from_settings(self.settings)

    @cached_property
    def clues(self) -> Clues:
        """What collectors tell one another."""
        return Clues()


class DaemonCollector(ABC, Generic[State]):
    """A collector of daemons, with a `State` for each daemon that it has seen.

    A subclass is declared with its name, the help of its switch and the collectors whose clues it
    reads, and implements `needed`, `first_seen` and `families`. It fulfils `daemon.Collector`. Its
    options are attributes of the class, which read as their values in an instance; some can be
    given by keyword.
    """

    name: str
    help: ClassVar[str]
    reads: ClassVar[tuple[type["DaemonCollector[Any]"], ...]] = ()
    options: ClassVar[tuple[Option[Any], ...]] = ()
    # The kinds of daemons that it is for; None: all.
    kinds: Collection[str] | None = ("osd",)

    def __init_subclass__(
        cls, *, name: str, help: str, reads: tuple[type["DaemonCollector[Any]"], ...] = ()
    ) -> None:
        super().__init_subclass__()
        cls.name, cls.help, cls.reads = name, help, reads
        cls.options = tuple(value for value in vars(cls).values() if isinstance(value, Option))

    def __init__(self, settings: Settings | None = None, **given: Any) -> None:
        values = {getattr(type(self), name).name: value for name, value in given.items()}
        self.settings = (settings or Settings()).given(values)
        self.states: dict[Daemon, State] = {}
        self.counters = CounterCommands()

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        """A new instance as the settings want it."""
        return cls(inputs.settings)

    @classmethod
    def switch(cls) -> Option[bool]:
        """The option that switches the collector on and off."""
        return flag(f"collector.{cls.name}", True, cls.help)

    @abstractmethod
    def needed(self, daemon: Daemon, state: State | None) -> Sequence[Command]:
        """The commands whose replies the next `families` reads; no state: not seen yet."""

    @abstractmethod
    def first_seen(self, view: DaemonView) -> State:
        """The state of a daemon that is seen for the first time."""

    @abstractmethod
    def families(self, view: DaemonView, state: State) -> Iterable[Family]:
        """The metrics of one daemon in one scrape."""

    def finish(self) -> Iterable[Family]:
        """Families about the host rather than one daemon."""
        return ()

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        state = self.states.get(daemon)
        if state is None and not self._is_for(daemon):
            return ()
        return self.needed(daemon, state)

    def collect(self, view: DaemonView) -> Iterable[Family]:
        state = self.states.get(view.daemon)
        if state is None:
            if not self._is_for(view.daemon):
                return ()
            state = self.states[view.daemon] = self.first_seen(view)
        return self.families(view, state)

    def forget(self, daemon: Daemon) -> None:
        self.states.pop(daemon, None)
        self.counters.forget(daemon)

    def _is_for(self, daemon: Daemon) -> bool:
        return self.kinds is None or daemon.kind in self.kinds


class SamplingCollector(DaemonCollector[State], name="", help=""):
    """A collector that reads samples of operations, shared with others."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        samples: OperationSamples | None = None,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self.samples = samples or OperationSamples.from_settings(self.settings)

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(inputs.settings, samples=inputs.operations)

    def forget(self, daemon: Daemon) -> None:
        super().forget(daemon)
        self.samples.forget(daemon)
