"""What is recorded of one repeat (`repeat.json`) and of a whole run (`archive.json`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from cephqos_loadgen.results.phase import PhaseRecord

RunStatus = Literal["complete", "failed", "aborted"]
RepeatStatus = Literal["finished", "failed", "aborted"]


@dataclass(frozen=True, slots=True)
class BenchFigures:
    """What one OSD's store did in `ceph tell osd.N bench`."""

    iops: float
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class InForce:
    """What the daemons said of the configuration when a point of the matrix was ready.

    `options` are by OSD, `other_options` by monitor and manager, `schedulers` by OSD, `devices` by
    block device of this host.
    """

    options: Mapping[str, Mapping[str, str]]
    other_options: Mapping[str, Mapping[str, str]]
    schedulers: Mapping[str, str]
    devices: Mapping[str, Mapping[str, str]]
    warnings: tuple[str, ...]
    # by OSD, where the scenario lets it be measured before the first point
    capacity_iops: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """CPU that recording took: this process, its clients of the cluster, and the run's exporter."""

    wall_seconds: float
    own_cpu_seconds: float
    client_cpu_seconds: float
    exporter_cpu_seconds: float
    core_share: float  # of one core, without the exporter


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without metrics of one exporter, or of a daemon, and why: for a daemon the reason of
    cephqos_daemon_up."""

    start_unix_seconds: float
    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MetricsRecording:
    """How the exporters' metrics were recorded in one repeat."""

    scrapes: int
    samples: int
    failures: Mapping[str, int]  # by exporter, as are `gaps` and `restarts`
    last_error: str
    gaps: Mapping[str, tuple[Gap, ...]] = field(default_factory=dict)
    # of daemons that did not answer an exporter which itself went on
    daemon_gaps: Mapping[str, tuple[Gap, ...]] = field(default_factory=dict)
    seconds: float = 0.0  # of recording, which begins when the pools of the repeat are ready
    restarts: Mapping[str, int] = field(default_factory=dict)  # how often a new process answered
    interval_seconds: float = 1.0  # between two scrapes

    @property
    def all_gaps(self) -> dict[str, tuple[Gap, ...]]:
        """By exporter and by daemon."""
        return {**self.gaps, **self.daemon_gaps}


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A process that the run started; `status` is its exit status, None if it never ended."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    start_unix_seconds: float
    end_unix_seconds: float | None
    status: int | None
    interrupted: bool
    stderr: str


@dataclass(frozen=True, slots=True)
class FileSum:
    """Size and checksum of one file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class RepeatRecord:
    """One repeat of one point. `recovered_objects` and `_bytes` are of the whole repeat; `findings`
    are what a reader must know before they trust the figures."""

    version: ClassVar[int] = 1

    folder: str
    point: str
    repeat: int
    axes: Mapping[str, str]
    status: RepeatStatus
    start_unix_seconds: float
    end_unix_seconds: float
    in_force: InForce
    phases: Mapping[str, PhaseRecord]
    cost: RecordingCost
    metrics: MetricsRecording
    error: str = ""
    traceback: str = ""
    recovered_objects: int | None = None
    recovered_bytes: int | None = None
    findings: tuple[str, ...] = ()
    children: tuple[ChildRecord, ...] = ()
    files: Mapping[str, FileSum] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the finished repeats of a point; no deviation of one repeat alone."""

    mean: float
    deviation: float | None
    repeats: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a scenario's `find` looked for: the smallest value of an axis that keeps a share of the
    best throughput.

    `too_close`: values whose throughput is so near that share that they may or may not keep it.
    """

    axis: str
    value: str
    iops: Mapping[str, float]  # by value
    keeping: float  # the share
    too_close: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures by point, phase and name (with unit), over the repeats."""

    points: Mapping[str, Mapping[str, Mapping[str, Spread]]]
    found: Found | None = None


@dataclass(frozen=True, slots=True)
class RepeatLine:
    """One repeat in the manifest."""

    folder: str
    point: str
    repeat: int
    status: RepeatStatus
    error: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`archive.json`. `format` is that of the whole archive."""

    format: int
    cephqos: str
    run: str
    scenario: str
    scale: str
    status: RunStatus
    error: str
    start_unix_seconds: float
    end_unix_seconds: float
    repeats_planned: int
    repeats: tuple[RepeatLine, ...]
    summary: Summary
    restore_commands: tuple[str, ...]
    files: Mapping[str, FileSum]
