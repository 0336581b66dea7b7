"""What a scenario says, as frozen data: settings, pools, phases, and what starts and ends them."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.plan.action import Action, Ending
from cephqos_loadgen.plan.parts import Capacity, Device, PlannedPool

Event = Literal["recovery_started", "scrub_started"]
EVENTS: tuple[Event, ...] = ("recovery_started", "scrub_started")
# The order of the repeats of several points; see `Plan.runs`.
Order = Literal["interleaved", "grouped", "random"]
ORDERS: tuple[Order, ...] = ("interleaved", "grouped", "random")


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A window of interval figures whose spread and drift are small."""

    window: float  # seconds
    dispersion: float  # the largest spread: standard deviation / mean


@dataclass(frozen=True, slots=True)
class Start:
    """When a phase starts: `delay` seconds after what `kind` says.

    `at`: the start of the repeat. `after`: the end of `phase`. `with`: its start. `when`: `event`.
    """

    kind: Literal["at", "after", "with", "when"]
    phase: str = ""
    event: Event | None = None
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Until:
    """When a phase ends. `done`: with its own work."""

    kind: Ending
    at_most: float  # seconds, after which every phase is ended
    expected: float  # seconds, for estimates
    phase: str = ""  # the other phase with whose end it ends
    steady: SteadyState | None = None


# Work that a cluster begins by itself: it may move data or read disks in the middle of a run.
QUIET = ("balancer", "autoscaler", "scrubs")


@dataclass(frozen=True, slots=True)
class Phase:
    """One thing that runs for a while, at the same time as others or alone."""

    name: str
    action: Action
    start: Start
    until: Until
    # The scenario expects this load to fail: the error is recorded, and the run continues.
    may_fail: bool = False
    against: str = ""  # the earlier phase with whose load this load is compared
    take_back: bool = False  # what it changed is undone when it ends, not when the repeat does


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of the matrix, with all that its repeats do."""

    name: str
    axes: tuple[tuple[str, str], ...]  # of the matrix: the value of each at this point
    settings: tuple[CephOption, ...]
    client: tuple[tuple[str, str], ...]  # options of clients' ceph.conf
    flags: tuple[str, ...]  # of the cluster, set during the point
    devices: Device
    pools: tuple[PlannedPool, ...]
    phases: tuple[Phase, ...]
    lab: LabSpec  # what the scenario wants when the run has to make its own cluster
    lab_axes: tuple[str, ...] = ()  # fields of `lab` that an axis of the matrix decides
    fresh_lab: bool = False  # each repeat has a lab of its own


@dataclass(frozen=True, slots=True)
class Find:
    """After a matrix: the smallest value of an axis that keeps a share of the best throughput."""

    axis: str
    keeping: float  # the share, 0 to 1
    phase: str  # whose throughput


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a run will do."""

    scenario: str
    about: str
    source: str
    text: str = field(repr=False)
    scale: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    repeats: int = 1
    points: tuple[Point, ...] = ()
    find: Find | None = None
    quiet: tuple[str, ...] = ()  # of QUIET: off during the run

    capacity: Capacity | None = None  # measured and set before the first point
    order: Order = "interleaved"
    seed: int = 0  # of the random order

    @property
    def runs(self) -> list[tuple[Point, int]]:
        """Every repeat in the order in which they run.

        Points that need the same cluster and the same pools are interleaved: the first repeat of
        each, then the second of each. What drifts with time then meets all points alike.
        """
        runs: list[tuple[Point, int]] = []
        rounds = range(1, self.repeats + 1)
        chance = random.Random(self.seed)  # noqa: S311 - an order is no secret
        for _, group in groupby(self.points, key=_shared):
            points = list(group)
            if self.order == "grouped":
                runs += [(point, n) for point in points for n in rounds]
                continue
            for n in rounds:
                order = chance.sample(points, len(points)) if self.order == "random" else points
                runs += [(point, n) for point in order]
        return runs


def _shared(point: Point) -> tuple[LabSpec, str, tuple[PlannedPool, ...]]:
    """What points must have in common to be interleaved: the lab and the pools that stay."""
    own_lab = point.name if point.fresh_lab else ""
    return point.lab, own_lab, tuple(pool for pool in point.pools if not pool.fresh)


def blocks(runs: Iterable[tuple[Point, int]]) -> list[tuple[Point, list[int]]]:
    """Repeats of the same point that follow each other: they share one configuration."""
    return [
        (point, [n for _, n in group]) for point, group in groupby(runs, key=lambda run: run[0])
    ]
