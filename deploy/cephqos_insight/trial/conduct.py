"""Runs a timetable in a world: a cluster, or one that is simulated."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Protocol

from cephqos_insight.trial.estimate import Effect, Verdict, estimate, judge, spent
from cephqos_insight.trial.guard import Guard, Harm
from cephqos_insight.trial.measure import (
    BLUR,
    LATENCIES,
    RATES,
    BlockFigures,
    Reading,
    between,
    load_changed,
)
from cephqos_insight.trial.plan import REFERENCE, Timetable

FIGURES = (*LATENCIES, *RATES)


class World(Protocol):
    """What a trial needs of a cluster."""

    def now(self) -> float:
        """Seconds of a clock that is not set."""

    async def sleep(self, seconds: float) -> None: ...

    async def put(self, candidate: str) -> None:
        """Put it in force; the way back is written down first."""

    async def back(self) -> None:
        """Undo what `put` has changed."""

    async def read(self) -> Reading: ...

    async def trouble(self) -> str:
        """Why the trial must end, or nothing."""


@dataclass(frozen=True, slots=True)
class TrialBlock:
    """One block as it was measured. `stretch`: None if it was thrown away."""

    round: int  # 0: for the guard rails only
    arm: str
    seconds: float
    stretch: BlockFigures | None
    lost: str = ""  # why it was thrown away
    harm: str = ""  # the guard rail that ended it


@dataclass(slots=True)
class Trial:
    """What is known so far, and at the end."""

    timetable: Timetable
    by: str  # the figure that decides
    blocks: list[TrialBlock] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    harmed: dict[str, str] = field(default_factory=dict)  # by candidate: the guard rail
    ended: str = ""  # why the whole trial ended early, if not by its verdicts
    rounds: int = 0  # that are over

    def differences(self, candidate: str, figure: str) -> list[float]:
        """Of logarithms, one of each round that has the figure of both."""
        found = []
        for number in range(1, self.rounds + 1):
            arms = {block.arm: block.stretch for block in self.blocks if block.round == number}
            one, other = arms.get(candidate), arms.get(REFERENCE)
            if one and other and figure in one.figures and figure in other.figures:
                found.append(math.log(one.figures[figure] / other.figures[figure]))
        return found

    def change(self, candidate: str, figure: str) -> Effect | None:
        """The interval that belongs to the look at which the trial is."""
        looks = self.timetable.looks
        look = next((look for look in looks if look >= self.rounds), looks[-1])
        error_rate = spent(look, looks, len(self.timetable.candidates))
        return estimate(self.differences(candidate, figure), error_rate, BLUR.get(figure, 0.0))

    def mean(self, arm: str, figure: str) -> float | None:
        """The geometric mean of its blocks."""
        stretches = [block.stretch for block in self.blocks if block.arm == arm and block.round]
        values = [one.figures[figure] for one in stretches if one and figure in one.figures]
        return math.exp(fmean(map(math.log, values))) if values else None

    def open_candidates(self) -> list[str]:
        """Those of which the answer is still looked for."""
        decided = {name for name, verdict in self.verdicts.items() if verdict != "go on"}
        return [c for c in self.timetable.candidates if c not in decided and c not in self.harmed]

    def look(self) -> None:
        """Judge the candidates, if this is a round for it."""
        looks = self.timetable.looks
        if self.rounds in looks:
            comparisons, blur = len(self.timetable.candidates), BLUR.get(self.by, 0.0)
            for name in self.open_candidates():
                found = self.differences(name, self.by)
                self.verdicts[name] = judge(found, self.rounds, looks, comparisons, blur)


@dataclass(frozen=True, slots=True)
class Watching:
    """How a block is watched, and who hears of it."""

    harm: Harm
    every: float  # seconds between looks
    heard: Callable[[str, Mapping[str, Any]], None]  # gets what happens, with its details


async def conduct(trial: Trial, world: World, watching: Watching) -> None:
    """Until the answer is clear, cannot become clear, or something must end it. What a candidate
    changed is undone after each of its blocks; after an exception the caller undoes it."""
    for number, arm in _order(trial):
        if number > 1 and number - 1 > trial.rounds:
            trial.rounds = number - 1
            trial.look()
            watching.heard("look", {"round": trial.rounds, "verdicts": dict(trial.verdicts)})
        if number and not trial.open_candidates():
            return
        if arm != REFERENCE and arm not in trial.open_candidates():
            continue
        block = await _block(trial, number, arm, world, watching)
        trial.blocks.append(block)
        if block.harm:
            trial.harmed[arm] = block.harm
        if number == 0 and not _fits_guard(block):
            trial.ended = trial.ended or (
                "clients did nothing that can be measured, so no guard rail would hold"
                + (f": {block.lost}" if block.lost else "")
            )
        if trial.ended:
            return
    trial.rounds = trial.timetable.most_rounds
    trial.look()


def _order(trial: Trial) -> Iterator[tuple[int, str]]:
    yield 0, REFERENCE
    for number, arms in enumerate(trial.timetable.rounds(), 1):
        yield from ((number, arm) for arm in arms)


def _fits_guard(block: TrialBlock) -> bool:
    return block.stretch is not None and "p99" in block.stretch.figures


async def _block(
    trial: Trial, number: int, arm: str, world: World, watching: Watching
) -> TrialBlock:
    measured = [
        b.stretch for b in trial.blocks if b.arm == REFERENCE and b.stretch and _fits_guard(b)
    ]
    guard = Guard(watching.harm, measured) if arm != REFERENCE else None
    watching.heard("block_started", {"round": number, "arm": arm})
    began = world.now()
    if guard:
        await world.put(arm)
    readings: list[Reading] = []
    harm = await _watch(trial, began, world, watching, guard, readings)
    if guard:
        await world.back()
    seconds = world.now() - began
    stretch, lost = _measured(readings, began + trial.timetable.dropped_seconds)
    if harm or trial.ended:
        stretch, lost = None, harm or trial.ended
    watching.heard(
        "block_ended",
        {
            "round": number, "arm": arm, "seconds": seconds, "lost": lost, "harm": harm,
            "figures": dict(stretch.figures) if stretch else {},
        },
    )  # fmt: skip
    return TrialBlock(number, arm, seconds, stretch, lost, harm)


async def _watch(
    trial: Trial,
    began: float,
    world: World,
    watching: Watching,
    guard: Guard | None,
    readings: list[Reading],
) -> str:
    """Read until the block is over, or must end. Returns the guard rail that ended it."""
    end = began + trial.timetable.block_seconds
    while True:
        readings.append(await world.read())
        if len(readings) > 1:
            last, now = readings[-2], readings[-1]
            stretch = between(last, now)
            watching.heard("look_at", {"figures": dict(stretch.figures) if stretch else {}})
            if guard and (harm := guard.take(last.at, now.at, stretch)):
                return harm
        if why := await world.trouble():
            trial.ended = why
            return ""
        if world.now() >= end:
            return ""
        await world.sleep(min(watching.every, max(0.0, end - world.now())))


def _measured(readings: list[Reading], start: float) -> tuple[BlockFigures | None, str]:
    """What was done from `start` on; or why that says nothing."""
    kept = [reading for reading in readings if reading.at >= start]
    if len(kept) < 3:
        return None, "it has fewer than three readings"
    middle = kept[len(kept) // 2]
    whole, first, second = (
        between(kept[0], kept[-1]),
        between(kept[0], middle),
        between(middle, kept[-1]),
    )
    if whole is None or first is None or second is None:
        return None, "an OSD did not answer, or has started again"
    if load_changed(first, second):
        rates = " and ".join(f"{one.figures.get('ops/s', 0.0):,.0f}" for one in (first, second))
        return None, f"the load changed: {rates} ops/s in its halves"
    return whole, ""
