"""What a soak keeps of each process, and whether it is flat."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Of the first quarter to the last. Less than these is the noise of one sample.
_RATIO: Final = 1.10
_NOISE: Final = {"memory_mib": 4.0, "descriptors": 5.0, "threads": 3.0, "children": 2.0}


@dataclass(frozen=True)
class ProcessSample:
    """One process at one moment."""

    seconds: float
    memory_mib: float
    descriptors: int
    threads: int
    cpu_seconds: float


@dataclass(frozen=True)
class Growth:
    """One figure of one process: medians of the first and the last quarter after the warm-up."""

    process: str
    figure: str
    first: float
    last: float
    highest: float

    @property
    def flat(self) -> bool:
        return self.last <= max(self.first * _RATIO, self.first + _NOISE[self.figure])


def growths(samples: Mapping[str, Sequence[ProcessSample]], warm: float) -> list[Growth]:
    """Of every process that was there for the whole time after the warm-up."""
    found = []
    for process, all_of_it in samples.items():
        later = [sample for sample in all_of_it if sample.seconds >= warm]
        if len(later) < 8:
            raise SystemExit(f"{process}: {len(later)} samples after the warm-up: run longer")
        quarter = len(later) // 4
        for figure in ("memory_mib", "descriptors", "threads"):
            values = [float(getattr(sample, figure)) for sample in later]
            found.append(
                Growth(
                    process,
                    figure,
                    statistics.median(values[:quarter]),
                    statistics.median(values[-quarter:]),
                    max(values),
                )
            )
    return found


def cores(samples: Sequence[ProcessSample]) -> float:
    """The mean CPU use of a process, in cores."""
    first, last = samples[0], samples[-1]
    return (last.cpu_seconds - first.cpu_seconds) / (last.seconds - first.seconds)
