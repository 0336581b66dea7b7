"""osd_out: an OSD is marked down and out, and kept from coming back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class OsdOutResult(PhaseResult):
    """Which OSD it was."""

    kind: ClassVar[str] = "osd_out"
    version: ClassVar[int] = 1

    osd: int

    def headline(self) -> Mapping[str, float]:
        return {}
