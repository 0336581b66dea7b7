"""What recovery waits for, and how settings were changed, found out by asking a cluster."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cephqos_base.profiles import OVERRIDE_OPTION, PROFILE_OPTION
from cephqos_exporter.ceph import cluster
from cephqos_exporter.ceph.cluster import ClusterQuery
from cephqos_exporter.ceph.monclient import ClusterSilent, CommandFailed, MonClient
from cephqos_exporter.not_understood import MISREAD
from cephqos_exporter.qos.reservations import SIDES

SECONDS: Final = 10.0  # for each command
_MOST_OSDS: Final = 20  # to ask: those of most placement groups that wait
_MOST_CHANGES: Final = 100
LIMITS: Final = (
    "osd_max_backfills",
    *(f"osd_recovery_max_active{media}" for media in ("", "_hdd", "_ssd")),
)
_OPTIONS: Final = (*LIMITS, PROFILE_OPTION, OVERRIDE_OPTION)
_WAITING: Final = ("recovery_wait", "backfill_wait")
INTERVALS: Final = ("osd_scrub_max_interval", "osd_deep_scrub_interval")
_ENTITY: Final = re.compile(r"entity='([^']+)'")


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of one side of an OSD: local, as the primary; remote, for another primary."""

    osd: str
    side: str
    held: int
    most: int
    queued: int

    @property
    def refused(self) -> bool:
        return self.queued > 0 and self.held >= self.most


@dataclass(frozen=True, slots=True)
class Stored:
    """An option in the monitors' database. `mask`: the OSDs of the section that it is for."""

    section: str
    mask: str
    option: str
    value: str


@dataclass(frozen=True, slots=True)
class OptionChange:
    """A change of the monitors' database; no value: the option was not set."""

    time: str
    section: str
    option: str
    old: str | None
    new: str | None


@dataclass(frozen=True, kw_only=True)
class RecoveryFacts:
    """What recovery waits for."""

    waiting: int = 0  # placement groups
    slots: Sequence[Slots] = ()
    in_force: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by OSD and option
    stored: Sequence[Stored] = ()
    changes: Sequence[OptionChange] = ()  # the oldest first
    by: Mapping[str, str] = field(default_factory=dict)  # who changed an option last


def waiting(status: Mapping[str, Any]) -> int:
    """How many placement groups wait for slots; 0 if that is not known."""
    try:
        return sum(
            entry["count"]
            for entry in status["pgmap"]["pgs_by_state"]
            if not set(_WAITING).isdisjoint(entry["state_name"].split("+"))
        )
    except MISREAD:
        return 0


async def gather(client: MonClient, status: Mapping[str, Any]) -> RecoveryFacts:
    """Ask where placement groups wait. What has no answer, or one of another shape, is left out."""
    log = await ask(client, ClusterQuery("config log", {"num": _MOST_CHANGES}, "mon"))
    audit = await ask(
        client,
        ClusterQuery("log last", {"num": 1000, "level": "info", "channel": "audit"}, "mon"),
    )
    facts = RecoveryFacts(waiting=waiting(status), changes=changes_of(log), by=_changed_by(audit))
    if not facts.waiting:
        return facts
    dump = await ask(client, ClusterQuery("config dump", target="mon"))
    listed = await ask(client, ClusterQuery("pg ls", {"states": list(_WAITING)}))
    slots: list[Slots] = []
    in_force: dict[tuple[str, str], str] = {}
    for osd in _osds_of(listed):
        query = ClusterQuery("dump_recovery_reservations", target=osd)
        slots += slots_of(osd, await ask(client, query))
        for option in _OPTIONS:
            value = await ask(client, ClusterQuery("config get", {"var": option}, osd))
            if isinstance(value, dict) and option in value:
                in_force[osd, option] = str(value[option])
    return replace(facts, slots=slots, in_force=in_force, stored=stored_of(dump))


async def asked(client: MonClient, query: ClusterQuery) -> Any:
    """The answer; CommandFailed or ClusterUnreachable without one."""
    return await client.command(
        query.prefix, target=query.target, within=SECONDS, **query.arguments
    )


async def ask(client: MonClient, query: ClusterQuery) -> Any:
    """The answer; None without one. An OSD that hangs costs its own answer only."""
    try:
        return await asked(client, query)
    except (CommandFailed, ClusterSilent):
        return None


async def intervals(client: MonClient) -> Mapping[tuple[str, str], float]:
    """How often scrubs are due, by who believes it (osd, mgr) and option."""
    found = {}
    for option in INTERVALS:
        for who in ("osd", "mgr"):
            value = await ask(client, cluster.option(who, option))
            try:
                found[who, option] = float(value)
            except (TypeError, ValueError):
                continue
    return found


def _osds_of(listed: Any) -> Sequence[str]:
    """The OSDs of most placement groups that wait."""
    counts: Counter[int] = Counter()
    try:
        for row in listed.get("pg_stats", ()):
            counts.update(
                osd for osd in {*row["up"], *row["acting"]} if isinstance(osd, int) and osd >= 0
            )
    except MISREAD:
        return ()
    return [f"osd.{osd}" for osd, _ in counts.most_common(_MOST_OSDS) if osd < 2**31 - 1]


def slots_of(osd: str, reply: Any) -> Iterator[Slots]:
    for side in SIDES:
        try:
            reserver = reply[f"{side}_reservations"]
            queued = sum(len(queue["items"]) for queue in reserver["queues"])
            held = len(reserver["in_progress"])
            yield Slots(osd, side, held, int(reserver["max_allowed"]), queued)
        except MISREAD:
            continue


def stored_of(dump: Any) -> Sequence[Stored]:
    try:
        return [
            Stored(row["section"], row["mask"], row["name"], str(row["value"]))
            for row in dump
            if row["name"] in _OPTIONS
        ]
    except MISREAD:
        return ()


def changes_of(log: Any) -> Sequence[OptionChange]:
    """Changes of options, the oldest first. The log has the newest first."""
    found = []
    try:
        for entry in log:
            for change in entry["changes"]:
                section, _, option = change["name"].rpartition("/")
                old, new = change.get("previous_value"), change.get("new_value")
                found.append(OptionChange(entry["timestamp"], section, option, old, new))
    except MISREAD:
        return ()
    return found[::-1]


def _changed_by(audit: Any) -> Mapping[str, str]:
    """The user who changed each option last, from the audit log."""
    by: dict[str, str] = {}
    try:
        for entry in audit:
            said = entry["message"]
            if ("config set" in said or "config rm" in said) and (who := _ENTITY.search(said)):
                by |= {name: who[1] for name in _OPTIONS if f'"{name}"' in said}
    except MISREAD:
        return {}
    return by
