"""`cephqos blame`: for whom and what an OSD's clients wait, in seconds per second.

A wait goes from the primary whose clients wait to the place where the time is spent: a state of
the account, on that OSD or on the replica that it waits for. A replica's part is divided as the
account of the writes that it carries out. Where it has none, the wait ends at the OSD. The seconds
of a primary are its tenants' by their shares of the waiting in samples of its operations.
"""

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError
from cephqos_base.series import AccountSeries
from cephqos_base.tenant_shares import TenantShare
from cephqos_base.terminal import printable, say_json, say_text
from cephqos_doctor.json_api import Sample
from cephqos_doctor.past import Past, add_past, stretch
from cephqos_doctor.prometheus_access import prometheus_of
from cephqos_doctor.who import FAMILIES as TENANT_FAMILIES
from cephqos_doctor.who import answers_of, names_of, shares_of
from cephqos_doctor.who import queries as tenant_queries

_WITHIN: Final = 60.0  # seconds for an answer about thousands of OSDs
_ROWS: Final = 20
_WAITERS: Final = 3  # in a row of the table
_LEAST: Final = 0.001  # seconds per second: less is no evidence
_ON_REPLICAS: Final = "replica"
OTHER: Final = "other"


class BlameFailed(CephqosError):
    """There is no usable answer."""


@dataclass(frozen=True, slots=True)
class PrimaryWait:
    """Clients of `waiter` wait for `state` on `osd`; `by` as in the account."""

    cluster: str
    waiter: str
    osd: str
    state: str
    by: str
    seconds: float  # per second


def waits(account: Iterable[Sample], replicas: Iterable[Sample]) -> Sequence[PrimaryWait]:
    """All waits with evidence, the largest first."""
    there = defaultdict[tuple[str, str], dict[str, float]](dict)
    for labels, rate in replicas:
        states = there[labels.get("cluster", ""), labels["ceph_daemon"]]
        states[labels["state"]] = states.get(labels["state"], 0.0) + rate
    primary_waits = []
    for labels, rate in account:
        cluster, osd, by = labels.get("cluster", ""), labels["ceph_daemon"], labels.get("by", "")
        if labels["state"] != _ON_REPLICAS:
            primary_waits.append(PrimaryWait(cluster, osd, osd, labels["state"], by, rate))
            continue
        states = there.get((cluster, by), {})
        whole = sum(states.values())
        if not whole:
            primary_waits.append(PrimaryWait(cluster, osd, by or "unknown", "unknown", "", rate))
            continue
        for state, seconds in states.items():
            primary_waits.append(PrimaryWait(cluster, osd, by, state, "", rate * seconds / whole))
    known = [wait for wait in primary_waits if wait.seconds >= _LEAST]
    return sorted(known, key=lambda wait: -wait.seconds)


@dataclass(frozen=True, slots=True)
class Root:
    """A place where time is spent, and the waits that end there."""

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
    ends = defaultdict[tuple[str, str, str, str], list[PrimaryWait]](list)
    for wait in primary_waits:
        ends[wait.cluster, wait.osd, wait.state, wait.by].append(wait)
    made = [Root(*end[1:], sum(w.seconds for w in own), own) for end, own in ends.items()]
    return sorted(made, key=lambda root: -root.seconds)


# By cluster and primary: each tenant's name, and its share of the waiting there.
Tenants = Mapping[tuple[str, str], Mapping[str, TenantShare]]


def tenants_of(answers: Mapping[str, Any]) -> Tenants:
    """The tenants that wait on each OSD; operations without a known one are `other`."""
    name, tenants = names_of(answers["pools"]), {}
    for it in shares_of(answers):
        parts = [(name(it.cluster, one.key), one.waiting) for one in it.tenants]
        parts.append((OTHER, it.other.waiting))
        tenants[it.cluster, it.osd] = {who: share for who, share in parts if share.seconds > 0}
    return tenants


@dataclass(frozen=True, slots=True)
class Edge:
    """`waiter` waits for `waits_for`, a part of its clients' seconds per second.

    `root`: time is spent there, and nothing further is waited for. `low`, `high`: the bounds of the
    seconds of a tenant, by the 95 % interval of its share.
    """

    cluster: str
    waiter: str
    waits_for: str
    seconds: float
    root: bool = False
    low: float | None = None
    high: float | None = None


def edges(worst: Iterable[Root], tenants: Tenants) -> Sequence[Edge]:
    """The graph behind these roots: tenant, primary, replica, root. The largest edges first."""
    primaries = defaultdict[tuple[str, str], float](float)
    replicas = defaultdict[tuple[str, str, str], float](float)
    ends = defaultdict[tuple[str, str, str], float](float)
    for root in worst:
        for it in root.waits:
            primaries[it.cluster, it.waiter] += it.seconds
            if it.osd != it.waiter:
                replicas[it.cluster, it.waiter, it.osd] += it.seconds
            ends[it.cluster, it.osd, root.name] += it.seconds
    graph = [Edge(*edge, seconds) for edge, seconds in replicas.items()]
    graph += [Edge(*edge, seconds, root=True) for edge, seconds in ends.items()]
    for (cluster, osd), seconds in primaries.items():
        for who, share in tenants.get((cluster, osd), {}).items():
            part, low, high = (seconds * it for it in (share.share, share.low, share.high))
            if part >= _LEAST:
                graph.append(Edge(cluster, who, osd, part, low=low, high=high))
    return sorted(graph, key=lambda edge: -edge.seconds)


def table(worst: Sequence[Root], tenants: Tenants, rows: int) -> str:
    """The worst few as text."""
    whole = sum(root.seconds for root in worst)
    if not whole:
        return "No client operation was completed."
    lines = [f"Clients wait {whole:.2f} seconds per second.", ""]
    for root in worst[:rows]:
        osds = {w.waiter: w.seconds for w in root.waits}
        whose = defaultdict[str, float](float)
        for wait in root.waits:
            for who, share in tenants.get((wait.cluster, wait.waiter), {}).items():
                whose[who] += wait.seconds * share.share
        percent = 100 * root.seconds / whole
        row = f"{root.seconds:8.2f}  {percent:3.0f} %  {root.name:36} {_largest(osds)}"
        lines.append(printable(f"{row:80}  for {_largest(whose)}" if whose else row))
    if len(worst) > rows:
        rest = sum(root.seconds for root in worst[rows:])
        lines.append(f"{rest:8.2f}  {100 * rest / whole:3.0f} %  {len(worst) - rows} other places")
    return "\n".join(lines)


def _largest(parts: Mapping[str, float]) -> str:
    """The largest few, and that there are more."""
    largest = sorted(parts.items(), key=lambda it: -it[1])
    shown = [f"{name} {seconds:.2f}" for name, seconds in largest[:_WAITERS]]
    return ", ".join([*shown, "…"] if len(largest) > _WAITERS else shown)


def add_options(parser: Parser) -> None:
    parser.description = (
        "List where the time of client operations is spent, the worst places first, and the OSDs"
        " and tenants whose operations wait there."
    )
    add_past(parser, since="5m")
    parser.option("--all", f"all places, not the worst {_ROWS}")
    parser.option("--json", "write JSON")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    since, at = stretch(arguments)
    if arguments.archive:
        answers = await asyncio.to_thread(_in_archive, arguments.archive, since, at)
    else:
        async with prometheus_of(arguments, _WITHIN) as api:
            answers = await api.vectors(queries(since), at)
    if not answers["account"]:
        raise BlameFailed(
            f"{arguments.archive or arguments.prometheus}: found no {AccountSeries.SECONDS};"
            " expected the collector account of exporters, scraped twice. See `cephqos doctor"
            " prometheus`"
        )
    primary_waits, tenants = waits(answers["account"], answers["replicas"]), tenants_of(answers)
    worst = roots(primary_waits)
    rows = len(worst) if arguments.all else _ROWS
    if arguments.json:
        say_json([asdict(edge) for edge in edges(worst[:rows], tenants)])
    else:
        say_text(table(worst, tenants, rows))
    return 0


def _in_archive(folder: Path, since: float, at: float | None) -> Mapping[str, Sequence[Sample]]:
    own = (AccountSeries.SECONDS, AccountSeries.REPLICA_SECONDS)
    past = Past(folder, (*own, *TENANT_FAMILIES), since, at)
    account, replicas = map(past.rates, own)
    return {"account": account, "replicas": replicas, **answers_of(past)}


def queries(since: float) -> Mapping[str, str]:
    """What is asked, by its name: of each OSD once, however many servers scrape it."""

    def rate(name: str) -> str:
        return f"max by (cluster, ceph_daemon, state, by) (rate({name}[{since:.0f}s]))"

    tenants = tenant_queries(since)
    return {
        "account": rate(AccountSeries.SECONDS),
        "replicas": rate(AccountSeries.REPLICA_SECONDS),
        **{name: tenants[name] for name in ("seconds", "samples", "pools")},
    }
