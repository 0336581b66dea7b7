"""What `cephqos capacity` asks a Prometheus, in pieces of a day at most, and how it reads that."""

from typing import Final

# A week in hours, and as many pieces of any other time.
PIECES: Final = 168
SHORTEST: Final = 60.0  # rates look back that far
_AT_ONCE: Final = 24  # pieces of one question: an engine limits the samples of an answer
_RAW_SECONDS: Final = 300.0  # survives scrapes a minute apart

Osd = tuple[str, str]
