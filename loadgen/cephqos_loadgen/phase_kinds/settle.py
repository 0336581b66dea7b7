"""settle: wait until placement groups are active, and clean too unless told otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class SettleResult(PhaseResult):
    """How long it took."""

    kind: ClassVar[str] = "settle"
    version: ClassVar[int] = 1

    seconds: float

    def headline(self) -> Mapping[str, float]:
        return {"seconds": self.seconds}
