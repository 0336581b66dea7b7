"""osd_bench: `ceph tell osd.N bench` on every OSD, one after the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class OsdBenchFigures:
    """What one OSD's store took."""

    iops: float
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class OsdBenchResult(PhaseResult):
    """Figures by OSD."""

    kind: ClassVar[str] = "osd_bench"
    version: ClassVar[int] = 1

    osds: Mapping[str, OsdBenchFigures]

    def headline(self) -> Mapping[str, float]:
        return {f"{osd}_iops": figures.iops for osd, figures in self.osds.items()}
