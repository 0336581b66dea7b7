"""What can end a phase, and which of it a kind of phase looks at."""

from typing import Final, Literal

Ending = Literal["done", "duration", "scrub_done", "recovery_done", "steady_state", "phase"]

# Kinds that last until they are told to end.
TOLD: Final[tuple[Ending, ...]] = ("done", "duration", "scrub_done", "recovery_done", "phase")
# Kinds that end with their work, and that nobody can tell to end before.
WORK: Final[tuple[Ending, ...]] = ("done",)
