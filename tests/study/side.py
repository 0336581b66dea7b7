"""One experiment on small machines: the figures of its policies, one of each lab, as its table has
them. The study's pages are made from these tables, so labs of several days count together."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, NamedTuple

import numpy as np

from cephqos_base.series import RecoverySeries
from cephqos_loadgen.report.arrays.statistics import (
    CONFIDENCE,
    ChangeInterval,
    change,
    t_quantile,
)
from cephqos_loadgen.report.charts.tracks import grown_since
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, ReportRow, ReportRun, rows_of
from cephqos_loadgen.report.figures.environment import environment_facts
from cephqos_loadgen.report.figures.loads import DURING, WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.results.host_load import cpu_by_others
from cephqos_loadgen.results.repeat import RepeatRecord

LABS: Final = "labs.csv"
POLICY: Final = "policy"
EXPERIMENT: Final = "experiment"
ALONE: Final = "alone"
SCRUB: Final = "scrub"
_WORKING: Final = {window: f"@{work}" for work, window in DURING.items()}
_WORKS: Final[tuple[FigureKind, ...]] = (
    metrics.SCRUB_SECONDS,
    metrics.SCRUB_OBJECTS,
    metrics.RECOVERY_BANDWIDTH,
    metrics.RECOVERY_SECONDS,
)
_LOADS: Final[tuple[FigureKind, ...]] = (metrics.IOPS, metrics.MEAN)
# How exactly the end of a work is known, in seconds: looks at a scrub, reports of the manager.
_GRID: Final = {metrics.SCRUB_SECONDS: 1.0, metrics.RECOVERY_BANDWIDTH: 2.0}
_LATER = 1.0  # seconds after clients, from which on a work has outlasted them


class Figure(NamedTuple):
    """A figure of a setting, one of each lab. `bin`: the width in which it is known, as a share of
    it; 0 where it is exact."""

    name: str
    values: tuple[float, ...]
    bin: float = 0.0


@dataclass(frozen=True, slots=True)
class LabRow:
    """A setting in one lab, which has the name of its run. `figures` are by the names of columns;
    one that was not measured is missing. `outlasts`: a work went on when its clients had ended.
    `cut_off`: a limit ended the clients before the work. `others`: the share of the CPUs that other
    programs used; `steal`: that which other virtual machines took."""

    setting: str
    lab: str
    figures: Mapping[str, float]
    outlasts: bool
    cut_off: bool
    others: float
    steal: float
    ceph: str


def column(metric: FigureKind, setting: str = "") -> str:
    """A figure is of the whole load, as in the studies, unless the setting asks for the time of the
    scrub or of recovery, or for clients alone."""
    _, at, window = setting.partition("@")
    return f"{metric.key}{at}{window}"


COLUMNS: Final = (
    column(metrics.IOPS, f"@{ALONE}"),
    *(column(metric, at) for metric in _LOADS for at in ("", *_WORKING.values())),
    *map(column, _WORKS),
)
_RAN_WITH: Final = "ran with"
_REST: Final = ("outlasts clients", "cut off", "others", "steal", "Ceph", _RAN_WITH)
_YES: Final = {True: "yes", False: "no"}


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


def ratios_differ(here: Sequence[Figure], there: Sequence[Figure], *, same: bool) -> bool | None:
    """Whether two changes, each of two figures, differ beyond noise; None if there are more
    figures. `same`: they are of the same labs, one by one. The bins of a figure that both have do
    not count."""
    if len(here) != 2 or len(there) != 2:
        return None
    a, b = (
        [x / y for x, y in zip(new.values, old.values, strict=True)] for new, old in (here, there)
    )
    own = {*here} ^ {*there}
    if same and len(a) == len(b):
        return paired(a, b, sum(it.bin**2 / 12 for it in own)).beyond_noise
    widths = [
        fmean(of) * math.hypot(*(it.bin for it in side)) for of, side in ((a, here), (b, there))
    ]
    return change(a, b, widths=(widths[0], widths[1])).beyond_noise


@dataclass(frozen=True, slots=True)
class Side:
    """An experiment. A setting is a policy (`wpq`), or one with the value of the axis `experiment`
    before it (`ten_scrubs/wpq`)."""

    rows: tuple[LabRow, ...]

    def samples(self, setting: str, metric: FigureKind) -> tuple[float, ...]:
        """The figure, one of each lab."""
        name = column(metric, setting)
        return tuple(row.figures[name] for row in self._of(setting) if name in row.figures)

    def alone(self, setting: str) -> tuple[float, ...]:
        """What clients get with nothing beside them, one figure of each lab."""
        return self.samples(f"{setting.partition('@')[0]}@{ALONE}", metrics.IOPS)

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(row.setting for row in self.rows))

    @property
    def labs(self) -> int:
        return len({row.lab for row in self.rows})

    def in_labs_of(self, settings: Sequence[str]) -> "Side":
        """In the labs that ran all of these: a policy may have come later than others."""
        ran = [{row.lab for row in self._of(setting)} for setting in settings]
        labs = set.intersection(*ran)
        return Side(tuple(row for row in self.rows if row.lab in labs))

    @property
    def cut_off(self) -> list[str]:
        """Of which settings the rate of recovery is that of clients for a part of it only."""
        return list(dict.fromkeys(row.setting for row in self.rows if row.cut_off))

    def outlasts_clients(self, setting: str, metric: FigureKind) -> bool:
        """Whether in some lab the work of this figure went on when its clients had ended: its time
        is not one beside clients. A rate of recovery is of the time with clients."""
        return metric == metrics.SCRUB_SECONDS and any(row.outlasts for row in self._of(setting))

    def grid(self, setting: str, metric: FigureKind) -> float:
        """How wide the bins are in which this figure is known, as a share of it."""
        if metric not in _GRID:
            return 0.0
        took = metrics.RECOVERY_SECONDS if metric == metrics.RECOVERY_BANDWIDTH else metric
        seconds = self.samples(setting, took)
        return _GRID[metric] / fmean(seconds)

    def _of(self, setting: str) -> Iterator[LabRow]:
        name = setting.partition("@")[0]
        return (row for row in self.rows if row.setting == name)


def compared(side: Side, metric: FigureKind, names: Sequence[str]) -> ChangeInterval:
    """The change of a figure between two settings. Bins of the clock count, once: labs whose works
    all end in the same second are not equal."""
    new, old = (side.samples(name, metric) for name in names)
    return paired(new, old, sum(side.grid(name, metric) ** 2 / 12 for name in names))


def merged(name: str, labs: Sequence[ReportRun]) -> ReportRun:
    """The runs of several labs as one run: its repeats are the labs, in their order."""
    points = _points(labs)
    order = list(points)
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
        plan={**labs[0].plan, "points": list(points.values())},
        manifest=replace(labs[0].manifest, run=name, repeats_planned=len(observations)),
        observations=tuple(observations),
        rows=tuple(rows_of(name, observations)),
        problems=tuple(problem for run in labs for problem in run.problems),
    )


def _points(labs: Sequence[ReportRun]) -> dict[str, Any]:
    """Those of all labs, by name: some policies ran in later ones."""
    return {point["name"]: point for run in labs for point in run.plan["points"]}


def measured(labs: Sequence[ReportRun]) -> Side:
    """The runs of several labs as the rows of the table, policies in the order of the plan."""
    finished = [(run, it) for run in labs for it in run.finished]
    several = len({it.record.axes.get(EXPERIMENT, "") for _, it in finished}) > 1
    order = list(_points(labs))
    finished.sort(key=lambda found: order.index(found[1].record.point))
    return Side(tuple(_measured(run, it, several=several) for run, it in finished))


def together(before: Side, now: Side) -> Side:
    """The rows of labs that ran on several days, each lab once."""
    ran = {row.lab for row in now.rows}
    rows = [row for row in before.rows if row.lab not in ran] + list(now.rows)
    order = list(dict.fromkeys(row.setting for row in rows))
    return Side(tuple(sorted(rows, key=lambda row: order.index(row.setting))))


def _measured(run: ReportRun, observed: Observation, *, several: bool) -> LabRow:
    record = observed.record
    policy = record.axes[POLICY]
    return LabRow(
        f"{record.axes[EXPERIMENT]}/{policy}" if several else policy,
        run.name,
        {**dict(_figures(rows_of(run.name, [observed]))), **_beside_clients(observed)},
        _outlasts(record),
        any(phase.ended_by == "cut_off" for phase in record.phases.values()),
        *_others(observed),
        str(environment_facts(run).get("Ceph", "")),
    )


def _figures(rows: Iterator[ReportRow]) -> Iterator[tuple[str, float]]:
    for row in rows:
        if row.key.kind == BACKGROUND:
            wanted, at = _WORKS, ""
        elif row.key.op != "total":
            continue
        elif row.key.phase == ALONE and row.key.window == WHOLE:
            wanted, at = _LOADS[:1], f"@{ALONE}"
        elif row.key.phase != ALONE and row.key.window in (WHOLE, *_WORKING):
            wanted, at = _LOADS, _WORKING.get(row.key.window, "")
        else:
            continue
        for metric in wanted:
            value = row.value(metric.key)
            if value is not None:
                yield column(metric, at), value


def _beside_clients(observed: Observation) -> dict[str, float]:
    """A recovery that went on when its clients had ended: what it did while they ran. Objects are
    taken for equally large."""
    phases = observed.record.phases.items()
    ends = [it.end_unix_seconds for name, it in phases if name != ALONE and it.kind == "fio"]
    counters = observed.samples.of(RecoverySeries.POOL_OBJECTS)
    for _, phase in phases:
        recovery, start = phase.recovery, phase.start_unix_seconds
        if not recovery or not recovery.objects or not ends or phase.kind == "fio":
            continue
        if phase.end_unix_seconds > (end := max(ends)) + _LATER:
            done = float(grown_since(counters, np.array([end]), start)[0])
            if not math.isfinite(done):
                return {}
            each = recovery.bytes / recovery.objects
            return {
                column(metrics.RECOVERY_BANDWIDTH): done * each / (end - start),
                column(metrics.RECOVERY_SECONDS): end - start,
            }
    return {}


def _others(observed: Observation) -> tuple[float, float]:
    cpus = [cpu for use in observed.hosts_of_loads if (cpu := cpu_by_others(use))]
    others = max((it.others for it in cpus), default=0.0)
    return others, max((it.stolen for it in cpus), default=0.0)


def _outlasts(record: RepeatRecord) -> bool:
    phases = {name: it for name, it in record.phases.items() if name != ALONE}
    clients = [it.end_unix_seconds for it in phases.values() if it.kind == "fio"]
    works = [it.end_unix_seconds for it in phases.values() if it.kind == SCRUB]
    cut = any(it.ended_by == "cut_off" for it in phases.values())
    return cut or any(work > end + _LATER for work in works for end in clients)


def write_labs(side: Side, file: Path, ran_with: str) -> None:
    """The table of an experiment: a row for each policy and lab, and what they ran with."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        out = csv.writer(opened, lineterminator="\n")
        out.writerow((POLICY, "lab", *COLUMNS, *_REST))
        for row in side.rows:
            figures = (row.figures.get(name, "") for name in COLUMNS)
            flags = (_YES[row.outlasts], _YES[row.cut_off])
            of_host = (row.others, row.steal, row.ceph, ran_with)
            out.writerow((row.setting, row.lab, *figures, *flags, *of_host))


def read_labs(file: Path, ran_with: str) -> Side:
    """Without the labs that ran with other variables, or before there was a table."""
    if not file.exists():
        return Side(())
    with file.open(newline="", encoding="utf-8") as opened:
        lines = [line for line in csv.DictReader(opened) if line[_RAN_WITH] == ran_with]
    return Side(tuple(map(_row, lines)))


def _row(line: Mapping[str, str]) -> LabRow:
    figures = {name: float(line[name]) for name in COLUMNS if line.get(name)}
    outlasts, cut_off = (line[name] == _YES[True] for name in ("outlasts clients", "cut off"))
    others, steal = float(line["others"]), float(line["steal"])
    return LabRow(
        line[POLICY], line["lab"], figures, outlasts, cut_off, others, steal, line["Ceph"]
    )


Sides = Mapping[str, Side]  # by the name of the experiment
