"""`cephqos capacity`: its options, and what it asks. See `estimate` for how an OSD is judged."""

import argparse
import re
import sys
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.terminal import say, say_json, say_progress, say_text
from cephqos_base.units import parse_seconds
from cephqos_base.urls import check_url
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed, MonClient
from cephqos_insight.capacity import from_prometheus, measure, text
from cephqos_insight.capacity.estimate import judge
from cephqos_insight.cluster_access import access_of, add_access
from cephqos_insight.prometheus_access import PASSWORDS, add_prometheus, prometheus_of

_ANSWER_SECONDS: Final = 120.0  # for an answer about 1,000 OSDs and a day
_CLUSTER_SECONDS: Final = 20.0  # for each command to the cluster
_ROWS: Final = 20


class CapacityFailed(CephqosError):
    """There is no usable answer."""


def add_options(parser: Parser) -> None:
    parser.description = (
        "Compare the configured capacity of each OSD with what it delivered, and print the command"
        " that sets it right."
    )
    parser.epilog = (
        "--measure runs Ceph's own benchmark. It is wrong in one direction: it writes 12 MB into"
        " BlueStore without network, replication and mClock, so it often measures caches. Clients"
        " of the OSD wait while it runs. Status 0: no capacity is known to be wrong. 1: some are."
    )
    add_prometheus(parser, since="7d")
    parser.option(
        "--piece TIME",
        "divide that time into pieces of this length (default: 168 pieces, at least a minute each)",
    )
    parser.option("--osd osd.N...", "only this OSD; repeatable")
    parser.option("--all", f"all OSDs, not the worst {_ROWS} only")
    _add_cluster_options(parser)
    parser.option("--json", "write JSON")
    parser.set_defaults(run=_run)


def _add_cluster_options(parser: Parser) -> None:
    add_access(parser, "device models, hosts and where capacities come from")
    parser.option(
        "--measure osd.N",
        "run `ceph tell osd.N bench` a few times on this OSD; needs --conf",
    )
    parser.option("--yes", "with --measure: clients may wait")


async def _run(arguments: argparse.Namespace) -> int:
    if arguments.measure:
        return await _measure(arguments)
    if not arguments.prometheus:
        raise UsageError("expected --prometheus URL, or --measure osd.N with --conf")
    check_url("--prometheus", arguments.prometheus, PASSWORDS)
    since = parse_seconds(arguments.since)
    piece = parse_seconds(arguments.piece) if arguments.piece else None
    if since <= 0 or (piece is not None and not 0 < piece <= since):
        raise UsageError("--since, --piece: expected times above 0, and a piece within the time")
    history = await _history(arguments, since, piece)
    judged = judge(history.records)
    if arguments.osd:
        judged = [osd for osd in judged if osd.record.osd in arguments.osd]
    if arguments.json:
        say_json(text.document(history, judged), indent=2)
    else:
        say_text(text.text(history, judged, None if arguments.all else _ROWS))
    return 1 if any(osd.verdict in ("too_high", "too_low") for osd in judged) else 0


async def _history(
    arguments: argparse.Namespace, since: float, piece: float | None
) -> from_prometheus.History:
    async with prometheus_of(arguments, _ANSWER_SECONDS) as api:
        history = await from_prometheus.gather(api, since, piece, say_progress)
    if not arguments.conf:
        return history
    async with MonClient(access_of(arguments)) as client:
        metadata = await _ask(client, "osd metadata")
        dump = await _ask(client, "config dump")
    return from_prometheus.with_cluster_facts(history, metadata, dump)


async def _ask(client: MonClient, command: str) -> Any:
    try:
        return await client.command(command, within=_CLUSTER_SECONDS)
    except (ClusterUnreachable, CommandFailed) as exc:
        raise CapacityFailed(f"the cluster does not say its {command}: {exc}") from exc


async def _measure(arguments: argparse.Namespace) -> int:
    osd = arguments.measure
    if not re.fullmatch(r"osd\.\d+", osd):
        raise UsageError(f"--measure {osd}: expected one OSD, such as osd.3")
    if not arguments.conf:
        raise UsageError("--measure needs --conf, Ceph's configuration file")
    access = access_of(arguments)
    if not arguments.yes:
        raise UsageError(measure.WARNING.format(osd=osd, slices=measure.SLICES))
    async with MonClient(access) as client:
        try:
            measured = await measure.measure(client, osd, lambda line: say(line, file=sys.stderr))
        except ClusterUnreachable as exc:
            raise CapacityFailed(f"{osd}: {exc}") from exc
    if arguments.json:
        say_json(
            {"osd": osd, "iops": list(measured.iops), "median": measured.median, "upper": True}
        )
    else:
        say_text(measured.text())
    return 0
