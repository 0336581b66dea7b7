"""Prints how often simulated trials are right."""

from dataclasses import dataclass

from tests.trial.simulated import Load, SimulatedWorld, run

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


if __name__ == "__main__":
    main()
