"""A report as data: what the writers write."""

from dataclasses import dataclass

from cephqos_loadgen.report.caveats.caveat import Caveat
from cephqos_loadgen.report.tables.table import Table


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, and its data where no table of the report has them. Narrow ones may lie beside the
    next."""

    name: str
    title: str
    svg: str
    data: Table | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    question: str
    summary: tuple[str, ...]
    caveats: tuple[Caveat, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    commands: tuple[str, ...]
    samples: Table | None = None  # what the tables are made of, repeat by repeat: only as CSV
