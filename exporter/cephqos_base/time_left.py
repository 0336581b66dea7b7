"""How long recovery or a scrub still takes, as the exporter's series say it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from cephqos_base.units import time_span


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """In seconds: likely, and a 90 % interval."""

    low: float
    likely: float
    high: float

    @classmethod
    def of(cls, seconds: Mapping[str, float]) -> Self | None:
        """From the values of the series, by its label `bound`; None unless all are there."""
        names = [field.name for field in fields(cls)]
        return cls(*(seconds[name] for name in names)) if seconds.keys() >= {*names} else None

    def __str__(self) -> str:
        return f"{time_span(self.likely)} ({time_span(self.low)} to {time_span(self.high)})"
