"""Faults staged on real clusters, and what the alerts say of them: `make truth`."""

import re
from pathlib import Path
from typing import Final

from cephqos_stack.staged.situation import HERE as OF_THE_DEMO
from cephqos_stack.staged.situation import Situation, load

HERE: Final = Path(__file__).parent / "situations"


def load_all(only: str = "") -> list[Situation]:
    """Those whose name has a match: the demo's, and the others."""
    found = {path.stem: path for folder in (OF_THE_DEMO, HERE) for path in folder.glob("*.yaml")}
    return [load(path) for name, path in sorted(found.items()) if re.search(only, name)]


def fault_at(situation: Situation) -> float:
    """When the last fault is staged, in seconds after the loads."""
    return max((fault.after for fault in situation.faults), default=0.0)
