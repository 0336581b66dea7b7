"""What all dashboards share: variables, links, the time range, rows."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from cephqos_base import dashboards
from cephqos_dashboards import theme
from cephqos_dashboards.panels import PROMETHEUS, AnyPanel
from cephqos_dashboards.queries import common

TAG: Final = "cephqos"
# Of Ceph's own dashboards. Each of them has a list of all dashboards, so it leads to ours, too.
CEPHS_TAG: Final = "ceph-mixin"
_MOST_SENT: Final = 500  # annotations in the time that is shown
# Links to the dashboard of an OSD, with cluster, data source and time range: for a click on a
# series, on the tile that names a culprit, and on a row of a table.
_OSD_LINK: Final = (
    f"/d/{dashboards.OSD}?var-datasource=${{datasource}}&var-cluster=${{cluster}}"
    "&var-osd=OSD&${__url_time_range}"
)
OSD_OF_SERIES: Final = _OSD_LINK.replace("OSD", "${__field.labels.ceph_daemon}")
OSD_OF_CULPRIT: Final = _OSD_LINK.replace("OSD", "${__field.labels.culprit}")
OSD_OF_ROW: Final = _OSD_LINK.replace("OSD", "${__data.fields.OSD}")


@dataclass(frozen=True)
class BoardRow:
    """Panels under a heading; what is in a collapsed row is queried when it is opened."""

    title: str
    panels: Sequence[AnyPanel]
    collapsed: bool = False


@dataclass(frozen=True, kw_only=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    about: str
    rows: Sequence[BoardRow]
    variables: Sequence[Builder[models.VariableModel]] = ()  # besides those that all have
    annotations: Sequence["Annotation | SentAnnotation"] = field(default_factory=tuple)
    since: str = "now-1h"  # where the time range begins
    of_a_cluster: bool = True  # it has the variables `cluster` and `detail` (queries/common.py)
    logs: bool = False  # it has a variable for Loki


class _AnnotationQuery(models.AnnotationQuery):
    """With two fields that Grafana knows and the SDK does not."""

    title = ""
    step = ""

    def to_json(self) -> dict[str, object]:
        return super().to_json() | {"titleFormat": self.title, "step": self.step}


@dataclass(frozen=True)
class Annotation(Builder[models.AnnotationQuery]):
    """Stretches of time in which an expression is above 0, marked in every panel."""

    name: str
    expr: str
    title: str  # of a stretch, with {{label}}
    colour: str
    enabled: bool = True
    # A stretch ends if no sample follows within this time. Grafana reads 11,000 steps at most.
    step: str = "15s"

    def build(self) -> models.AnnotationQuery:
        made = _AnnotationQuery(
            name=self.name,
            datasource=PROMETHEUS,
            enable=self.enabled,
            icon_color=self.colour,
            expr=self.expr,
        )
        made.title, made.step = self.title, self.step
        return made


@dataclass(frozen=True)
class SentAnnotation(Builder[models.AnnotationQuery]):
    """What `cephqos run` and `cephqos trial` send to Grafana itself (--grafana)."""

    tags: Sequence[str]

    def build(self) -> models.AnnotationQuery:
        return models.AnnotationQuery(
            name="Runs and trials",
            datasource=models.DataSourceRef(type_val="grafana", uid="-- Grafana --"),
            enable=True,
            icon_color=theme.QUIET,
            target=models.AnnotationTarget(
                limit=_MOST_SENT, match_any=False, tags=[*self.tags], type_val="tags"
            ),
        )


def render(board: Board) -> models.Dashboard:
    """The dashboard as Grafana's schema has it."""
    made = dashboard.Dashboard(board.title).uid(board.uid).description(board.about)
    made.tags([TAG]).time(board.since, "now").refresh("30s").timezone("browser").readonly()
    made.tooltip(models.DashboardCursorSync.CROSSHAIR)
    for title, tag in (("More of cephqos", TAG), ("Ceph's own", CEPHS_TAG)):
        made.link(
            dashboard.DashboardLink(title)
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([tag])
            .include_vars(True)
            .keep_time(True)
            .as_dropdown(True)
        )
    for variable in (*_variables(board), *board.variables):
        made.with_variable(variable)
    for annotation in board.annotations:
        made.annotation(annotation)
    if board.of_a_cluster:
        made.annotation(SentAnnotation((TAG, "$cluster")))
    for row in board.rows:
        heading = dashboard.Row(row.title)
        # A dashboard places its panels, and those that have a place keep it.
        panels = deepcopy(row.panels)
        if row.collapsed:
            for panel in panels:
                heading.with_panel(panel)
            made.with_row(heading.collapsed(True))
        else:
            made.with_row(heading)
            for panel in panels:
                made.with_panel(panel)
    return _numbered(made.build())


def _numbered(made: models.Dashboard) -> models.Dashboard:
    """Links name a panel by its number. It is made from the title, so that it stays the same when
    another panel is added before it."""
    for panel in made.panels or ():
        collapsed = panel.panels if isinstance(panel, models.RowPanel) else []
        for numbered in (panel, *collapsed):
            is_row = numbered.type_val == "row"
            numbered.id_val = crc32(f"{is_row} {numbered.title}".encode()) % 1_000_000
    return made


def _variables(board: Board) -> list[Builder[models.VariableModel]]:
    sources: list[Builder[models.VariableModel]] = [
        dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    ]
    if board.logs:
        sources.append(dashboard.DatasourceVariable("loki").label("Loki").type("loki"))
    if not board.of_a_cluster:
        return sources
    detail = query_variable("detail", common.DETAIL_OF_CLUSTER, regex='/cluster="([^"]+)"/')
    return [
        *sources,
        query_variable("cluster", common.CLUSTERS, label="Cluster"),
        detail.hide(models.VariableHide.HIDE_VARIABLE),
    ]


def query_variable(
    name: str, query: str, *, label: str = "", regex: str = ""
) -> dashboard.QueryVariable:
    """A variable whose values Prometheus knows."""
    made = dashboard.QueryVariable(name).label(label or name).datasource(PROMETHEUS)
    made.query({"qryType": query_type(query), "query": query, "refId": "variable"}).regex(regex)
    made.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return made.sort(models.VariableSort.NATURAL_ASC)


def query_type(query: str) -> int:
    """Which form of its editor Grafana shows for a variable's query."""
    return 1 if query.startswith("label_values(") else 3  # 3: query_result(...)


OSD: Final = "osd"


def osd_variable() -> dashboard.QueryVariable:
    return query_variable(OSD, common.OSDS_OF_CLUSTER, label="OSD")


def all_or_one(name: str, query: str, *, label: str) -> dashboard.QueryVariable:
    """A variable for a matcher `=~`: it matches everything until one value is chosen."""
    return query_variable(name, query, label=label).include_all(True).all_value(".+")


def critical_alerts(*, shown: bool = False) -> Annotation:
    """When critical alerts fired; a switch above the panels shows or hides it."""
    title = "{{alertname}} {{ceph_daemon}} {{class}}"
    return Annotation("Critical alerts", common.CRITICAL_ALERTS, title, theme.BAD, enabled=shown)
