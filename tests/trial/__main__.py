"""Prints how often simulated trials are right."""

import math
import random
from dataclasses import dataclass
from functools import partial

from tests.trial.simulated import Load, SimulatedWorld, run

from cephqos_insight.trial.guard import Harm

LOADS = {
    "steady": Load(wander=0.0),
    "wandering": Load(),
    "drifting, doubles in 3 h": Load(drift=0.23),
    "wild": Load(wild=0.1, memory=0.95, wander=0.2),
}


@dataclass(frozen=True)
class Counted:
    """Of many trials."""

    clear: float  # share with a clear answer
    covered: float  # share in whose interval the true effect is
    rounds: float  # the mean


def count(effect: float, load: Load, trials: int, by: str = "mean") -> Counted:
    clear = covered = rounds = 0
    for seed in range(trials):
        trial, _ = run(SimulatedWorld({"c": effect}, seed, load), by=by)
        change = trial.change("c", by)
        clear += trial.verdicts["c"] == "clear"
        covered += change is not None and change.low <= effect <= change.high
        rounds += trial.rounds
    return Counted(clear / trials, covered / trials, rounds / trials)


def main(trials: int = 400) -> None:
    print(f"{trials} trials each, blocks of 5 min, 6 to 12 rounds")
    print("load                       figure  effect  clear  in its interval  rounds")
    for name, load in LOADS.items():
        for by in ("mean", "p99"):
            for effect in (1.0, 0.7, 1.2):
                found = count(effect, load, trials, by)
                print(
                    f"{name:25}  {by:6}  {effect:6.2f}  {found.clear:5.0%}  {found.covered:15.1%}"
                    f"  {found.rounds:6.1f}"
                )


def disturbed(trials: int = 60) -> None:
    """Of the same, with guard rails: from a random moment on, for a while or until the end, all is
    slower; clients of a fixed depth do less, too. Or it comes again every quarter of an hour."""
    print(f"\n{trials} trials of the same each, disturbed at a random time")
    print("load                       clear  in its interval  ended by a guard rail")
    for name, fixed_depth, again in (
        ("slower", False, False),
        ("slower, and less load", True, False),
        ("a minute, again and again", False, True),
    ):
        clear = covered = harmed = 0
        for seed in range(trials):
            chance = random.Random(seed)  # noqa: S311 - no secret
            at, length = chance.uniform(600, 3300), chance.choice((30, 60, 100, 300, 900, math.inf))
            factor = chance.choice((2.0, 4.0, 8.0))
            world = SimulatedWorld({"c": 1.0}, seed, Load(drift=0.1))
            world.slower = partial(_during, at, at + length, factor, 1.0)
            if again:
                world.slower = partial(_again, at % 900, factor)
            if fixed_depth:
                world.ops = partial(_during, at, at + length, 2000 / factor, 2000.0)
            trial, _ = run(world, every=5.0, harm=Harm())
            change = trial.change("c", "mean")
            clear += trial.verdicts.get("c") == "clear"
            covered += change is not None and change.low <= 1.0 <= change.high
            harmed += bool(trial.harmed)
        print(f"{name:25}  {clear:5}  {covered:15}  {harmed:21}")


def _again(offset: float, factor: float, now: float) -> float:
    return factor if (now + offset) % 900 < 60 else 1.0


def _during(start: float, end: float, value: float, usual: float, now: float) -> float:
    return value if start < now < end else usual


if __name__ == "__main__":
    main()
    disturbed()
