"""flags: cluster flags set or cleared, such as norecover."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class FlagsResult(PhaseResult):
    """The flags that were set and cleared."""

    kind: ClassVar[str] = "flags"
    version: ClassVar[int] = 1

    set: tuple[str, ...]
    cleared: tuple[str, ...]

    def headline(self) -> Mapping[str, float]:
        return {}
