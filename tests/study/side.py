"""One of the two studies on this machine: the figures of its policies."""

from dataclasses import dataclass
from typing import Final

from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import BACKGROUND, ReportRow, ReportRun
from cephqos_loadgen.report.figures.loads import DURING, WHOLE
from cephqos_loadgen.report.figures.metrics import FigureKind

SCRUB, RECOVERY = "client-vs-scrub", "client-vs-recovery"
POLICY: Final = "policy"
ALONE: Final = "alone"
_OF_RECOVERY: Final = (
    *(metrics.RECOVERY_SECONDS, metrics.RECOVERY_OBJECT_RATE, metrics.RECOVERY_BANDWIDTH),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One study on this machine, and the throughput of clients alone in a run of its own, one
    figure per repeat. Where the study has a phase `alone`, that one counts."""

    run: ReportRun
    baseline: tuple[float, ...]

    def row(self, policy: str, metric: FigureKind) -> ReportRow | None:
        """The row of a policy that has this figure: of the load beside the scrub, if there is one,
        else of the whole load."""
        rows = [
            row
            for row in self.run.rows
            if row.axes.get(POLICY) == policy
            and metric.key in row.figures
            and row.key.phase != ALONE
        ]
        rank = {DURING["scrub"]: 0, WHOLE: 1}
        loads = [
            row for row in rows if row.key.op == "total" and (row.key.window in rank)
        ]  # background rows are of the whole, too
        found = sorted(loads, key=lambda row: rank[row.key.window])
        if metric in metrics.BACKGROUND:
            found = [row for row in found if row.key.kind == BACKGROUND]
        return found[0] if found else None

    @property
    def policies(self) -> list[str]:
        return list(dict.fromkeys(row.axes.get(POLICY, "") for row in self.run.rows))

    def is_cut_off(self, policy: str, metric: FigureKind) -> bool:
        """Whether a limit ended the clients before the recovery that this figure is of: from then
        on it had no clients beside it."""
        return metric in _OF_RECOVERY and any(
            phase.ended_by == "cut_off"
            for observed in self.run.finished
            if observed.record.axes.get(POLICY) == policy
            for phase in observed.record.phases.values()
        )

    def alone(self, policy: str) -> tuple[float, ...]:
        """What clients get with nothing beside them."""
        for row in self.run.rows:
            own = row.axes.get(POLICY) == policy and row.key.phase == ALONE
            if own and (row.key.op, row.key.window) == ("total", WHOLE):
                return row.figures[metrics.IOPS.key].samples
        return self.baseline
