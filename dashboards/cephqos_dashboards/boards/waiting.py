"""Waiting: where a client's millisecond goes, and who waits for whom?"""

from cephqos_base import account_error, dashboards
from cephqos_dashboards import frame, theme
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import PanelColumn, graph, lines, rows, stacks
from cephqos_dashboards.queries import waiting
from cephqos_dashboards.queries.common import TOO_LARGE
from cephqos_dashboards.theme import Unit

_EMPTY = f"No client operation was completed, or the collector account is off. {TOO_LARGE}"

_MILLISECOND = (
    lines(
        waiting.NOW,
        title="Where a client's millisecond goes",
        reads=f"""Mean latency of the client operations of all OSDs that are chosen above, by
            where it is spent. queue: the class that is served instead. Each share is right within
            {account_error.POINTS} points, beside recovery within {account_error.BESIDE_RECOVERY},
            with erasure-coded pools within {account_error.ERASURE_CODED}.""",
        blind="the way between client and OSD, and operations that are not completed.",
        empty=_EMPTY,
        width=14,
        height=10,
        stacked=True,
        unit=Unit.SECONDS,
        overrides=theme.waiting_overrides(),
    ),
    stacks(
        waiting.COMPARED,
        title="Now, an hour ago, a day ago",
        reads="""The same over five minutes, by state. A state that has grown is where to
            look.""",
        empty=_EMPTY,
        width=10,
        height=10,
        bar="when",
        part="state",
        unit=Unit.SECONDS,
        overrides=theme.waiting_overrides(),
    ),
)
_WAITING_FOR = (
    rows(
        waiting.EDGES,
        title="Who waits for whom: the worst, for clients of the chosen OSDs",
        reads="""Seconds per second: the ten largest of tenant to primary, primary to replica, and
            OSD to root. Primaries are the OSDs that are chosen above, replicas any OSDs. Root: time
            is spent there.""",
        empty=_EMPTY,
        width=24,
        height=12,
        columns=(
            PanelColumn(source="source", title="Waits"),
            PanelColumn(source="target", title="For", least=180),
            PanelColumn(source="highlighted", title="Root", width=90),
            PanelColumn(source="seconds", title="Seconds per second", unit=Unit.NONE, width=160),
        ),
        sort="Seconds per second",
    ),
)
_GRAPH = (
    graph(
        waiting.EDGES,
        title="Who waits for whom: a graph, for clients of the chosen OSDs",
        reads="""An arrow goes from who waits to what is waited for, in seconds per second. Red
            arrows end at a root: time is spent there. Primaries are the OSDs that are chosen above,
            replicas any OSDs.""",
        empty=_EMPTY,
        width=24,
    ),
)

BOARD = Board(
    uid=dashboards.WAITING,
    title="Waiting",
    about="Where does a client's millisecond go, and who waits for whom?",
    rows=(
        BoardRow("Of the cluster, a host or an OSD: choose above", _MILLISECOND),
        BoardRow("From the tenant to the root", _WAITING_FOR),
        BoardRow("The same as a graph", _GRAPH, collapsed=True),
    ),
    variables=(
        frame.all_or_one("host", waiting.HOSTS_OF_CLUSTER, label="Host"),
        frame.all_or_one(frame.OSD, waiting.OSDS_OF_HOST, label="OSD"),
    ),
    annotations=(frame.critical_alerts(),),
)
