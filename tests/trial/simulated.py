"""A cluster that is simulated: clients' load with noise, drift and memory, in simulated time."""

import asyncio
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cephqos_insight.trial.conduct import Trial, Watching, conduct
from cephqos_insight.trial.guard import Harm
from cephqos_insight.trial.host import HostGroups, HostTrial, conduct_on_host, timetable
from cephqos_insight.trial.measure import OsdCounters, Reading
from cephqos_insight.trial.plan import Timetable

BOUNDS = (0.0, *(1e-4 * 2**n for n in range(20)), float("inf"))
# Of the logarithm of latencies. One operation in five takes four times as long as the others.
_SPREAD = 0.5


@dataclass(frozen=True)
class Load:
    """How the load varies by itself: standard deviations of logarithms of the latency."""

    noise: float = 0.08  # of each stretch, on its own
    wander: float = 0.1  # of noise that lasts
    memory: float = 0.9  # of that, from one minute to the next
    drift: float = 0.0  # an hour
    wild: float = 0.0  # share of stretches with four times the noise


@dataclass
class SimulatedWorld:
    """`effects`: by candidate, the factor of all latencies."""

    effects: Mapping[str, float]
    seed: int
    load: Load = field(default_factory=Load)
    ops: Callable[[float], float] = lambda at: 2000.0
    slower: Callable[[float], float] = lambda at: 1.0  # the factor of all latencies
    recovery: Callable[[], float] = lambda: 0.0  # operations per second
    violated: Callable[[], float] = lambda: 0.0  # classes of OSDs, now
    missing: Callable[[float], bool] = lambda at: False  # whether osd.1 does not answer
    says: Callable[[float], str] = lambda at: ""  # what `trouble` finds

    def __post_init__(self) -> None:
        self.time = 0.0
        self.arm = ""
        self.log: list[tuple[float, str]] = []  # what was put in force and taken back, and when
        self._chance = random.Random(self.seed)  # noqa: S311 - no secret
        self._wander = self._chance.gauss(0, self.load.wander)
        self._counts = [0.0] * len(BOUNDS)
        self._latency = self._recovered = self._violated = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Time goes on, and clients do something."""
        load, chance = self.load, self._chance
        kept = load.memory ** (seconds / 60)
        self._wander = kept * self._wander + math.sqrt(1 - kept**2) * chance.gauss(0, load.wander)
        noise = chance.gauss(0, load.noise) * (4 if chance.random() < load.wild else 1)
        level = self._wander + noise + load.drift * self.time / 3600
        effect = self.effects.get(self.arm, 1.0) * self.slower(self.time)
        middle = 4e-3 * effect * math.exp(level)
        self._recovered += self.recovery() * seconds
        self._violated += self.violated() * seconds
        done = self.ops(self.time) * seconds
        below = [0.8 * _share(bound, middle) + 0.2 * _share(bound, 4 * middle) for bound in BOUNDS]
        for number, (low, high) in enumerate(zip([0.0, *below], below, strict=False)):
            self._counts[number] += done * (high - low)
        self._latency += done * (0.8 + 0.2 * 4) * middle * math.exp(_SPREAD**2 / 2)
        self.time += seconds

    async def put(self, candidate: str) -> None:
        self.arm = candidate
        self.log.append((self.time, candidate))

    async def back(self) -> None:
        self.arm = ""
        self.log.append((self.time, "back"))

    async def read(self) -> Reading:
        one = OsdCounters(self._latency, tuple(map(round, self._counts)), round(self._recovered))
        idle = OsdCounters(0.0, (0,) * len(BOUNDS), 0)
        if self.missing(self.time):
            return Reading(self.time, BOUNDS, {0: one}, (1,))
        return Reading(self.time, BOUNDS, {0: one, 1: idle}, violated=self._violated)

    async def trouble(self) -> str:
        return self.says(self.time)


@dataclass
class TwoHosts:
    """Two OSDs on hosts of their own, for `--host`: each has noise of its own. `c` is tried on the
    first."""

    effect: float
    seed: int
    load: Load = field(default_factory=Load)
    mine_slower: Callable[[float], float] = lambda at: 1.0  # the first OSD's latencies only
    slower: Callable[[float], float] = lambda at: 1.0  # of both

    def __post_init__(self) -> None:
        self.mine = SimulatedWorld(
            {"c": self.effect}, self.seed, self.load,
            slower=lambda at: self.slower(at) * self.mine_slower(at),
        )  # fmt: skip
        self.others = SimulatedWorld({}, self.seed + 1_000_000, self.load, slower=self.slower)

    def now(self) -> float:
        return self.mine.time

    async def sleep(self, seconds: float) -> None:
        for world in (self.mine, self.others):
            await world.sleep(seconds)

    async def put(self, candidate: str) -> None:
        await self.mine.put(candidate)

    async def back(self) -> None:
        await self.mine.back()

    async def read(self) -> Reading:
        mine, others = await self.mine.read(), await self.others.read()
        return Reading(self.now(), BOUNDS, {0: mine.osds[0], 1: others.osds[0]})

    async def trouble(self) -> str:
        return ""


def run_on_host(world: TwoHosts, by: str = "mean", harm: Harm | None = None) -> HostTrial:
    """One whole trial with six blocks before, with and after."""
    trial = HostTrial(timetable("c", 300.0, 6), by, groups=HostGroups("a", (0,), (1,)))
    watching = Watching(harm or Harm(1e9, 1e9), 60.0, lambda event, details: None)
    asyncio.run(conduct_on_host(trial, world, watching))
    return trial


def _share(bound: float, middle: float) -> float:
    if bound in (0.0, float("inf")):
        return 1.0 if bound else 0.0
    return 0.5 * (1 + math.erf(math.log(bound / middle) / _SPREAD / math.sqrt(2)))


def run(
    world: SimulatedWorld,
    *,
    by: str = "mean",
    block: float = 300.0,
    every: float = 60.0,
    rounds: tuple[int, int] = (6, 12),
    harm: Harm | None = None,
) -> tuple[Trial, list[tuple[str, dict[str, Any]]]]:
    """One whole trial, and what was heard of it."""
    trial = Trial(Timetable(tuple(world.effects), block, *rounds, world.seed), by)
    heard: list[tuple[str, dict[str, Any]]] = []
    watching = Watching(
        harm or Harm(1e9, 1e9), every, lambda event, details: heard.append((event, dict(details)))
    )
    asyncio.run(conduct(trial, world, watching))
    return trial, heard
