"""What is recorded of a phase: when it ran, what ended it, and the result of its kind."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from cephqos_loadgen.results.figures import LoadFigures

# What ended a phase:
#   done         its own work was done
#   duration     the time that the scenario gives it had passed
#   condition    what it waited for (scrub or recovery done, a steady state) came
#   other_phase  the phase that it ends with has ended
#   cut_off      `at_most` had passed before its end came
#   failed       an error
#   interrupted  the run was interrupted
EndedBy = Literal[
    "done", "duration", "condition", "other_phase", "cut_off", "failed", "interrupted"
]


# What the studies report of completion latency, beside its mean.
_SHOWN_PERCENTILES = ("95", "99", "99.5")


class PhaseResult(ABC):
    """The result of one kind of phase: a frozen dataclass, with a version of its own."""

    __slots__ = ()
    version: ClassVar[int] = 1  # goes up when a field changes its name or its meaning

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of the kind of phase, such as `scrub`."""

    @property
    def cut_off(self) -> bool:
        """Whether its time was up before its work was done."""
        return False

    def findings(self) -> tuple[str, ...]:
        """What a reader must know before they trust the figures."""
        return ()

    def headline(self) -> Mapping[str, float]:
        """The few figures that lists and means over repeats show, by name with unit."""
        return {}


@dataclass(frozen=True, slots=True)
class TimedResult(PhaseResult):
    """How long it took."""

    seconds: float

    def headline(self) -> Mapping[str, float]:
        return {"seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class Step:
    """A load at one depth: a whole phase, or one step of a curve.

    `seconds` is the time in which all jobs ran; rates are taken over it.
    `counted_from_unix_seconds`: where the figures begin, after a ramp.
    `jobs` are by `client/volume`, for rados bench by pool. `ended_early`: of a load that was to run
    for `asked_seconds`, how long the jobs ran that ended before.
    """

    depth: int
    start_unix_seconds: float
    end_unix_seconds: float
    seconds: float
    total: LoadFigures
    read: LoadFigures | None
    write: LoadFigures | None
    jobs: Mapping[str, LoadFigures]
    # of a search: whether the latency was within the target
    within_target: bool | None = None
    asked_seconds: float | None = None
    ended_early: Mapping[str, float] = field(default_factory=dict)
    counted_from_unix_seconds: float | None = None

    @property
    def counted(self) -> tuple[float, float]:
        """The stretch of time that the figures are of."""
        began = self.counted_from_unix_seconds
        return self.start_unix_seconds if began is None else began, self.end_unix_seconds


class LoadResult(PhaseResult):
    """The result of a kind that makes client load: one step, or those of a curve."""

    __slots__ = ()
    steps: tuple[Step, ...]

    @property
    @abstractmethod
    def chosen(self) -> Step:
        """The step that speaks for the phase: the only one, a curve's last, a search's best."""

    @property
    def is_curve(self) -> bool:
        """Whether each of its steps is shown by itself."""
        return len(self.steps) > 1

    @property
    def total(self) -> LoadFigures:
        return self.chosen.total

    def findings(self) -> tuple[str, ...]:
        return tuple(_ended_early(step) for step in self.steps if step.ended_early)

    def headline(self) -> Mapping[str, float]:
        total = self.total
        headline = {"iops": total.iops}
        if total.ios:  # a latency of nothing is none
            headline["latency_mean_seconds"] = total.latency_mean_seconds
        headline |= {"seconds": self.chosen.seconds, "depth": float(self.chosen.depth)}
        for percent in _SHOWN_PERCENTILES:
            latency = total.latency_percentile_seconds(float(percent))
            if latency is not None:
                headline[f"latency_p{percent}_seconds"] = latency
        return headline


def _ended_early(step: Step) -> str:
    """`depth 8: 2 of 4 jobs ended early, client.0/volume.1 after 12.5 of 60 s`."""
    first = min(step.ended_early, key=lambda name: step.ended_early[name])
    jobs = f"{len(step.ended_early)} of {len(step.jobs)} jobs"
    after = f"{step.ended_early[first]:.1f} of {step.asked_seconds:g} s"
    return f"depth {step.depth}: {jobs} ended early, {first} after {after}"


@dataclass(frozen=True, slots=True)
class RecoveryFigures:
    """What was recovered: copies of objects, and bytes.

    `seconds` is from the first look at the cluster that found recovery to the first that found
    nothing left of it, a second apart; where it is not `finished`, to the end of the phase.
    """

    objects: int
    bytes: int
    seconds: float
    finished: bool

    @property
    def objects_per_second(self) -> float | None:
        return self.objects / self.seconds if self.seconds else None

    @property
    def bytes_per_second(self) -> float | None:
        return self.bytes / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """One phase of one repeat. Without a result it failed or was interrupted.

    `changes`: of a load against that of the phase which the scenario names (`against`), in percent;
    none where that phase had no figures yet.
    """

    kind: str
    start_unix_seconds: float
    end_unix_seconds: float
    ended_by: EndedBy
    error: str = ""
    result: PhaseResult | None = None
    recovery: RecoveryFigures | None = None
    changes: Mapping[str, float] = field(default_factory=dict)
    against: str = ""

    @property
    def worked(self) -> tuple[float, float]:
        """From its start to the end of its work. That of a load is the end of its clients: what
        served them, such as qemu-nbd, ends later."""
        end = self.end_unix_seconds
        if isinstance(self.result, LoadResult) and self.result.steps:
            end = min(end, self.result.steps[-1].end_unix_seconds)
        return self.start_unix_seconds, end

    def headline(self) -> dict[str, float]:
        """The figures that lists show."""
        headline = dict(self.result.headline()) if self.result else {}
        if self.recovery:
            headline["objects_recovered"] = float(self.recovery.objects)
            if self.recovery.finished:
                headline["recovery_seconds"] = self.recovery.seconds
            rates = (self.recovery.objects_per_second, self.recovery.bytes_per_second)
            if rates[0] is not None and rates[1] is not None:
                headline["recovered_objects_per_second"] = rates[0]
                headline["recovered_bytes_per_second"] = rates[1]
        for key, percent in self.changes.items():
            headline[f"{key}_change_percent"] = percent
        return headline
