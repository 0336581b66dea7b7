"""The API of a Prometheus, or of what answers as one does: Thanos, Mimir, VictoriaMetrics."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from cephqos_base import site
from cephqos_base.series import CLUSTER, OSD, ClusterSeries, DaemonSeries
from cephqos_base.servers import Address, HttpReply, HttpServer, NoAnswer

NO_JSON: Final = "the answer is not JSON"
_REQUESTS_AT_ONCE: Final = 8
_HEARD_SECONDS: Final = 300.0  # as far back as Prometheus itself looks

Sample = tuple[Mapping[str, str], float]  # labels of a series, and its value


class OsdKey(NamedTuple):
    """An OSD among those of several clusters. `osd` is the label `ceph_daemon`, such as `osd.3`."""

    cluster: str
    osd: str


def osd_of(labels: Mapping[str, str]) -> OsdKey:
    """The OSD that a series is about."""
    return OsdKey(labels.get("cluster", ""), labels.get("ceph_daemon", ""))


def of_osds(series: str) -> str:
    """These series, and for OSDs whose exporter just missed a scrape their last values."""
    return f"({series} or {unheard(series, _HEARD_SECONDS)})"


def of_clusters(series: str) -> str:
    """The same, for series that an exporter of the role cluster shows."""
    return f"({series} or {unheard(series, _HEARD_SECONDS, ClusterSeries.UP, CLUSTER)})"


def unheard(series: str, seconds: float, up: str = DaemonSeries.UP, by: str = OSD) -> str:
    """The last values of what Prometheus heard of in that time, and now does not. It drops all
    series of a scrape that is late, `up` among them."""
    heard = f"last_over_time({series}[{round(seconds * 1000)}ms])"
    return f"({heard} unless on ({by}) {up})"


class Refused(NoAnswer):
    """The server answered, and did not want the request. `reason`: in its own words, if it has."""

    def __init__(self, status: int, path: str, reason: str) -> None:
        super().__init__(f"HTTP {status} for {path}{reason and f': {reason}'}")
        self.status, self.reason = status, reason


class PageMissing(Refused):
    """The server has no such page, or does not take the query."""


class JsonApi:
    """Pages that are JSON. Only a few requests run at once."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._slots = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def get(self, path: str, **parameters: str) -> Any:
        """The JSON document of a page."""
        return await self._ask("GET", path, params=parameters)

    async def post(self, path: str, **parameters: str) -> Any:
        """As `get`, for parameters that may be too long for a URL, such as queries."""
        return await self._ask("POST", path, data=parameters)

    async def _ask(self, method: str, path: str, **sent: Any) -> Any:
        async with self._slots:
            reply = await self._server.ask(method, path, **sent)
        if reply.status != 200:
            # Of a page that is not there, VictoriaMetrics says 400.
            kind = PageMissing if reply.status in (400, 404, 405) else Refused
            raise kind(reply.status, path, _reason(reply))
        try:
            return orjson.loads(reply.body)
        except orjson.JSONDecodeError as error:
            raise NoAnswer(f"{path}: {NO_JSON}: a login page or another server") from error


class Prometheus(JsonApi):
    """Queries. With `only`, they read series that have these labels."""

    def __init__(self, server: HttpServer, only: Mapping[str, str] | None = None) -> None:
        super().__init__(server)
        self._only = only or {}

    async def result(self, path: str, **parameters: str) -> Any:
        """The `result` of a query: `path` is `query` or `query_range`."""
        parameters["query"] = site.only(parameters["query"], self._only)
        reply = await self.post(f"/api/v1/{path}", **parameters)
        if not isinstance(reply, dict) or not isinstance(reply.get("data"), dict):
            raise _no_prometheus(path)
        return reply["data"].get("result", ())

    async def now(self) -> float:
        """The server's clock, as Unix time: the moment of queries that belong together."""
        found = await self.result("query", query="time()")
        try:
            return float(found[0])
        except (KeyError, TypeError, ValueError, IndexError) as exc:
            raise _no_prometheus("query") from exc

    async def vector(self, query: str, at: float | None = None) -> list[Sample]:
        """The samples that a query gives now, or at that Unix time.

        A native histogram has no value, and NaN and infinity are no figures: they are left out.
        """
        moment = {} if at is None else {"time": f"{at:.3f}"}
        series = await self.result("query", query=query, **moment)
        try:
            found = [
                (one["metric"], float(one["value"][1])) for one in series if "histogram" not in one
            ]
        except (KeyError, TypeError, ValueError, IndexError) as exc:
            raise _no_prometheus("query") from exc
        return [(labels, value) for labels, value in found if math.isfinite(value)]

    async def vectors(
        self, queries: Mapping[str, str], at: float | None = None
    ) -> dict[str, list[Sample]]:
        """The samples of each query, by its name."""
        answers = await asyncio.gather(*(self.vector(query, at) for query in queries.values()))
        return dict(zip(queries, answers, strict=True))


async def query(
    url: str, expr: str, at: float | None = None, within: float = 10.0
) -> list[dict[str, Any]]:
    """One instant query, now or at that Unix time: the result as Prometheus writes it."""
    async with HttpServer(Address(url), within=within) as server:
        moment = {} if at is None else {"time": f"{at:.3f}"}
        found: list[dict[str, Any]] = await Prometheus(server).result("query", query=expr, **moment)
        return found


def _no_prometheus(path: str) -> NoAnswer:
    return NoAnswer(f"/api/v1/{path}: this is not the API of a Prometheus")


def _reason(reply: HttpReply) -> str:
    """Prometheus' own words for what is wrong with a query."""
    try:
        return str(orjson.loads(reply.body)["error"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""
