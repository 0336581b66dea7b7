"""A JSON API behind a URL, and what Prometheus' API answers.

Each request has a deadline (of the session) and a largest size. Only a few run at once.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import aiohttp
import orjson

from cephqos_base.answers import AnswerTooLarge, body_within, in_one_line
from cephqos_base.errors import CephqosError

MAX_BYTES: Final = 64 << 20  # of one answer: rules and targets of a large Prometheus are 10 MB
NO_JSON: Final = "the answer is not JSON"
_REQUESTS_AT_ONCE: Final = 8

Sample = tuple[Mapping[str, str], float]  # labels of a series, and its value


class OsdKey(NamedTuple):
    """An OSD among those of several clusters. `osd` is the label `ceph_daemon`, such as `osd.3`."""

    cluster: str
    osd: str


def osd_of(labels: Mapping[str, str]) -> OsdKey:
    """The OSD that a series is about."""
    return OsdKey(labels.get("cluster", ""), labels.get("ceph_daemon", ""))


class ApiFailed(CephqosError):
    """No answer, or none that can be used."""


class PageMissing(ApiFailed):
    """The server has no such page."""


class JsonApi:
    """Asks with the same headers each time."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str]
    ) -> None:
        self._session, self._url, self._headers = session, url.rstrip("/"), headers
        self._slots = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def get(self, path: str, **parameters: str) -> Any:
        """The JSON document of a page."""
        return await self._ask("GET", path, params=parameters)

    async def post(self, path: str, **parameters: str) -> Any:
        """As `get`, for parameters that may be too long for a URL, such as queries."""
        return await self._ask("POST", path, data=parameters)

    async def result(self, path: str, **parameters: str) -> Any:
        """The `result` of a query: `path` is `query` or `query_range`."""
        reply = await self.post(f"/api/v1/{path}", **parameters)
        if not isinstance(reply, dict) or not isinstance(reply.get("data"), dict):
            raise ApiFailed(f"/api/v1/{path}: this is not the API of a Prometheus")
        return reply["data"].get("result", ())

    async def vector(self, query: str, at: float | None = None) -> list[Sample]:
        """The samples that a query gives now, or at that Unix time."""
        moment = {} if at is None else {"time": f"{at:.3f}"}
        samples = await self.result("query", query=query, **moment)
        try:
            return [(sample["metric"], float(sample["value"][1])) for sample in samples]
        except (KeyError, TypeError, ValueError, IndexError) as exc:
            raise ApiFailed("/api/v1/query: this is not the API of a Prometheus") from exc

    async def vectors(
        self, queries: Mapping[str, str], at: float | None = None
    ) -> dict[str, list[Sample]]:
        """The samples of each query, by its name."""
        answers = await asyncio.gather(*(self.vector(query, at) for query in queries.values()))
        return dict(zip(queries, answers, strict=True))

    async def _ask(self, method: str, path: str, **request: Any) -> Any:
        try:
            async with (
                self._slots,
                self._session.request(
                    method, f"{self._url}{path}", headers=self._headers, **request
                ) as reply,
            ):
                if reply.status in (400, 404, 405):  # VictoriaMetrics says 400
                    raise PageMissing(f"HTTP {reply.status} for {path}")
                if reply.status != 200:
                    raise ApiFailed(f"HTTP {reply.status} for {path}")
                return orjson.loads(await body_within(reply, MAX_BYTES))
        except orjson.JSONDecodeError as exc:
            raise ApiFailed(f"{path}: {NO_JSON}: a login page or another server") from exc
        except (aiohttp.ClientError, TimeoutError, AnswerTooLarge) as exc:
            why = "no answer in time" if isinstance(exc, TimeoutError) else in_one_line(exc)
            raise ApiFailed(f"{path}: {why}") from exc
