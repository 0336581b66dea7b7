"""Samples from Prometheus, or from anything with its query API (Thanos, Mimir, VictoriaMetrics)."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from cephqos_base.prometheus import Prometheus, Refused, Sample, unheard
from cephqos_base.recorded import PerClass
from cephqos_base.series import CLUSTER, DaemonSeries
from cephqos_base.servers import HttpServer, NoAnswer
from cephqos_base.terminal import printable
from cephqos_base.units import osd_order
from cephqos_exporter.labels import render_labels
from cephqos_loadgen.top.figures import DAEMON, Selection, TopFigure, Values, wanted_now
from cephqos_loadgen.top.missing import some
from cephqos_loadgen.top.picture import Missing, TopSamples
from cephqos_loadgen.top.screen.text import duration

_NO_LOGIN: Final = (401, 403)
# Finds something if the recording rules are there.
_RULES: Final = f"count(last_over_time({PerClass.ATTAINED_OPS}[%dms]))"
# Finds something if exporters were scraped a window ago, so that there are rates.
_BEFORE: Final = f"count({DaemonSeries.UP} offset %dms)"


class PrometheusSource:
    """Asks for each figure with one instant query."""

    def __init__(
        self, connection: HttpServer, window: float, only: Mapping[str, str] | None = None
    ) -> None:
        self._connection = connection
        self._api = Prometheus(connection, only)
        self._window = window
        self._at: float | None = None

    @property
    def name(self) -> str:
        return f"Prometheus {self._connection.shown}"

    async def fetch(self, selection: Selection) -> TopSamples:
        """All figures; NoAnswer if Prometheus does not answer."""
        try:
            # All are asked about one moment: an exporter may miss a scrape in between.
            self._at = await self._api.now()
            milliseconds = round(self._window * 1000)
            rules = bool(await self._query(_RULES % milliseconds))
            before = await self._query(_BEFORE % milliseconds)
            late = await self._late(selection)
            async with asyncio.TaskGroup() as group:
                figures = {
                    name: group.create_task(self._figure(figure, selection, rules, late=bool(late)))
                    for name, figure in wanted_now(selection, rules).items()
                }
                alerts = group.create_task(self._alerts())
        except Refused as error:
            raise _for_user(error) from error
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        values: dict[str, Values] = {}
        troubles = list(late)
        for name, task in figures.items():
            result = task.result()
            if isinstance(result, Refused):
                troubles.append(
                    Missing(name, f"Prometheus refused the query: {result.reason or result}")
                )
            else:
                values[name] = result
        return TopSamples(
            time=time.time(),
            values=values,
            alerts=alerts.result(),
            rules=rules,
            with_rates=bool(before),
            troubles=tuple(troubles),
        )

    async def _figure(
        self, figure: TopFigure, selection: Selection, rules: bool, *, late: bool
    ) -> "Values | Refused":
        queries = figure.promql(selection, self._window, late=late)
        if figure.recorded and not rules:
            queries = queries[1:]
        try:
            for query in queries:
                if vector := await self._query(query):
                    return {
                        tuple(labels.get(name, "") for name in figure.by): value
                        for labels, value in vector
                    }
        except Refused as error:
            return error
        return {}

    async def _late(self, selection: Selection) -> tuple[Missing, ...]:
        """Who is shown as it was: its exporter missed a scrape."""
        cluster = {CLUSTER: selection.cluster} if selection.cluster is not None else {}
        instant = f"{DaemonSeries.UP}{{{render_labels(cluster)}}}"
        try:
            late = await self._query(unheard(instant, self._window))
        except Refused:
            return ()
        heard_of = {printable(labels.get(DAEMON, "")) for labels, _ in late}
        names = sorted((name for name in heard_of if name.startswith("osd.")), key=osd_order)
        if not names:
            return ()
        return (
            Missing(
                some(names),
                "their exporter did not answer Prometheus just now: shown as they were, at most"
                f" {duration(self._window)} ago",
            ),
        )

    async def _alerts(self) -> tuple[Mapping[str, str], ...]:
        """Labels of the firing alerts, and since when they are active."""
        try:
            firing = await self._query('ALERTS{alertstate="firing"}')
            since = {
                _identity(labels): value for labels, value in await self._query("ALERTS_FOR_STATE")
            }
        except Refused:
            return ()
        alerts = []
        for labels, _ in firing:
            start = since.get(_identity(labels))
            # This replaces a label `since`, which an alert of the user may have.
            alerts.append({**labels, "since": repr(start) if start else ""})
        return tuple(alerts)

    async def _query(self, query: str) -> list[Sample]:
        try:
            return await self._api.vector(query, self._at)
        except Refused as error:
            if error.status in _NO_LOGIN:
                raise _for_user(error) from error
            raise


def _for_user(error: Refused) -> NoAnswer:
    """What a user reads if no query is answered."""
    if error.status in _NO_LOGIN:
        return NoAnswer(f"{error}: user and password go into the URL")
    return NoAnswer(f"it refuses queries: {error.reason or error}")


def _identity(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """The labels that ALERTS and ALERTS_FOR_STATE have in common for one alert."""
    return frozenset(item for item in labels.items() if item[0] not in ("__name__", "alertstate"))
