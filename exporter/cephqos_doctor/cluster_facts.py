"""What a cluster lets one key do and see, found out by asking.

Commands that would change something are sent with arguments that cannot name anything: a pool and
a placement group that do not exist. Whether the answer is "permission denied" or "no such thing"
tells whether the key could.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_exporter.ceph import cluster
from cephqos_exporter.ceph.monclient import (
    ClusterAccess,
    ClusterSilent,
    ClusterUnreachable,
    CommandFailed,
    MonClient,
)

_SECONDS: Final = 10.0
_TELL_SECONDS: Final = 3.0  # an OSD drops what comes from a key without a word for OSDs
_DENIED: Final = (-1, -13)

# What the role asks, each with the part of the key that allows it.
NEEDED: Final[tuple[tuple[cluster.ClusterQuery, str], ...]] = (
    (cluster.STATUS, "mon 'allow service mon r'"),
    (cluster.OSD_DUMP, "mon 'allow service osd r'"),
    (cluster.option("osd", "osd_scrub_min_interval"), "mon 'allow command \"config get\"'"),
    (cluster.POOL_TOTALS, "mgr 'allow command \"pg dump\"'"),
    (cluster.SCRUBBING_PGS, "mgr 'allow command \"pg ls\"'"),
    (cluster.pgs_of_primary(0), "mgr 'allow command \"pg ls-by-primary\"'"),
)


@dataclass(frozen=True, slots=True)
class Power:
    """Something that no role needs."""

    what: str
    prefix: str
    target: str = "mon"
    arguments: Mapping[str, Any] = field(default_factory=dict)


_NO_POOL: Final = f"cephqos-doctor-{secrets.token_hex(8)}"
POWERS: Final = (
    Power("read stored secrets", "config-key ls"),
    Power("read keys", "auth ls"),
    Power("change pools", "osd pool set", arguments={"pool": _NO_POOL, "var": "size", "val": "3"}),
    Power("start scrubs", "pg deep-scrub", "mgr", {"pgid": "2147483646.0"}),
    Power("command OSDs", "config get", "osd.0", {"var": "fsid"}),
)


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """A cluster as one key sees it."""

    name: str
    failure: str = ""  # no connection, and why
    bindings_missing: bool = False
    denied: tuple[str, ...] = ()  # caps that are missing
    powers: tuple[str, ...] = ()  # what the key can do besides
    status: Mapping[str, Any] = field(default_factory=dict)


async def gather(connection: ClusterAccess) -> ClusterFacts:
    """Ask; nothing is changed."""
    async with MonClient(connection) as client:
        try:
            status, denied = await _needed(client)
            powers = tuple([p.what for p in POWERS if await _may(client, p)])
        except ClusterUnreachable as exc:
            missing = exc.reason == "no_bindings"
            return ClusterFacts(name=connection.name, failure=str(exc), bindings_missing=missing)
    return ClusterFacts(name=connection.name, denied=denied, powers=powers, status=status)


async def _needed(client: MonClient) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    status: Mapping[str, Any] = {}
    denied = []
    for query, cap in NEEDED:
        try:
            reply = await client.command(
                query.prefix, target=query.target, within=_SECONDS, **query.arguments
            )
        except CommandFailed as exc:
            if exc.code in _DENIED:
                denied.append(cap)
            continue
        if query is cluster.STATUS and isinstance(reply, dict):
            status = reply
    return status, tuple(denied)


async def _may(client: MonClient, power: Power) -> bool:
    """Whether the key has it. No answer is a no: OSDs and managers drop what is not allowed."""
    within = _TELL_SECONDS if power.target.startswith("osd") else _SECONDS
    try:
        await client.command(power.prefix, target=power.target, within=within, **power.arguments)
    except CommandFailed as exc:
        return exc.code not in _DENIED
    except ClusterSilent:
        return False
    return True
