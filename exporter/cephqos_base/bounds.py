"""Upper bounds of latency histograms in seconds. An SLO's threshold must be one of them."""

from collections.abc import Mapping
from typing import Final

# Of the op histograms of OSDs and of the probe: 100 µs times a power of two.
OP_BOUNDS: Final = tuple(round(1e-4 * 2**octave, 4) for octave in range(21))


def _fio_bounds() -> tuple[float, ...]:
    """Four per octave from 12.5 µs to 105 s, every bound of OP_BOUNDS among them.

    So the latencies of a load and of the OSDs can be laid over each other.
    """
    bounds = [12.5e-6 * 2**octave * (1 + part / 4) for octave in range(23) for part in range(4)]
    return tuple(round(bound, 12) for bound in [*bounds, 12.5e-6 * 2**23])


FIO_BOUNDS: Final = _fio_bounds()

# By the source that an SLO names.
BOUNDS_BY_SOURCE: Final[Mapping[str, tuple[float, ...]]] = {
    "osd": OP_BOUNDS,
    "fio": FIO_BOUNDS,
    "probe": OP_BOUNDS,
}
