"""When a block must end, because clients suffer: pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from cephqos_base.units import time_span
from cephqos_insight.trial.measure import BlockFigures

# Fewer operations say nothing of a 99th percentile.
LEAST_OPERATIONS = 100
# Clients that wait for an OSD do nothing, and have no latency.
STALLED_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Harm:
    """The stated bound: p99 not above `factor` times the reference for more than `seconds`."""

    factor: float = 1.5
    seconds: float = 20.0


def is_enough(stretch: BlockFigures | None) -> bool:
    """Whether a stretch of time can be judged; one without an answer can."""
    return stretch is None or stretch.operations >= LEAST_OPERATIONS


@dataclass(slots=True)
class Guard:
    """Watches one block."""

    harm: Harm
    reference: Sequence[BlockFigures]  # the last blocks of the reference
    _since: dict[str, float] = field(default_factory=dict)

    def take(self, began: float, now: float, stretch: BlockFigures | None) -> str:
        """Take what OSDs did from `began` to `now`. Returns why the block must end, or nothing."""
        for what, bad in self._bad(stretch).items():
            if bad is False:
                self._since.pop(what, None)
            elif bad and now - self._since.setdefault(what, began) > self.harm.seconds:
                return f"{what} for {time_span(now - self._since[what])}"
        return ""

    def _bad(self, stretch: BlockFigures | None) -> dict[str, bool | None]:
        """None: not known."""
        if stretch is None:
            return {"an OSD did not answer, or has started again,": True}
        p99, rate = (
            median(one.figures[figure] for one in self.reference) for figure in ("p99", "ops/s")
        )
        slow = stretch.figures.get("p99", 0.0) > self.harm.factor * p99
        stalled = stretch.figures.get("ops/s", 0.0) < STALLED_SHARE * rate
        bound = f"{self.harm.factor:g} × {p99 * 1e3:.3g} ms"
        return {
            f"clients' p99 was above {bound}": slow if is_enough(stretch) else None,
            f"clients did less than a third of {rate:,.0f} ops/s": stalled,
            "an OSD did not answer, or has started again,": False,
        }
