"""cephqos itself: is everything seen, what does it cost, what fails?"""

from grafana_foundation_sdk.models.common import BigValueTextMode

from cephqos_base import dashboards
from cephqos_base.thresholds import THRESHOLDS
from cephqos_dashboards import theme
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import PanelColumn, figure, lines, rows, states, thirds
from cephqos_dashboards.queries import exporter
from cephqos_dashboards.theme import Unit

_NONE = "Prometheus scrapes no job whose name begins with cephqos."
_SELF = "Prometheus has not loaded the rules of cephqos, or it does not scrape itself."
_LOKI = "Prometheus does not scrape Loki."

_NOW = (
    figure(
        *exporter.UP,
        title="Exporters",
        reads="Scrape targets of jobs cephqos*: up and down.",
        empty="none scraped",
        width=5,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    figure(
        *exporter.DAEMONS,
        title="Daemons",
        reads="OSDs that answered at the last scrape, and those that did not.",
        empty="none found",
        width=5,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    figure(
        exporter.FAILING,
        title="Failing collectors",
        reads="Pairs of daemon and collector that gave nothing at the last scrape.",
        empty="none scraped",
        width=4,
        thresholds=theme.ZERO_IS_GOOD,
        mappings=theme.NONE,
    ),
    figure(
        exporter.SERIES,
        title="Series",
        reads=f"""Of all exporters, after relabelling. An alert fires above
            {THRESHOLDS.series_per_osd:g} for each OSD of an exporter, not counting
            {THRESHOLDS.series_of_exporter:g} for host and cluster.""",
        empty="none scraped",
        width=4,
    ),
    figure(
        exporter.RULES_RUN,
        title="Alerting",
        reads="yes: they count OSDs of some cluster now. no: no alert can fire.",
        empty="no rules",
        width=3,
        thresholds=theme.UP,
        mappings=theme.YES_NO,
    ),
    figure(
        exporter.VERSIONS,
        title="Versions",
        reads="Exporters by version. More than one outside an upgrade: one was forgotten.",
        empty="none scraped",
        width=3,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
)

_MISSING = (
    states(
        exporter.STATE,
        title="Exporters over time",
        reads="One row per scrape target; those that are down come first.",
        empty=_NONE,
        height=7,
        mappings=theme.mapped({"0": ("down", theme.BAD), "1": ("up", theme.GOOD)}),
    ),
    rows(
        exporter.SILENT,
        title="Daemons that do not answer",
        reads="With the reason that the exporter gives.",
        empty="Every daemon that was found answers.",
        width=6,
        height=7,
        columns=(
            PanelColumn(source="ceph_daemon", title="Daemon", width=80),
            PanelColumn(source="reason", title="Reason"),
        ),
    ),
    rows(
        exporter.MISSING,
        title="Collectors that fail",
        reads="By daemon. What is derived from them is absent, and alerts on it stay silent.",
        empty="No collector is known to fail.",
        width=6,
        height=7,
        columns=(
            PanelColumn(source="ceph_daemon", title="Daemon", width=80),
            PanelColumn(source="collector", title="Collector"),
        ),
    ),
)

_COST = thirds(
    lines(
        exporter.SCRAPE,
        title="Scrape time, slowest targets",
        reads="Must stay well below the scrape timeout (10 s by default).",
        empty=_NONE,
        unit=Unit.SECONDS,
    ),
    lines(
        exporter.COLLECTORS,
        title="Scrape time by collector, worst host",
        reads="Time in each collector over all daemons of a host.",
        empty=_NONE,
        unit=Unit.SECONDS,
    ),
    lines(
        exporter.DAEMON_TIME,
        title="Daemons that answer most slowly",
        reads="Time until the daemon's replies had come.",
        empty=_NONE,
        unit=Unit.SECONDS,
    ),
    lines(
        exporter.CPU,
        title="CPU of exporters",
        reads="CPUs that an exporter uses, the highest ten.",
        empty=_NONE,
        unit=Unit.CPUS,
    ),
    lines(
        exporter.MEMORY,
        title="Memory of exporters",
        reads="Resident memory, the highest ten.",
        empty=_NONE,
        unit=Unit.BYTES,
    ),
    lines(
        exporter.SERIES_BY_TARGET,
        title="Series by target",
        reads="The highest ten. Steady, apart from new daemons.",
        empty=_NONE,
    ),
)

_CLUSTER = (
    figure(
        exporter.CLUSTER,
        title="Cluster role",
        reads="Whether the cluster answered the exporter's last poll.",
        empty="no cluster role",
        width=4,
        height=8,
        thresholds=theme.UP,
        mappings=theme.YES_NO,
        text=BigValueTextMode.VALUE,
    ),
    lines(
        exporter.CLUSTER_AGE,
        title="Age of what is shown of the cluster",
        reads="Totals, states by pool, the oldest stamp of the schedule.",
        empty="No exporter has the role cluster.",
        width=10,
        unit=Unit.SECONDS,
    ),
    lines(
        exporter.CLUSTER_COMMANDS,
        title="Time spent on commands to the cluster",
        reads="Seconds per second, by command.",
        empty="No exporter has the role cluster.",
        width=10,
        unit=Unit.RATIO,
    ),
)

_RULES = (
    lines(
        exporter.RULES,
        title="Evaluation time of rule groups",
        reads="Must stay below the groups' interval (15 s by default).",
        empty=_SELF,
        unit=Unit.SECONDS,
        values=True,
    ),
    lines(
        *exporter.RULES_MISSED,
        title="Evaluations missed or failed",
        reads="Anything above 0 means that alerts are late or silent.",
        empty=_SELF,
        unit="suffix:/s",
        usual=1,
    ),
)

_LOGS = (
    lines(
        exporter.LOKI_LINES,
        title="Log lines that Loki received",
        reads="Lines per second, of all sources.",
        empty=_LOKI,
        unit="suffix:lines/s",
    ),
    lines(
        exporter.LOKI_LOST,
        title="Log lines that Loki discarded",
        reads="Anything above 0 is lost: too old, too large, or too many at once.",
        empty=_LOKI,
        unit="suffix:lines/s",
        usual=1,
    ),
)

BOARD = Board(
    uid=dashboards.EXPORTER,
    title="cephqos itself",
    about="Is everything seen, what does it cost, and what fails?",
    rows=(
        BoardRow("Now", _NOW),
        BoardRow("What is not seen", _MISSING),
        BoardRow("Cost", _COST),
        BoardRow("Cluster role", _CLUSTER),
        BoardRow("Rules (needs a Prometheus that scrapes itself)", _RULES),
        BoardRow("Logs (needs a Loki that Prometheus scrapes)", _LOGS),
    ),
    of_a_cluster=False,
)
