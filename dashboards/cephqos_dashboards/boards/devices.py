"""Devices and their I/O schedulers: time per request, depth, size, busy."""

from cephqos_base import dashboards
from cephqos_dashboards import frame, theme
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import PanelColumn, lines, rows
from cephqos_dashboards.queries import devices
from cephqos_dashboards.queries.common import TOO_LARGE
from cephqos_dashboards.theme import Unit

_LINK = frame.OSD_OF_SERIES
_IDLE = f"No device of an OSD had a request in this time range. {TOO_LARGE}"
_NO_DISKS = f"The collector disks is off. {TOO_LARGE}"

_SLOWEST = (
    lines(
        devices.TIME,
        title="Time per request, slowest devices",
        reads="Queueing in the kernel included. Devices that OSDs open, by kind of request.",
        blind="disks beneath LVM or dm-crypt, and devices below the ten slowest.",
        empty=_IDLE,
        unit=Unit.SECONDS,
        link=_LINK,
        log=True,
    ),
    lines(
        devices.DEPTH,
        title="Requests in progress, deepest devices",
        reads="Mean depth of the queue. Deep and slow: the device is full.",
        empty=_NO_DISKS,
        decimals=1,
        usual=1,
        link=_LINK,
    ),
    lines(
        devices.BUSY,
        title="Busy, most busy devices",
        reads="Time with at least one request in progress. A hard disk at 100 % is full.",
        blind="how much more an SSD or an array at 100 % can do: compare with the depth.",
        empty=_NO_DISKS,
        unit=Unit.RATIO,
        usual=1,
        link=_LINK,
    ),
    lines(
        devices.SIZE,
        title="Bytes per request, largest",
        reads="Small requests cost a hard disk a seek each; merged ones are larger.",
        empty=_IDLE,
        unit=Unit.BYTES,
        link=_LINK,
    ),
    rows(
        *devices.WORST_DEVICES,
        title="Devices with the most requests in progress",
        reads="""Now: mean requests in progress, requests per second, time per request, busy,
            and the settings of the queue.""",
        empty=_NO_DISKS,
        width=24,
        height=7,
        columns=(
            PanelColumn(source="ceph_daemon", title="OSD", link=frame.OSD_OF_ROW, width=90),
            PanelColumn(source="device", title="Device", width=110),
            PanelColumn(source="role", title="Role", width=70),
            PanelColumn(source="depth", title="In progress"),
            PanelColumn(source="ops", title="Requests", unit=Unit.IOPS),
            PanelColumn(source="time", title="Time per request", unit=Unit.SECONDS),
            PanelColumn(source="busy", title="Busy", unit=Unit.RATIO),
            PanelColumn(source="scheduler", title="I/O scheduler"),
            PanelColumn(source="nr_requests", title="nr_requests"),
            PanelColumn(source="rotational", title="Rotational", words=theme.PLAIN_YES_NO),
        ),
        sort="In progress",
    ),
)

_SETTINGS = (
    lines(
        devices.TIME_BY_SETTING,
        title="Time per request, by I/O scheduler and nr_requests",
        reads="""A mean over all devices with the same settings. Compare lines only where the
            devices are of one kind and have the same load.""",
        blind="whether the settings or the load make the difference: a test run does that.",
        empty=_IDLE,
        unit=Unit.SECONDS,
    ),
    lines(
        devices.SIZE_BY_SETTING,
        title="Bytes per request, by I/O scheduler and nr_requests",
        reads="A scheduler that merges gives larger requests.",
        empty=_IDLE,
        unit=Unit.BYTES,
    ),
    rows(
        devices.COUNT_BY_SETTING,
        title="Settings in use",
        reads="How many devices have each combination. OSDs of one kind should agree.",
        empty=_NO_DISKS,
        columns=(
            PanelColumn(source="scheduler", title="Scheduler", width=105),
            PanelColumn(source="nr_requests", title="nr_requests", width=110),
            PanelColumn(
                source="rotational", title="Rotational", width=100, words=theme.PLAIN_YES_NO
            ),
            PanelColumn(source="write_cache", title="Write cache", width=110),
            PanelColumn(source="read_ahead_kb", title="Read-ahead KiB", unit=Unit.NONE, width=135),
            PanelColumn(source="devices", title="Devices", width=100),
        ),
        sort="Devices",
    ),
    lines(
        devices.MERGED,
        title="Share of requests that were merged",
        reads="Requests that were merged with one in the queue, as a share of all.",
        empty=_IDLE,
        unit=Unit.RATIO,
    ),
)

_ALL = (
    lines(
        devices.OPS,
        title="Requests per second, all devices of OSDs",
        reads="Requests that were completed, by kind.",
        empty=_NO_DISKS,
        unit=Unit.IOPS,
        stacked=True,
    ),
    lines(
        devices.BYTES,
        title="Bytes per second, all devices of OSDs",
        reads="By kind of request. Replication and the store's own writes are in it.",
        empty=_NO_DISKS,
        unit=Unit.BYTES_PER_SECOND,
        stacked=True,
    ),
)

BOARD = Board(
    uid=dashboards.DEVICES,
    title="Devices & I/O schedulers",
    about="Which devices are slow or full, and how do their I/O schedulers compare?",
    rows=(
        BoardRow("Slowest and fullest", _SLOWEST),
        BoardRow("By I/O scheduler", _SETTINGS),
        BoardRow("All together", _ALL),
    ),
)
