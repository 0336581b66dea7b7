"""prefill: objects written into a pool while the scenario runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class PrefillResult(PhaseResult):
    """What was written, and in what time."""

    kind: ClassVar[str] = "prefill"
    version: ClassVar[int] = 1

    objects: int
    seconds: float

    def headline(self) -> Mapping[str, float]:
        return {"objects": float(self.objects), "seconds": self.seconds}
