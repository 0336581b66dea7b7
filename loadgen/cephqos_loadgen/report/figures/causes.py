"""Causes of unmet demand, by the recording rules: the main cause per OSD and class."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from cephqos_base.recorded import PerClass
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.attained import WINDOW, Attained
from cephqos_loadgen.report.figures.observe import Observation, ObservedCause

# Series that Prometheus evaluates for `cephqos report --causes`.
WANTED: Final = (PerClass.CAUSE,)
# The rules need demand in every sample of a minute, which suits a production cluster. Phases of a
# run are often shorter. So the rules get the windows in which a report judges reservations.
RULES_WINDOW: Final = 60.0
TIME_SCALE: Final = WINDOW / RULES_WINDOW


def with_causes(run: ReportRun, causes: Sequence[ObservedCause]) -> ReportRun:
    """The run with the causes of each repeat, from those of the whole run."""
    observations = tuple(_with_causes(observed, causes) for observed in run.observations)
    return replace(run, observations=observations)


def _with_causes(observed: Observation, causes_of_run: Sequence[ObservedCause]) -> Observation:
    # In the first window, rules still see the repeat before.
    start = observed.record.start_unix_seconds + WINDOW
    end = observed.record.end_unix_seconds
    causes = []
    for cause in causes_of_run:
        within = (start <= cause.times) & (cause.times <= end)
        if within.any():
            causes.append(replace(cause, times=cause.times[within]))
    return replace(observed, causes=tuple(causes))


def causes_within(
    observed: Observation, attained: Attained, start: float, end: float
) -> Mapping[str, float]:
    """Seconds of each cause of a class on an OSD, in which the class had demand: the rules show a
    cause for longer than the demand lasts. Rules are evaluated once per scrape interval."""
    seconds_of: dict[str, float] = {}
    interval = observed.record.metrics.interval_seconds
    for cause in observed.causes or ():
        if (cause.osd, cause.work) == (attained.osd, attained.work):
            within = (cause.times >= start) & (cause.times <= end)
            seconds = float((within & attained.had_demand_at(cause.times)).sum()) * interval
            if seconds:
                seconds_of[cause.name] = seconds_of.get(cause.name, 0.0) + seconds
    return seconds_of
