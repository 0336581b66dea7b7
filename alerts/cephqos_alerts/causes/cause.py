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
    """A cause, and what must be seen for it. The words are the operator's, in
    docs/internals/rules.md and in the comment of the rule.

    `expr` gives a series per OSD and class with demand, whether its reservation is violated or not.
    The value is the rank. The label `by` names what is to blame, if that is known.
    """

    cause: Cause
    means: str
    seen: str
    expr: str
    other_ranks: str = ""  # and when
    by: bool = False
    blind: str = ""  # when it is missed, or seen wrongly

    def rule(self) -> RecordedSeries:
        comment = f"{self.means} Seen where: {self.seen}."
        return RecordedSeries(
            record=PerClass.EVIDENCE,
            labels={"cause": self.cause.name},
            comment=comment + (f" Blind spots: {self.blind}." if self.blind else ""),
            expr=self.expr,
        )


_SHARES: Final = {0.1: "a tenth", 0.25: "a quarter", 0.5: "half", 1 / 1.5: "two thirds"}
_NUMBERS: Final[Mapping[float, str]] = {2: "two", 3: "three", 4: "four", 6: "six"}


def share(threshold: float) -> str:
    """A share in words: `a quarter`, or `30 %`."""
    return _SHARES.get(threshold) or percent(threshold)


def percent(threshold: float) -> str:
    return f"{threshold * 100:g} %"


def times(threshold: float) -> str:
    """A multiple in words: `six`, or `7.5`."""
    return _NUMBERS.get(threshold) or f"{threshold:g}"


def ranked(condition: str, rank: int) -> str:
    return f"({textwrap.dedent(condition).strip()}) * 0 + {rank}"


def wanting(condition: str) -> str:
    """Classes with demand for whose OSD the condition holds."""
    return f"{PerClass.HAS_DEMAND} and on ({OSD}) ({condition.strip()})"


def as_by(series: str) -> str:
    """OSDs, named as the one that others wait for."""
    return f'label_replace({series}, "by", "$1", "ceph_daemon", "(.+)")'


# OSDs whose delivered work is fully counted. Pools without counters make it a lower bound.
COUNTED: Final = f"unless on ({OSD}) (max by ({OSD}) ({QosSeries.DELIVERED_IS_LOWER_BOUND}) == 1)"
