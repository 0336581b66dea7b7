"""scrub: every placement group of a pool is asked to scrub."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class ScrubResult(PhaseResult):
    """The whole scrub. `scrubbing_at_once`: the most placement groups that were seen scrubbing at
    the same time."""

    kind: ClassVar[str] = "scrub"
    version: ClassVar[int] = 1

    placement_groups: int
    objects: int
    bytes: int
    seconds: float
    scrubbing_at_once: int

    def headline(self) -> Mapping[str, float]:
        return {"objects_scrubbed": float(self.objects), "seconds": self.seconds}

    @property
    def objects_per_second(self) -> float:
        return self.objects / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds
