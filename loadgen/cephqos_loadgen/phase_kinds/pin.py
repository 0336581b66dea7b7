"""pin: OSDs pinned to CPUs by a strategy, or only the plan of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class PinResult(PhaseResult):
    """CPUs by OSD, and whether they were applied."""

    kind: ClassVar[str] = "pin"
    version: ClassVar[int] = 1

    strategy: str
    cpus: Mapping[str, tuple[int, ...]]
    applied: bool

    def headline(self) -> Mapping[str, float]:
        return {}
