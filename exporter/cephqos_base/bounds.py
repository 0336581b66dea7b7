"""Upper bounds of latency histograms in seconds. An SLO's threshold must be one of them."""

from collections.abc import Mapping
from typing import Final

# Of the op histograms of OSDs and of the probe: 100 µs times a power of two.
OP_BOUNDS: Final = tuple(round(1e-4 * 2**octave, 4) for octave in range(21))


# Four per octave from 12.5 µs to 105 s, every bound of OP_BOUNDS among them: so the latencies of a
# load and of the OSDs can be laid over each other.
FIO_BOUNDS: Final = tuple(
    round(12.5e-6 * 2 ** (number // 4) * (1 + number % 4 / 4), 12) for number in range(93)
)

# By the source that an SLO names.
BOUNDS_BY_SOURCE: Final[Mapping[str, tuple[float, ...]]] = {
    "osd": OP_BOUNDS,
    "fio": FIO_BOUNDS,
    "probe": OP_BOUNDS,
}
