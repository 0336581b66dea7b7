"""What a client accepts, from its headers."""

import math
from dataclasses import dataclass
from typing import Final

# Whoever sends a header may ask for less: a busy OSD needs some milliseconds, a host of 60 a third
# of a second.
LEAST_SECONDS: Final = 0.2


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


@dataclass(frozen=True, slots=True)
class Allowance:
    """The time a scrape may take. Where it is not `fair`, missing it says nothing of a daemon."""

    seconds: float
    fair: bool = True


def scrape_seconds(header: str | None, *, offset: float, otherwise: float) -> Allowance:
    """What Prometheus sends less the offset, or else the setting.

    An offset as long as the timeout would leave nothing, so half the timeout is the least; and
    what no daemon could be expected to keep is made longer.
    """
    sent = _number(header or "", 0.0)
    if sent <= 0:
        return Allowance(otherwise)
    seconds = max(sent - offset, sent / 2)
    return Allowance(max(seconds, LEAST_SECONDS), fair=seconds >= LEAST_SECONDS)
