"""What a Prometheus scrapes and evaluates, and which dashboards a Grafana has."""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson

from cephqos_alerts.build import FILES
from cephqos_alerts.rules import render
from cephqos_alerts.settings import RuleSettings as RuleSettings
from cephqos_base import dashboards, yamlfile
from cephqos_base.answers import AnswerTooLarge, body_within
from cephqos_base.errors import CephqosError, ConfigError, UsageError
from cephqos_base.series import ClusterSeries, DaemonSeries, ExporterSeries
from cephqos_base.units import parse_seconds

_SECONDS: Final = 15.0
MAX_BYTES: Final = 64 << 20  # of one answer: rules and targets of a large Prometheus are 10 MB
_AT_ONCE: Final = 8
# Ceph's own counters of an OSD: also shown by Ceph's exporter and its manager.
_COUNTER: Final = "ceph_osd_op_w"
# From one of our exporters, and from something else too. Two clusters have daemons of the same
# names, so two sources of the others' kind are none of our business.
_OURS: Final = f"on (job, instance) {ExporterSeries.BUILD_INFO}"
_DOUBLED: Final = (
    f"count by (ceph_daemon) ({_COUNTER} and {_OURS})"
    f" and on (ceph_daemon) count by (ceph_daemon) ({_COUNTER} unless {_OURS})"
)

Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ScrapeTarget:
    """A target of a scrape job."""

    job: str
    instance: str
    up: bool
    error: str
    interval: float
    url: str = ""  # that is scraped


@dataclass(frozen=True, kw_only=True)
class LoadedRule:
    """A rule that Prometheus evaluates, or that cephqos makes; `expr` as Prometheus prints it."""

    group: str
    name: str
    expr: str
    interval: float = 0.0
    error: str = ""
    seconds: float = 0.0  # that the evaluation of its group took
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class PrometheusFacts:
    """A Prometheus, and the Grafana beside it if there is one."""

    url: str
    failure: str = ""
    version: str = ""
    seconds_apart: float | None = None
    targets: Sequence[ScrapeTarget] = ()
    exporters: Sequence[Labels] = ()  # labels of the exporters' build_info
    doubled_osds: Sequence[Labels] = ()
    doubled_counters: Sequence[Labels] = ()
    doubled_clusters: Sequence[Labels] = ()
    label_taken: Sequence[Labels] = ()
    rules: Sequence[LoadedRule] = ()
    expected: Sequence[LoadedRule] = ()
    grafana: str = ""
    grafana_failure: str = ""
    dashboards: Mapping[str, Any] | None = None  # by uid; None: no Grafana was named


NO_JSON: Final = "the answer is not JSON"

# What comes of a document that has another shape than the API gives.
_ODD: Final = (KeyError, TypeError, ValueError, AttributeError, UsageError)


class _Failed(CephqosError):
    """No answer, or none that can be used."""


class _PrometheusApi:
    """A JSON API behind a URL."""

    def __init__(self, session: aiohttp.ClientSession, url: str, headers: Labels) -> None:
        self._session, self._url, self._headers = session, url.rstrip("/"), headers
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def get(self, path: str, **parameters: str) -> Any:
        """The document; None where there is no such thing."""
        return await self._ask("GET", path, params=parameters)

    async def post(self, path: str, **parameters: str) -> Any:
        """As get, for parameters that may be long."""
        return await self._ask("POST", path, data=parameters)

    async def _ask(self, method: str, path: str, **request: Any) -> Any:
        try:
            async with (
                self._slots,
                self._session.request(
                    method, f"{self._url}{path}", headers=self._headers, **request
                ) as reply,
            ):
                if reply.status == 404:
                    return None
                if reply.status != 200:
                    raise _Failed(f"HTTP {reply.status} for {path}")
                return orjson.loads(await body_within(reply, MAX_BYTES))
        except orjson.JSONDecodeError as exc:
            raise _Failed(f"{path}: {NO_JSON}: a login page or another server") from exc
        except (aiohttp.ClientError, TimeoutError, AnswerTooLarge) as exc:
            raise _Failed(f"{path}: {exc or 'no answer in time'}") from exc


async def gather(
    url: str,
    *,
    headers: Labels,
    grafana: str = "",
    grafana_headers: Labels,
    rules: Path | None = None,
) -> PrometheusFacts:
    """Ask; nothing is changed. `rules`: the directory of rule files that should be loaded."""
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    wanted = _from_files(rules) if rules else None
    async with aiohttp.ClientSession(timeout=timeout) as session:
        found: dict[str, Any] = {"url": url, "grafana": grafana}
        try:
            found |= await _prometheus(_PrometheusApi(session, url, headers), wanted)
        except _Failed as exc:
            found["failure"] = str(exc)
        except _ODD:
            found["failure"] = "this is not the API of a Prometheus"
        if grafana:
            try:
                found["dashboards"] = await _dashboards(
                    _PrometheusApi(session, grafana, grafana_headers)
                )
            except _Failed as exc:
                found["grafana_failure"] = str(exc)
            except _ODD:
                found["grafana_failure"] = "this is not the API of a Grafana"
    return PrometheusFacts(**found)


async def _prometheus(api: _PrometheusApi, wanted: Sequence[LoadedRule] | None) -> dict[str, Any]:
    info = await api.get("/api/v1/status/buildinfo")
    asked = time.time()
    now = await _query(api, "time()")
    answered = time.time()
    rules = _loaded(await _data(api, "/api/v1/rules", type=""))
    wanted = wanted or _built(scrape_interval_of(rules))
    expected = await asyncio.gather(*(_as_printed(api, rule) for rule in wanted))
    loaded = await asyncio.gather(*(_as_printed(api, rule) for rule in rules))
    return {
        "version": str((info or {}).get("data", {}).get("version", "")),
        "seconds_apart": _apart(now, asked, answered),
        "targets": _targets(await _data(api, "/api/v1/targets", state="active")),
        "exporters": await _vector(api, ExporterSeries.BUILD_INFO),
        "doubled_osds": await _vector(
            api, f"count by (cluster, ceph_daemon) ({DaemonSeries.UP} == 1) > 1"
        ),
        "doubled_counters": await _vector(api, _DOUBLED),
        "doubled_clusters": await _vector(api, f"count by (cluster) ({ClusterSeries.UP} == 1) > 1"),
        "label_taken": await _vector(
            api, f'count by (job, instance) ({DaemonSeries.UP}{{exported_cluster!=""}})'
        ),
        "rules": loaded,
        "expected": expected,
    }


async def _data(api: _PrometheusApi, path: str, **parameters: str) -> Any:
    reply = await api.get(path, **{k: v for k, v in parameters.items() if v})
    if not isinstance(reply, dict) or "data" not in reply:
        raise _Failed(f"{path}: this is not the API of a Prometheus")
    return reply["data"]


async def _query(api: _PrometheusApi, expr: str) -> Any:
    reply = await api.post("/api/v1/query", query=expr)
    if not isinstance(reply, dict) or "data" not in reply:
        raise _Failed("/api/v1/query: this is not the API of a Prometheus")
    return reply["data"]["result"]


async def _vector(api: _PrometheusApi, expr: str) -> tuple[Labels, ...]:
    return tuple(
        {name: str(value) for name, value in sample["metric"].items()}
        for sample in await _query(api, expr)
    )


def _apart(now: Any, asked: float, answered: float) -> float | None:
    """Seconds that the other clock is ahead; the time of the answer's way counts as agreement."""
    if not isinstance(now, list) or len(now) != 2:
        return None
    theirs = float(now[0])
    return theirs - answered if theirs > answered else min(0.0, theirs - asked)


def _targets(data: Any) -> tuple[ScrapeTarget, ...]:
    return tuple(
        ScrapeTarget(
            job=str(target["labels"].get("job", "")),
            instance=str(target["labels"].get("instance", "")),
            up=target["health"] != "down",
            error=str(target.get("lastError", "")),
            interval=parse_seconds(target.get("scrapeInterval", "0")),
            url=str(target.get("scrapeUrl", "")),
        )
        for target in data["activeTargets"]
    )


def _loaded(data: Any) -> tuple[LoadedRule, ...]:
    """The rules of our groups, SLOs aside: everybody writes their own."""
    return tuple(
        LoadedRule(
            group=group["name"],
            name=str(rule["name"]),
            expr=str(rule["query"]),
            interval=float(group["interval"]),
            error=str(rule.get("lastError", "")),
            seconds=float(group.get("evaluationTime", 0)),
            file=str(group.get("file", "")),
        )
        for group in data["groups"]
        if group["name"].startswith("cephqos-") and not group["name"].startswith("cephqos-slo")
        for rule in group["rules"]
    )


def scrape_interval_of(rules: Sequence[LoadedRule]) -> float:
    """The interval that the rules are made for: most are evaluated as often."""
    return min((rule.interval for rule in rules if rule.interval), default=0.0)


def _built(interval: float) -> tuple[LoadedRule, ...]:
    settings = RuleSettings(scrape_interval=interval) if interval else RuleSettings()
    groups = [group for file in FILES.values() for group in file]
    return _rules_of(render(groups, settings))


def _from_files(directory: Path) -> tuple[LoadedRule, ...]:
    found: list[LoadedRule] = []
    for file in sorted(directory.glob("*.yml")):
        try:
            found += _rules_of(yamlfile.read(file).plain())
        except (ValueError, KeyError, TypeError) as exc:
            raise ConfigError(
                where=file, key="", found=str(exc), allowed="rules of `cephqos rules build`"
            ) from exc
    if not found:
        raise ConfigError(where=directory, key="", found=None, allowed="a directory of *.yml rules")
    return tuple(found)


def _rules_of(document: Mapping[str, Any]) -> tuple[LoadedRule, ...]:
    return tuple(
        LoadedRule(
            group=group["name"],
            name=rule.get("alert") or rule["record"],
            expr=rule["expr"],
            interval=parse_seconds(group["interval"]),
        )
        for group in document["groups"]
        if not group["name"].startswith("cephqos-slo")
        for rule in group["rules"]
    )


async def _as_printed(api: _PrometheusApi, rule: LoadedRule) -> LoadedRule:
    """The rule with its expression as this Prometheus would print it."""
    reply = await api.post("/api/v1/format_query", query=rule.expr)
    text = reply["data"] if isinstance(reply, dict) else rule.expr
    return replace(rule, expr=re.sub(r"\s+", "", text))


async def _dashboards(api: _PrometheusApi) -> dict[str, Any]:
    """Our dashboards as Grafana holds them; those that it does not have are left out."""
    found = {}
    for uid in dashboards.ALL:
        reply = await api.get(f"/api/dashboards/uid/{uid}")
        if reply is not None:
            found[uid] = dict(reply["dashboard"])
    return found
