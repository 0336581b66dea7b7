"""What a client accepts, from its headers."""

import math
from typing import Final

# A client may ask for less in a header. A busy OSD needs some milliseconds, a host of 60 a third
# of a second.
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
    """What Prometheus sends, a minute at most, less the offset; or else the setting.

    An offset as long as the timeout would leave nothing, so half the timeout is the least; and
    what no daemon could be expected to keep is made longer.
    """
    sent = min(_number(header or "", 0.0), _MOST_SECONDS)
    if sent <= 0:
        return otherwise
    return max(sent - offset, sent / 2, LEAST_SECONDS)
