"""The part of a page that a daemon, a source or the host gives, and whether that worked."""

from dataclasses import dataclass, field

from cephqos_exporter.labels import LabelText
from cephqos_exporter.not_understood import NotUnderstoodTotals
from cephqos_exporter.scrape.rendering import Rendered


@dataclass(slots=True)
class Part:
    """All but the lines goes into the exporter's own metrics."""

    rendered: list[Rendered] = field(default_factory=list)
    samples: int = 0  # of a daemon's collectors so far, to bound its part
    size: int = 0  # bytes of these
    success: dict[str, bool] = field(default_factory=dict)  # by collector; absent: not for it
    seconds: dict[str, float] = field(default_factory=dict)  # by collector
    # Of a daemon; None: it is about the host or the cluster.
    labels: LabelText | None = None
    down: str = ""  # why the daemon is not up; empty if it is
    nameless: bool = False  # it never said which cluster it is in
    took: float = 0.0  # seconds until its replies had come or were given up
    left_out: dict[str, int] = field(default_factory=dict)  # samples, by reason
    not_understood: NotUnderstoodTotals | None = None  # since the exporter knows the daemon
