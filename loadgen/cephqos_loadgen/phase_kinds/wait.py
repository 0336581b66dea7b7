"""wait: nothing is done, the cluster is watched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class WaitResult(PhaseResult):
    """How long was waited."""

    kind: ClassVar[str] = "wait"
    version: ClassVar[int] = 1

    seconds: float

    def headline(self) -> Mapping[str, float]:
        return {"seconds": self.seconds}
