"""Where the time of the clients' operations went while a load ran, by the exporters' account."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from cephqos_base import account_error
from cephqos_base.series import AccountSeries
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_reservations import load_steps
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, text, text_columns

QUEUE: Final = "queue"
_LEAST_SHARE: Final = 0.005  # a column needs this share in some row
_NOTE: Final = (
    "Percent of the latency of all completed client operations, of all OSDs and repeats together."
    f" Right within {account_error.POINTS} points, beside recovery within"
    f" {account_error.BESIDE_RECOVERY}, with erasure-coded pools {account_error.ERASURE_CODED}."
    " queue: in the queue of the scheduler, behind work of the class that is named; immediate is"
    " mostly replica writes. A place without 0.5 % in any row has no column."
)


class WaitingPlace(NamedTuple):
    """Where client-seconds went, by the labels of `cephqos_account_seconds_total`."""

    state: str
    behind: str  # of the state `queue` the class that was served instead, else empty

    @property
    def title(self) -> str:
        return ": ".join(filter(None, self))


Shares = Mapping[WaitingPlace, float]


def waiting_table(subject: Subject) -> Table:
    """A row per load of each point, a column per place."""
    rows = []
    for run in subject.runs:
        for (point, phase), shares in waited(run).items():
            rows.append((subject.point_label(run, point), phase, shares))
    largest: dict[WaitingPlace, float] = {}
    for *_, shares in rows:
        largest |= {place: max(share, largest.get(place, 0.0)) for place, share in shares.items()}
    by_size = sorted(largest, key=lambda place: -largest[place])
    places = [place for place in by_size if largest[place] >= _LEAST_SHARE]
    columns = (*text_columns("Point", "Load"), *(TableColumn(place.title, "%") for place in places))
    lines = (
        (text(label), text(phase), *(_percent(shares.get(place)) for place in places))
        for label, phase, shares in rows
    )
    return Table("waiting", "Where clients waited", columns, tuple(lines), _NOTE)


def _percent(share: float | None) -> Cell:
    return Cell("–") if share is None else Cell(f"{share * 100:.1f}", share * 100)


def waited(run: ReportRun) -> Mapping[tuple[str, str], Shares]:
    """Shares by place, for each point and load whose OSDs had an account."""
    seconds: dict[tuple[str, str], dict[WaitingPlace, float]] = {}
    for observed in run.finished:
        for load in load_steps(observed):
            places = seconds.setdefault((load.point, load.phase), {})
            for series in observed.samples.of(AccountSeries.SECONDS):
                state = series.labels.get("state", "")
                place = WaitingPlace(state, series.labels.get("by", "") if state == QUEUE else "")
                waited_there = series.growth(load.start, load.end)
                places[place] = places.get(place, 0.0) + waited_there
    return {
        load: {place: value / total for place, value in places.items()}
        for load, places in seconds.items()
        if (total := sum(places.values())) > 0
    }
