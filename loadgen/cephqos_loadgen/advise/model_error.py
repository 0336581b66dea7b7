"""How far off the model of the scheduler is, from `make model`, which refuses another table.

A figure that is not known is not predicted. docs/internals/model.md says how that is judged.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ModelError:
    """Median errors as shares of what was measured: of the model, and of the better of two simple
    predictors."""

    figure: str
    runs: int
    model: float
    simple: float
    known: bool


MODEL_ERRORS: Final = (
    ModelError("client throughput", 5, 0.23, 0.08, False),
    ModelError("client p50", 5, 0.32, 0.33, False),
    ModelError("client p95", 5, 0.32, 0.27, False),
    ModelError("client p99", 5, 0.41, 0.54, True),
    ModelError("recovery time", 5, 0.43, 0.04, False),
)
# Also needed: a lab has shown it for other sizes, media and releases than those of the runs.
LEAST_RUNS: Final = 16


def why_unknown(figure: str) -> str:
    """Why a figure is not predicted."""
    it = next(it for it in MODEL_ERRORS if it.figure == figure)
    if it.known and it.runs < LEAST_RUNS:
        return f"the model of the scheduler was tested with {it.runs} runs, not {LEAST_RUNS}"
    return (
        f"the model of the scheduler is off by {it.model:.0%}, and a guess that nothing changes by"
        f" {it.simple:.0%}"
    )
