"""A report as data: what the writers write."""

from dataclasses import dataclass
from typing import Literal

from cephqos_loadgen.report.analysis import Key
from cephqos_loadgen.report.tables import Table

Severity = Literal["serious", "caution", "note"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """One doubt: what it is, what it rests on, and the rows that it touches."""

    severity: Severity
    text: str
    evidence: str
    rows: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, and the data behind it. Narrow ones may lie beside the next."""

    name: str
    title: str
    svg: str
    data: Table
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    question: str
    summary: tuple[str, ...]
    findings: tuple[Doubt, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    commands: tuple[str, ...]
