"""A function for each kind of panel: `lines`, `figure`, `bars`, `states`, `rows` and others.

    figure(overview.WHY, title="Likely causes", reads="The most frequent causes …",
           empty="no violation", width=4)

`PanelOptions` are the keywords that all of them take. A panel says how it is read (`reads`), and
why it is empty if it is (`empty`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Required, TypedDict, TypeVar, Unpack

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    common,
    dashboard,
    heatmap,
    logs,
    loki,
    nodegraph,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
    trend,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import heatmap as heatmaps
from grafana_foundation_sdk.models.common import VisibilityMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardFieldConfigSourceOverrides,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    MatcherConfig,
    Panel,
    Threshold,
    ThresholdsMode,
    ValueMapping,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from cephqos_dashboards import theme

PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
LOKI: Final = DataSourceRef(type_val="loki", uid="${loki}")

AnyPanel = Builder[Panel]
_P = TypeVar(
    "_P",
    timeseries.Panel,
    stat.Panel,
    table.Panel,
    statetimeline.Panel,
    heatmap.Panel,
    barchart.Panel,
    bargauge.Panel,
    nodegraph.Panel,
    logs.Panel,
    trend.Panel,
)


class PanelOptions(TypedDict, total=False):
    """What a panel of any kind says of itself, and how its values are shown."""

    title: Required[str]
    reads: Required[str]  # how to read it
    empty: Required[str]  # why there is no data, shown instead of it
    blind: str  # what it cannot show, if a reader would expect that
    width: int  # of 24 for the whole page; 12 without one
    height: int  # without one, that of its kind
    unit: str  # of theme.Unit
    thresholds: Sequence[Threshold]
    mappings: Sequence[ValueMapping]
    overrides: Sequence[DashboardFieldConfigSourceOverrides]
    decimals: int
    minimum: float
    maximum: float
    usual: float  # the axis reaches this far at least
    link: str  # where a click on a value leads


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True)
class PanelQuery:
    """PromQL for a panel."""

    expr: str
    legend: str = ""  # the name of its series, with {{label}}
    name: str = ""  # in a table: of the column with its values


def _with_options(panel: _P, options: PanelOptions, height: int = 8) -> _P:
    description = _on_one_line(options["reads"])
    if "blind" in options:
        description += f"\n\nIt cannot show: {_on_one_line(options['blind'])}"
    panel.title(options["title"]).description(description)
    panel.no_value(_on_one_line(options["empty"]))
    panel.span(options.get("width", 12)).height(options.get("height", height))
    panel.unit(options.get("unit", theme.Unit.COUNT))
    # Grafana would show `empty` also for a gap in a table, and between the figures of an axis.
    panel.mappings([*options.get("mappings", ()), *theme.BLANK])
    steps = list(options.get("thresholds", theme.NEUTRAL))
    panel.thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    for override in options.get("overrides", ()):
        panel.with_override(override.matcher, override.properties)
    if "decimals" in options:
        panel.decimals(options["decimals"])
    if "minimum" in options:
        panel.min(options["minimum"])
    if "maximum" in options:
        panel.max(options["maximum"])
    if "link" in options:
        link = dashboard.DashboardLink("Open the OSD").type(DashboardLinkType.LINK)
        panel.data_links([link.url(options["link"])])
    return panel


def _with_queries(
    panel: _P, queries: Sequence[PanelQuery], *, instant: bool, form: PromQueryFormat
) -> _P:
    panel.datasource(PROMETHEUS)
    for position, query in enumerate(queries):
        expr = "\n".join(line.rstrip() for line in query.expr.strip().splitlines())
        target = prometheus.Dataquery().expr(expr).format(form).datasource(PROMETHEUS)
        target = target.instant() if instant else target.range()
        target = target.legend_format(query.legend or "__auto")
        panel.with_target(target.ref_id(_ref_id(position)))
    return panel


def _ref_id(position: int) -> str:
    """Grafana's name of a query of a panel: A, B, …"""
    return chr(ord("A") + position)


_AXIS_WIDTH: Final = 90


def lines(
    *queries: PanelQuery,
    stacked: bool = False,
    classes: bool = False,
    log: bool = False,
    sparse: bool = False,
    values: bool = False,
    aligned: bool = False,
    **options: Unpack[PanelOptions],
) -> AnyPanel:
    """Lines over time.

    `classes`: in the colours of the classes of work. `log`: on a logarithmic axis. `sparse`: as
    points, for values that are there only now and then. `values`: the last value in the legend.
    `aligned`: the time axis begins at the same column as in other panels of the same width.
    """
    panel = _with_options(timeseries.Panel(), options)
    _with_queries(panel, queries, instant=False, form=PromQueryFormat.TIME_SERIES)
    if classes:
        for override in (*theme.class_overrides(), *theme.reservation_overrides()):
            panel.with_override(override.matcher, override.properties)
    # A stack has no lines: that of a part which is 0 would lie on top of the others.
    panel.line_width(0 if stacked else 1).fill_opacity(70 if stacked else 0)
    panel.show_points(VisibilityMode.NEVER)
    panel.axis_soft_min(0)
    if aligned:
        panel.axis_width(_AXIS_WIDTH)
    if "maximum" not in options and options.get("unit") == theme.Unit.RATIO:
        panel.axis_soft_max(0.01)  # or an axis with nothing but 0 would end at 10000 %
    if "usual" in options:
        panel.axis_soft_max(options["usual"])
    if sparse:
        panel.draw_style(kinds.GraphDrawStyle.POINTS).point_size(5)
    if log:
        scale = common.ScaleDistributionConfig().type(kinds.ScaleDistribution.LOG).log(10)
        panel.scale_distribution(scale)
    if stacked:
        panel.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A"))
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI)
    panel.tooltip(tooltip.sort(kinds.SortOrder.DESCENDING))
    if sparse:  # a legend would have too many names
        return panel.legend(common.VizLegendOptions().show_legend(False))
    return panel.legend(_legend(values=values))


def _legend(*, values: bool) -> common.VizLegendOptions:
    """All names below the panel; or to its right with the last value, the most first."""
    legend = common.VizLegendOptions().show_legend(True)
    if not values:
        return legend.placement(kinds.LegendPlacement.BOTTOM).display_mode(
            kinds.LegendDisplayMode.LIST
        )
    legend.placement(kinds.LegendPlacement.RIGHT).display_mode(kinds.LegendDisplayMode.TABLE)
    return legend.calcs(["lastNotNull"]).sort_by("Last *").sort_desc(True)


def _with_reason_in_grey(options: PanelOptions) -> PanelOptions:
    """If there is no figure, the panel shows why, and not in the colour of the lowest threshold."""
    mappings = [*options.get("mappings", ()), theme.absent(options["empty"])]
    return {**options, "mappings": mappings}


def figure(
    *queries: PanelQuery,
    text: kinds.BigValueTextMode = kinds.BigValueTextMode.AUTO,
    **options: Unpack[PanelOptions],
) -> AnyPanel:
    """Figures of now, large."""
    panel = _with_options(stat.Panel(), _with_reason_in_grey(options), height=4)
    _with_queries(panel, queries, instant=True, form=PromQueryFormat.TIME_SERIES)
    modes = kinds.BigValueColorMode
    panel.color_mode(modes.BACKGROUND_SOLID if "thresholds" in options else modes.NONE)
    panel.graph_mode(kinds.BigValueGraphMode.NONE).text_mode(text)
    return panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))


def bars(*queries: PanelQuery, **options: Unpack[PanelOptions]) -> AnyPanel:
    """Figures of now as bars, one below the other."""
    panel = _with_options(bargauge.Panel(), _with_reason_in_grey(options))
    _with_queries(panel, queries, instant=True, form=PromQueryFormat.TIME_SERIES)
    panel.display_mode(kinds.BarGaugeDisplayMode.BASIC).show_unfilled(True)
    panel.orientation(kinds.VizOrientation.HORIZONTAL)
    return panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))


def states(*queries: PanelQuery, **options: Unpack[PanelOptions]) -> AnyPanel:
    """States over time, one row each."""
    unknown = DashboardFieldConfigSourceOverrides(
        matcher=MatcherConfig(id_val="byRegexp", options="/.*/"),
        properties=[DynamicConfigValue(id_val="noValue", value="blank: no data")],
    )
    panel = _with_options(statetimeline.Panel(), {**options, "overrides": (unknown,)})
    panel.mappings(list(options.get("mappings", ())))  # a gap with a mapping would be drawn
    _with_queries(panel, queries, instant=False, form=PromQueryFormat.TIME_SERIES)
    # A text that does not fit would be cut: the legend and the tooltip name the colours.
    panel.show_value(VisibilityMode.NEVER).merge_values(True)
    panel.row_height(0.9).line_width(0).fill_opacity(80)
    # By thresholds, Grafana would show their bounds instead of the mapped text.
    colour = dashboard.FieldColor().mode(FieldColorModeId.FIXED).fixed_color(theme.QUIET)
    return panel.color_scheme(colour).legend(_legend(values=False))


def heat(query: PanelQuery, **options: Unpack[PanelOptions]) -> AnyPanel:
    """A histogram over time."""
    panel = _with_options(heatmap.Panel(), options)
    _with_queries(panel, [query], instant=False, form=PromQueryFormat.HEATMAP)
    colour = heatmap.HeatmapColorOptions().mode(heatmaps.HeatmapColorMode.SCHEME)
    colour.scale(heatmaps.HeatmapColorScale.EXPONENTIAL)
    # A scheme in which neither end is white or black, since themes are light and dark.
    panel.color(colour.scheme("Cool").steps(64).exponent(0.4))
    panel.y_axis(
        heatmap.YAxisConfig().unit(options["unit"]).axis_placement(kinds.AxisPlacement.LEFT)
    )
    panel.filter_values(heatmap.FilterValueRange().le(1e-9)).cell_gap(1)
    return panel.mode(kinds.TooltipDisplayMode.SINGLE).show_legend()


@dataclass(frozen=True, kw_only=True)
class PanelColumn:
    """A column of a table."""

    source: str  # the name of a label, or of a query
    title: str
    unit: str = ""
    thresholds: Sequence[Threshold] = ()
    link: str = ""
    width: int | None = None
    least: int | None = None  # the width on a narrow screen, if that of other columns is too little
    words: Mapping[str, str] = field(default_factory=dict)  # shown instead of values

    def overrides(self) -> list[DynamicConfigValue]:
        """The settings of Grafana by which this column differs from others."""
        values: list[DynamicConfigValue] = []
        if self.unit:
            values.append(DynamicConfigValue(id_val="unit", value=self.unit))
        if self.thresholds:
            steps = {"mode": "absolute", "steps": list(self.thresholds)}
            values.append(DynamicConfigValue(id_val="thresholds", value=steps))
            cell = {"type": "color-text"}
            values.append(DynamicConfigValue(id_val="custom.cellOptions", value=cell))
        if self.link:
            links = [{"title": "Open the OSD", "url": self.link}]
            values.append(DynamicConfigValue(id_val="links", value=links))
        if self.words:
            texts = {value: (text, "") for value, text in self.words.items()}
            mappings = [*theme.mapped(texts), *theme.BLANK]
            values.append(DynamicConfigValue(id_val="mappings", value=mappings))
        if self.least:
            values.append(DynamicConfigValue(id_val="custom.minWidth", value=self.least))
        if self.width:
            values.append(DynamicConfigValue(id_val="custom.width", value=self.width))
        return values


def rows(
    *queries: PanelQuery,
    columns: Sequence[PanelColumn],
    sort: str | Sequence[str] = (),
    rising: bool = False,
    **options: Unpack[PanelOptions],
) -> AnyPanel:
    """A table: labels and one value per query, joined where the labels agree."""
    panel = _with_options(table.Panel(), options)
    _with_queries(panel, queries, instant=True, form=PromQueryFormat.TABLE)
    panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(_organize(queries, columns))
    for column in columns:
        if overrides := column.overrides():
            panel.override_by_name(column.title, overrides)
    if sort:
        keys = [sort] if isinstance(sort, str) else sort
        fields = [common.TableSortByFieldState().display_name(key) for key in keys]
        panel.sort_by([field.desc(not rising) for field in fields])
    return panel.min_width(110).cell_height(kinds.TableCellHeight.SM)


def _organize(
    queries: Sequence[PanelQuery], columns: Sequence[PanelColumn]
) -> DataTransformerConfig:
    """Name the columns, order them, and leave out what was not asked for."""
    if len(queries) == 1:
        fields = {queries[0].name: "Value"}  # as Grafana calls the values of a query
    else:
        fields = {
            query.name: f"Value #{_ref_id(position)}" for position, query in enumerate(queries)
        }
    wanted = [fields.get(column.source, column.source) for column in columns]
    hidden = [name for name in ("Time", *fields.values(), "__name__", "id") if name not in wanted]
    titles = [column.title for column in columns]
    options: Mapping[str, Any] = {
        "excludeByName": dict.fromkeys(hidden, True),
        "includeByName": {},
        "indexByName": {field: position for position, field in enumerate(wanted)},
        "renameByName": dict(zip(wanted, titles, strict=True)),
    }
    return DataTransformerConfig(id_val="organize", options=options)


def _as_matrix(panel: _P, query: PanelQuery, *, row: str, column: str, title: str) -> _P:
    """A row for each value of one label, and a column for each value of another. `title` is that of
    the column with the values of the first label."""
    _with_queries(panel, [query], instant=True, form=PromQueryFormat.TABLE)
    options = {"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "zero"}
    panel.with_transformation(DataTransformerConfig(id_val="groupingToMatrix", options=options))
    rename = {"excludeByName": {}, "indexByName": {}, "renameByName": {f"{row}\\{column}": title}}
    return panel.with_transformation(DataTransformerConfig(id_val="organize", options=rename))


def matrix(
    query: PanelQuery, *, row: str, column: str, **options: Unpack[PanelOptions]
) -> AnyPanel:
    """A table of one label against another."""
    panel = _with_options(table.Panel(), options)
    _as_matrix(panel, query, row=row, column=column, title="OSD")
    return panel.cell_height(kinds.TableCellHeight.SM)


def stacks(query: PanelQuery, *, bar: str, part: str, **options: Unpack[PanelOptions]) -> AnyPanel:
    """A bar for each value of one label, divided by another."""
    panel = _with_options(barchart.Panel(), options)
    _as_matrix(panel, query, row=bar, column=part, title=bar)
    # Grafana cuts off the last number below horizontal bars.
    panel.x_field(bar).orientation(kinds.VizOrientation.VERTICAL)
    panel.stacking(kinds.StackingMode.NORMAL).show_value(VisibilityMode.NEVER).fill_opacity(80)
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI)
    return panel.tooltip(tooltip).legend(_legend(values=False))


def overlaid(
    since: PanelQuery, value: PanelQuery, *, by: str, none: str, **options: Unpack[PanelOptions]
) -> AnyPanel:
    """A line for each value of a label, over the seconds since each one's own start. `since` says
    how many these are at every moment, and `value` what there was then. Where there is nothing,
    both have the label `none` and no figure."""
    panel = _with_options(trend.Panel(), options)
    _with_queries(panel, [since, value], instant=False, form=PromQueryFormat.TABLE)
    axis, values = (f"Value #{_ref_id(position)}" for position in (0, 1))
    seconds = f"{axis}\\{by}"  # as groupingToMatrix calls the column of its rows
    matrix = {"rowField": axis, "columnField": by, "valueField": values, "emptyValue": "null"}
    numbers = {"conversions": [{"targetField": seconds, "destinationType": "number"}]}
    no_seconds = {"fieldName": seconds, "config": {"id": "isNull", "options": {}}}
    for name, settings in (
        ("merge", {}),
        ("groupingToMatrix", matrix),
        ("convertFieldType", numbers),
        # What is left of an empty result has neither rows nor values: then the panel says why.
        ("filterByValue", {"filters": [no_seconds], "type": "exclude", "match": "any"}),
        ("organize", {"excludeByName": {none: True}, "indexByName": {}, "renameByName": {}}),
        ("sortBy", {"sort": [{"field": seconds, "desc": False}]}),
    ):
        panel.with_transformation(DataTransformerConfig(id_val=name, options=settings))
    unit = DynamicConfigValue(id_val="unit", value=theme.Unit.SECONDS)
    panel.override_by_name(seconds, [unit]).x_field(seconds)
    # A load that has just begun is one point, without a line.
    panel.line_width(1).show_points(VisibilityMode.AUTO).span_nulls(True).axis_soft_min(0)
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI)
    return panel.tooltip(tooltip).legend(_legend(values=False))


def graph(query: PanelQuery, **options: Unpack[PanelOptions]) -> AnyPanel:
    """Edges with the labels id, source, target and highlighted; Grafana makes the nodes of them."""
    panel = _with_options(nodegraph.Panel(), options, height=16)
    _with_queries(panel, [query], instant=True, form=PromQueryFormat.TABLE)
    # The panel wants a field `mainstat`. A renamed field keeps its own name for it, so the values
    # are copied, as a sum of one.
    sums = {
        "mode": "reduceRow",
        "reduce": {"include": ["Value"], "reducer": "sum"},
        "alias": "mainstat",
    }
    return panel.with_transformation(DataTransformerConfig(id_val="calculateField", options=sums))


def log_lines(expr: str, **options: Unpack[PanelOptions]) -> AnyPanel:
    """Lines from Loki."""
    panel = _with_options(logs.Panel(), options)
    panel.datasource(LOKI).show_time(True).wrap_log_message(True).enable_log_details(True)
    panel.sort_order(kinds.LogsSortOrder.DESCENDING)
    target = loki.Dataquery().expr(expr).max_lines(500).datasource(LOKI).ref_id("A")
    return panel.with_target(target.query_type("range"))


def thirds(*panels: Any) -> tuple[AnyPanel, ...]:
    """Each of a third of the width."""
    return tuple(panel.span(8) for panel in panels)


def wide(*panels: Any) -> tuple[AnyPanel, ...]:
    """Each of the whole width."""
    return tuple(panel.span(24) for panel in panels)


def right_axis(pattern: str, unit: str, colour: str) -> DashboardFieldConfigSourceOverrides:
    """Series on an axis of their own, to the right."""
    return DashboardFieldConfigSourceOverrides(
        matcher=MatcherConfig(id_val="byRegexp", options=pattern),
        properties=[
            DynamicConfigValue(id_val="unit", value=unit),
            DynamicConfigValue(id_val="custom.axisPlacement", value="right"),
            DynamicConfigValue(id_val="custom.lineWidth", value=2),
            theme.fixed(colour),
        ],
    )
