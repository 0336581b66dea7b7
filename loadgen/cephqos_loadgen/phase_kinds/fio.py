"""fio: client load of one depth, over a sweep of depths, or searching for a latency target."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from cephqos_loadgen.results.phase import LoadResult, Step


@dataclass(frozen=True, slots=True)
class FioResult(LoadResult):
    """One step, or those of a curve in the order in which they ran.

    `stopped_because`: why a sweep ended before its last depth; empty when it did not.
    `reached`: of a search, whether any depth kept the target (percentile None: the mean).
    `steady`: of a load that was to become steady, whether it did.
    """

    kind: ClassVar[str] = "fio"
    version: ClassVar[int] = 1

    engine: str
    mode: Literal["load", "sweep", "search"]
    steps: tuple[Step, ...]
    stopped_because: str = ""
    target_seconds: float | None = None
    target_percentile: float | None = None
    reached: bool | None = None
    steady: bool | None = None

    @property
    def chosen(self) -> Step:
        if self.mode != "search":
            return self.steps[-1]
        within = [step for step in self.steps if step.within_target]
        return max(within, key=lambda step: step.total.iops, default=self.steps[0])

    def headline(self) -> Mapping[str, float]:
        found = LoadResult.headline(self)
        if self.mode == "search" and not self.reached:
            return {name: value for name, value in found.items() if name != "depth"}
        return found
