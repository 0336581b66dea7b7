"""What a probe measures and in which bounds."""

from typing import Final

# Upper bounds of the latency histogram in seconds: those of the op histograms, so that what a
# client feels and what the OSDs say can be laid over each other.
BOUNDS: Final = tuple(round(1e-4 * 2**k, 4) for k in range(21))
