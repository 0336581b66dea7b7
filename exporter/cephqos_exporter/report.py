"""How a scrape went: what the exporter's own metrics are made from."""

from dataclasses import dataclass, field

from cephqos_exporter.labels import LabelText
from cephqos_exporter.rendering import Rendered


@dataclass(slots=True)
class DaemonReport:
    """How one daemon fared in a scrape."""

    labels: LabelText
    up: bool
    reason: str
    seconds: float
    success: dict[str, bool] = field(default_factory=dict)  # by collector; absent: not for it
    left_out: dict[str, int] = field(default_factory=dict)  # samples, by reason


@dataclass(slots=True)
class RoundOutcome:
    """What one daemon or source gave in one round."""

    parts: list[Rendered] = field(default_factory=list)  # of the page
    fared: DaemonReport | None = None
    # Of a daemon that never told its cluster: what it is called is settled last.
    nameless: DaemonReport | None = None
    seconds: dict[str, float] = field(default_factory=dict)  # by collector
    sources: dict[str, bool] = field(default_factory=dict)


@dataclass(slots=True)
class ScrapeReport:
    """How a scrape went, over all daemons and sources."""

    daemons: dict[LabelText, DaemonReport] = field(default_factory=dict)
    collector_seconds: dict[str, float] = field(default_factory=dict)
    sources: dict[str, bool] = field(default_factory=dict)
    finish: dict[str, bool] = field(default_factory=dict)
    seconds: float = 0.0

    def take(self, outcome: RoundOutcome) -> None:
        """Add what one daemon or source gave."""
        for collector, seconds in outcome.seconds.items():
            self.spend(collector, seconds)
        self.sources |= outcome.sources
        if outcome.fared is not None:
            self.add(outcome.fared)

    def add(self, report: DaemonReport) -> None:
        """Note how a daemon fared; what answered wins over a stale socket of the same name."""
        other = self.daemons.get(report.labels)
        if other is None or (report.up and not other.up):
            self.daemons[report.labels] = report

    def spend(self, collector: str, seconds: float) -> None:
        self.collector_seconds[collector] = self.collector_seconds.get(collector, 0.0) + seconds
