"""`cephqos who`: which tenants have the work of an OSD, and which of them wait."""

import argparse
import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.recorded import PerClass
from cephqos_base.series import CLIENT, OSD, TENANT, ClusterSeries, TenantsSeries
from cephqos_base.tenant_shares import OsdSums, OsdTenants, TenantFigures, TenantKey, TenantShare
from cephqos_base.terminal import printable, say_json, say_text
from cephqos_base.units import duration, time_span
from cephqos_base.version import __version__
from cephqos_doctor.cluster_access import access_of, add_access
from cephqos_doctor.image_names import ImageNames, NamesFailed, image_names
from cephqos_doctor.json_api import Sample
from cephqos_doctor.past import Past, add_past, stretch
from cephqos_doctor.prometheus_access import prometheus_of

_WITHIN: Final = 60.0
_ROWS: Final = 20
# In an archive.
FAMILIES: Final = (TenantsSeries.SECONDS, TenantsSeries.SAMPLED, ClusterSeries.POOL_INFO)
_NONE: Final = (
    "No tenant is shown: no operation was sampled in this time, the collector `tenants` is off, or"
    " the exporter is not scraped."
)


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


def queries(since: float) -> Mapping[str, str]:
    """What is asked, by its name."""
    window = duration(since)
    return {
        "seconds": f"max by ({OSD}, {TENANT}, state) (increase({TenantsSeries.SECONDS}[{window}]))",
        "samples": f"max by ({OSD}, state) (increase({TenantsSeries.SAMPLED}[{window}]))",
        "shortfall": f'max by ({OSD}) ({PerClass.SHORTFALL_OPS}{{class="{CLIENT}"}})',
        "pools": f"max by (cluster, pool_id, pool, application) ({ClusterSeries.POOL_INFO})",
    }


async def _run(arguments: argparse.Namespace) -> int:
    since, at = stretch(arguments)
    for osd in arguments.osd or ():
        if not re.fullmatch(r"osd\.\d+", osd):
            raise UsageError(f"--osd {osd}: expected an OSD, such as osd.3")
    answers = await _ask(arguments, since, at)
    shares = shares_of(answers)
    images, unnamed = await _images(arguments, shares)
    name = names_of(answers["pools"], images)
    uses = _by_application(answers)
    osds = [it for it in shares if it.osd and (not arguments.osd or it.osd in arguments.osd)]
    clusters = [] if arguments.osd else [it for it in shares if not it.osd]
    if arguments.json:
        shown = [_document(it, name, uses[it.cluster, it.osd]) for it in (*clusters, *osds)]
        head = {"version": __version__, "since_seconds": since}
        say_json({**head, **({"unnamed": unnamed} if unnamed else {}), "shares": shown}, indent=2)
    else:
        rows = osds if arguments.all else osds[:_ROWS]
        lines = [_line(it, name) for it in rows]
        lines[:0] = [f"{_line(it, name)}   {_uses(uses[it.cluster, it.osd])}" for it in clusters]
        lines = lines or [_NONE]
        if len(rows) < len(osds):
            lines.append(f"… and {len(osds) - len(rows)} more OSDs (--all)")
        if osds:
            lines.append(f"Operations of the last {time_span(since)}, sampled by the exporter.")
        if unnamed:
            lines.append(printable(f"The cluster does not say the names of images: {unnamed}"))
        say_text("\n".join(lines))
    return 0 if osds else 1


async def _images(
    arguments: argparse.Namespace, shares: Iterable[OsdTenants]
) -> tuple[ImageNames, str]:
    """What images are called, or why that is not known."""
    if not arguments.conf:
        return {}, ""
    wanted = dict.fromkeys((it.cluster, one.key) for it in shares for one in it.tenants)
    try:
        return await image_names(access_of(arguments), wanted), ""
    except NamesFailed as exc:
        return {}, str(exc)


def answers_of(past: Past) -> Mapping[str, Sequence[Sample]]:
    """What `queries` would find, without what rules record."""
    return {
        "seconds": past.grown(TenantsSeries.SECONDS),
        "samples": past.grown(TenantsSeries.SAMPLED),
        "pools": past.known(ClusterSeries.POOL_INFO),
    }


async def _ask(arguments: argparse.Namespace, since: float, at: float | None) -> Mapping[str, Any]:
    if arguments.archive:
        return answers_of(await asyncio.to_thread(Past, arguments.archive, FAMILIES, since, at))
    async with prometheus_of(arguments, _WITHIN) as api:
        return await api.vectors(queries(since), at)


# Where the pool's application is not known.
_APPLICATIONS: Final = {"image": "rbd", "bucket": "rgw", "cephfs": "cephfs"}


def _by_application(answers: Mapping[str, Any]) -> Mapping[tuple[str, str], OsdTenants]:
    """The same shares by the application of the tenant's pool."""
    known = {
        (labels.get("cluster", ""), labels.get("pool_id", "")): labels.get("application", "")
        for labels, _ in answers["pools"]
    }

    def application(cluster: str, key: TenantKey) -> TenantKey:
        name = known.get((cluster, key.pool_id)) or _APPLICATIONS.get(key.kind, "unknown")
        return TenantKey("application", "", name)

    return {
        (cluster, osd): its.merged(partial(application, cluster)).shares(cluster, osd)
        for (cluster, osd), its in _sums(answers).items()
    }


def shares_of(answers: Mapping[str, Any]) -> Sequence[OsdTenants]:
    """Clusters, and their OSDs: those with most waiting first."""
    short = {_osd_of(labels): value for labels, value in answers.get("shortfall", ())}
    shares = [its.shares(*osd, short.get(osd)) for osd, its in _sums(answers).items()]
    return sorted(shares, key=lambda it: (bool(it.osd), -_waiting(it)))


def _waiting(it: OsdTenants) -> float:
    return sum(tenant.waiting.seconds for tenant in (*it.tenants, it.other))


def _sums(answers: Mapping[str, Any]) -> Mapping[tuple[str, str], OsdSums]:
    """By cluster and OSD; a cluster as a whole is the OSD ""."""
    sums = defaultdict[tuple[str, str], OsdSums](OsdSums)
    for labels, value in answers["seconds"]:
        key = TenantKey(*(labels.get(name, "") for name in ("kind", "pool_id", "tenant")))
        sums[_osd_of(labels)].seconds[key, labels.get("state", "")] = value
    for labels, value in answers["samples"]:
        sums[_osd_of(labels)].samples[labels.get("state", "")] = value
    osds = {osd: its for osd, its in sums.items() if _any(its)}
    clusters = {}
    for cluster in sorted({cluster for cluster, _ in osds}):
        own = [its for (of, _), its in sums.items() if of == cluster]
        clusters[cluster, ""] = OsdSums().add(own)
    return {**clusters, **osds}


def _osd_of(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels.get("cluster", ""), labels.get("ceph_daemon", "")


def _any(sums: OsdSums) -> bool:
    return any(value > 0 for value in sums.seconds.values())


Namer = Callable[[str, TenantKey], str]


def names_of(
    pools: Iterable[tuple[Mapping[str, str], float]], images: ImageNames | None = None
) -> Namer:
    """How a tenant of a cluster is called: with the names of its pool and image where known."""
    by_id = {
        (labels.get("cluster", ""), labels.get("pool_id", "")): labels.get("pool", "")
        for labels, _ in pools
    }

    def name(cluster: str, key: TenantKey) -> str:
        known = (images or {}).get((cluster, key), key.tenant)
        pool = by_id.get((cluster, key.pool_id), "")
        return replace(key, tenant=known).named({key.pool_id: pool})

    return name


def _line(it: OsdTenants, name: Namer) -> str:
    parts = [it.osd or f"cluster {it.cluster}"]
    if it.shortfall and it.shortfall > 0:
        parts.append(f"client is {it.shortfall:,.0f} ops/s short")
    largest = it.largest
    if largest is None:
        parts.append("no work was seen")
    else:
        samples = it.samples.get("working", 0.0)
        parts.append(
            f"{name(it.cluster, largest.key)} has {_percent(largest.working)} of the work"
            f" ({_bounds(largest.working)}, {samples:,.0f} samples)"
        )
    if it.victims:
        waiting = [f"{name(it.cluster, v.key)} {_percent(v.waiting)}" for v in it.victims]
        parts.append(f"waiting: {', '.join(waiting)} ({it.samples.get('waiting', 0):,.0f} samples)")
    return printable("   ".join(parts))


def _uses(it: OsdTenants) -> str:
    parts = [(one.key.tenant, one.working) for one in it.tenants] + [("other", it.other.working)]
    return printable(", ".join(f"{name} {_percent(part)}" for name, part in parts if part.seconds))


def _percent(share: TenantShare) -> str:
    return f"{share.share * 100:.0f} %"


def _bounds(share: TenantShare) -> str:
    return f"{share.low * 100:.0f}–{share.high * 100:.0f} %"


def _document(it: OsdTenants, name: Namer, uses: OsdTenants) -> dict[str, Any]:
    def tenant(one: TenantFigures) -> dict[str, Any]:
        named = {"name": name(it.cluster, one.key)} if one.key.tenant else {}
        return {
            **asdict(one.key),
            **named,
            "waiting": asdict(one.waiting),
            "working": asdict(one.working),
            "victim": one in it.victims,
        }

    return {
        "cluster": it.cluster,
        "osd": it.osd or None,
        "client_short_ops": it.shortfall,
        "samples": dict(it.samples),
        "tenants": [tenant(one) for one in it.tenants],
        "other": tenant(it.other),
        "applications": [
            {
                "application": one.key.tenant,
                "waiting": asdict(one.waiting),
                "working": asdict(one.working),
            }
            for one in uses.tenants
        ],
    }
