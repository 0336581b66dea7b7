"""All kinds of steps, and how stored ones are read: what is none of these is refused."""

import json
from collections.abc import Mapping
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_loadgen.cluster.steps import background, host, options, osds, pools
from cephqos_loadgen.cluster.steps.step import MAX_STEP_BYTES, StepBack, brief

KINDS: Final[Mapping[str, type[StepBack]]] = {
    step.kind: step
    for module in (background, host, options, osds, pools)
    for step in vars(module).values()
    if isinstance(step, type) and issubclass(step, StepBack) and hasattr(step, "kind")
}


class StepRefused(UsageError):
    """A stored step that no run writes: it is not carried out, and stays where it is."""


def read_step(where: str, value: Any) -> StepBack:
    """A step from JSON, or from its text; StepRefused names `where` it is stored."""
    try:
        if isinstance(value, str):
            if len(value) > MAX_STEP_BYTES:
                raise ValueError(f"expected {MAX_STEP_BYTES} bytes at most, found {len(value)}")
            value = json.loads(value)
        if not isinstance(value, dict):
            raise ValueError(f"expected a table with the key kind, found {brief(value)}")
        kind = value.get("kind")
        step = KINDS.get(kind) if isinstance(kind, str) else None
        if step is None:
            raise ValueError(f"kind: expected {', '.join(KINDS)}; found {brief(kind)}")
        return step.read({name: entry for name, entry in value.items() if name != "kind"})
    except RecursionError:
        raise StepRefused(f"{where}: no step of a run: it is nested too deeply") from None
    except ValueError as error:
        raise StepRefused(f"{where}: no step of a run: {error}") from None


def stored(step: StepBack) -> str:
    """A step as text; StepRefused for one that could not be read again, before it is needed."""
    text = json.dumps(step.to_json(), separators=(",", ":"))
    if read_step(step.shown, text) != step:
        raise StepRefused(f"{step.shown}: it could not be read again as it is")
    return text
