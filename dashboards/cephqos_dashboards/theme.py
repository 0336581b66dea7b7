"""How everything looks: colours, units, thresholds. Nothing else names a colour or a unit, except
the files of causes (cephqos_base/causes.py).

The colours have a contrast of at least 3 to the panels of Grafana's light and dark theme. People
with protanopia, deuteranopia or tritanopia can distinguish the colours of a palette. A test
computes both. Causes have too many colours for that, so a legend and the tooltip name them.
"""

from collections.abc import Mapping
from typing import Final

from grafana_foundation_sdk.models.dashboard import (
    DashboardFieldConfigSourceOverrides,
    DashboardSpecialValueMapOptions,
    DynamicConfigValue,
    MatcherConfig,
    SpecialValueMap,
    SpecialValueMatch,
    Threshold,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

from cephqos_base.causes import CAUSE, CAUSES
from cephqos_base.thresholds import THRESHOLDS

# One colour per class, everywhere.
CLASSES: Final[Mapping[str, str]] = {
    "client": "#345AF1",
    "background_recovery": "#D6741C",
    "background_best_effort": "#C265C4",
    "immediate": "#767778",
}

GOOD: Final = "#1A8A99"
WARN: Final = "#C27C0D"
BAD: Final = "#DB2B4E"
QUIET: Final = "#8A8F98"  # nothing to judge: no reservation, no demand, no data
STATES: Final = {"good": GOOD, "warn": WARN, "bad": BAD}

BOUND: Final = "alert above this line"  # the name of such a series
SECOND_RUN: Final = "second run: "  # what the names of its series begin with
# Threads that do most of an OSD's work. Others take Grafana's colours, which repeat after ten.
THREADS: Final[Mapping[str, str]] = {
    "tp_osd_tp": "#345AF1",
    "msgr-worker": "#D6741C",
    "bstore_kv_sync": "#C265C4",
    "bstore_kv_final": "#1A8A99",
    "reactor": "#767778",
}
# Where operations wait: in the colour of the cause, if it is one.
WAITING: Final[Mapping[str, str]] = {
    "receive": "#767778",
    "queue": CAUSE["other_class"].colour,
    "blocked": "#B58900",
    "cpu": CAUSE["cpu"].colour,
    "store_throttle": CAUSE["capacity"].colour,
    "store_device": CAUSE["device"].colour,
    "store_commit": "#C265C4",
    "store_cpu": "#1A8A99",
    "replica": CAUSE["other_osd"].colour,
    "network": CAUSE["network"].colour,
    "reply": "#345AF1",
    "unknown": CAUSE["unknown"].colour,
}
# In the queue, by what is served instead: shades of one family.
QUEUES: Final[Mapping[str, str]] = {
    "client": "#C0371B",
    "background_recovery": CAUSE["other_class"].colour,
    "background_best_effort": "#B48C3C",
    "immediate": "#7B6842",
    "limit": "#F2560D",
    "cpu": "#C86D5B",
}


class Unit:
    """Grafana's names of units."""

    OPS = "ops"  # normalised ops/s: one cost_per_io of work
    IOPS = "iops"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_PER_SECOND = "binBps"
    RATIO = "percentunit"
    COUNT = "short"
    SINCE = "dateTimeFromNow"
    NONE = "none"
    OSDS = "suffix:OSDs"
    CPUS = "suffix:CPUs"
    THREADS = "suffix:threads"


def steps(*rising: tuple[float | None, str]) -> list[Threshold]:
    """Thresholds: each value with the colour from there up. The first has no value."""
    return [Threshold(value=value, color=colour) for value, colour in rising]


NEUTRAL: Final = steps((None, QUIET))
ZERO_IS_GOOD: Final = steps((None, GOOD), (1, BAD))
ZERO_IS_USUAL: Final = steps((None, GOOD), (1, WARN))
ATTAINMENT: Final = steps((None, BAD), (THRESHOLDS.reached, WARN), (1, GOOD))
BUDGET: Final = steps((None, BAD), (0.0001, WARN), (0.25, GOOD))
CULPRIT: Final = steps((None, QUIET), (0, GOOD), (1, BAD))
UP: Final = steps((None, BAD), (1, GOOD))


def mapped(texts: Mapping[str, tuple[str, str]]) -> list[ValueMapping]:
    """Values shown as text in a colour: {"0": ("down", BAD)}."""
    return [
        ValueMap(
            options={
                value: ValueMappingResult(text=text, color=colour, index=index)
                for index, (value, (text, colour)) in enumerate(texts.items())
            }
        )
    ]


def absent(
    text: str, match: SpecialValueMatch = SpecialValueMatch.NULL_AND_NAN, colour: str | None = QUIET
) -> ValueMapping:
    """What is shown where there is no value."""
    result = ValueMappingResult(text=text, color=colour, index=99)
    return SpecialValueMap(options=DashboardSpecialValueMapOptions(match=match, result=result))


# Nothing is shown. An empty `noValue` would not do: Grafana 11 to 13 read it as the number 0.
BLANK: Final = (
    absent("", SpecialValueMatch.NULL_AND_NAN, None),
    absent("", SpecialValueMatch.EMPTY, None),
)

KEPT: Final = mapped({"0": ("no OSD", GOOD)})
NO_VIOLATION: Final = mapped({"0": ("no violation", GOOD)})
NONE: Final = mapped({"0": ("none", GOOD)})
DONE: Final = mapped({"0": ("nothing left", QUIET)})
CAUSE_CODES: Final = mapped(
    {
        "-2": ("not enough data yet", QUIET),
        "-1": ("no reservation, or no rules", QUIET),
        "0": ("not violated", GOOD),
    }
    | {str(code): (cause.words, cause.colour) for code, cause in enumerate(CAUSES, 1)}
    | {str(len(CAUSES) + 1): ("begins", WARN)}
)
CAUSES_IN_WORDS: Final[Mapping[str, str]] = {
    cause.name: cause.words for cause in CAUSES if cause.words != cause.name
}
# Of columns that say no more: neither is good or bad.
PLAIN_YES_NO: Final[Mapping[str, str]] = {"0": "no", "1": "yes"}
YES_NO: Final = mapped({"0": ("no", BAD), "1": ("yes", GOOD)})


def fixed(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})


def _override(pattern: str, *values: DynamicConfigValue) -> DashboardFieldConfigSourceOverrides:
    return DashboardFieldConfigSourceOverrides(
        matcher=MatcherConfig(id_val="byRegexp", options=pattern), properties=list(values)
    )


def class_overrides() -> list[DashboardFieldConfigSourceOverrides]:
    """The colour of each class, for every series whose name starts with it."""
    return [
        _override(f"/^({SECOND_RUN})?{name}\\b/", fixed(colour)) for name, colour in CLASSES.items()
    ]


def second_run_override() -> DashboardFieldConfigSourceOverrides:
    """What is of the second run is dashed."""
    dashed = DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [6, 6]})
    return _override(f"/^{SECOND_RUN}/", dashed)


def thread_overrides() -> list[DashboardFieldConfigSourceOverrides]:
    """The colour of the best-known thread groups."""
    return [_override(f"/^{name}$/", fixed(colour)) for name, colour in THREADS.items()]


def waiting_overrides() -> list[DashboardFieldConfigSourceOverrides]:
    """The colour of each state of the account, and of `queue client` and the like. `replica osd.3`
    takes one of Grafana's, so that replicas differ."""
    # A legend of `state` and `by` ends with a blank where `by` is empty.
    patterns = {state: f"/^{state} ?$/" for state in WAITING} | {"queue": "/^queue\\b/"}
    return [
        *(_override(patterns[state], fixed(colour)) for state, colour in WAITING.items()),
        # The last override that fits counts.
        *(_override(f"/^queue {by}$/", fixed(colour)) for by, colour in QUEUES.items()),
    ]


def reservation_overrides() -> list[DashboardFieldConfigSourceOverrides]:
    """What is reserved or possible is a dashed line over what is done, never part of the stack."""
    not_stacked = DynamicConfigValue(id_val="custom.stacking", value={"mode": "none", "group": "A"})
    no_fill = DynamicConfigValue(id_val="custom.fillOpacity", value=0)
    line = (not_stacked, no_fill, DynamicConfigValue(id_val="custom.lineWidth", value=2))
    dashed = DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})
    dotted = DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dot", "dash": [2, 5]})
    return [
        _override("/reservation \\(dashed\\)$/", *line, dashed),
        _override("/limit \\(dotted\\)$/", *line, dotted),
        _override("/^capacity/", *line, fixed(BAD)),
        _override(
            "/shortfall \\(filled\\)$/",
            no_fill,
            DynamicConfigValue(id_val="custom.fillOpacity", value=35),
        ),
    ]


def bound_overrides() -> list[DashboardFieldConfigSourceOverrides]:
    """The value above which an alert fires."""
    dashed = DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})
    width = DynamicConfigValue(id_val="custom.lineWidth", value=2)
    return [_override(f"/^{BOUND}$/", fixed(BAD), width, dashed)]


def interval_overrides() -> list[DashboardFieldConfigSourceOverrides]:
    """How far off the other lines are at most."""
    dashed = DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})
    return [_override("/interval: ± this \\(dashed\\)$/", fixed(QUIET), dashed)]


def urgency_overrides() -> list[DashboardFieldConfigSourceOverrides]:
    """What is on time, due and overdue."""
    return [
        _override("/on_time$/", fixed(GOOD)),
        _override("/ due$/", fixed(WARN)),
        _override("/overdue$/", fixed(BAD)),
    ]
