"""Runs a timetable in a world: a cluster, or one that is simulated."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean, geometric_mean, median
from typing import Any, Protocol

from cephqos_insight.trial.estimate import Effect, Verdict, estimate, interval, judge, spent
from cephqos_insight.trial.guard import (
    LEAST_OPERATIONS,
    STALLED_SHARE,
    Guard,
    Harm,
    is_enough,
)
from cephqos_insight.trial.measure import (
    BLUR,
    LATENCIES,
    RATES,
    VIOLATED,
    BlockFigures,
    Reading,
    between,
    cluster_changed,
)
from cephqos_insight.trial.plan import REFERENCE, Timetable

FIGURES = (*LATENCIES, *RATES)
_FIRST_TRIES = 3  # of the block that the guard rails need
REMEMBERED = 3  # blocks of the reference, of which the guard rails take the middle
_MOST_LOST = 4  # rounds in a row, before the trial ends: one change of the cluster costs up to 3
_NO_ANSWER = "an OSD did not answer, or has started again"


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
    known: list[BlockFigures] = field(default_factory=list)  # the reference, for the guard rails

    def differences(self, candidate: str, figure: str) -> list[float]:
        """Of logarithms, one of each round. None at all if the figure was 0 in one of them."""
        pairs = self.pairs(candidate, figure)
        return [math.log(one / other) for one, other in pairs] if all(map(all, pairs)) else []

    def pairs(self, candidate: str, figure: str) -> list[tuple[float, float]]:
        """The candidate's and the reference's, of each round that has the figure of both."""
        found = []
        for number in range(1, self.rounds + 1):
            arms = {block.arm: block.stretch for block in self.blocks if block.round == number}
            one, other = arms.get(candidate), arms.get(REFERENCE)
            if one and other and figure in one.figures and figure in other.figures:
                found.append((one.figures[figure], other.figures[figure]))
        return found

    def change(self, candidate: str, figure: str) -> Effect | None:
        """The interval that belongs to the look at which the trial is."""
        differences = self.differences(candidate, figure)
        return estimate(differences, self._error_rate, self.blur(figure))

    def blur(self, figure: str) -> float:
        """How far off every difference may be in the same direction."""
        return BLUR.get(figure, 0.0)

    def more_violated(self, candidate: str) -> tuple[float, float, float] | None:
        """Seconds per minute, and their interval. They are often 0, and have no logarithm."""
        pairs = self.pairs(candidate, VIOLATED)
        return interval([one - other for one, other in pairs], self._error_rate)

    @property
    def _error_rate(self) -> float:
        looks = self.timetable.looks
        look = next((look for look in looks if look >= self.rounds), looks[-1])
        return spent(look, looks, len(self.timetable.candidates))

    def mean(self, arm: str, figure: str) -> float | None:
        """Of its blocks that are compared: geometric, unless one is 0."""
        by_round = defaultdict[int, dict[str, Mapping[str, float]]](dict)
        for block in self.blocks:
            if block.round and block.stretch:
                by_round[block.round][block.arm] = block.stretch.figures
        compared = [arms for arms in by_round.values() if REFERENCE in arms and len(arms) > 1]
        values = [arms[arm][figure] for arms in compared if figure in arms.get(arm, {})]
        return (geometric_mean(values) if all(values) else fmean(values)) if values else None

    def add(self, block: TrialBlock) -> None:
        """Blocks between two of the reference that are not alike say nothing: the cluster has
        changed by itself. They are thrown away."""
        if block.arm == REFERENCE and block.stretch:
            known = [n for n, b in enumerate(self.blocks) if b.arm == REFERENCE and b.stretch]
            before = self.blocks[known[-1]].stretch if known else None
            if before and cluster_changed(before, block.stretch):
                figures = " and ".join(map(_shown, (before, block.stretch)))
                lost = f"what was set before gave {figures} before and after it"
                for number in range(known[-1] + 1, len(self.blocks)):
                    if self.blocks[number].stretch:
                        self.blocks[number] = replace(self.blocks[number], stretch=None, lost=lost)
        self.blocks.append(block)

    @property
    def lost_rounds(self) -> int:
        """How many of the last rounds say nothing of any candidate."""
        measured = {(b.round, b.arm == REFERENCE) for b in self.blocks if b.stretch}
        compared = [n for n, reference in measured if not reference and (n, True) in measured]
        return self.rounds - max(compared, default=0)

    def open_candidates(self) -> list[str]:
        """Those of which the answer is still looked for."""
        decided = {name for name, verdict in self.verdicts.items() if verdict != "go on"}
        return [c for c in self.timetable.candidates if c not in decided and c not in self.harmed]

    def look(self) -> None:
        """Judge the candidates, if this is a round for it."""
        looks = self.timetable.looks
        if self.rounds in looks:
            comparisons, blur = len(self.timetable.candidates), self.blur(self.by)
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
    await _first_block(trial, world, watching)
    if trial.ended:
        return
    for number, arms in enumerate(trial.timetable.rounds(), 1):
        for arm in arms:
            if arm == REFERENCE or arm in trial.open_candidates():
                await _tried(trial, number, arm, world, watching)
                if trial.ended:
                    return
        trial.rounds = number
        trial.look()
        watching.heard("look", {"round": number, "verdicts": dict(trial.verdicts)})
        if not trial.open_candidates():
            return
        if trial.lost_rounds >= _MOST_LOST:
            why = next((block.lost for block in reversed(trial.blocks) if block.lost), "")
            trial.ended = f"{_MOST_LOST} rounds in a row could not be compared, the last as {why}"
            return


async def _first_block(trial: Trial, world: World, watching: Watching) -> None:
    """Of the reference: guard rails need to know it. What disturbs one block may be over soon."""
    for _ in range(_FIRST_TRIES):
        block = await _block(trial, 0, REFERENCE, world, watching)
        trial.add(block)
        if trial.ended:
            return
        if block.stretch:
            trial.ended = no_measure(trial, watching.harm)
            return
    trial.ended = f"what is set now could not be measured: {block.lost}"


def no_measure(trial: Trial, harm: Harm) -> str:
    """Why no guard rail would hold, or nothing: clients who are slowed down to a third, which is
    not yet harm by itself, must still do enough operations for a p99."""
    rates = [one.figures["ops/s"] for one in trial.known[-REMEMBERED:]]
    rate, least = median(rates) if rates else 0.0, LEAST_OPERATIONS / STALLED_SHARE / harm.seconds
    if rate >= least:
        return ""
    return (
        f"clients did {rate:,.3g} ops/s, and with less than {least:,.3g} no guard rail would hold"
    )


async def _tried(trial: Trial, number: int, arm: str, world: World, watching: Watching) -> None:
    """One block of a round. What harms clients under what is set now is a disturbance."""
    block = await _block(trial, number, arm, world, watching)
    if arm == REFERENCE:
        block = replace(block, harm="")
    elif block.harm:
        block = await _blamed(trial, block, world, watching)
    trial.add(block)
    if block.harm:
        trial.harmed[arm] = block.harm
    if arm == REFERENCE and block.stretch and not trial.ended:
        trial.ended = no_measure(trial, watching.harm)


async def _blamed(trial: Trial, block: TrialBlock, world: World, watching: Watching) -> TrialBlock:
    """The block that counts instead of a harmful one. A setting is blamed if clients do not suffer
    without it, and suffer again when it is put in force once more. Otherwise something else was the
    reason, and the harmful block is thrown away."""
    check = await _block(trial, 0, REFERENCE, world, watching)
    trial.add(replace(check, harm=""))
    if check.harm or trial.ended:
        other = trial.ended or "without the setting it was no better"
        return replace(block, harm="", lost=f"{block.harm}; {other}")
    again = await _block(trial, block.round, block.arm, world, watching)
    if again.harm:
        trial.add(replace(block, harm="", lost=block.harm))
        return replace(again, harm=f"{again.harm}, in 2 of 2 blocks")
    trial.add(replace(block, harm="", lost=f"{block.harm}; it did not come again"))
    return again


def _shown(stretch: BlockFigures) -> str:
    figures = stretch.figures
    return f"{figures.get('ops/s', 0.0):,.0f} ops/s of {figures.get('mean', 0.0) * 1e3:.3g} ms"


async def _block(
    trial: Trial, number: int, arm: str, world: World, watching: Watching
) -> TrialBlock:
    """A guard rail ends a block of a candidate. In one of the reference it counts what comes after
    the first fifth, and throws the block away."""
    ours = arm != REFERENCE
    guard = Guard(watching.harm, trial.known[-REMEMBERED:]) if trial.known else None
    watching.heard("block_started", {"round": number, "arm": arm})
    began = world.now()
    if ours:
        await world.put(arm)
    readings: list[Reading] = []
    dropped = began + trial.timetable.dropped_seconds
    harm = await watch(
        trial, began, world, watching, guard, readings, judged_from=began if ours else dropped
    )
    if ours:
        await world.back()
    seconds = world.now() - began
    kept, lost = measured(readings, dropped)
    stretch = between(kept[0], kept[-1]) if len(kept) > 1 else None
    if not ours and not lost and stretch and "p99" in stretch.figures:
        trial.known.append(stretch)
    lost = harm or trial.ended or lost
    stretch = None if lost else stretch
    watching.heard(
        "block_ended",
        {
            "round": number, "arm": arm, "seconds": seconds, "lost": lost, "harm": harm,
            "figures": dict(stretch.figures) if stretch else {},
        },
    )  # fmt: skip
    return TrialBlock(number, arm, seconds, stretch, lost, harm)


async def watch(
    trial: Trial,
    began: float,
    world: World,
    watching: Watching,
    guard: Guard | None,
    readings: list[Reading],
    judged_from: float,
) -> str:
    """Read until the block is over, or must end. Returns the first guard rail that was broken.
    It ends the block if all of it is judged."""
    harm = ""
    # From where on the guard judges: a look may have too few operations.
    since: Reading | None = None
    end = began + trial.timetable.block_seconds
    while True:
        readings.append(await world.read())
        since = since or readings[0]
        if len(readings) > 1:
            now = readings[-1]
            stretch = between(since, now)
            watching.heard("look_at", {"figures": dict(stretch.figures) if stretch else {}})
            if guard and not harm and since.at >= judged_from:
                harm = guard.take(since.at, now.at, stretch)
            if is_enough(stretch) or now.at - since.at >= watching.harm.seconds:
                since = now
            if harm and judged_from == began:
                return harm
        if why := await world.trouble():
            trial.ended = why
            return ""
        if world.now() >= end:
            return harm
        await world.sleep(min(watching.every, max(0.0, end - world.now())))


def measured(readings: list[Reading], start: float) -> tuple[list[Reading], str]:
    """The readings from `start` on, and why they say nothing, if so."""
    kept = [reading for reading in readings if reading.at >= start]
    if len(kept) < 3:
        return kept, "it has fewer than three readings"
    middle = kept[len(kept) // 2]
    first, second = between(kept[0], middle), between(middle, kept[-1])
    if first is None or second is None:
        return kept, _NO_ANSWER
    if cluster_changed(first, second):
        halves = " and ".join(map(_shown, (first, second)))
        return kept, f"the load changed: {halves} in its halves"
    return kept, ""
