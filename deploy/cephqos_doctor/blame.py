"""`cephqos blame`: for whom and what an OSD's clients wait, in seconds per second.

An edge goes from the primary whose clients wait to the place where the time is spent: a state of
the account, on that OSD or on the replica that it waits for. A replica's part is divided as the
account of the writes that it carries out. Where it has none, the edge ends at the OSD.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.series import AccountSeries
from cephqos_base.terminal import say_json, say_text
from cephqos_base.units import parse_seconds
from cephqos_doctor.cli import add_prometheus, check_url, headers_of
from cephqos_doctor.json_api import ApiFailed, JsonApi

_WITHIN: Final = 60.0  # seconds for an answer about thousands of OSDs
_ROWS: Final = 20
_WAITERS: Final = 3  # in a row of the table
_LEAST: Final = 0.001  # seconds per second: less is no evidence
_ON_REPLICAS: Final = "replica"

# Labels of a series, and its rate.
Sample = tuple[Mapping[str, str], float]


class BlameFailed(CephqosError):
    """There is no usable answer."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Clients of `waiter` wait for `state` on `osd`; `by` as in the account."""

    cluster: str
    waiter: str
    osd: str
    state: str
    by: str
    seconds: float  # per second


def edges(account: Iterable[Sample], replicas: Iterable[Sample]) -> Sequence[Edge]:
    """All edges with evidence, the largest first."""
    there: dict[tuple[str, str], dict[str, float]] = {}
    for labels, rate in replicas:
        states = there.setdefault((labels.get("cluster", ""), labels["ceph_daemon"]), {})
        states[labels["state"]] = states.get(labels["state"], 0.0) + rate
    found = []
    for labels, rate in account:
        cluster, osd, by = labels.get("cluster", ""), labels["ceph_daemon"], labels.get("by", "")
        if labels["state"] != _ON_REPLICAS:
            found.append(Edge(cluster, osd, osd, labels["state"], by, rate))
            continue
        states = there.get((cluster, by), {})
        whole = sum(states.values())
        if not whole:
            found.append(Edge(cluster, osd, by or "unknown", "unknown", "", rate))
        for state, seconds in states.items() if whole else ():
            found.append(Edge(cluster, osd, by, state, "", rate * seconds / whole))
    known = [edge for edge in found if edge.seconds >= _LEAST]
    return sorted(known, key=lambda edge: -edge.seconds)


@dataclass(frozen=True, slots=True)
class Root:
    """A place where time is spent, and the edges that end there."""

    osd: str
    state: str
    by: str
    seconds: float
    edges: Sequence[Edge]


def roots(found: Iterable[Edge]) -> Sequence[Root]:
    """The edges by where they end, the worst first."""
    ends: dict[tuple[str, str, str, str], list[Edge]] = {}
    for edge in found:
        ends.setdefault((edge.cluster, edge.osd, edge.state, edge.by), []).append(edge)
    made = [Root(*end[1:], sum(e.seconds for e in own), own) for end, own in ends.items()]
    return sorted(made, key=lambda root: -root.seconds)


def table(worst: Sequence[Root], rows: int) -> str:
    """The worst few as text."""
    whole = sum(root.seconds for root in worst)
    if not whole:
        return "No client operation was completed."
    lines = [f"Clients wait {whole:.2f} seconds per second.", ""]
    for root in worst[:rows]:
        waiters = [f"{e.waiter} {e.seconds:.2f}" for e in root.edges[:_WAITERS]]
        waiters += ["…"] if len(root.edges) > _WAITERS else []
        where = f"{root.osd} {root.state} {root.by}".rstrip()
        share = 100 * root.seconds / whole
        lines.append(f"{root.seconds:8.2f}  {share:3.0f} %  {where:36} {', '.join(waiters)}")
    if len(worst) > rows:
        rest = sum(root.seconds for root in worst[rows:])
        lines.append(f"{rest:8.2f}  {100 * rest / whole:3.0f} %  {len(worst) - rows} other places")
    return "\n".join(lines)


def add_options(parser: Parser) -> None:
    parser.description = (
        "List where the time of client operations is spent, the worst places first, and the OSDs"
        " whose clients wait there."
    )
    add_prometheus(parser, since="5m", required=True)
    parser.add_argument("--all", action="store_true", help=f"all places, not the worst {_ROWS}")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    check_url(arguments.prometheus)
    since = parse_seconds(arguments.since)
    if since < 60:
        raise UsageError(f"--since {arguments.since}: expected at least a minute")
    found = await _ask(arguments, int(since))
    if arguments.json:
        say_json([{f: getattr(edge, f) for f in Edge.__slots__} for edge in found])
    else:
        worst = roots(found)
        say_text(table(worst, len(worst) if arguments.all else _ROWS))
    return 0


async def _ask(arguments: argparse.Namespace, seconds: int) -> Sequence[Edge]:
    timeout = aiohttp.ClientTimeout(total=_WITHIN)
    names = AccountSeries.SECONDS, AccountSeries.REPLICA_SECONDS
    async with aiohttp.ClientSession(timeout=timeout) as session:
        api = JsonApi(session, arguments.prometheus, headers_of(arguments.header))
        try:
            account, replicas = [
                _samples(await api.post("/api/v1/query", query=_query(name, seconds)))
                for name in names
            ]
        except ApiFailed as exc:
            raise BlameFailed(f"{arguments.prometheus}: {exc}") from exc
    if not account:
        raise BlameFailed(
            f"{arguments.prometheus}: found no {names[0]}; expected the collector account of"
            " exporters, scraped twice. See `cephqos doctor prometheus`"
        )
    return edges(account, replicas)


def _query(name: str, seconds: int) -> str:
    """Once for each OSD, however many servers scrape it."""
    return f"max by (cluster, ceph_daemon, state, by) (rate({name}[{seconds}s]))"


def _samples(reply: Any) -> Sequence[Sample]:
    try:
        return [(one["metric"], float(one["value"][1])) for one in reply["data"]["result"]]
    except (LookupError, TypeError, ValueError) as exc:
        raise ApiFailed(f"an answer of another shape: {exc!r}") from exc
