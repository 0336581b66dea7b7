"""How far off the model of the scheduler (tests/model) is.

`make model` measures these errors on recorded runs, and fails if the table differs;
docs/internals/model.md says how. No figure is predicted by the model yet: all runs are of one kind
of lab, and no exporter records what the model needs to know of a device.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ModelError:
    """How far predictions of one figure are off: median errors as shares of what was measured."""

    figure: str
    runs: int  # that were predicted and measured
    model: float
    simple: float  # the better of two simple predictors
    known: bool  # the model is good enough in the lab that the runs are of


MODEL_ERRORS: Final = (
    ModelError("client throughput", 22, 0.11, 0.14, False),
    ModelError("client p50", 22, 0.10, 0.27, True),
    ModelError("client p95", 22, 0.29, 0.33, False),
    ModelError("client p99", 22, 0.32, 0.37, False),
    ModelError("recovery time", 22, 0.09, 0.29, True),
)


def why_unknown(figure: str) -> str:
    """Why a figure is not predicted."""
    error = next(error for error in MODEL_ERRORS if error.figure == figure)
    model = f"the model of the scheduler is off by {error.model:.0%}"
    if error.known:
        return f"{model} in one lab, and was not tried with other devices"
    return f"{model}, and a simple guess by {error.simple:.0%}"
