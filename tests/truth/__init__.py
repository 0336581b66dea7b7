"""Faults staged on real clusters, and what the alerts say of them: `make truth`."""

from pathlib import Path
from typing import Final

# Beside those that the demo can provoke.
HERE: Final = Path(__file__).parent / "situations"
