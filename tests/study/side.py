"""One experiment on this machine: the figures of its policies, one of each lab."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final

from cephqos_loadgen.report.arrays.statistics import CONFIDENCE, ChangeInterval, t_quantile
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, ReportRow, ReportRun, rows_of
from cephqos_loadgen.report.figures.loads import DURING, WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind

POLICY: Final = "policy"
EXPERIMENT: Final = "experiment"
ALONE: Final = "alone"
_OF_RECOVERY: Final = (
    *(metrics.RECOVERY_SECONDS, metrics.RECOVERY_OBJECT_RATE, metrics.RECOVERY_BANDWIDTH),
)


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


def paired(new: Sequence[float], old: Sequence[float]) -> ChangeInterval:
    """The change of a figure within a lab, and its interval over labs: Student's t on the
    logarithm of new / old."""
    if not new or len(new) != len(old) or min(*new, *old) <= 0:
        return ChangeInterval(0.0, None, None, None)
    logs = [math.log(a / b) for a, b in zip(new, old, strict=True)]
    absolute, centre = fmean(new) - fmean(old), fmean(logs)
    if len(logs) < 2:
        return ChangeInterval(absolute, math.expm1(centre), None, None)
    error, degrees = stdev(logs) / math.sqrt(len(logs)), len(logs) - 1
    reach = t_quantile(1 - (1 - CONFIDENCE) / 2, degrees) * error
    low, high = math.expm1(centre - reach), math.expm1(centre + reach)
    return ChangeInterval(absolute, math.expm1(centre), low, high, error, degrees)


@dataclass(frozen=True, slots=True)
class Side:
    """An experiment; `run` has one repeat of each policy for each lab.

    A setting is a policy (`wpq`), or one with the value of the axis `experiment` before it
    (`ten_scrubs/wpq`).
    """

    run: ReportRun

    def _rows(self, setting: str) -> Iterator[ReportRow]:
        experiment, _, policy = setting.rpartition("/")
        for row in self.run.rows:
            fits = row.axes.get(POLICY) == policy
            if fits and (not experiment or row.axes.get(EXPERIMENT) == experiment):
                yield row

    def row(self, setting: str, metric: FigureKind) -> ReportRow | None:
        """The row that has this figure: of the load beside the scrub, if there is one, else of the
        whole load."""
        rows = [
            row
            for row in self._rows(setting)
            if metric.key in row.figures and row.key.phase != ALONE
        ]
        if metric in metrics.BACKGROUND:
            return next((row for row in rows if row.key.kind == BACKGROUND), None)
        rank = {DURING["scrub"]: 0, WHOLE: 1}
        loads = [row for row in rows if row.key.op == "total" and row.key.window in rank]
        return min(loads, key=lambda row: rank[row.key.window], default=None)

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

    def is_cut_off(self, setting: str, metric: FigureKind) -> bool:
        """Whether a limit ended the clients before the recovery that this figure is of: from then
        on it had no clients beside it."""
        policy = setting.rpartition("/")[2]
        return metric in _OF_RECOVERY and any(
            phase.ended_by == "cut_off"
            for observed in self.run.finished
            if observed.record.axes.get(POLICY) == policy
            for phase in observed.record.phases.values()
        )


Sides = Mapping[str, Side]  # by the name of the experiment
