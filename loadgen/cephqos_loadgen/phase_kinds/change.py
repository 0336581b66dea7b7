"""change: settings changed during the run, and taken back at the end of the repeat."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cephqos_loadgen.results.phase import PhaseResult


@dataclass(frozen=True, slots=True)
class ChangeResult(PhaseResult):
    """What the daemons said afterwards: option and value, by daemon."""

    kind: ClassVar[str] = "change"
    version: ClassVar[int] = 1

    in_force: Mapping[str, Mapping[str, str]]

    def headline(self) -> Mapping[str, float]:
        return {}
