"""What a Prometheus scrapes and evaluates, and which dashboards a Grafana has.

`gather` asks and makes PrometheusFacts, which the checks in `targets`, `rules`, `boards` and
`clock` judge. VictoriaMetrics, Thanos and Mimir have parts of the same API: a page that is missing
there (PageMissing) leaves its fact unknown.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.settings import RuleSettings as RuleSettings
from cephqos_base import dashboards, yamlfile
from cephqos_base.errors import ConfigError, UsageError
from cephqos_base.prometheus import JsonApi, PageMissing, Prometheus
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_base.units import parse_seconds
from cephqos_doctor import prometheus_queries as queries

_SECONDS: Final = 15.0
_HELPERS: Final = "cephqos-helpers"  # alerts that only silence others
PROMETHEUS: Final = "Prometheus"
# A series that our rules record for every OSD.
RECORDED: Final = PerOsd.INSTANCE

Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ScrapeTarget:
    """A target of a scrape job."""

    job: str
    instance: str
    up: bool
    error: str
    interval: float  # seconds
    url: str = ""  # that is scraped


@dataclass(frozen=True, kw_only=True)
class LoadedRule:
    """A rule that Prometheus evaluates, or that cephqos makes; `expr` as Prometheus prints it."""

    group: str
    name: str
    expr: str
    interval: float = 0.0  # seconds, of its group
    error: str = ""
    seconds: float = 0.0  # that the evaluation of its group took
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class PrometheusFacts:
    """A Prometheus, and the Grafana beside it if there is one."""

    url: str
    failure: str = ""
    engine: str = PROMETHEUS  # or what else has its API
    version: str = ""  # of a Prometheus
    prints: bool = True  # it prints expressions in one form, so that rules can be compared
    recorded: bool = False  # there are series that our rules record
    seconds_apart: float | None = None  # that its clock is ahead of ours; None: not known
    targets: Sequence[ScrapeTarget] = ()
    # From here to `recorder_lost`: labels of what the queries in `prometheus_queries` found.
    exporters: Sequence[Labels] = ()
    doubled_osds: Sequence[Labels] = ()
    replicas: Sequence[Labels] = ()  # the same of one target, from more than one scraper
    doubled_counters: Sequence[Labels] = ()
    doubled_clusters: Sequence[Labels] = ()
    label_taken: Sequence[Labels] = ()
    not_understood: Sequence[Labels] = ()  # what the exporters cannot read of Ceph's replies
    recorders: Sequence[Labels] = ()
    recorder_lost: Sequence[Labels] = ()
    recorders_told: bool | None = None  # Alertmanager has their address; None: it does not say
    converting: Sequence[str] = ()  # scrape jobs that drop the buckets of classic histograms
    alertmanagers: int | None = None  # that get its alerts; None: it does not say
    rules: Sequence[LoadedRule] = ()  # of cephqos, that are loaded
    expected: Sequence[LoadedRule] = ()  # that this version makes, or those of --rules
    grafana: str = ""
    grafana_failure: str = ""
    dashboards: Mapping[str, Any] | None = None  # by uid; None: no Grafana was named


# As in `sum_over_time(osd_class:cephqos_violated:bool[1h]) * 15 > 0`.
_COUNTED_WITH: Final = re.compile(r"\* (\d+(?:\.\d+)?) > 0$")
# Raised by reading a document that has another shape than the API gives.
_OTHER_SHAPE: Final = (KeyError, TypeError, ValueError, AttributeError, UsageError)


async def gather(
    url: str,
    *,
    headers: Labels,
    grafana: str = "",
    grafana_headers: Labels,
    rules: Path | None = None,
) -> PrometheusFacts:
    """Ask; nothing is changed. `rules`: the directory of rule files that should be loaded."""
    expected = _from_files(rules) if rules else None
    facts: dict[str, Any] = {"url": url, "grafana": grafana}
    async with _server(url, headers) as server, _server(grafana, grafana_headers) as of_grafana:
        try:
            api = Prometheus(server)
            facts |= await _prometheus(api, expected)
            if facts["recorders"]:
                facts["recorders_told"] = await _recorders_told(api)
        except NoAnswer as exc:
            facts["failure"] = str(exc)
        except _OTHER_SHAPE:
            facts["failure"] = "this is not the API of a Prometheus"
        if grafana:
            try:
                facts["dashboards"] = await _dashboards(JsonApi(of_grafana))
            except NoAnswer as exc:
                facts["grafana_failure"] = str(exc)
            except _OTHER_SHAPE:
                facts["grafana_failure"] = "this is not the API of a Grafana"
    return PrometheusFacts(**facts)


def _server(url: str, headers: Labels) -> HttpServer:
    return HttpServer(Address(url.rstrip("/")), within=_SECONDS, headers=headers)


async def _prometheus(api: Prometheus, expected: Sequence[LoadedRule] | None) -> dict[str, Any]:
    """Fields of PrometheusFacts. `expected`: None for the rules that this version makes."""
    engine, version = await _engine(api)
    asked = time.time()
    now = await api.result("query", query="time()")
    answered = time.time()
    try:
        rules = _loaded(await _data(api, "/api/v1/rules"))
    except PageMissing:  # an engine without a ruler
        rules = ()
    # The chart leaves helper alerts out where nothing routes them; so can anyone.
    helpers = not rules or any(rule.group == _HELPERS for rule in rules)
    expected = expected or our_rules(scrape_interval_of(rules), helpers=helpers)
    prints = await _prints(api)
    found = await api.vectors(queries.FACTS)
    labels_of_facts = {name: [labels for labels, _ in found[name]] for name in found}
    return {
        "engine": engine,
        "version": version,
        "prints": prints,
        "seconds_apart": _apart(now, asked, answered),
        "targets": await _scraped(api),
        **labels_of_facts,
        "converting": await _converting(api),
        "alertmanagers": await _alertmanagers(api),
        "recorded": bool(await api.vector(f"group({RECORDED})")),
        "rules": await _as_printed(api, rules) if prints else rules,
        "expected": await _as_printed(api, expected) if prints else expected,
    }


async def _engine(api: JsonApi) -> tuple[str, str]:
    """The name of the engine, and its version if it is a Prometheus. Others number their own."""
    try:
        info = (await api.get("/api/v1/status/buildinfo"))["data"]
    except PageMissing:
        return "an engine that does not say what it is", ""
    version = str(info.get("version", ""))
    if info.get("application"):
        return str(info["application"]), ""
    if "revision" not in info:
        return "VictoriaMetrics", ""
    return ("Thanos", "") if version.startswith("0.") else (PROMETHEUS, version)


async def _converting(api: JsonApi) -> tuple[str, ...]:
    """Not looked for in a configuration of more values than our reader takes."""
    try:
        text = (await _data(api, "/api/v1/status/config"))["yaml"]
        config = yamlfile.parse(text, "status/config").plain() or {}
    except (PageMissing, ConfigError):
        return ()
    for_all = config.get("global") or {}

    def is_on(job: Any, key: str) -> bool:
        return bool(job.get(key, for_all.get(key)))

    return tuple(
        str(job["job_name"])
        for job in config.get("scrape_configs") or ()
        # The operator calls it podMonitor/NAMESPACE/cephqos-osd/0.
        if "cephqos" in job["job_name"]
        and is_on(job, "convert_classic_histograms_to_nhcb")
        and not is_on(job, "always_scrape_classic_histograms")
    )


async def _alertmanagers(api: JsonApi) -> int | None:
    try:
        return len((await _data(api, "/api/v1/alertmanagers"))["activeAlertmanagers"])
    except PageMissing:
        return None


async def _recorders_told(api: JsonApi) -> bool | None:
    """Whether an Alertmanager has a receiver that makes exporters keep what they recorded."""
    receivers: list[bool] = []  # of each Alertmanager whose configuration shows it
    with contextlib.suppress(NoAnswer, *_OTHER_SHAPE):
        for alertmanager in (await _data(api, "/api/v1/alertmanagers"))["activeAlertmanagers"]:
            async with _server(alertmanager["url"].partition("/api/")[0], {}) as server:
                config = (await JsonApi(server).get("/api/v2/status"))["config"]
            has_address = "/-/record" in config["original"]
            if has_address or "url: <secret>" not in config["original"]:  # hidden since 0.26
                receivers.append(has_address)
    return any(receivers) if receivers else None


async def _prints(api: JsonApi) -> bool:
    """Whether it can print an expression in one form."""
    try:
        await api.post("/api/v1/format_query", query="up")
    except PageMissing:
        return False
    return True


async def _scraped(api: Prometheus) -> tuple[ScrapeTarget, ...]:
    """Targets that it scrapes. Where agents scrape and send, the series say what they can."""
    try:
        targets = _targets(await _data(api, "/api/v1/targets", state="active"))
    except PageMissing:
        targets = ()
    if any(re.fullmatch(RuleSettings().job, target.job) for target in targets):
        return targets
    agents = [
        ScrapeTarget(job=labels.get("job", ""), instance="", up=True, error="", interval=seconds)
        for labels, seconds in await api.vector(queries.INTERVALS)
    ]
    down = [
        ScrapeTarget(
            job=labels.get("job", ""),
            instance=labels.get("instance", ""),
            up=False,
            error="`up` is 0; the page Targets of what scrapes it has the reason",
            interval=0.0,
        )
        for labels, _ in await api.vector(queries.DOWN)
    ]
    return (*targets, *agents, *down)


async def _data(api: JsonApi, path: str, **parameters: str) -> Any:
    reply = await api.get(path, **parameters)
    if not isinstance(reply, dict) or "data" not in reply:
        raise NoAnswer(f"{path}: this is not the API of a Prometheus")
    return reply["data"]


def _apart(now: Any, asked: float, answered: float) -> float | None:
    """Seconds that the other clock is ahead of ours, beyond the time of the answer's way."""
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
    """The interval that the rules are made for: one of them counts with it.

    Most are evaluated as often, but on some engines several times as often.
    """
    for rule in rules:
        if rule.name == PerClass.VIOLATED_SECONDS and (match := _COUNTED_WITH.search(rule.expr)):
            return float(match[1])
    return min((rule.interval for rule in rules if rule.interval), default=0.0)


def our_rules(interval: float, *, helpers: bool = True) -> tuple[LoadedRule, ...]:
    """What `cephqos rules build` makes for an interval, SLOs aside."""
    settings = RuleSettings(scrape_interval=interval) if interval else RuleSettings()
    groups = [group for file in FILES.values() for group in file]
    groups = [group for group in groups if helpers or group.name != _HELPERS]
    return rules_of(render(groups, settings))


def _from_files(directory: Path) -> tuple[LoadedRule, ...]:
    rules: list[LoadedRule] = []
    for file in sorted(directory.glob("*.yml")):
        try:
            rules += rules_of(yamlfile.read(file).plain())
        except (ValueError, KeyError, TypeError) as exc:
            raise ConfigError(
                where=file, key="", found=str(exc), allowed="rules of `cephqos rules build`"
            ) from exc
    if not rules:
        raise ConfigError(where=directory, key="", found=None, allowed="a directory of *.yml rules")
    return tuple(rules)


def rules_of(document: Mapping[str, Any]) -> tuple[LoadedRule, ...]:
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


async def _as_printed(api: JsonApi, rules: Sequence[LoadedRule]) -> tuple[LoadedRule, ...]:
    """The rules with their expressions as this Prometheus would print them."""

    async def printed(rule: LoadedRule) -> LoadedRule:
        try:
            reply = await api.post("/api/v1/format_query", query=rule.expr)
            text = str(reply["data"])
        except PageMissing:  # an expression that it does not take
            text = rule.expr
        return replace(rule, expr=re.sub(r"\s+", "", text))

    return tuple(await asyncio.gather(*map(printed, rules)))


async def _dashboards(api: JsonApi) -> dict[str, Any]:
    """Our dashboards as Grafana holds them; those that it does not have are left out."""
    boards = {}
    for uid in dashboards.ALL:
        with contextlib.suppress(PageMissing):
            boards[uid] = dict((await api.get(f"/api/dashboards/uid/{uid}"))["dashboard"])
    return boards
