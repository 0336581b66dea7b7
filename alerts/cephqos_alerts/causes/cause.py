"""What a cause is to the rules: when it holds, in PromQL and in words."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cephqos_alerts.rules.rule import RecordedSeries
from cephqos_base.causes import Cause
from cephqos_base.recorded import PerClass
from cephqos_base.series import OSD, QosSeries


@dataclass(frozen=True, kw_only=True)
class CauseEvidence:
    """A cause, and what must be seen for it. The texts are for operators, in
    docs/internals/rules.md and in the comment of the rule.
    """

    cause: Cause
    means: str  # a sentence: "Writes wait for the network between this OSD and others."
    seen: str  # the condition, to follow "Seen where: "
    # PromQL: a series per OSD and class with demand, even if its reservation is kept. The value is
    # the rank: the cause's own, or another one where the evidence is stronger or weaker.
    expr: str
    other_ranks: str = ""  # which, and when: "67 where device and CPU of `by` are well"
    by: bool = False  # whether the label `by` of the series names what is to blame
    blind: str = ""  # when the cause is missed, or seen wrongly: "releases without queue figures"

    def rule(self) -> RecordedSeries:
        comment = f"{self.means} Seen where: {self.seen}."
        return RecordedSeries(
            record=PerClass.EVIDENCE,
            labels={"cause": self.cause.name},
            comment=comment + (f" Blind spots: {self.blind}." if self.blind else ""),
            expr=self.expr,
        )


_SHARES_IN_WORDS: Final = {0.1: "a tenth", 0.25: "a quarter", 0.5: "half", 1 / 1.5: "two thirds"}
_NUMBERS_IN_WORDS: Final[Mapping[float, str]] = {2: "two", 3: "three", 4: "four", 6: "six"}


def share(threshold: float) -> str:
    """A share in words: `a quarter`, or `30 %`."""
    return _SHARES_IN_WORDS.get(threshold) or percent(threshold)


def percent(threshold: float) -> str:
    return f"{threshold * 100:g} %"


def times(threshold: float) -> str:
    """A multiple in words: `six`, or `7.5`."""
    return _NUMBERS_IN_WORDS.get(threshold) or f"{threshold:g}"


def with_value(series: str, value: int | str = 1) -> str:
    """The same series, each with this value: PromQL has no other way to set a value."""
    return f"{series} * 0 + {value}"


def ranked(condition: str, rank: int) -> str:
    """The series of a condition, each with this rank as its value."""
    return with_value(f"({textwrap.dedent(condition).strip()})", rank)


def wanting(condition: str) -> str:
    """Classes with demand on the OSDs for which the condition holds: one series for each."""
    return f"{PerClass.HAS_DEMAND} and on ({OSD}) ({condition.strip()})"


def as_by(series: str) -> str:
    """A series per OSD, with the OSD also in the label `by`: other OSDs wait for it."""
    return f'label_replace({series}, "by", "$1", "ceph_daemon", "(.+)")'


# OSDs whose delivered work is fully counted. Pools without counters make it a lower bound.
COUNTED: Final = f"unless on ({OSD}) (max by ({OSD}) ({QosSeries.DELIVERED_IS_LOWER_BOUND}) == 1)"
