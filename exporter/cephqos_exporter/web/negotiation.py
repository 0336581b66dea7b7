"""What a scrape asks for in its headers: the format, compression, and how long it waits."""

import math
from typing import Final

# Of the time for a scrape, whatever its header says. In less, no busy OSD could answer: one needs
# some milliseconds, all of a host with 60 OSDs a third of a second.
LEAST_SECONDS: Final = 0.2
_MOST_SECONDS: Final = 60.0  # anyone may send a header: a round must not last for hours


def wants_openmetrics(accept: str) -> bool:
    """Whether OpenMetrics is preferred over the text format. No preference means text."""
    weights = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for part in accept.split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        if kind.lower() in weights:
            weights[kind.lower()] = max(weights[kind.lower()], _weight(parameters))
    return weights["application/openmetrics-text"] > weights["text/plain"]


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether gzip is among the encodings accepted."""
    for part in accept_encoding.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name.lower() == "gzip":
            return _weight(parameters) > 0
    return False


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            return _number(value, 0.0)
    return 1.0


def _number(text: str, otherwise: float) -> float:
    try:
        value = float(text)
    except ValueError:
        return otherwise
    return value if math.isfinite(value) else otherwise


def scrape_seconds(header: str | None, *, offset: float, otherwise: float) -> float:
    """The time for a scrape: what `header` says, less the offset; `otherwise` without a header.

    The header is X-Prometheus-Scrape-Timeout-Seconds. A minute of it counts at most. At least half
    of it is left, however long the offset is, and never less than LEAST_SECONDS.
    """
    sent = min(_number(header or "", 0.0), _MOST_SECONDS)
    if sent <= 0:
        return otherwise
    return max(sent - offset, sent / 2, LEAST_SECONDS)
