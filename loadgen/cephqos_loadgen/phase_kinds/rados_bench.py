"""rados bench: object reads and writes, one instance per pool."""

from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import LoadResult, Step


@dataclass(frozen=True, slots=True)
class RadosBenchResult(LoadResult):
    """One step; its depth is what is in flight in all, its jobs are the instances by pool."""

    kind: ClassVar[str] = "rados_bench"
    version: ClassVar[int] = 1

    op: str
    object_size_bytes: int
    steps: tuple[Step, ...]

    @property
    def chosen(self) -> Step:
        return self.steps[-1]
