"""What a cluster lets one key do and see, found out by asking.

Commands that would change something are sent with arguments that cannot name anything: a pool and
a placement group that do not exist. Whether the answer is "permission denied" or "no such thing"
tells whether the key could.
"""

import errno
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cephqos_doctor import recovery_facts
from cephqos_doctor.recovery_facts import SECONDS, RecoveryFacts, ask, asked
from cephqos_exporter.ceph import cluster
from cephqos_exporter.ceph.monclient import (
    ClusterAccess,
    ClusterSilent,
    ClusterUnreachable,
    CommandFailed,
    MonClient,
)

_TELL_SECONDS: Final = 3.0  # an OSD drops what comes from a key without a word for OSDs
DENIED: Final = (-errno.EPERM, -errno.EACCES)
# The answer for an OSD that went down or was removed since the map was read.
_GONE: Final = (-errno.ENOENT, -errno.ENXIO)

_ADMIN: Final = "client.admin"  # whose key may read what runs keep in the monitors
_RUN_KEYS: Final = cluster.ClusterQuery("config-key dump", {"key": "cephqos/run"}, "mon")
REPLICATED: Final = 1  # the type of such a pool; those of erasure code have 3

# Asked where deep scrubs are late, in the order of `scrub_hours`.
_WINDOW: Final = tuple(
    cluster.option("osd", f"osd_scrub_{end}_{unit}")
    for unit in ("hour", "week_day")
    for end in ("begin", "end")
)
# The monitors answer with the default where this option was never set.
_BALANCER: Final = cluster.option("mgr", "mgr/balancer/active")
_REPORTERS: Final = cluster.option("mon", "mon_osd_min_down_reporters")
_VERSIONS: Final = cluster.ClusterQuery("versions", target="mon")
_STORED: Final = cluster.ClusterQuery("config dump", target="mon")
_METADATA: Final = cluster.ClusterQuery("osd metadata", target="mon")
_CRUSH_RULES: Final = cluster.ClusterQuery("osd crush rule dump", target="mon")
# What the role asks, each with the part of the key that allows it.
NEEDED: Final[tuple[tuple[cluster.ClusterQuery, str], ...]] = (
    (cluster.STATUS, "mon 'allow service mon r'"),
    (cluster.OSD_DUMP, "mon 'allow service osd r'"),
    (cluster.OSD_TREE, "mon 'allow service osd r'"),
    (cluster.option("osd", "osd_scrub_min_interval"), "mon 'allow command \"config get\"'"),
    (cluster.POOL_TOTALS, "mgr 'allow command \"pg dump\"'"),
    (cluster.SCRUBBING_PGS, "mgr 'allow command \"pg ls\"'"),
    (cluster.pgs_of_primary(0), "mgr 'allow command \"pg ls-by-primary\"'"),
)


@dataclass(frozen=True, slots=True)
class Power:
    """A command that no role of cephqos needs: a key that may run it allows too much."""

    what: str
    prefix: str  # of the command, whose arguments name nothing that exists: it changes nothing
    target: str = "mon"
    arguments: Mapping[str, Any] = field(default_factory=dict)


_NO_POOL: Final = f"cephqos-doctor-{secrets.token_hex(8)}"
POWERS: Final = (
    Power("read stored secrets", "config-key ls"),
    Power("read keys", "auth ls"),
    Power("change pools", "osd pool set", arguments={"pool": _NO_POOL, "var": "size", "val": "3"}),
    Power("start scrubs", "pg deep-scrub", target="mgr", arguments={"pgid": "2147483646.0"}),
    Power("command OSDs", "config get", target="osd", arguments={"var": "fsid"}),
)


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """A cluster as one key sees it."""

    name: str  # of the key's user, such as client.cephqos
    failure: str = ""  # why there is no connection; empty: there is one
    bindings_missing: bool = False
    denied: tuple[str, ...] = ()  # caps that are missing
    powers: tuple[str, ...] = ()  # what the key can do beside what it needs
    unasked: tuple[str, ...] = ()  # powers not known: no daemon to ask, or a silent monitor
    powers_tried: bool = True
    unanswered: str = ""  # the command to the manager that had no answer in time
    status: Mapping[str, Any] = field(default_factory=dict)
    window_hours: float | None = None  # of a week in which scrubs may start; None: not asked
    balancing: bool | None = None  # whether the balancer is on; None: not known
    reporters: int | None = None  # hosts that must report an OSD as down; None: not known
    osd_map: Mapping[str, Any] = field(default_factory=dict)  # empty: not known
    osd_tree: Mapping[str, Any] = field(default_factory=dict)
    crush_rules: Sequence[Any] | None = None  # None: not known
    stored: Sequence[Any] | None = None  # options that monitors keep; None: not known
    rotates: Mapping[int, bool] | None = None  # by OSD: whether its device does; None: not known
    # By kind of daemon, texts with a version; None: not known
    versions: Mapping[str, Sequence[str]] | None = None
    run_keys: Mapping[str, Any] | None = None  # of `cephqos run` in the monitors; None: not known
    recovery: RecoveryFacts | None = None  # None: the key may not ask
    intervals: Mapping[tuple[str, str], float] = field(default_factory=dict)  # of scrubs

    @property
    def pools(self) -> Sequence[Mapping[str, Any]]:
        return tables(_at(self.osd_map, "pools"))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of replicated pools, each once."""
        replicated = [pool.get("size") for pool in self.pools if pool.get("type") == REPLICATED]
        return tuple(sorted({size for size in replicated if isinstance(size, int)}))

    @property
    def pgs(self) -> int:
        count = _at(self.status, "pgmap", "num_pgs")
        return count if isinstance(count, int) else 0

    @property
    def overdue(self) -> int:
        """Placement groups so late that Ceph warns of their deep scrub."""
        count = _at(self.health_check("PG_NOT_DEEP_SCRUBBED"), "summary", "count")
        return count if isinstance(count, int) else 0

    def health_check(self, code: str) -> Any:
        """What Ceph says of this check; None if it says nothing."""
        return _at(self.status, "health", "checks", code)


def tables(value: Any) -> list[Mapping[str, Any]]:
    """The tables of a list; none of what is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _at(reply: Any, *keys: str) -> Any:
    for key in keys:
        reply = reply.get(key) if isinstance(reply, dict) else None
    return reply


async def gather(connection: ClusterAccess, *, try_powers: bool) -> ClusterFacts:
    """Ask; nothing is changed. The audit log shows the powers that are tried."""
    facts = ClusterFacts(name=connection.name, powers_tried=try_powers)
    tried = POWERS if try_powers else ()
    async with MonClient(connection) as client:
        try:
            facts = await _needed(client, facts)
            rules, versions, metadata, stored = [
                await ask(client, one) for one in (_CRUSH_RULES, _VERSIONS, _METADATA, _STORED)
            ]
            facts = replace(
                facts,
                crush_rules=rules if isinstance(rules, list) else None,
                versions=_by_daemon(versions),
                rotates=_rotates(metadata),
                stored=stored if isinstance(stored, list) else None,
            )
            if try_powers or connection.name == _ADMIN:
                run_keys = await ask(client, _RUN_KEYS)
                facts = replace(
                    facts,
                    run_keys=run_keys if isinstance(run_keys, dict) else None,
                    recovery=await recovery_facts.gather(client, facts.status),
                )
            facts = replace(
                facts,
                intervals=await recovery_facts.intervals(client),
                window_hours=await _window_hours(client) if facts.overdue else None,
                balancing=await _balancing(client),
                reporters=await _reporters(client),
            )
            allowed = {power.what: await _may(client, power, facts) for power in tried}
        except ClusterUnreachable as exc:
            missing = exc.reason == "no_bindings"
            return replace(facts, failure=str(exc), bindings_missing=missing)
    return replace(
        facts,
        powers=tuple(what for what, may in allowed.items() if may),
        unasked=tuple(what for what, may in allowed.items() if may is None),
    )


async def _needed(client: MonClient, facts: ClusterFacts) -> ClusterFacts:
    """Ask what the role asks. Returns the facts with the answers, and with what was denied."""
    replies: dict[str, Any] = {}  # by command
    denied = []
    for query, cap in NEEDED:
        if facts.unanswered and query.target == "mgr":
            continue  # each would take its whole deadline
        try:
            replies[query.prefix] = await asked(client, query)
        except CommandFailed as exc:
            if exc.code in DENIED:
                denied.append(cap)
        except ClusterSilent:
            if query.target != "mgr":
                raise
            facts = replace(facts, unanswered=query.prefix)
    status, osd_map, osd_tree = (
        reply if isinstance(reply := replies.get(query.prefix), dict) else {}
        for query in (cluster.STATUS, cluster.OSD_DUMP, cluster.OSD_TREE)
    )
    return replace(facts, denied=tuple(denied), status=status, osd_map=osd_map, osd_tree=osd_tree)


def _by_daemon(reply: Any) -> dict[str, list[str]] | None:
    """The versions that `ceph versions` shows of each kind of daemon."""
    if not isinstance(reply, dict) or not isinstance(reply.get("osd"), dict):
        return None
    return {kind: list(found) for kind, found in reply.items() if isinstance(found, dict)}


def _rotates(metadata: Any) -> dict[int, bool] | None:
    """From `ceph osd metadata`."""
    if not isinstance(metadata, list):
        return None
    said = {"0": False, "1": True}
    known = [(osd.get("id"), said.get(str(osd.get("rotational")))) for osd in tables(metadata)]
    return {osd: rotates for osd, rotates in known if isinstance(osd, int) and rotates is not None}


async def _balancing(client: MonClient) -> bool | None:
    """Whether the balancer is on; None without an answer that is understood."""
    active = str(await ask(client, _BALANCER)).strip().lower()
    return {"true": True, "false": False}.get(active)


async def _reporters(client: MonClient) -> int | None:
    said = str(await ask(client, _REPORTERS)).strip()
    return int(said) if said.isdecimal() else None


async def _window_hours(client: MonClient) -> float | None:
    """Hours of a week in which scrubs may start; None: not known."""
    try:
        return scrub_hours(*[float(await ask(client, query)) for query in _WINDOW])
    except (TypeError, ValueError):
        return None


def scrub_hours(hour: float, end_hour: float, day: float, end_day: float) -> float:
    """Hours of a week between these hours of the day and days of the week.

    Begin and end alike mean always; an end before the begin is on the next day or in that week.
    """
    return ((end_hour - hour) % 24 or 24) * ((end_day - day) % 7 or 7)


def _up(osd_map: Mapping[str, Any]) -> Iterator[str]:
    """The OSDs that are up."""
    for osd in tables(osd_map.get("osds")):
        if osd.get("up"):
            yield f"osd.{osd['osd']}"


async def _may(client: MonClient, power: Power, facts: ClusterFacts) -> bool | None:
    """Whether the key may run the command; None if no daemon can be asked.

    Another error than "permission denied" means that it may: rights are checked first, and the
    arguments name nothing that exists. Only an OSD that is gone has checked nothing: that is a no.
    OSDs and managers drop what is not allowed, so their silence is a no. A monitor says that it
    denies a command, so its silence says nothing.
    """
    target, within = power.target, SECONDS
    if target == "mgr" and facts.unanswered:
        return None
    if target == "osd":
        # An OSD that is down answers nothing, whatever the key may.
        target, within = next(_up(facts.osd_map), ""), _TELL_SECONDS
        if not target:
            return None
    try:
        await client.command(power.prefix, target=target, within=within, **power.arguments)
    except CommandFailed as exc:
        if power.target == "osd" and exc.code in _GONE:
            return False
        return exc.code not in DENIED
    except ClusterSilent:
        return None if power.target == "mon" else False
    return True
