"""The four kinds of work that an OSD schedules, named once for code, metrics and documentation."""

from typing import Final

CLIENT: Final = "client"
RECOVERY: Final = "background_recovery"
BEST_EFFORT: Final = "background_best_effort"
IMMEDIATE: Final = "immediate"

# The classes that mClock shares the OSD between; immediate work goes first and is charged to none.
SCHEDULED: Final = (CLIENT, RECOVERY, BEST_EFFORT)
ALL: Final = (*SCHEDULED, IMMEDIATE)

# How the queue dump names a class: by number up to 20.2, by name where a release prints names.
BY_DUMP_ID: Final = {
    "0": RECOVERY,
    "1": BEST_EFFORT,
    "2": IMMEDIATE,
    "3": CLIENT,
    **{name: name for name in ALL},
}
