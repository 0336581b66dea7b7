"""One OSD: reservation, demand and work of each class, and which resource ran out."""

from grafana_foundation_sdk.models.common import BigValueTextMode

from cephqos_base import dashboards
from cephqos_base.thresholds import THRESHOLDS
from cephqos_dashboards import frame, theme
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import PanelColumn, figure, lines, log_lines, rows, thirds
from cephqos_dashboards.queries import osd, tenants
from cephqos_dashboards.queries.common import NO_RULES
from cephqos_dashboards.theme import Unit

_SILENT = "The OSD does not answer, or no exporter sees it."
_LOAD = "In this time range the OSD had nothing of this to do."

_NOW = (
    figure(
        osd.UP,
        title="OSD answers",
        reads="Whether the OSD answered on its admin socket at the last scrape.",
        empty="not seen",
        width=3,
        thresholds=theme.UP,
        mappings=theme.YES_NO,
        text=BigValueTextMode.VALUE,
    ),
    figure(
        osd.ATTAINMENT,
        title="Each class gets",
        reads=f"""Share of its reservation, for classes with unmet demand. 100 % or more: a class
            has its reservation. Below {100 * THRESHOLDS.reached:g} % the reservation is
            violated.""",
        blind="""classes without a reservation, best effort (no counter has all of its work),
            and recovery at its limit.""",
        empty="no unmet demand seen",
        width=6,
        unit=Unit.RATIO,
        decimals=0,
        thresholds=theme.ATTAINMENT,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    figure(
        osd.CAUSE,
        title="Unmet demand and likely cause",
        reads="""The likely cause for each class with unmet demand, violated or not. Begins: no
            cause has lasted yet.""",
        empty="no unmet demand seen",
        width=6,
        thresholds=theme.steps((None, theme.WARN)),
        mappings=theme.mapped({"1": ("waits", theme.WARN)}),
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    rows(
        osd.SCHEDULER,
        title="Scheduler",
        reads="""The scheduler in force, its profile, the kind of device it assumes, and where
            capacity and reservations come from. Measured or set: in the monitors' configuration
            (ceph config dump), by the OSD's benchmark or by a person.""",
        empty=_SILENT,
        width=9,
        height=4,
        columns=(
            PanelColumn(source="in_force", title="Scheduler", width=140),
            PanelColumn(source="profile", title="Profile"),
            PanelColumn(source="media", title="Media", width=70),
            PanelColumn(
                source="capacity_origin",
                title="Capacity is",
                width=150,
                words={
                    "default": "Ceph's default",
                    "mon": "measured or set",
                    "local": "set on this host",
                    "": "not used",
                },
            ),
            PanelColumn(
                source="reservations",
                title="Reservations are",
                width=150,
                words={"config": "mClock's", "policy": "of your policy file", "none": "none"},
            ),
        ),
    ),
)

_CLASSES = (
    lines(
        *osd.WORK,
        title="Work, reservation and limit by class",
        reads="""Stacked: normalised operations per second of each class. Grey: replica
            writes, which no reservation covers. Dashed: reservations. Dotted: limits.""",
        blind="""who waits (reservation and shortfall, to the right). Sizes are estimated
            except for client reads.""",
        empty=f"The OSD reports no work. {NO_RULES}",
        width=14,
        height=9,
        unit=Unit.OPS,
        stacked=True,
        classes=True,
    ),
    lines(
        *osd.EFFECTIVE_RESERVATION,
        title="Effective reservation, and shortfall",
        reads="""Effective reservation: that of the shards that have work for the class.
            Filled: the shortfall, the part of it that the class does not get.""",
        empty=f"No class has a reservation: WPQ, or none is set. {NO_RULES}",
        width=10,
        height=9,
        unit=Unit.OPS,
        classes=True,
    ),
    lines(
        osd.QUEUES,
        title="Scheduler queues, by class and shard",
        reads="""Requests that wait in the scheduler, a point per class and shard in the class's
            colour. One shard alone: see cause one_shard.""",
        blind="""queues between two scrapes. Client operations mostly wait inside the store:
            see below.""",
        empty="No request waited in the scheduler when it was looked at.",
        classes=True,
        sparse=True,
    ),
    lines(
        *osd.LAG,
        title="Reservation lag and limit wait, by class and shard",
        reads="""Lag: how far the head of a queue is past the moment its reservation fell due.
            It is the direct evidence of a violation. Limit wait: how long the head still waits
            for the limit.""",
        empty="No reservation lagged and no limit held when it was looked at.",
        unit=Unit.SECONDS,
        classes=True,
        sparse=True,
    ),
)

_STAGES = thirds(
    lines(
        *osd.LATENCY,
        title="Client writes",
        reads="Latency of client writes on this OSD as primary, replicas included.",
        empty=_LOAD,
        unit=Unit.SECONDS,
        log=True,
    ),
    lines(
        *osd.STAGES,
        title="Where the time goes",
        reads="""Waiting before the scheduler lets an operation go, time in the store, one
            key-value commit, one request at the device. The largest is the bottleneck.""",
        blind="time on other OSDs, and on the network.",
        empty=_LOAD,
        unit=Unit.SECONDS,
        log=True,
    ),
    lines(
        *osd.STORE,
        title="Operations in progress",
        reads="""Client operations in progress, those that wait, and transactions in the store.
            Many in the store: work piles up behind the scheduler.""",
        empty=_LOAD,
    ),
    lines(
        osd.THROTTLES,
        title="Throttles: share in use",
        reads="At 100 % operations wait.",
        empty=_SILENT,
        unit=Unit.RATIO,
        maximum=1,
    ),
    lines(
        osd.THROTTLE_WAIT,
        title="Throttles: operations waiting on average",
        reads="Above 1, operations queue in front of the throttle.",
        empty=_SILENT,
        usual=1,
    ),
    lines(
        *osd.SLOW,
        title="Slow operations",
        reads="""Operations blocked for longer than osd_op_complaint_time, and slow per minute.
            `ceph daemon osd.N dump_blocked_ops` says what they wait for.""",
        empty="The collector ops is off, or this release does not count them.",
        usual=1,
    ),
)

_NO_TENANT = "No such operation was sampled, or the collector tenants is off."
_PEERS = (
    lines(
        *tenants.OF_OSD_WORK,
        title="Tenants that it works for",
        reads="""Shares of the time in which this OSD executes or commits operations, by image
            (its id), bucket, CephFS client or other client, with the number of the pool.""",
        blind="bursts between two samples.",
        empty=_NO_TENANT,
        unit=Unit.RATIO,
        maximum=1,
        overrides=theme.interval_overrides(),
    ),
    lines(
        *tenants.OF_OSD_WAITING,
        title="Tenants that wait here",
        reads="""Shares of the time in which operations wait on this OSD as primary: in the queue,
            blocked, or for other OSDs. Much here and little in the work: this tenant suffers.""",
        blind="bursts between two samples.",
        empty=_NO_TENANT,
        unit=Unit.RATIO,
        maximum=1,
        overrides=theme.interval_overrides(),
    ),
    lines(
        osd.ACCOUNT,
        title="Where a client's millisecond goes",
        reads="""Mean latency of a client operation on this OSD as primary, by where it is
            spent. queue: the class that is served instead. replica: the OSD that is waited for;
            open that OSD to see why.""",
        blind="the way between client and OSD, and operations that are not completed.",
        empty=_LOAD,
        width=12,
        height=10,
        stacked=True,
        unit=Unit.SECONDS,
        overrides=theme.waiting_overrides(),
    ),
    lines(
        *osd.REPLICA_WRITES,
        title="Writes as a replica",
        reads="""Time per replica write on this OSD, beside its own store and the median of the
            cluster's OSDs. Well above the median: others wait for this OSD.""",
        blind="sub-writes of erasure-coded pools, which Ceph does not count.",
        empty="This OSD carried out no replica write, or the exporter is older than this.",
        width=6,
        height=10,
        unit=Unit.SECONDS,
        log=True,
    ),
    lines(
        *osd.PINGS,
        title="Heartbeat pings to other OSDs",
        reads="Mean round trip over a minute, to the worst peer and to the median peer.",
        empty="No pings yet (an OSD's first minute), no peers, or an older exporter.",
        width=6,
        height=10,
        unit=Unit.SECONDS,
        log=True,
    ),
)

_RESOURCES = (
    lines(
        osd.THREADS,
        title="CPU by thread group",
        reads="CPUs that the threads of a group use together.",
        empty=_SILENT,
        unit=Unit.CPUS,
        overrides=theme.thread_overrides(),
    ),
    lines(
        osd.BUSIEST,
        title="Busiest thread of each group",
        reads="At 100 % that thread is at its ceiling, however many CPUs idle.",
        empty=_SILENT,
        unit=Unit.RATIO,
        overrides=theme.thread_overrides(),
    ),
    lines(
        osd.DEVICE_TIME,
        title="Device: time per request",
        reads="Queueing in the kernel included, by kind of request.",
        empty=_LOAD,
        width=8,
        unit=Unit.SECONDS,
    ),
    lines(
        osd.DEVICE_RATE,
        title="Device: requests per second",
        reads="Requests that were completed, by kind.",
        empty=_LOAD,
        width=8,
        unit=Unit.IOPS,
    ),
    lines(
        *osd.DEVICE_DEPTH,
        title="Device: requests in progress, mean",
        reads="The depth of the queue. Deep and slow: the device is full.",
        empty=_LOAD,
        width=8,
    ),
)

_LOGS = (
    log_lines(
        osd.LOGS,
        title="Log of this OSD",
        reads="Lines of the OSD's log in this time range, the newest first; 500 at most.",
        empty="Loki has no line of this OSD in this time range.",
        width=24,
        height=12,
    ),
)

BOARD = Board(
    uid=dashboards.OSD,
    title="OSD",
    about="One OSD: reservation, demand and work of each class, and which resource ran out.",
    rows=(
        BoardRow("$osd now", _NOW),
        BoardRow("Classes of $osd", _CLASSES),
        BoardRow("Stages of $osd", _STAGES),
        BoardRow("$osd and other OSDs", _PEERS),
        BoardRow("Threads and device of $osd", _RESOURCES),
        BoardRow("Log of $osd (needs Loki)", _LOGS, collapsed=True),
    ),
    logs=True,
    variables=(frame.osd_variable(),),
    annotations=(frame.critical_alerts(),),
)
