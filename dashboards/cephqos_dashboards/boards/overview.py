"""QoS overview, the home page: which reservations are violated, where, why, since when?"""

from grafana_foundation_sdk.models.common import BigValueTextMode

from cephqos_base import dashboards
from cephqos_base.thresholds import THRESHOLDS
from cephqos_dashboards import frame, theme
from cephqos_dashboards.boards.background import (
    copies_to_recover,
    overdue_for_a_scrub,
    recovery_done_in,
)
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import PanelColumn, figure, lines, rows, states, wide
from cephqos_dashboards.queries import advice, background, overview, tenants
from cephqos_dashboards.queries.common import NO_RULES, TOO_LARGE
from cephqos_dashboards.theme import Unit

_HEIGHT = 5  # of the first row

_TOP = (
    figure(
        overview.VIOLATED,
        title="Violated on",
        reads="""For each class with a reservation: the number of OSDs on which it has
            demand and gets less than its reservation: which reservations are violated.""",
        blind="""classes without a reservation, and OSDs under WPQ: nothing is reserved there.
            Without demand nothing is violated.""",
        empty="no reservation known",
        width=4,
        height=_HEIGHT,
        unit=Unit.OSDS,
        thresholds=theme.ZERO_IS_GOOD,
        mappings=theme.KEPT,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    figure(
        overview.CULPRIT,
        title="Look here first",
        reads="""The OSD that explains most of these violations, and its own likely cause. Other
            OSDs may wait for it. Begins: no cause has lasted yet, so it is the OSD that lacks
            most. Click it to open the OSD.""",
        empty="no reservation known",
        width=8,
        height=_HEIGHT,
        unit=Unit.NONE,
        thresholds=theme.CULPRIT,
        link=frame.OSD_OF_CULPRIT,
        text=BigValueTextMode.NAME,
    ),
    figure(
        overview.WHY,
        title="Likely causes",
        reads="""The most frequent causes of violations, and on how many OSDs and classes.
            Begins: no cause has lasted yet. Unknown: there is no evidence for any.""",
        empty="no reservation known",
        width=4,
        height=_HEIGHT,
        unit=Unit.NONE,
        thresholds=theme.ZERO_IS_GOOD,
        mappings=theme.NO_VIOLATION,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    figure(
        overview.WORST,
        title="The worst class gets",
        reads=f"""Of all classes with unmet demand: the one with the smallest share of its
            reservation. Below {100 * THRESHOLDS.reached:g} % it is violated. It suffers; the OSD
            to look at is to the left.""",
        empty="no unmet demand seen",
        width=4,
        height=_HEIGHT,
        unit=Unit.RATIO,
        thresholds=theme.ATTAINMENT,
        decimals=0,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    figure(
        *overview.FIRING,
        title="Alerts fire",
        reads="""Critical: clients suffer now. Warnings can wait until morning. Silenced and
            inhibited alerts are counted, too.""",
        empty="no rule is known",
        width=4,
        height=_HEIGHT,
        thresholds=theme.ZERO_IS_GOOD,
        mappings=theme.NONE,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
)

_WHERE = wide(
    states(
        overview.MAP,
        title="Violated reservations over time, coloured by likely cause",
        reads="""One row per OSD and class: the 20 violated longest in this time range. The
            colour is the likely cause at that time; begins: none has lasted yet. Click a row to
            open the OSD.""",
        empty=f"No OSD has a reservation in this time range. {TOO_LARGE}",
        mappings=theme.CAUSE_CODES,
        link=frame.OSD_OF_SERIES,
    ),
    rows(
        overview.ALERTS,
        title="Firing alerts",
        reads="One row per alert, with the OSD, the class and the likely cause.",
        empty=f"No alert fires. {NO_RULES}",
        height=6,
        columns=(
            PanelColumn(source="severity", title="Severity", width=80),
            PanelColumn(source="alertname", title="Alert", least=280),
            PanelColumn(source="since", title="Since", unit=Unit.SINCE, width=150),
            PanelColumn(source="ceph_daemon", title="OSD", link=frame.OSD_OF_ROW, width=80),
            PanelColumn(source="class", title="Class", width=180),
            PanelColumn(source="cause", title="Cause", width=110, words=theme.CAUSES_IN_WORDS),
            PanelColumn(source="slo", title="SLO", width=110),
            PanelColumn(source="pool", title="Pool", width=110),
        ),
        sort="Severity",
        rising=True,
    ),
    rows(
        *overview.WORST_OSDS,
        title="Worst OSDs",
        reads="""OSDs that others wait for now, then the violated reservations with the largest
            shortfall: what the class gets, its reservation, how far that lags, the cause, and
            which class or OSD took the rest.""",
        empty=f"No reservation is violated now. {NO_RULES}",
        height=6,
        columns=(
            PanelColumn(source="ceph_daemon", title="OSD", link=frame.OSD_OF_ROW, width=90),
            PanelColumn(source="class", title="Class", width=180),
            PanelColumn(source="cause", title="Cause", width=130, words=theme.CAUSES_IN_WORDS),
            PanelColumn(source="by", title="By", width=180),
            PanelColumn(source="waited", title="OSDs waiting", unit=Unit.NONE),
            PanelColumn(source="shortfall", title="Shortfall", unit=Unit.OPS),
            PanelColumn(source="attained", title="Gets", unit=Unit.OPS),
            PanelColumn(source="effective_reservation", title="Reservation", unit=Unit.OPS),
            PanelColumn(source="lag", title="Lag", unit=Unit.SECONDS),
            PanelColumn(source="violated", title="Violated in 1 h", unit=Unit.SECONDS),
        ),
        sort=("OSDs waiting", "Shortfall"),
    ),
)

_NO_TENANT = f"No such operation was sampled, or the collector tenants is off. {TOO_LARGE}"
_WORK = (
    lines(
        *overview.WORK,
        title="Work of the cluster by class",
        reads="""Normalised operations per second, stacked by class. Grey: replica writes, which
            no reservation covers. Dashed: reservations. Red line: the capacity of all OSDs.""",
        blind="""who has work to do and waits; scrub work on releases that do not count it.
            Sums hide a single bad OSD: see Worst OSDs.""",
        empty=f"No OSD reports work. {NO_RULES}",
        width=24,
        unit=Unit.OPS,
        stacked=True,
        classes=True,
    ),
    lines(
        *tenants.OF_CLUSTER_WORK,
        title="Tenants with most of the work",
        reads="""Shares of the time in which OSDs execute or commit operations, by image (its
            id), bucket, CephFS client or other client, with the number of the pool.""",
        blind="""bursts between two samples. Tenants that are not among the five largest of an OSD:
            they are in `other`.""",
        empty=_NO_TENANT,
        height=7,
        unit=Unit.RATIO,
        maximum=1,
        overrides=theme.interval_overrides(),
    ),
    lines(
        *tenants.OF_CLUSTER_WAITING,
        title="Tenants that wait most",
        reads="""Shares of the time in which operations wait: in the queue, blocked, or for other
            OSDs. Much here and little in the work: this tenant suffers.""",
        blind="bursts between two samples.",
        empty=_NO_TENANT,
        height=7,
        unit=Unit.RATIO,
        maximum=1,
        overrides=theme.interval_overrides(),
    ),
)

_HOSTS = (
    rows(
        *overview.HOSTS,
        title="Worst hosts",
        reads="""Per exporter (one per host): on how many of its OSDs a reservation is violated,
            on how many the class has demand, and its sums. In a very large cluster, start here.""",
        empty=f"No host has an OSD with a violated reservation. {NO_RULES}",
        width=24,
        height=6,
        columns=(
            PanelColumn(source="instance", title="Exporter", width=125),
            PanelColumn(source="class", title="Class", width=140),
            PanelColumn(source="violated", title="OSDs violated", width=120),
            PanelColumn(source="demand", title="In demand", width=90),
            PanelColumn(source="shortfall", title="Shortfall", unit=Unit.OPS),
            PanelColumn(source="attained", title="Gets", unit=Unit.OPS),
            PanelColumn(source="reserved", title="Reserved", unit=Unit.OPS),
        ),
        sort="OSDs violated",
    ),
    rows(
        *overview.CAPACITY,
        title="Capacity set too high",
        reads=f"""Configured capacity against the most that the OSD delivered under saturation
            in the last day. Above {THRESHOLDS.more:g}, reservations and limits are too large
            by that factor.""",
        blind="OSDs that were never saturated in the last day: what they can do is not known.",
        empty=f"No OSD was saturated in the last day, so no capacity was tested. {NO_RULES}",
        height=6,
        columns=(
            PanelColumn(source="ceph_daemon", title="OSD", link=frame.OSD_OF_ROW, width=90),
            PanelColumn(source="reason", title="Reason", least=190),
            PanelColumn(
                source="ratio",
                title="Times too high",
                unit=Unit.NONE,
                thresholds=theme.steps((None, theme.GOOD), (THRESHOLDS.more, theme.BAD)),
            ),
            PanelColumn(source="capacity", title="Configured", unit=Unit.OPS),
            PanelColumn(source="proven", title="Most delivered", unit=Unit.OPS),
        ),
        sort="Times too high",
    ),
    rows(
        overview.CAPACITY_TOO_LOW,
        title="Capacity set too low",
        reads=f"""What an OSD delivered for five minutes of the last day, in multiples of its
            configured capacity; or a limit that holds a class back while device and CPU have room.
            Above {THRESHOLDS.more:g} only. `cephqos capacity` prints the command that sets
            it right.""",
        blind="OSDs that were never busy: what they can do is not known.",
        empty="No OSD is known to do more than it is configured for.",
        height=6,
        columns=(
            PanelColumn(source="ceph_daemon", title="OSD", link=frame.OSD_OF_ROW, width=90),
            PanelColumn(
                source="ratio",
                title="Times too low, at least",
                unit=Unit.NONE,
                thresholds=theme.steps((None, theme.GOOD), (THRESHOLDS.more, theme.BAD)),
            ),
        ),
        sort="Times too low, at least",
    ),
    rows(
        *advice.PROFILES_GIVE,
        title="Advice",
        reads="""What each built-in profile reserves on all OSDs, and the limit of best effort.
            `cephqos advise` also says which OSDs would be violated and how long the backlog takes,
            tries reservations of your own, and prints the commands.""",
        empty=f"No capacity is known, as under WPQ. {TOO_LARGE}",
        width=24,
        height=6,
        columns=(
            PanelColumn(source="profile", title="Profile", least=150),
            PanelColumn(source="osds", title="OSDs that have it", width=140),
            PanelColumn(source="client", title="Client", unit=Unit.OPS),
            PanelColumn(source="recovery", title="Recovery", unit=Unit.OPS),
            PanelColumn(source="best_effort", title="Best effort", unit=Unit.OPS),
            PanelColumn(source="limit", title="Its limit", unit=Unit.OPS, words={"0": "none"}),
        ),
    ),
)

_BACKGROUND = (
    copies_to_recover(width=6),
    recovery_done_in(width=6),
    overdue_for_a_scrub(width=6),
    figure(
        background.SCRUB_ETA,
        title="Due scrubs are done in",
        reads="""The likely time at the rate of the last five minutes, by level. It may take a
            third of it, or three times it.""",
        blind="pools in which nothing is scrubbed now: they have no rate.",
        empty="not known",
        width=6,
        unit=Unit.SECONDS,
        decimals=0,
        mappings=theme.DONE,
    ),
)

BOARD = Board(
    uid=dashboards.OVERVIEW,
    title="QoS overview",
    about="Which reservations are violated, on which OSD, why, and since when?",
    rows=(
        BoardRow("Reservations: violated on how many OSDs, which OSD to look at, and why", _TOP),
        BoardRow("Where, since when, and what took the rest", _WHERE),
        BoardRow("Who gets what", _WORK),
        BoardRow("Hosts and capacity", _HOSTS),
        BoardRow("Recovery and scrub", _BACKGROUND),
    ),
    annotations=(frame.critical_alerts(shown=True),),
)
