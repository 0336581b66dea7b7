"""What a report is about: a `Subject`, from which sentences, tables and charts are made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cephqos_loadgen.report.figures.analysis import LOAD, Key, ReportRow, ReportRun, ReportSettings
from cephqos_loadgen.report.figures.loads import WHOLE

Marked = Mapping[Key, Sequence[int]]  # the numbers of the caveats that touch a row


@dataclass(frozen=True)
class Subject:
    """The rows of a report, how they are called, and which caveats touch them.

    Rows are a load or background work of a point of the matrix; a point has a value on each axis.
    """

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
        return [axis for axis, of_axis in values.items() if len(of_axis) > 1]

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
            if len(self.varying) == 1:
                words = list(values.values())
            names[row.key.point] = ", ".join(words) or row.key.point
        return names

    def label(self, key: Key) -> str:
        """The point in short, with the run where there are several."""
        point = self.short_names[key.point]
        return f"{point} ({key.run})" if len(self.runs) > 1 else point

    def point_label(self, run: ReportRun, point: str) -> str:
        """The label of a point that may have no row; then its full name."""
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
        """By `_same_load`: the row of the reference point, which the user names; else the first."""
        references: dict[tuple[object, ...], ReportRow] = {}
        point = self.settings.reference
        for row in self.rows:
            if not point or point in (row.key.point, self.label(row.key)):
                references.setdefault(_same_load(row.key), row)
        return references

    def reference_of(self, row: ReportRow) -> ReportRow | None:
        """The row of the reference point that this one is compared with."""
        return self._references.get(_same_load(row.key))


def _whole(rows: Iterable[ReportRow]) -> list[ReportRow]:
    return [row for row in rows if row.key.op == "total" and row.key.window == WHOLE]


def _same_load(key: Key) -> tuple[object, ...]:
    """All of a key besides run and point: equal for rows that can be compared."""
    return (key.phase, key.kind, key.depth, key.op, key.window)
