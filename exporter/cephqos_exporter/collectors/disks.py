"""disks: all that the kernel counts for the devices an OSD lives on, and their queue settings."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from cephqos_exporter import sysfs
from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.config import Settings, choices, texts
from cephqos_exporter.daemon import Command, Daemon, DaemonView, Host, ReplyMissing
from cephqos_exporter.daemon_errors import TimedOut
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import LabelText, extend_labels
from cephqos_exporter.lookup import Lookup
from cephqos_exporter.procfs import read_all

CONFIG = "config show"

DATA_DIRECTORIES_OPTION = texts(
    "collector.disks.data-directories",
    sysfs.DATA_DIRECTORIES,
    "Data directories of OSDs, used where the exporter cannot read the daemon's own view.",
    allowed="paths with {id} and {cluster} in them",
)
_SECTOR = 512  # of diskstats, whatever the device's sectors are

# Fields of a diskstats line after the name, 11 to 17 of them by the kernel's age:
# field -> (family, value of label `op`, factor, divisor)
_FIELDS: tuple[tuple[int, str, str, int, int], ...] = (
    (0, "ops", "read", 1, 1),
    (4, "ops", "write", 1, 1),
    (11, "ops", "discard", 1, 1),
    (15, "ops", "flush", 1, 1),
    (1, "merged", "read", 1, 1),
    (5, "merged", "write", 1, 1),
    (12, "merged", "discard", 1, 1),
    (2, "bytes", "read", _SECTOR, 1),
    (6, "bytes", "write", _SECTOR, 1),
    (13, "bytes", "discard", _SECTOR, 1),
    (3, "time", "read", 1, 1000),
    (7, "time", "write", 1, 1000),
    (14, "time", "discard", 1, 1000),
    (16, "time", "flush", 1, 1000),
    (8, "in_progress", "", 1, 1),
    (9, "busy", "", 1, 1000),
    (10, "weighted", "", 1, 1000),
)


@dataclass(slots=True)
class _Row:
    """A device shown for an OSD, with its labels rendered."""

    role: str
    layer: str
    device: str
    base: LabelText
    key: bytes = b""
    labels: list[LabelText] = field(default_factory=list)  # one for each of _FIELDS
    info: LabelText = field(default_factory=lambda: LabelText(""))

    def __post_init__(self) -> None:
        self.key = self.device.encode()
        place = {"role": self.role, "layer": self.layer, "device": self.device}
        self.base = extend_labels(self.base, place)
        self.labels = [
            extend_labels(self.base, {"op": op} if op else {}) for _, _, op, _, _ in _FIELDS
        ]


@dataclass(slots=True)
class _DisksOsd:
    data: str | None = None  # its directory as it sees it; empty: it names none
    devices: list[sysfs.OsdDevice] | None = None
    lookup: Lookup[list[sysfs.OsdDevice]] | None = None  # under way
    rows: list[_Row] = field(default_factory=list)
    missing: str = ""
    devices_read: float | None = None
    queues_read: float | None = None

    @property
    def has_said(self) -> bool:
        """Whether nothing more is wanted of the daemon itself."""
        return self.data is not None or self.devices is not None


# Scrapes may overlap where a daemon hangs: one's rows are not to be another's.
_ROWS_SECONDS: Final = 1.0


class DisksCollector(
    DaemonCollector[_DisksOsd],
    name="disks",
    help="Statistics and queue settings of the devices that OSDs use.",
):
    """diskstats of the devices of each OSD, by role and layer, and an info metric of their queues.

    A disk that the OSD opens itself shows as `osd` only. `devices_interval` and `queue_interval`:
    the seconds between reads of the disks beneath and of queue settings.
    """

    layers = choices(
        "collector.disks.layers",
        ("osd", "disk"),
        "Devices to show: osd, the device that the OSD opens; disk, the disks beneath it.",
        ("osd", "disk"),
    )
    data_dirs = DATA_DIRECTORIES_OPTION

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        devices_interval: float = 300.0,
        queue_interval: float = 30.0,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self._devices_interval = devices_interval
        self._queue_interval = queue_interval
        self._rows: dict[bytes, list[bytes]] | None = None
        self._rows_read = 0.0

    def needed(self, daemon: Daemon, state: _DisksOsd | None) -> Sequence[Command]:
        # For osd_data, which does not change while the daemon runs. It is one of 2,000 options,
        # which take 250 kB: nothing else of them is kept.
        return () if state is not None and state.has_said else (Command(CONFIG),)

    def first_seen(self, view: DaemonView) -> _DisksOsd:
        return _DisksOsd()

    def families(self, view: DaemonView, state: _DisksOsd) -> Iterable[Family]:
        interval = self._queue_interval if state.missing else self._devices_interval
        if _due(state.devices_read, view.time, interval):
            self._find_devices(state, view)
        if state.missing:
            raise ReplyMissing("data directory", state.missing)
        if _due(state.queues_read, view.time, self._queue_interval):
            _read_queues(state, view)
        if self._rows is None or abs(view.time - self._rows_read) > _ROWS_SECONDS:
            self._rows, self._rows_read = read_diskstats(view.host), view.time
        return [*_statistics(state, self._rows), _info(state)]

    def finish(self) -> Iterable[Family]:
        self._rows = None  # read once per scrape, by the first OSD
        return []

    def _find_devices(self, osd: _DisksOsd, view: DaemonView) -> None:
        osd.devices_read = view.time
        if osd.devices is None:
            # Read once: an OSD keeps the devices it opened. If the disk of its data directory
            # dies, reading the directory can hang. /sys says what lies beneath.
            if osd.data is None and CONFIG in view.replies:
                osd.data = _osd_data(view.replies[CONFIG])
            if osd.lookup is None:
                look = partial(sysfs.osd_devices, view.host, view.daemon, osd.data, self.data_dirs)
                osd.lookup = Lookup(look)
            try:
                osd.devices = osd.lookup.answer()
            except TimeoutError:
                osd.missing, osd.devices_read = TimedOut.reason, None
                return
            except sysfs.DataDirectoryMissing as exc:
                osd.lookup = None
                osd.missing = exc.reason
                if osd.data is None:
                    osd.devices_read = None  # the daemon has not said where: ask in the next scrape
                return
            osd.missing, osd.lookup = "", None
        wanted = _layered(view.host, osd.devices, self.layers)
        if [(row.role, row.layer, row.device) for row in osd.rows] != wanted:
            osd.rows = [_Row(*row, view.labels) for row in wanted]
            osd.queues_read = None


def read_diskstats(host: Host) -> dict[bytes, list[bytes]]:
    """Every line's fields after the name, by the device's name."""
    rows = {}
    for line in read_all(f"{host.proc}/diskstats").splitlines():
        fields = line.split()
        if len(fields) >= 14:
            rows[fields[2]] = fields[3:]
    return rows


def _due(last: float | None, now: float, interval: float) -> bool:
    return last is None or not last <= now < last + interval


def _osd_data(config: Any) -> str:
    value = config.get("osd_data") if isinstance(config, dict) else None
    return value if isinstance(value, str) and value.startswith("/") else ""


def _layered(
    host: Host, devices: Iterable[sysfs.OsdDevice], layers: Collection[str]
) -> list[tuple[str, str, str]]:
    """(role, layer, device) for what the OSD opens and for the disks beneath, each once."""
    rows: dict[tuple[str, str, str], None] = {}
    for item in devices:
        # A file is the OSD's own, and the device that holds it is not.
        own = "osd" in layers and not item.in_file
        if own:
            rows[item.role, "osd", item.device] = None
        for disk in sysfs.disks_under(host, item.device) if "disk" in layers else ():
            if disk != item.device or not own:
                rows[item.role, "disk", disk] = None
    return list(rows)


def _read_queues(osd: _DisksOsd, view: DaemonView) -> None:
    osd.queues_read = view.time
    for row in osd.rows:
        queue = sysfs.read_queue(view.host.sys, row.device)
        row.info = extend_labels(
            row.base,
            {
                "scheduler": queue.scheduler,
                "nr_requests": queue.nr_requests,
                "read_ahead_kb": queue.read_ahead_kb,
                "rotational": queue.rotational,
                "write_cache": queue.write_cache,
            },
        )


def _info(osd: _DisksOsd) -> Family:
    family = gauge(
        "cephqos_disks_info",
        "Queue settings of a device of an OSD. Layer osd: the device that the OSD opens; "
        "disk: a disk beneath it, which other OSDs may share.",
    )
    for row in osd.rows:
        family.add(row.info, 1)
    return family


def _families() -> dict[str, Family]:
    return {
        "ops": counter("cephqos_disks_ops_total", "Requests completed."),
        "merged": counter("cephqos_disks_merged_total", "Requests merged into a queued one."),
        "bytes": counter("cephqos_disks_bytes_total", "Bytes transferred or discarded."),
        "time": counter(
            "cephqos_disks_time_seconds_total",
            "Time that requests took, queueing included, summed over requests.",
        ),
        "in_progress": gauge(
            "cephqos_disks_in_progress", "Requests sent to the device and not completed."
        ),
        "busy": counter(
            "cephqos_disks_busy_seconds_total",
            "Time with at least one request in progress. An SSD or an array at 1 may "
            "still have capacity left: compare with the time per request.",
        ),
        "weighted": counter(
            "cephqos_disks_weighted_seconds_total",
            "Time weighted by the requests in progress: its rate is the mean queue depth.",
        ),
    }


def _statistics(osd: _DisksOsd, stats: dict[bytes, list[bytes]]) -> Iterable[Family]:
    families = _families()
    for row in osd.rows:
        fields = stats.get(row.key, ())
        for (index, name, _, factor, divisor), labels in zip(_FIELDS, row.labels, strict=True):
            if index < len(fields):
                families[name].add(labels, int(fields[index]) * factor / divisor)
    return families.values()
