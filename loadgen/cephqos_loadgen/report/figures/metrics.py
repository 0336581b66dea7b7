"""What a report shows of a row: keys, titles, units. Values are kept in base units."""

from dataclasses import dataclass
from typing import Final, Literal

Better = Literal["more", "less", ""]


@dataclass(frozen=True, slots=True)
class FigureKind:
    """One figure. Shown as value * scale, in `unit`."""

    key: str
    title: str
    unit: str
    scale: float = 1.0
    better: Better = ""

    @property
    def named(self) -> str:
        return f"{self.title}, {self.unit}"


_MS: Final = 1e3
_MIB: Final = 1 / (1 << 20)

IOPS: Final = FigureKind("iops", "Throughput", "IOPS", better="more")
BANDWIDTH: Final = FigureKind("bandwidth", "Bandwidth", "MiB/s", _MIB, better="more")
MEAN: Final = FigureKind("clat_mean", "Mean latency", "ms", _MS, better="less")
DEVIATION: Final = FigureKind("clat_sd", "σ of latency", "ms", _MS, better="less")
PERCENTS: Final = (50.0, 95.0, 99.0, 99.5, 99.9)


def percentile(percent: float) -> FigureKind:
    """The metric of one percentile of completion latency."""
    return FigureKind(f"clat_p{percent:g}", f"p{percent:g}", "ms", _MS, better="less")


PERCENTILES: Final = tuple(percentile(percent) for percent in PERCENTS)
P99: Final = percentile(99.0)
LOAD: Final = (IOPS, BANDWIDTH, MEAN, DEVIATION, *PERCENTILES)

SCRUB_SECONDS: Final = FigureKind("scrub_seconds", "Scrub time", "s", better="less")
SCRUB_BANDWIDTH: Final = FigureKind("scrub_bandwidth", "Scrub rate", "MiB/s", _MIB, better="more")
SCRUB_OBJECTS: Final = FigureKind("scrub_objects", "Objects scrubbed", "objects")
SCRUB_OBJECT_RATE: Final = FigureKind("scrub_object_rate", "Scrub rate", "objects/s", better="more")
SCRUB_AT_ONCE: Final = FigureKind("scrub_at_once", "At once, most", "PGs")
RECOVERY_SECONDS: Final = FigureKind("recovery_seconds", "Recovery time", "s", better="less")
RECOVERY_OBJECT_RATE: Final = FigureKind(
    "recovery_object_rate", "Recovery rate", "objects/s", better="more"
)
RECOVERY_BANDWIDTH: Final = FigureKind(
    "recovery_bandwidth", "Recovery rate", "MiB/s", _MIB, better="more"
)
RECOVERY_OBJECTS: Final = FigureKind("recovery_objects", "Recovered", "objects")
MISPLACED: Final = FigureKind("misplaced", "Misplaced, most", "objects")
BACKGROUND: Final = (
    *(SCRUB_SECONDS, SCRUB_BANDWIDTH, SCRUB_OBJECT_RATE, SCRUB_OBJECTS, SCRUB_AT_ONCE),
    *(RECOVERY_SECONDS, RECOVERY_OBJECT_RATE, RECOVERY_BANDWIDTH, RECOVERY_OBJECTS, MISPLACED),
)

OSD_CORES: Final = FigureKind("osd_cores", "OSD CPU", "cores", better="less")
OSD_CPU_PER_IO: Final = FigureKind("osd_cpu_per_io", "OSD CPU per I/O", "µs", 1e6, better="less")
CLIENT_CORES: Final = FigureKind("client_cores", "Client CPU", "cores")
CLIENT_CPU_PER_IO: Final = FigureKind("client_cpu_per_io", "Client CPU per I/O", "µs", 1e6)
OSD_MEMORY: Final = FigureKind("osd_memory", "OSD memory, all", "MiB", _MIB, better="less")
CLIENT_MEMORY: Final = FigureKind("client_memory", "Client memory", "MiB", _MIB)
DEVICE_REQUEST: Final = FigureKind(
    "device_request", "Device time per request", "ms", _MS, better="less"
)
DEVICE_DEPTH: Final = FigureKind("device_depth", "Device depth", "requests")
DEVICE_READ: Final = FigureKind("device_read", "Device reads", "MiB/s", _MIB)
DEVICE_WRITTEN: Final = FigureKind("device_written", "Device writes", "MiB/s", _MIB)
RECORDING: Final = FigureKind("recording", "Recording", "% of a core", 100.0, better="less")
COST: Final = (
    *(OSD_CORES, OSD_CPU_PER_IO, CLIENT_CORES, CLIENT_CPU_PER_IO, OSD_MEMORY, CLIENT_MEMORY),
    *(DEVICE_REQUEST, DEVICE_DEPTH, DEVICE_READ, DEVICE_WRITTEN, RECORDING),
)

ATTAINMENT: Final = FigureKind(
    "attainment", "Clients' attainment, least OSD", "%", 100.0, better="more"
)
VIOLATED: Final = FigureKind("violated_seconds", "Clients violated, all OSDs", "s", better="less")
RESERVATIONS: Final = (ATTAINMENT, VIOLATED)

METRICS: Final = {metric.key: metric for metric in (*LOAD, *BACKGROUND, *RESERVATIONS, *COST)}
