"""`cephqos blame`: for whom and what an OSD's clients wait, in seconds per second.

A wait goes from the primary whose clients wait to the place where the time is spent: a state of
the account of waiting, on that OSD or on the replica that it waits for. For example, osd.0 waits
4 s/s for osd.1, whose own replica writes spend 75 % of their time on the device. Then osd.0 waits
3 s/s for the state `store_device` of osd.1. If nothing is known about the replica writes of osd.1,
all 4 s/s are in the state `unknown` of osd.1.

    account of waiting -> waits -> roots (waits with one end) -> edges (the graph) or a table

The seconds of a primary are divided between its tenants by their shares of its waiting.
"""

import argparse
import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cephqos_base import account_error
from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.prometheus import OsdKey, Sample, osd_of
from cephqos_base.series import AccountSeries, ClusterSeries, DisksSeries, RecoverySeries
from cephqos_base.tenant_shares import TenantShare
from cephqos_base.terminal import aligned, printable, say, say_json, say_text
from cephqos_base.units import duration, parse_seconds, time_span
from cephqos_insight.cluster_access import add_access
from cephqos_insight.image_names import ImageNames, images_of, unnamed
from cephqos_insight.past import Past, add_past, stretch
from cephqos_insight.places import places_of
from cephqos_insight.prometheus_access import prometheus_of
from cephqos_insight.shared import QUERIES as TRAITS
from cephqos_insight.shared import shared_by, slow_osds, traits_of
from cephqos_insight.who import FAMILIES as TENANT_FAMILIES
from cephqos_insight.who import Answers, answers_of, names_of, queries, shares_of

_ANSWER_SECONDS: Final = 60.0  # for an answer about thousands of OSDs
_ROWS: Final = 20
_WAITERS: Final = 3  # shown in a row of the table
_LEAST: Final = 0.001  # seconds per second: a shorter wait is no evidence
_ON_REPLICAS: Final = "replica"  # the state of the account whose `by` is the OSD waited for
_ERASURE: Final = "erasure"  # the type of a pool
_WHY: Final[Mapping[int, str]] = {
    account_error.POINTS: "",
    account_error.BESIDE_RECOVERY: ", as there was recovery",
    account_error.ERASURE_CODED: ", as there are erasure-coded pools",
}
OTHER: Final = "other"  # tenants
OTHER_OSDS: Final = "other OSDs"  # where the account does not name the OSD waited for


class BlameFailed(CephqosError):
    """There is no usable answer."""


@dataclass(frozen=True, slots=True)
class PrimaryWait:
    """Clients of the primary `waiter` wait for `state` on `osd`, itself or a replica."""

    cluster: str
    waiter: str
    osd: str
    state: str
    by: str  # as in the account: the class, limit or cpu behind the state; often empty
    seconds: float  # per second


def waits(account: Iterable[Sample], replicas: Iterable[Sample]) -> Sequence[PrimaryWait]:
    """All waits with evidence, the largest first.

    `account`: how an OSD's clients wait. `replicas`: how the replica writes wait that an OSD
    carries out for others. Both in seconds per second, with the labels of the OSD and `state`.
    """
    replica_states = _states_by_osd(replicas)
    primary_waits = []
    for labels, rate in account:
        (cluster, osd), state, by = osd_of(labels), labels["state"], labels.get("by", "")
        if state != _ON_REPLICAS:
            primary_waits.append(PrimaryWait(cluster, osd, osd, state, by, rate))
            continue
        states = replica_states.get(OsdKey(cluster, by), {})
        total = sum(states.values())
        if not total:
            named = by if by.startswith("osd.") else OTHER_OSDS
            primary_waits.append(PrimaryWait(cluster, osd, named, "unknown", "", rate))
            continue
        primary_waits += [
            PrimaryWait(cluster, osd, by, replica_state, "", rate * seconds / total)
            for replica_state, seconds in states.items()
        ]
    known = [wait for wait in primary_waits if wait.seconds >= _LEAST]
    return sorted(known, key=lambda wait: -wait.seconds)


def _states_by_osd(samples: Iterable[Sample]) -> Mapping[OsdKey, Mapping[str, float]]:
    """The seconds per second of each state, whatever their `by`."""
    by_osd = defaultdict[OsdKey, dict[str, float]](dict)
    for labels, rate in samples:
        states = by_osd[osd_of(labels)]
        states[labels["state"]] = states.get(labels["state"], 0.0) + rate
    return by_osd


@dataclass(frozen=True, slots=True)
class Root:
    """A place where time is spent, and the waits that end there."""

    cluster: str
    osd: str
    state: str
    by: str
    seconds: float
    waits: Sequence[PrimaryWait]

    @property
    def name(self) -> str:
        return f"{self.osd} {self.state} {self.by}".rstrip()


def roots(primary_waits: Iterable[PrimaryWait]) -> Sequence[Root]:
    """The waits by where they end, the worst first."""
    by_end = defaultdict[tuple[str, str, str, str], list[PrimaryWait]](list)
    for wait in primary_waits:
        by_end[wait.cluster, wait.osd, wait.state, wait.by].append(wait)
    ends = [
        Root(*end, sum(wait.seconds for wait in ending), ending) for end, ending in by_end.items()
    ]
    return sorted(ends, key=lambda root: -root.seconds)


# By primary: the name of each tenant, and its share of the waiting there.
Tenants = Mapping[tuple[str, str], Mapping[str, TenantShare]]


def tenants_of(answers: Answers, images: ImageNames | None = None) -> Tenants:
    """The tenants that wait on each OSD. Operations without a known tenant are `other`."""
    name = names_of(answers["pools"], images)
    tenants: dict[tuple[str, str], Mapping[str, TenantShare]] = {}
    for osd in shares_of(answers):
        shares = [(name(osd.cluster, tenant.key), tenant.waiting) for tenant in osd.tenants]
        shares.append((OTHER, osd.other.waiting))
        waiting = {tenant: share for tenant, share in shares if share.seconds > 0}
        tenants[osd.cluster, osd.osd] = waiting
    return tenants


@dataclass(frozen=True, slots=True)
class Edge:
    """`waiter`, a tenant or an OSD, waits for `waits_for`: an OSD, or the name of a root."""

    cluster: str
    waiter: str
    waits_for: str
    seconds: float  # per second, of clients
    root: bool = False  # `waits_for` is a root: time is spent there, nothing further is waited for
    low: float | None = None  # of a tenant: the bounds of `seconds`, by the 95 % interval
    high: float | None = None  # of its share


def edges(worst: Iterable[Root], tenants: Tenants) -> Sequence[Edge]:
    """The graph behind these roots: tenant, primary, replica, root. The largest edges first."""
    at_primary = defaultdict[tuple[str, str], float](float)  # by cluster and waiter
    to_replica = defaultdict[tuple[str, str, str], float](float)  # by cluster, waiter and replica
    to_root = defaultdict[tuple[str, str, str], float](float)  # by cluster, OSD and root
    for root in worst:
        for wait in root.waits:
            at_primary[wait.cluster, wait.waiter] += wait.seconds
            if wait.osd != wait.waiter:
                to_replica[wait.cluster, wait.waiter, wait.osd] += wait.seconds
            to_root[wait.cluster, wait.osd, root.name] += wait.seconds
    graph = [Edge(*ends, seconds) for ends, seconds in to_replica.items()]
    graph += [Edge(*ends, seconds, root=True) for ends, seconds in to_root.items()]
    for (cluster, osd), seconds in at_primary.items():
        for tenant, share in tenants.get((cluster, osd), {}).items():
            part, low, high = seconds * share.share, seconds * share.low, seconds * share.high
            if part >= _LEAST:
                graph.append(Edge(cluster, tenant, osd, part, low=low, high=high))
    return sorted(graph, key=lambda edge: -edge.seconds)


@dataclass(frozen=True, slots=True)
class Before:
    """What clients waited in an equally long time that ended `back` seconds earlier."""

    back: float
    total: float  # seconds per second, like those below
    seconds: Mapping[tuple[str, str], float]  # by cluster and the name of the root
    osds: Container[OsdKey]  # those that had an account

    def change(self, root: Root) -> tuple[float, float] | None:
        """The seconds at this root then, and how many there are more now. None: not known, because
        no OSD that waits there now had an account."""
        if not any((wait.cluster, wait.waiter) in self.osds for wait in root.waits):
            return None
        then = self.seconds.get((root.cluster, root.name), 0.0)
        return then, root.seconds - then


def before_of(answers: Answers, back: float) -> Before:
    """The same, from the answers about that time."""
    earlier = roots(waits(answers["account"], answers["replicas"]))
    seconds = {(root.cluster, root.name): root.seconds for root in earlier}
    osds = {osd_of(labels) for labels, _ in answers["account"]}
    return Before(back, sum(seconds.values()), seconds, osds)


def table(worst: Sequence[Root], tenants: Tenants, rows: int, before: Before | None = None) -> str:
    """The worst roots as text, one in a row, with the OSDs and tenants that wait there."""
    total = sum(root.seconds for root in worst)
    if not total:
        return "No client operation was completed."
    lines = [f"Clients wait {total:.2f} seconds per second.", ""]
    if before:
        then, more = before.total, total - before.total
        lines[0] += f" {time_span(before.back)} before: {then:.2f} ({more:+.2f})."
    clusters = len({root.cluster for root in worst}) > 1  # each may have an osd.1
    heads = ["s per s", "share", *(("before", "change") if before else ())]
    heads += [*(["cluster"] if clusters else ()), "where time is spent", "whose clients wait", ""]
    cells = [heads]
    for root in worst[:rows]:
        osds = {wait.waiter: wait.seconds for wait in root.waits}
        waiting_tenants = defaultdict[str, float](float)
        for wait in root.waits:
            for tenant, share in tenants.get((wait.cluster, wait.waiter), {}).items():
                waiting_tenants[tenant] += wait.seconds * share.share
        row = [f"{root.seconds:.2f}", f"{100 * root.seconds / total:.0f} %"]
        if before:
            change = before.change(root)
            row += [f"{change[0]:.2f}", f"{change[1]:+.2f}"] if change else ["unknown", ""]
        row += [root.cluster, root.name] if clusters else [root.name]
        whose = f"for {_largest(waiting_tenants)}" if waiting_tenants else ""
        cells.append([*row, _largest(osds), whose])
    if len(worst) > rows:
        left = sum(root.seconds for root in worst[rows:])
        row = [f"{left:.2f}", f"{100 * left / total:.0f} %", *[""] * (len(heads) - 5)]
        cells.append([*row, f"{len(worst) - rows} other places", "", ""])
    right = range(4 if before else 2)
    return "\n".join([*lines, *aligned(cells, right)])


def error_points(recovered: Iterable[Sample], erasure_coded: Iterable[Sample]) -> Mapping[str, int]:
    """By how many points each share may be off, by cluster: more if objects were recovered, or
    there are erasure-coded pools. A cluster is missing where no exporter of the role cluster says
    it."""
    errors: dict[str, int] = {}
    for labels, objects in recovered:
        points = account_error.BESIDE_RECOVERY if objects > 0 else account_error.POINTS
        cluster = labels.get("cluster", "")
        errors[cluster] = max(points, errors.get(cluster, 0))
    coded = {labels.get("cluster", "") for labels, _ in erasure_coded}
    return errors | dict.fromkeys(coded & errors.keys(), account_error.ERASURE_CODED)


def error_line(clusters: Iterable[str], errors: Mapping[str, int]) -> str:
    """How right the shares are, of all the clusters that are shown."""
    names = sorted(set(clusters))
    if any(name not in errors for name in names):
        return (
            f"Each share is right within {account_error.POINTS} points, beside recovery within"
            f" {account_error.BESIDE_RECOVERY}, and with erasure-coded pools within"
            f" {account_error.ERASURE_CODED}. No exporter of the role cluster says if there was"
            " any."
        )
    points = max(errors[name] for name in names)
    return f"Each share is right within {points} points{_WHY[points]}."


def _largest(seconds_by_name: Mapping[str, float]) -> str:
    """The largest few, and `…` if there are more: `osd.1 2.00, osd.4 1.50, osd.2 0.70, …`."""
    largest = sorted(seconds_by_name.items(), key=lambda item: -item[1])
    shown = [f"{name} {seconds:.2f}" for name, seconds in largest[:_WAITERS]]
    return ", ".join([*shown, "…"] if len(largest) > _WAITERS else shown)


def add_options(parser: Parser) -> None:
    parser.description = (
        "List where the time of client operations is spent, the worst places first, and the OSDs"
        " and tenants whose operations wait there."
    )
    add_past(parser, since="5m")
    parser.option("--against TIME", "compare with so long before, such as 1h or 1d")
    parser.option("--all", f"all places, not the worst {_ROWS}")
    add_access(parser, "the names of images, racks and releases of OSDs")
    parser.option("--json", "write JSON")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    since, at = stretch(arguments)
    back = parse_seconds(arguments.against) if arguments.against else None
    if back is not None and back < since:
        raise UsageError(f"--against {arguments.against}: expected {since:g}s (--since) or more")
    answers = await _ask(arguments, since, at)
    before = before_of(await _ask(arguments, since, at, back), back) if back else None
    images, names_failure = await images_of(arguments, shares_of(answers))
    tenants = tenants_of(answers, images)
    worst = roots(waits(answers["account"], answers["replicas"]))
    rows = len(worst) if arguments.all else _ROWS
    errors = error_points(answers["recovered"], answers["erasure_coded"])
    if arguments.json:
        say_json(_document(worst[:rows], tenants, before, errors))
    else:
        say_text(table(worst, tenants, rows, before))
        if worst:
            say_text(f"\n{error_line((root.cluster for root in worst), errors)}")
        where, places_failure = await places_of(arguments)
        traits = traits_of(answers["disks"], answers["hosts"], answers["pgs"], where)
        if shared := shared_by(slow_osds(_seconds_at(worst)), traits):
            say_text(f"\nThe slow OSDs share: {printable(shared)}.")
        if places_failure:
            say(places_failure, file=sys.stderr)
    if names_failure:  # not in the output: JSON is a list of edges
        say(unnamed(names_failure), file=sys.stderr)
    return 0


def _seconds_at(worst: Iterable[Root]) -> Mapping[OsdKey, float]:
    """The seconds per second that are spent at each OSD; 0 at one where clients do not wait."""
    seconds = defaultdict[OsdKey, float](float)
    for root in worst:
        seconds[OsdKey(root.cluster, root.osd)] += root.seconds
        for wait in root.waits:
            seconds[OsdKey(wait.cluster, wait.waiter)] += 0.0
    return {osd: spent for osd, spent in seconds.items() if osd.osd.startswith("osd.")}


def _document(
    worst: Sequence[Root], tenants: Tenants, before: Before | None, errors: Mapping[str, int]
) -> Sequence[Mapping[str, Any]]:
    """The edges, those to a root with the error of its share, its seconds before and the change."""
    document = [asdict(edge) for edge in edges(worst, tenants)]
    for edge in document:
        if edge["root"]:
            edge["share_error_points"] = errors.get(edge["cluster"])
    if before:
        changes = {(root.cluster, root.name): before.change(root) for root in worst}
        for edge in document:
            if edge["root"]:
                then, more = changes[edge["cluster"], edge["waits_for"]] or (None, None)
                edge |= {"seconds_before": then, "change": more}
    return document


async def _ask(
    arguments: argparse.Namespace, since: float, at: float | None, back: float = 0.0
) -> Answers:
    """The answers about `since` seconds that end `back` seconds before `at`."""
    if arguments.archive:
        answers = await asyncio.to_thread(_in_archive, arguments.archive, since, at, back)
    else:
        moment = (time.time() if at is None else at) - back if back else at
        async with prometheus_of(arguments, _ANSWER_SECONDS) as api:
            asked = {**queries(since), **TRAITS, **error_queries(since)}
            answers = _with_rates(await api.vectors(asked, moment), since)
    if not answers["account"]:
        when = f" {time_span(back)} before" if back else ""
        raise BlameFailed(
            f"{arguments.archive or arguments.prometheus}: found no {AccountSeries.SECONDS}{when};"
            " expected the collector account of exporters, scraped twice. See `cephqos doctor"
            " prometheus`"
        )
    return answers


def error_queries(since: float) -> Mapping[str, str]:
    """What the error of shares depends on: objects that were recovered, and erasure-coded pools."""
    grown = f"increase({RecoverySeries.POOL_OBJECTS}[{duration(since)}])"
    erasure_coded = f'{ClusterSeries.POOL_INFO}{{type="{_ERASURE}"}}'
    return {
        "recovered": f"sum by (cluster) (max by (cluster, pool_id, pool) ({grown}))",
        "erasure_coded": f"count by (cluster) ({erasure_coded})",
    }


def _in_archive(folder: Path, since: float, at: float | None, back: float) -> Answers:
    families = (*TENANT_FAMILIES, DisksSeries.INFO, RecoverySeries.POOL_OBJECTS)
    past = Past(folder, families, since, at, back)
    answered = answers_of(past)
    # An archive does not say on which host an OSD is.
    answers = {
        **answered,
        "disks": past.known(DisksSeries.INFO),
        "hosts": (),
        "pgs": (),
        "recovered": past.grown(RecoverySeries.POOL_OBJECTS),
        "erasure_coded": [pool for pool in answered["pools"] if pool[0].get("type") == _ERASURE],
    }
    return _with_rates(answers, past.seconds)


def _with_rates(answers: Answers, seconds: float) -> Answers:
    """With the accounts in seconds per second."""
    account, replicas = (
        [(labels, grown / seconds) for labels, grown in answers[name]]
        for name in ("counted", "counted_for_others")
    )
    return {**answers, "account": account, "replicas": replicas}
