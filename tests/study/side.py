"""One experiment on this machine: the figures of its policies, one of each lab."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final

from cephqos_loadgen.report.arrays.statistics import (
    CONFIDENCE,
    ChangeInterval,
    change,
    t_quantile,
)
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, ReportRow, ReportRun, rows_of
from cephqos_loadgen.report.figures.loads import DURING, WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.results.repeat import RepeatRecord

POLICY: Final = "policy"
EXPERIMENT: Final = "experiment"
ALONE: Final = "alone"
SCRUB: Final = "scrub"
# How exactly the end of a work is known, in seconds: looks at a scrub, reports of the manager.
_GRID: Final = {metrics.SCRUB_SECONDS: 1.0, metrics.RECOVERY_OBJECT_RATE: 2.0}
_LATER = 1.0  # seconds after clients, from which on a work has outlasted them

Figures = tuple[tuple[str, tuple[float, ...]], ...]  # by name, one of each lab


def merged(name: str, labs: Sequence[ReportRun]) -> ReportRun:
    """The runs of several labs as one run: its repeats are the labs, in their order."""
    order = [point["name"] for point in labs[0].plan["points"]]
    observations = sorted(
        (
            replace(observed, record=replace(observed.record, repeat=lab))
            for lab, run in enumerate(labs, start=1)
            for observed in run.finished
        ),
        key=lambda observed: (order.index(observed.record.point), observed.record.repeat),
    )
    return replace(
        labs[0],
        name=name,
        manifest=replace(labs[0].manifest, run=name, repeats_planned=len(order) * len(labs)),
        observations=tuple(observations),
        rows=tuple(rows_of(name, observations)),
        problems=tuple(problem for run in labs for problem in run.problems),
    )


def paired(new: Sequence[float], old: Sequence[float], bins: float = 0.0) -> ChangeInterval:
    """The change of a figure within a lab, and its interval over labs: Student's t on the
    logarithm of new / old. `bins`: the variance of that by bins, which counts once."""
    if not new or len(new) != len(old) or min(*new, *old) <= 0:
        return ChangeInterval(0.0, None, None, None)
    logs = [math.log(a / b) for a, b in zip(new, old, strict=True)]
    absolute, centre = fmean(new) - fmean(old), fmean(logs)
    if len(logs) < 2:
        return ChangeInterval(absolute, math.expm1(centre), None, None)
    error, degrees = math.hypot(stdev(logs) / math.sqrt(len(logs)), math.sqrt(bins)), len(logs) - 1
    reach = t_quantile(1 - (1 - CONFIDENCE) / 2, degrees) * error
    low, high = math.expm1(centre - reach), math.expm1(centre + reach)
    return ChangeInterval(absolute, math.expm1(centre), low, high, error, degrees)


def ratios_differ(here: Figures, there: Figures, *, same: bool) -> bool:
    """Whether two changes, each of two figures, differ beyond noise. `same`: they are of the same
    labs, one by one."""
    if len(here) != 2 or len(there) != 2:
        return False
    a, b = ([x / y for x, y in zip(new, old, strict=True)] for (_, new), (_, old) in (here, there))
    return (paired(a, b) if same and len(a) == len(b) else change(a, b)).beyond_noise


@dataclass(frozen=True, slots=True)
class Side:
    """An experiment; `run` has one repeat of each policy for each lab.

    A setting is a policy (`wpq`), or one with the value of the axis `experiment` before it
    (`ten_scrubs/wpq`).
    """

    run: ReportRun

    def _rows(self, setting: str) -> Iterator[ReportRow]:
        for row in self.run.rows:
            if self._is_of(setting, row.axes):
                yield row

    def row(self, setting: str, metric: FigureKind) -> ReportRow | None:
        """The row that has this figure: of the whole load, as in the studies, unless the setting
        asks for the time of the scrub."""
        rows = [
            row
            for row in self._rows(setting)
            if metric.key in row.figures and row.key.phase != ALONE
        ]
        if metric in metrics.BACKGROUND:
            return next((row for row in rows if row.key.kind == BACKGROUND), None)
        window = DURING[SCRUB] if setting.endswith(f"@{SCRUB}") else WHOLE
        loads = (row for row in rows if (row.key.op, row.key.window) == ("total", window))
        return next(loads, None)

    def samples(self, setting: str, metric: FigureKind) -> tuple[float, ...]:
        """The figure, one of each lab."""
        row = self.row(setting, metric)
        return row.figures[metric.key].samples if row else ()

    def alone(self, setting: str) -> tuple[float, ...]:
        """What clients get with nothing beside them, one figure of each lab."""
        for row in self._rows(setting):
            if row.key.phase == ALONE and (row.key.op, row.key.window) == ("total", WHOLE):
                return row.figures[metrics.IOPS.key].samples
        return ()

    @property
    def _experiments(self) -> set[str]:
        return {row.axes.get(EXPERIMENT, "") for row in self.run.rows}

    def setting(self, row: ReportRow) -> str:
        """The policy of a row, with its experiment where there are several."""
        policy = row.axes[POLICY]
        return f"{row.axes[EXPERIMENT]}/{policy}" if len(self._experiments) > 1 else policy

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(map(self.setting, self.run.rows)))

    @property
    def labs(self) -> int:
        return len({observed.record.repeat for observed in self.run.finished})

    def outlasts_clients(self, setting: str, metric: FigureKind) -> bool:
        """Whether in some lab the work of this figure went on when its clients had ended: its time
        is not one beside clients. A rate of recovery is of the time with clients, whatever
        follows."""
        if metric not in (metrics.SCRUB_SECONDS, metrics.RECOVERY_SECONDS):
            return False
        records = [
            observed.record
            for observed in self.run.finished
            if self._is_of(setting, observed.record.axes)
        ]
        return any(map(_outlasts, records))

    def grid(self, setting: str, metric: FigureKind) -> float:
        """How wide the bins are in which this figure is known, as a share of it."""
        if metric not in _GRID:
            return 0.0
        seconds = self.samples(setting, metric)
        if metric == metrics.RECOVERY_OBJECT_RATE:
            objects = self.samples(setting, metrics.RECOVERY_OBJECTS)
            seconds = tuple(n / rate for n, rate in zip(objects, seconds, strict=True))
        return _GRID[metric] / fmean(seconds)

    def _is_of(self, setting: str, axes: Mapping[str, str]) -> bool:
        experiment, _, policy = setting.partition("@")[0].rpartition("/")
        return axes.get(POLICY) == policy and (not experiment or axes.get(EXPERIMENT) == experiment)


def _outlasts(record: RepeatRecord) -> bool:
    phases = {name: it for name, it in record.phases.items() if name != ALONE}
    clients = [it.end_unix_seconds for it in phases.values() if it.kind == "fio"]
    works = [it.end_unix_seconds for it in phases.values() if it.kind == SCRUB]
    cut = any(it.ended_by == "cut_off" for it in phases.values())
    return cut or any(work > end + _LATER for work in works for end in clients)


def compared(side: Side, metric: FigureKind, names: Sequence[str]) -> ChangeInterval:
    """The change of a figure between two settings. Bins of the clock count, once: labs whose works
    all end in the same second are not equal."""
    new, old = (side.samples(name, metric) for name in names)
    return paired(new, old, sum(side.grid(name, metric) ** 2 / 12 for name in names))


Sides = Mapping[str, Side]  # by the name of the experiment
