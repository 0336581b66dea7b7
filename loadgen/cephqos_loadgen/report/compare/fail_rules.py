"""Whether a comparison fails: by rules of the user, or by any regression."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_base.terminal import printable
from cephqos_loadgen.report.compare.comparison import (
    Comparison,
    Difference,
    judged_together,
    row_name,
)
from cephqos_loadgen.report.figures.metrics import METRICS, FigureKind
from cephqos_loadgen.report.words import listed

_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_NUMBER: Final = r"\d+(?:\.\d+)?"
_RULE: Final = re.compile(
    r"\s*(?P<key>[a-z][\w.]*)\s*(?P<op>>=|<=|>|<)\s*"
    rf"(?:(?:(?P<factor>{_NUMBER})\s*\*\s*)?(?P<ref>ref)|(?P<value>{_NUMBER}))\s*"
)


@dataclass(frozen=True, slots=True)
class FailRule:
    """`clat_p99 > 1.10 * ref`, or `clat_p99 > 20`, a number in the unit that is shown."""

    text: str
    metric: FigureKind
    beyond: Callable[[float, float], bool]
    bound: float
    of_reference: bool  # the bound is a factor of it

    def broken_by(self, difference: Difference) -> bool:
        scale = self.metric.scale
        bound = self.bound * difference.reference * scale if self.of_reference else self.bound
        return self.beyond(difference.value * scale, bound)

    def surely_broken_by(self, difference: Difference) -> bool:
        """All of the interval is beyond the factor, or there is a change beyond chance at all."""
        low, high = difference.change.low, difference.change.high
        if not self.of_reference or difference.beyond_chance:
            return True
        if low is None or high is None:
            return False
        return self.beyond(1 + low, self.bound) and self.beyond(1 + high, self.bound)


def read_rule(text: str) -> FailRule:
    """A rule from the text of --fail-if; UsageError where the text is none."""
    match = _RULE.fullmatch(text)
    if not match:
        raise UsageError(
            f"--fail-if {text!r}: expected FIGURE > FACTOR * ref, or FIGURE > NUMBER, such as"
            " 'clat_p99 > 1.10 * ref'"
        )
    metric = METRICS.get(match["key"])
    if metric is None:
        raise UsageError(
            f"--fail-if {text!r}: no figure {match['key']}; there are {', '.join(METRICS)}"
        )
    bound = float(match["value"] or match["factor"] or 1)
    return FailRule(text, metric, _OPERATORS[match["op"]], bound, match["ref"] is not None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Lines for the user: what is worse, and what cannot be judged."""

    failures: tuple[str, ...]
    unjudged: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """1: worse beyond noise. 2: a rule is broken by too few repeats, or a figure is missing."""
        if self.failures:
            return 1
        return 2 if self.unjudged else 0


def judge(comparison: Comparison, rules: Sequence[FailRule]) -> Verdict:
    """By the rules; without rules, any regression counts. What decides is judged together: all
    figures that are shown, or all that a rule names."""
    if not rules:
        worse = tuple(f"worse: {_words(d)}" for d in comparison.differences if d.regression)
        lost = dict.fromkeys(printable(f"not known: {loss.words}") for loss in comparison.lost)
        return Verdict(worse, tuple(lost))
    failures, unjudged = [], []
    keys = {rule.metric.key for rule in rules}
    named = judged_together([d for d in comparison.differences if d.metric.key in keys])
    for rule in rules:
        concerned = [d for d in named if d.metric.key == rule.metric.key]
        if not concerned:
            names = listed([run.name for run in (comparison.reference, *comparison.others)])
            raise UsageError(f"--fail-if {rule.text!r}: no row of {names} has {rule.metric.key}")
        unjudged += [
            printable(f"{rule.text}: not known: {loss.words}")
            for loss in comparison.lost
            if loss.metric.key == rule.metric.key
        ]
        for difference in filter(rule.broken_by, concerned):
            line = f"{rule.text}: {_words(difference)}"
            if rule.surely_broken_by(difference):
                failures.append(line)
            elif not difference.reference:
                unjudged.append(f"{line}; the reference is 0, so a rule needs a number, not ref")
            elif not difference.change.known:
                unjudged.append(f"{line}; one repeat, so noise is not known")
    return Verdict(tuple(failures), tuple(unjudged))


def _words(difference: Difference) -> str:
    metric, ratio = difference.metric, difference.change.ratio
    percent = "" if ratio is None else f" ({ratio * 100:+.1f} %)"
    return printable(
        f"{row_name(difference.row)}: {metric.title} {difference.value * metric.scale:,.4g}"
        f" {metric.unit}, reference {difference.reference * metric.scale:,.4g}{percent}"
    )
