"""Figures with their bars."""

import math
import statistics
from collections.abc import Sequence
from enum import IntEnum


class Verdict(IntEnum):
    """How the bars were kept; the values are exit statuses."""

    KEPT = 0
    MISSED = 1
    NOISY = 3


class Verdicts:
    """Prints each figure with its bar; remembers the worst verdict."""

    def __init__(self) -> None:
        self._found = {Verdict.KEPT}

    @property
    def worst(self) -> Verdict:
        order = (Verdict.MISSED, Verdict.NOISY, Verdict.KEPT)
        return next(verdict for verdict in order if verdict in self._found)

    def say(
        self,
        what: str,
        figures: float | Sequence[float],
        unit: str,
        *,
        most: float = math.inf,
        noisy: bool = False,
    ) -> None:
        """One figure, or one of each batch: then the median is shown, and the range.

        `noisy`: other work had the CPUs meanwhile.
        """
        batches = [figures] if isinstance(figures, int | float) else sorted(figures)
        middle = statistics.median(batches)
        text = f"  {what:<58} {middle:9.2f} {unit:<3}"
        if len(batches) > 1:
            text += f" {batches[0]:.2f} to {batches[-1]:.2f}"
        if most < math.inf:
            verdict = judge(batches, most, noisy=noisy)
            self._found.add(verdict)
            text += f"   (at most {most:g}: {_WORDS[verdict]}, {middle / most:.2f} x the bar)"
        print(text.rstrip(), flush=True)

    def not_judged(self, what: str, why: str) -> None:
        """A bar that could not be judged."""
        self._found.add(Verdict.NOISY)
        print(f"  {what:<58} {why}: {_WORDS[Verdict.NOISY]}", flush=True)

    def failed(self, part: str, why: object) -> None:
        """A part that could not be measured."""
        self._found.add(Verdict.MISSED)
        print(f"  {part} FAILED: {why}", flush=True)


_WORDS = {Verdict.KEPT: "kept", Verdict.MISSED: "MISSED", Verdict.NOISY: "TOO NOISY TO JUDGE"}


def judge(batches: Sequence[float], most: float, *, noisy: bool = False) -> Verdict:
    """Kept if the median is, missed if no batch keeps it; else other work decides."""
    if statistics.median(batches) <= most:
        return Verdict.KEPT
    return Verdict.NOISY if noisy or min(batches) <= most else Verdict.MISSED
