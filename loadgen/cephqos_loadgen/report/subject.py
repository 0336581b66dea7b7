"""What a report is about: its rows, how they are called, and which caveats touch them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cephqos_loadgen.report.figures.analysis import LOAD, Key, ReportRow, ReportRun, ReportSettings
from cephqos_loadgen.report.figures.loads import WHOLE

Marked = Mapping[Key, Sequence[int]]  # the numbers of the caveats that touch a row


@dataclass(frozen=True)
class Subject:
    """The rows of a report, how they are called, and which caveats touch them."""

    runs: Sequence[ReportRun]
    settings: ReportSettings
    marked: Marked = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[ReportRow]:
        return [row for run in self.runs for row in run.rows]

    @cached_property
    def varying(self) -> list[str]:
        """Axes that have more than one value."""
        values: dict[str, set[str]] = {}
        for row in self.rows:
            for axis, value in row.axes.items():
                values.setdefault(axis, set()).add(value)
        return [axis for axis, several in values.items() if len(several) > 1]

    @cached_property
    def named_axis(self) -> str | None:
        """The first axis of names, such as schedulers: its values are what is compared."""
        for axis in self.varying:
            values = [row.axes[axis] for row in self.rows if axis in row.axes]
            if not all(value[:1].isdigit() for value in values):
                return axis
        return None

    @cached_property
    def short_names(self) -> Mapping[str, str]:
        """Of each point that has rows: `policy=wpq` is `wpq` where only policies differ."""
        names: dict[str, str] = {}
        for row in self.rows:
            values = {axis: row.axes[axis] for axis in self.varying if axis in row.axes}
            words = [f"{axis}={value}" for axis, value in values.items()]
            alone = len(values) == len(self.varying) == 1
            names[row.key.point] = ", ".join(values.values() if alone else words) or row.key.point
        return names

    def label(self, key: Key) -> str:
        """The point in short, with the run where there are several."""
        point = self.short_names[key.point]
        return f"{point} ({key.run})" if len(self.runs) > 1 else point

    def point_label(self, run: ReportRun, point: str) -> str:
        """The same of a point that may have no row."""
        keys = (row.key for row in run.rows if row.key.point == point)
        return next(map(self.label, keys), point)

    def loads(self, *, curves: bool) -> list[ReportRow]:
        """Whole loads of one depth, or the steps of curves."""
        return [
            row
            for row in self.rows
            if row.key.kind == LOAD and (row.key.depth is not None) == curves
        ]

    @property
    def main_loads(self) -> list[ReportRow]:
        """One row per point and load: both directions together, the whole time."""
        return _whole(self.loads(curves=False))

    @property
    def steps(self) -> list[ReportRow]:
        """One row per step of a curve: both directions together, the whole step."""
        return _whole(self.loads(curves=True))

    @cached_property
    def _references(self) -> Mapping[tuple[object, ...], ReportRow]:
        """By all that a key has besides run and point: the row that others are compared with."""
        references: dict[tuple[object, ...], ReportRow] = {}
        wanted = self.settings.reference
        for row in self.rows:
            if not wanted or wanted in (row.key.point, self.label(row.key)):
                references.setdefault(_same_load(row.key), row)
        return references

    def reference_of(self, row: ReportRow) -> ReportRow | None:
        """The row of the reference point that this one is compared with."""
        return self._references.get(_same_load(row.key))


def _whole(rows: Iterable[ReportRow]) -> list[ReportRow]:
    return [row for row in rows if row.key.op == "total" and row.key.window == WHOLE]


def _same_load(key: Key) -> tuple[object, ...]:
    return (key.phase, key.kind, key.depth, key.op, key.window)
