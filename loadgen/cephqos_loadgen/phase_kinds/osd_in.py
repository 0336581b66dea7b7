"""osd_in: an OSD comes back up and in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class OsdInResult(PhaseResult):
    """Which OSD it was."""

    kind: ClassVar[str] = "osd_in"
    version: ClassVar[int] = 1

    osd: int

    def headline(self) -> Mapping[str, float]:
        return {}
