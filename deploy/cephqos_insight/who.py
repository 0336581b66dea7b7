"""`cephqos who`: which tenants have the work of an OSD, and which of them wait.

The exporter samples operations in progress and counts their seconds by OSD, tenant and state:
`working` (the OSD executes or commits it) or `waiting`. This file asks how much those counters grew
in a time, from a Prometheus or an archive, and prints each tenant's share, for example:

    osd.3   image rbd/a has 71 % of the work (65–77 %, 214 samples)
        waiting (300 samples): image rbd/b 40 % (35–46), ...
"""

import argparse
import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.prometheus import OsdKey, Sample, of_clusters, of_osds, osd_of
from cephqos_base.recorded import PerClass
from cephqos_base.series import (
    CLIENT,
    OSD,
    TENANT,
    WAITING,
    WORKING,
    AccountSeries,
    ClusterSeries,
    TenantsSeries,
)
from cephqos_base.tenant_shares import (
    OsdSums,
    OsdTenants,
    TenantFigures,
    TenantKey,
    TenantShare,
    counted_by_osd,
)
from cephqos_base.terminal import printable, say_json, say_text
from cephqos_base.units import duration, time_span
from cephqos_base.version import __version__
from cephqos_insight.cluster_access import add_access
from cephqos_insight.image_names import ImageNames, images_of, unnamed
from cephqos_insight.past import Past, add_past, stretch
from cephqos_insight.prometheus_access import prometheus_of

_ANSWER_SECONDS: Final = 60.0  # for an answer about thousands of OSDs
_ROWS: Final = 20
_WIDTH: Final = 100  # of a line, if its parts are not longer
_MOST_SUMS: Final = 5  # pools or applications that are shown; --json has all
# What is read of an archive.
FAMILIES: Final = (
    TenantsSeries.SECONDS,
    TenantsSeries.SQUARES,
    ClusterSeries.POOL_INFO,
    AccountSeries.SECONDS,
    AccountSeries.REPLICA_SECONDS,
)
_NO_TENANT: Final = (
    "No tenant is shown: no operation was sampled in this time, the collector `tenants` is off, or"
    " the exporter is not scraped."
)
# The application of a tenant, by its kind, if that of its pool is not known.
_APPLICATION_OF_KIND: Final = {"image": "rbd", "bucket": "rgw", "cephfs": "cephfs"}

Answers = Mapping[str, Sequence[Sample]]  # by the name of the query
Namer = Callable[[str, TenantKey], str]  # a tenant's name, by cluster and key
PoolNamer = Callable[[str, str], str]  # a pool's name, by cluster and number; "": not known


def add_options(parser: Parser) -> None:
    parser.description = (
        "Show for each OSD which images, buckets and clients it works for, and which of them wait."
    )
    parser.epilog = "Each share has its 95 % interval. Status 0: tenants were found. 1: none."
    add_past(parser, since="10m")
    parser.option("--osd osd.N...", "only this OSD; repeatable")
    parser.option("--all", f"all OSDs, not {_ROWS} only")
    add_access(parser, "the names of images")
    parser.option("--json", "write JSON")
    parser.set_defaults(run=_run)


@dataclass(frozen=True, slots=True)
class _Shown:
    """All that the command shows, as text or as JSON."""

    since: float  # seconds
    clusters: Sequence[OsdTenants]  # each as a whole; none where --osd names OSDs
    osds: Sequence[OsdTenants]
    with_sums: bool  # of each OSD, not only of clusters
    pools: Mapping[OsdKey, OsdTenants]  # the same shares, by pool
    applications: Mapping[OsdKey, OsdTenants]  # and by application
    pool_name: PoolNamer
    name: Namer
    names_failure: str  # why the cluster did not give the names of images; empty: it did


async def _run(arguments: argparse.Namespace) -> int:
    since, at = stretch(arguments)
    for osd in arguments.osd or ():
        if not re.fullmatch(r"osd\.\d+", osd):
            raise UsageError(f"--osd {osd}: expected an OSD, such as osd.3")
    answers = await _ask(arguments, since, at)
    shares = shares_of(answers)
    images, names_failure = await images_of(arguments, shares)
    only = arguments.osd
    shown = _Shown(
        since=since,
        clusters=[] if only else [tenants for tenants in shares if not tenants.osd],
        osds=[t for t in shares if t.osd and (not only or t.osd in only)],
        with_sums=bool(only),
        pools=_merged(answers, lambda _, key: TenantKey("pool", key.pool_id, key.pool_id)),
        applications=_by_application(answers),
        pool_name=_pool_names(answers["pools"]),
        name=names_of(answers["pools"], images),
        names_failure=names_failure,
    )
    if arguments.json:
        say_json(_document(shown), indent=2)
    else:
        say_text(_text(shown, None if arguments.all else _ROWS))
    return 0 if shown.osds else 1


async def _ask(arguments: argparse.Namespace, since: float, at: float | None) -> Answers:
    if arguments.archive:
        return answers_of(await asyncio.to_thread(Past, arguments.archive, FAMILIES, since, at))
    async with prometheus_of(arguments, _ANSWER_SECONDS) as api:
        return await api.vectors(queries(since), at)


def queries(since: float) -> Mapping[str, str]:
    """PromQL by name: how much the counters grew in the last `since` seconds, and what is now."""
    window = duration(since)
    shortfall, pools = f'{PerClass.SHORTFALL_OPS}{{class="{CLIENT}"}}', ClusterSeries.POOL_INFO
    return {
        "seconds": f"max by ({OSD}, {TENANT}, state) (increase({TenantsSeries.SECONDS}[{window}]))",
        "squares": f"max by ({OSD}, state) (increase({TenantsSeries.SQUARES}[{window}]))",
        "counted": _counted(AccountSeries.SECONDS, window),
        "counted_for_others": _counted(AccountSeries.REPLICA_SECONDS, window),
        "shortfall": f"max by ({OSD}) {of_osds(shortfall)}",
        "pools": f"max by (cluster, pool_id, pool, application) {of_clusters(pools)}",
    }


def _counted(series: str, window: str) -> str:
    return f"max by ({OSD}, state, by) (increase({series}[{window}]))"


def answers_of(past: Past) -> Answers:
    """What `queries` would find, without `shortfall`: an archive has no series of rules."""
    return {
        "seconds": past.grown(TenantsSeries.SECONDS),
        "squares": past.grown(TenantsSeries.SQUARES),
        "counted": past.grown(AccountSeries.SECONDS),
        "counted_for_others": past.grown(AccountSeries.REPLICA_SECONDS),
        "pools": past.known(ClusterSeries.POOL_INFO),
    }


def shares_of(answers: Answers) -> Sequence[OsdTenants]:
    """The clusters as a whole, then their OSDs; each kind with the most waiting first."""
    shortfalls = {osd_of(labels): ops for labels, ops in answers.get("shortfall", ())}
    shares = [sums.shares(*osd, shortfalls.get(osd)) for osd, sums in _sums(answers).items()]

    def order(osd: OsdTenants) -> tuple[bool, float]:
        waiting = sum(tenant.waiting.seconds for tenant in (*osd.tenants, osd.other))
        return bool(osd.osd), -waiting

    return sorted(shares, key=order)


def _sums(answers: Answers) -> Mapping[OsdKey, OsdSums]:
    """The sums of each OSD that has any seconds; the OSD "" is the cluster as a whole."""
    all_sums = defaultdict[OsdKey, OsdSums](OsdSums)
    for labels, seconds in answers["seconds"]:
        key = TenantKey(*(labels.get(name, "") for name in ("kind", "pool_id", "tenant")))
        all_sums[osd_of(labels)].seconds[key, labels.get("state", "")] = seconds
    for labels, squares in answers["squares"]:
        all_sums[osd_of(labels)].squares[labels.get("state", "")] = squares
    for osd, counted in counted_by_osd(answers["counted"], answers["counted_for_others"]).items():
        all_sums[osd].counted = counted
    osds = {
        osd: sums
        for osd, sums in all_sums.items()
        if any(seconds > 0 for seconds in sums.seconds.values())
    }
    clusters = {}
    for cluster in sorted({osd.cluster for osd in osds}):
        of_cluster = [sums for osd, sums in all_sums.items() if osd.cluster == cluster]
        clusters[OsdKey(cluster, "")] = OsdSums().add(of_cluster)
    return {**clusters, **osds}


def _by_application(answers: Answers) -> Mapping[OsdKey, OsdTenants]:
    """The same shares by the application of the tenant's pool."""
    of_pool = {
        (labels.get("cluster", ""), labels.get("pool_id", "")): labels.get("application", "")
        for labels, _ in answers["pools"]
    }

    def application(cluster: str, key: TenantKey) -> TenantKey:
        name = of_pool.get((cluster, key.pool_id)) or _APPLICATION_OF_KIND.get(key.kind, "unknown")
        return TenantKey("application", "", name)

    return _merged(answers, application)


def _merged(
    answers: Answers, key_of: Callable[[str, TenantKey], TenantKey]
) -> Mapping[OsdKey, OsdTenants]:
    return {
        osd: sums.merged(partial(key_of, osd.cluster)).shares(*osd)
        for osd, sums in _sums(answers).items()
    }


def names_of(pools: Iterable[Sample], images: ImageNames | None = None) -> Namer:
    """How a tenant of a cluster is called: with the names of its pool and image where known."""
    pool_name = _pool_names(pools)

    def name(cluster: str, key: TenantKey) -> str:
        image_or_id = (images or {}).get((cluster, key), key.tenant)
        pool = pool_name(cluster, key.pool_id)
        return replace(key, tenant=image_or_id).named({key.pool_id: pool})

    return name


def _pool_names(pools: Iterable[Sample]) -> PoolNamer:
    names = {
        (labels.get("cluster", ""), labels.get("pool_id", "")): labels.get("pool", "")
        for labels, _ in pools
    }
    return lambda cluster, pool_id: names.get((cluster, pool_id), "")


def _text(shown: _Shown, most: int | None) -> str:
    """For a terminal: lines for each cluster, and for `most` OSDs; None: all of them."""
    lines = []
    for cluster in shown.clusters:
        lines += [*_lines(cluster, shown.name, True), *_sum_lines(cluster, shown)]
    rows = shown.osds[:most]
    several = len({osd.cluster for osd in shown.osds}) > 1  # each may have an osd.3
    for osd in rows:
        lines += _lines(osd, shown.name, several)
        lines += _sum_lines(osd, shown) if shown.with_sums else ()
    lines = lines or [_NO_TENANT]
    if len(rows) < len(shown.osds):
        lines.append(f"… and {len(shown.osds) - len(rows)} more OSDs (--all)")
    if shown.osds:
        lines.append(f"Operations of the last {time_span(shown.since)}, sampled by the exporter.")
    if why := shown.names_failure:
        lines.append(printable(unnamed(why)))
    return "\n".join(lines)


def _lines(tenants: OsdTenants, name: Namer, say_cluster: bool) -> Sequence[str]:
    """An OSD or a cluster: its largest tenant, and those that wait because of it."""
    cluster = tenants.cluster
    parts = [f"cluster {cluster}"] if say_cluster else []
    if tenants.osd:
        parts.append(tenants.osd)
    if tenants.shortfall and tenants.shortfall > 0:
        parts.append(f"client is {tenants.shortfall:,.0f} ops/s short")
    if largest := tenants.largest:
        parts.append(
            f"{name(cluster, largest.key)} has {_percent(largest.working)} of the work"
            f" ({_bounds(largest.working)} %, {_basis(tenants, WORKING)})"
        )
    else:
        parts.append("no work was seen")
    lines = _filled(parts, "   ")
    if tenants.victims:
        waiting = [f"{name(cluster, v.key)} {_with_bounds(v.waiting)}" for v in tenants.victims]
        title = f"waiting ({_basis(tenants, WAITING)})"
        lines += _listed(title, waiting)
    return lines


def _sum_lines(tenants: OsdTenants, shown: _Shown) -> Sequence[str]:
    """The shares of the work and of the waiting, by pool and by application."""
    osd = OsdKey(tenants.cluster, tenants.osd)

    def pool(key: TenantKey) -> str:
        return shown.pool_name(osd.cluster, key.pool_id) or f"pool {key.pool_id}"

    return [
        *_divided("pool", shown.pools[osd], pool),
        *_divided("application", shown.applications[osd], lambda key: key.tenant),
    ]


def _divided(by: str, sums: OsdTenants, name: Callable[[TenantKey], str]) -> Sequence[str]:
    work = [(name(one.key), one.working) for one in sums.tenants]
    waiting = [(name(one.key), one.waiting) for one in sums.tenants]
    return [
        *_listed(f"work by {by}", _largest([*work, ("other", sums.other.working)])),
        *_listed(f"waiting by {by}", _largest([*waiting, ("other", sums.other.waiting)])),
    ]


def _largest(named: Sequence[tuple[str, TenantShare]]) -> Sequence[str]:
    """The largest shares; the last one, `other`, stays last."""
    *of_names, other = named
    largest = sorted((it for it in of_names if it[1].seconds), key=lambda it: -it[1].seconds)
    shown = [*largest[:_MOST_SUMS], *([other] if other[1].seconds else ())]
    more = len(largest) - _MOST_SUMS
    return [
        *(f"{name} {_with_bounds(share)}" for name, share in shown),
        *([f"and {more} more"] if more > 0 else ()),
    ]


def _listed(title: str, items: Sequence[str]) -> list[str]:
    """An indented list with a title; no line if there is no item."""
    if not items:
        return []
    first, *rest = items
    return [f"    {line}" for line in _filled([f"{title}: {first}", *rest], ", ", _WIDTH - 4)]


def _filled(parts: Sequence[str], separator: str, width: int = _WIDTH) -> list[str]:
    """The parts in lines of this width. Lines after the first are indented. No part is broken."""
    first, *rest = map(printable, parts)
    lines = [first]
    for part in rest:
        longer = f"{lines[-1]}{separator}{part}"
        if len(longer) + len(separator.rstrip()) <= width:
            lines[-1] = longer
        else:
            lines[-1] += separator.rstrip()
            lines.append(f"    {part}")
    return lines


def _basis(tenants: OsdTenants, state: str) -> str:
    """What an interval rests on."""
    samples = f"{tenants.samples[state]:,.0f} samples"
    return samples if tenants.bursts_known[state] else f"{samples}, bursts: not known"


def _percent(share: TenantShare) -> str:
    return f"{share.share * 100:.0f} %"


def _bounds(share: TenantShare) -> str:
    return f"{share.low * 100:.0f}–{share.high * 100:.0f}"


def _with_bounds(share: TenantShare) -> str:
    return f"{_percent(share)} ({_bounds(share)})"


def _document(shown: _Shown) -> dict[str, Any]:
    """The document that `--json` writes."""
    unnamed = {"unnamed": shown.names_failure} if shown.names_failure else {}
    shares = [_osd_document(osd, shown) for osd in (*shown.clusters, *shown.osds)]
    return {"version": __version__, "since_seconds": shown.since, **unnamed, "shares": shares}


def _osd_document(osd: OsdTenants, shown: _Shown) -> dict[str, Any]:
    key = OsdKey(osd.cluster, osd.osd)

    def shares_document(tenant: TenantFigures) -> dict[str, Any]:
        return {"waiting": asdict(tenant.waiting), "working": asdict(tenant.working)}

    def tenant_document(tenant: TenantFigures) -> dict[str, Any]:
        named = {"name": shown.name(osd.cluster, tenant.key)} if tenant.key.tenant else {}
        victim = {"victim": tenant in osd.victims}
        return {**asdict(tenant.key), **named, **shares_document(tenant), **victim}

    return {
        "cluster": osd.cluster,
        "osd": osd.osd or None,
        "client_short_ops": osd.shortfall,
        "samples": dict(osd.samples),
        "bursts_known": dict(osd.bursts_known),
        "tenants": [tenant_document(tenant) for tenant in osd.tenants],
        "other": tenant_document(osd.other),
        "pools": [
            {
                "pool_id": pool.key.pool_id,
                "pool": shown.pool_name(osd.cluster, pool.key.pool_id) or None,
                **shares_document(pool),
            }
            for pool in shown.pools[key].tenants
        ],
        "applications": [
            {"application": application.key.tenant, **shares_document(application)}
            for application in shown.applications[key].tenants
        ],
    }
