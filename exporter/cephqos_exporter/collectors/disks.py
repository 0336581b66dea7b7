"""disks: all that the kernel counts for the devices an OSD lives on, and their queue settings."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

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
_SECTOR = 512  # bytes in diskstats, whatever the device's sectors are


class _Field(NamedTuple):
    """A field of a diskstats line and its series: value = field * factor / divisor."""

    at: int  # from 0, after the device's name; lines have 11 to 17 by the kernel's age
    family: str  # key of `_families`
    op: str  # value of the label; empty: no label
    factor: int = 1
    divisor: int = 1


_FIELDS: Final = (
    _Field(0, "ops", "read"),
    _Field(4, "ops", "write"),
    _Field(11, "ops", "discard"),
    _Field(15, "ops", "flush"),
    _Field(1, "merged", "read"),
    _Field(5, "merged", "write"),
    _Field(12, "merged", "discard"),
    _Field(2, "bytes", "read", factor=_SECTOR),
    _Field(6, "bytes", "write", factor=_SECTOR),
    _Field(13, "bytes", "discard", factor=_SECTOR),
    _Field(3, "time", "read", divisor=1000),
    _Field(7, "time", "write", divisor=1000),
    _Field(14, "time", "discard", divisor=1000),
    _Field(16, "time", "flush", divisor=1000),
    _Field(8, "in_progress", ""),
    _Field(9, "busy", "", divisor=1000),
    _Field(10, "weighted", "", divisor=1000),
)


@dataclass(slots=True)
class _Row:
    """A device shown for an OSD, with its labels rendered."""

    role: str  # block, db, wal, journal
    layer: str  # osd: the OSD opens it; disk: it lies beneath
    device: str
    base: LabelText  # of the OSD; with role, layer and device once the row is made
    diskstats_name: bytes = b""
    labels: list[LabelText] = field(default_factory=list)  # one for each of _FIELDS
    info: LabelText = field(default_factory=lambda: LabelText(""))  # with the queue's settings
    hardware: Mapping[str, str] | None = None  # read once

    def __post_init__(self) -> None:
        self.diskstats_name = self.device.encode()
        place = {"role": self.role, "layer": self.layer, "device": self.device}
        self.base = extend_labels(self.base, place)
        self.labels = [extend_labels(self.base, {"op": f.op} if f.op else {}) for f in _FIELDS]


@dataclass(slots=True)
class _DisksOsd:
    # The daemon's own path of its data directory; None: not known yet; empty: it names none.
    osd_data: str | None = None
    devices: list[sysfs.OsdDevice] | None = None
    lookup: Lookup[list[sysfs.OsdDevice]] | None = None  # of the devices, under way
    rows: list[_Row] = field(default_factory=list)
    missing_reason: str = ""  # why the devices are not known
    devices_read: float | None = None  # when the disks beneath were last looked for
    queues_read: float | None = None

    @property
    def needs_config(self) -> bool:
        """Whether the daemon must be asked for its data directory."""
        return self.osd_data is None and self.devices is None


# Age at which diskstats is read again. `finish` drops it after each scrape, but scrapes may overlap
# where a daemon hangs, and a late one must not use the figures of an earlier one.
_DISKSTATS_SECONDS: Final = 1.0
# Between reads of which devices an OSD has, and of queue settings.
_DEVICES_SECONDS: Final = 300.0
_QUEUES_SECONDS: Final = 30.0


class DisksCollector(
    DaemonCollector[_DisksOsd],
    name="disks",
    help="Statistics and queue settings of the devices that OSDs use.",
):
    """diskstats of the devices of each OSD, by role and layer, and an info metric of their queues.

    A disk that the OSD opens itself shows as `osd` only.
    """

    layers = choices(
        "collector.disks.layers",
        ("osd", "disk"),
        "Devices to show: osd, the device that the OSD opens; disk, the disks beneath it.",
        ("osd", "disk"),
    )
    data_dirs = DATA_DIRECTORIES_OPTION

    def __init__(self, settings: Settings | None = None, **given: Any) -> None:
        super().__init__(settings, **given)
        self._diskstats: dict[bytes, list[bytes]] | None = None
        self._diskstats_read = 0.0

    def needed(self, daemon: Daemon, state: _DisksOsd | None) -> Sequence[Command]:
        # Asked once, for osd_data, which does not change while the daemon runs. The reply has
        # 2,000 options in 250 kB: nothing else of it is kept.
        return (Command(CONFIG),) if state is None or state.needs_config else ()

    def first_seen(self, view: DaemonView) -> _DisksOsd:
        return _DisksOsd()

    def families(self, view: DaemonView, state: _DisksOsd) -> Iterable[Family]:
        interval = _QUEUES_SECONDS if state.missing_reason else _DEVICES_SECONDS
        if _due(state.devices_read, view.time, interval):
            self._find_devices(state, view)
        if state.missing_reason:
            raise ReplyMissing("data directory", state.missing_reason)
        if _due(state.queues_read, view.time, _QUEUES_SECONDS):
            _read_queues(state, view)
        age = abs(view.time - self._diskstats_read)
        if self._diskstats is None or age > _DISKSTATS_SECONDS:
            self._diskstats, self._diskstats_read = read_diskstats(view.host), view.time
        return [*_statistics(state, self._diskstats), _info(state)]

    def finish(self) -> Iterable[Family]:
        self._diskstats = None  # the first OSD of a scrape reads it
        return []

    def _find_devices(self, osd: _DisksOsd, view: DaemonView) -> None:
        osd.devices_read = view.time
        if osd.devices is None:
            # Looked up once: an OSD keeps the devices it opened.
            self._look_up_devices(osd, view)
        if osd.devices is None:
            return
        wanted = _layered(view.host, osd.devices, self.layers)
        if [(row.role, row.layer, row.device) for row in osd.rows] != wanted:
            osd.rows = [_Row(*row, view.labels) for row in wanted]
            osd.queues_read = None

    def _look_up_devices(self, osd: _DisksOsd, view: DaemonView) -> None:
        """Find the devices by the data directory, or say in `missing_reason` why that failed.

        In a thread: if the disk of the data directory dies, reading the directory can hang.
        """
        if osd.osd_data is None and CONFIG in view.replies:
            config = view.replies[CONFIG]
            said = config.get("osd_data") if isinstance(config, dict) else None
            osd.osd_data = said if isinstance(said, str) and said.startswith("/") else ""
        if osd.lookup is None:
            osd.lookup = Lookup(
                partial(sysfs.osd_devices, view.host, view.daemon, osd.osd_data, self.data_dirs)
            )
        try:
            osd.devices = osd.lookup.answer()
        except TimeoutError:  # look again in the next scrape
            osd.missing_reason, osd.devices_read = TimedOut.reason, None
        except sysfs.DataDirectoryMissing as exc:
            osd.missing_reason, osd.lookup = exc.reason, None
            if osd.osd_data is None:  # the next scrape asks the daemon for it again
                osd.devices_read = None
        else:
            osd.missing_reason, osd.lookup = "", None


def read_diskstats(host: Host) -> dict[bytes, list[bytes]]:
    """Every line's fields after the name, by the device's name."""
    rows = {}
    for line in read_all(f"{host.proc}/diskstats").splitlines():
        fields = line.split()
        if len(fields) >= 14:
            rows[fields[2]] = fields[3:]
    return rows


def _due(last: float | None, now: float, interval: float) -> bool:
    """Also after the clock was set back."""
    return last is None or not last <= now < last + interval


def _layered(
    host: Host, devices: Iterable[sysfs.OsdDevice], layers: Collection[str]
) -> list[tuple[str, str, str]]:
    """(role, layer, device) for what the OSD opens and for the disks beneath, each once."""
    rows: dict[tuple[str, str, str], None] = {}
    for opened in devices:
        # An OSD in a file opens the file: the device that holds it is only a disk beneath.
        shown_as_osd = "osd" in layers and not opened.in_file
        if shown_as_osd:
            rows[opened.role, "osd", opened.device] = None
        if "disk" in layers:
            for disk in sysfs.disks_under(host, opened.device):
                if disk != opened.device or not shown_as_osd:
                    rows[opened.role, "disk", disk] = None
    return list(rows)


def _read_queues(osd: _DisksOsd, view: DaemonView) -> None:
    osd.queues_read = view.time
    for row in osd.rows:
        queue = sysfs.read_queue(view.host.sys, row.device)
        if row.hardware is None:
            row.hardware = sysfs.read_hardware(view.host.sys, row.device)
        row.info = extend_labels(
            row.base,
            {
                "scheduler": queue.scheduler,
                "nr_requests": queue.nr_requests,
                "read_ahead_kb": queue.read_ahead_kb,
                "rotational": queue.rotational,
                "write_cache": queue.write_cache,
                **row.hardware,
            },
        )


def _info(osd: _DisksOsd) -> Family:
    family = gauge(
        "cephqos_disks_info",
        "Queue settings of a device of an OSD; of a disk also model, firmware and the controller's "
        "PCI address, where it says them. Layer osd: the device that the OSD opens; disk: a disk "
        "beneath it, which other OSDs may share.",
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


def _statistics(osd: _DisksOsd, diskstats: dict[bytes, list[bytes]]) -> Iterable[Family]:
    families = _families()
    for row in osd.rows:
        fields = diskstats.get(row.diskstats_name, ())
        for (index, name, _, factor, divisor), labels in zip(_FIELDS, row.labels, strict=True):
            if index < len(fields):
                families[name].add(labels, int(fields[index]) * factor / divisor)
    return families.values()
