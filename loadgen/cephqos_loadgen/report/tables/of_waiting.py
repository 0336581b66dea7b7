"""Where the time of the clients' operations went while a load ran, by the exporters' account."""

from collections.abc import Mapping
from typing import Final

from cephqos_base.series import AccountSeries
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_reservations import load_steps
from cephqos_loadgen.report.tables.table import (
    Cell,
    Table,
    TableColumn,
    text,
    text_columns,
)

QUEUE: Final = "queue"
_LEAST: Final = 0.005  # a column needs this share in some row
_NOTE: Final = (
    "Percent of the latency of all completed client operations, of all OSDs and repeats together."
    " queue: in the queue of the scheduler, behind work of the class that is named; immediate is"
    " mostly replica writes. A place without 0.5 % in any row has no column."
)
Place = tuple[str, str]  # the account's state, and of `queue` what was served instead
Shares = Mapping[Place, float]


def waiting_table(subject: Subject) -> Table:
    """A row per load of each point, a column per place."""
    rows = []
    for run in subject.runs:
        for (point, phase), shares in waited(run).items():
            rows.append((subject.point_label(run, point), phase, shares))
    most: dict[Place, float] = {}
    for *_, shares in rows:
        most |= {place: max(share, most.get(place, 0.0)) for place, share in shares.items()}
    places = [p for p in sorted(most, key=lambda p: -most[p]) if most[p] >= _LEAST]
    columns = (
        *text_columns("Point", "Load"),
        *(TableColumn(": ".join(filter(None, p)), "%") for p in places),
    )
    lines = (
        (text(label), text(phase), *(_percent(shares.get(place)) for place in places))
        for label, phase, shares in rows
    )
    return Table("waiting", "Where clients waited", columns, tuple(lines), _NOTE)


def _percent(share: float | None) -> Cell:
    return Cell("–") if share is None else Cell(f"{share * 100:.1f}", share * 100)


def waited(run: ReportRun) -> Mapping[tuple[str, str], Shares]:
    """Shares by place, for each point and load whose OSDs had an account."""
    seconds: dict[tuple[str, str], dict[Place, float]] = {}
    for observed in run.finished:
        for load in load_steps(observed):
            places = seconds.setdefault((load.point, load.phase), {})
            for series in observed.samples.of(AccountSeries.SECONDS):
                state = series.labels.get("state", "")
                place = (state, series.labels.get("by", "") if state == QUEUE else "")
                grown = series.growth(load.start, load.end)
                places[place] = places.get(place, 0.0) + grown
    return {
        key: {place: value / whole for place, value in places.items()}
        for key, places in seconds.items()
        if (whole := sum(places.values())) > 0
    }
