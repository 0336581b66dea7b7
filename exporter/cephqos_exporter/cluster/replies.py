"""The replies of a cluster's monitors and manager, as far as they are needed, as plain data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from cephqos_exporter.ceph.stamps import parse_stamp
from cephqos_exporter.not_understood import NotUnderstood, listed

T = TypeVar("T")
Level = Literal["shallow", "deep"]
LEVELS: Final[tuple[Level, Level]] = ("shallow", "deep")

# Pool options that stand for an option of the OSDs where they are set.
_POOL_INTERVALS: Final = ("scrub_min_interval", "scrub_max_interval", "deep_scrub_interval")
_FULL_LEVELS: Final = ("nearfull", "backfillfull", "full")
_APPLICATION_TEXT: Final = 100  # characters: an administrator may name any


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The part of `status` that is needed."""

    fsid: str
    epoch: int  # of the OSD map: while it stays, so do pools and flags
    manager: bool  # whether one is active
    pgs: int
    pgs_by_state: Mapping[str, int]  # "active+clean+scrubbing" -> 3
    # The monitors' replies, as they are: health.py reads them.
    health: Any = None
    election_epoch: Any = None


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as the OSD map has it."""

    id: int
    name: str
    type: str  # replicated, erasure
    pg_num: int
    flags: frozenset[str]
    size: int = 0  # copies, or shards of erasure code; 0: not known
    intervals: Mapping[str, float] = field(default_factory=dict)  # those set on the pool
    application: str = ""  # such as rbd; several with commas
    read_score: float | None = None  # of its primaries; None where the release has none


@dataclass(frozen=True, slots=True)
class OsdMap:
    """Pools, flags and OSDs."""

    epoch: int
    flags: frozenset[str]
    pools: Mapping[int, Pool]
    osds: Mapping[int, bool]  # whether each is up
    full_ratios: Mapping[str, float] = field(default_factory=dict)  # nearfull, backfillfull, full

    @property
    def osds_up(self) -> tuple[int, ...]:
        return tuple(osd for osd, up in self.osds.items() if up)


@dataclass(frozen=True, slots=True)
class PgStat:
    """One placement group's statistics; None where the release does not keep a figure."""

    pgid: str
    pool: int
    primary: int
    states: frozenset[str]
    scrubbed: float  # when the last scrub of any level ended; 0: never
    deep_scrubbed: float
    changed: float  # when its state last changed
    objects: int
    bytes: int
    objects_scrubbed: int | None  # of the scrub under way, else of the last one
    duration: float | None  # of the last scrub
    trim_queue: int = 0  # deleted snapshots that it has left to trim

    @property
    def scrubbing(self) -> bool:
        return "scrubbing" in self.states

    @property
    def level(self) -> Level:
        """Of the scrub under way."""
        return "deep" if "deep" in self.states else "shallow"

    @property
    def last_level(self) -> Level:
        """Of the last scrub that ended: a deep one sets both stamps."""
        return "deep" if self.deep_scrubbed >= self.scrubbed else "shallow"


MOVING_STATES: Final = ("recovering", "recovery_wait", "backfilling", "backfill_wait")
_MOVES_NOW: Final = frozenset({"recovering", "backfilling"})
_NO_OSD: Final = 0x7FFFFFFF  # in the place of a missing shard


@dataclass(frozen=True, slots=True)
class MovingGroup:
    """A placement group that recovers, or waits for it."""

    pgid: str
    left: int  # copies to make or move
    osds: frozenset[int]  # its primary, and the OSDs that receive
    moving: bool  # it has its slots


def text(value: Any) -> str:
    """What becomes a label; TypeError for what is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a text")
    return value


def whole(value: Any) -> int:
    """Numbers are checked here, since later code calculates with them; TypeError for others."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{type(value).__name__} instead of a whole number")
    return value


def parse_status(reply: Mapping[str, Any]) -> ClusterStatus:
    states = listed(reply["pgmap"]["pgs_by_state"])
    return ClusterStatus(
        fsid=text(reply["fsid"]),
        epoch=int(reply["osdmap"]["epoch"]),
        manager=bool(reply["mgrmap"]["available"]),
        pgs=int(reply["pgmap"]["num_pgs"]),
        pgs_by_state={text(entry["state_name"]): int(entry["count"]) for entry in states},
        health=reply.get("health"),
        election_epoch=reply.get("election_epoch"),
    )


def parse_osd_dump(reply: Mapping[str, Any], not_understood: NotUnderstood) -> OsdMap:
    pools = _most_of("osd dump: a pool", reply["pools"], _parse_pool, not_understood)
    return OsdMap(
        epoch=int(reply["epoch"]),
        flags=frozenset(reply["flags"].split(",")),
        pools={pool.id: pool for pool in pools},
        osds=dict(_most_of("osd dump: an OSD", reply["osds"], _parse_osd, not_understood)),
        full_ratios={level: _shown(reply[f"{level}_ratio"]) for level in _FULL_LEVELS},
    )


def _most_of(
    what: str, rows: Any, read: Callable[[Any], T], not_understood: NotUnderstood
) -> list[T]:
    """The rows that are understood; ValueError if none is: the cluster would look empty."""
    entries = not_understood.each(what, listed(rows), read)
    if rows and not entries:
        raise ValueError(f"{what}: none of {len(rows)} is as expected")
    return entries


def _parse_osd(entry: Mapping[str, Any]) -> tuple[int, bool]:
    return whole(entry["osd"]), bool(whole(entry["up"]))


def _parse_pool(entry: Mapping[str, Any]) -> Pool:
    options = entry["options"]
    return Pool(
        id=whole(entry["pool"]),
        name=text(entry["pool_name"]),
        type={1: "replicated", 3: "erasure"}.get(entry["type"], str(entry["type"])),
        pg_num=whole(entry["pg_num"]),
        size=whole(entry.get("size", 0)),
        flags=frozenset(entry["flags_names"].split(",")),
        application=",".join(sorted(entry.get("application_metadata", {})))[:_APPLICATION_TEXT],
        intervals={
            key: float(options[key]) for key in _POOL_INTERVALS if float(options.get(key, 0)) > 0
        },
        # Of the primaries as they are now; Ceph writes 0 where it cannot know.
        read_score=_shown(entry.get("read_balance", {}).get("score_acting", 0)) or None,
    )


def _shown(value: Any) -> float:
    """A number that the monitors keep with 32 bits: 0.85 is 0.8500000238418579 in their reply."""
    return round(float(value), 6)


def parse_pool_totals(
    reply: Mapping[str, Any], not_understood: NotUnderstood
) -> dict[int, Mapping[str, Any]]:
    """By pool, the sums over its placement groups, and as `store_stats` its space on OSDs."""
    return dict(_most_of("a pool's sums", reply["pool_stats"], _parse_totals, not_understood))


def _parse_totals(entry: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    return whole(entry["poolid"]), {**entry["stat_sum"], "store_stats": entry.get("store_stats")}


def parse_pgs(reply: Mapping[str, Any], not_understood: NotUnderstood) -> list[PgStat] | None:
    """Placement groups as `pg ls` and its kind list them: no list at all where there are none.

    None if none of those in the list is understood.
    """
    if reply.keys() <= {"pg_ready"}:
        return []
    rows = listed(reply["pg_stats"])
    pgs = not_understood.each("a placement group", rows, _parse_pg)
    return None if rows and not pgs else pgs


def parse_moving(
    reply: Mapping[str, Any], not_understood: NotUnderstood
) -> list[MovingGroup] | None:
    """Placement groups in one of MOVING_STATES; None if one of them is not understood."""
    if reply.keys() <= {"pg_ready"}:
        return []
    rows = listed(reply["pg_stats"])
    groups = not_understood.each("a placement group", rows, _parse_moving)
    return None if len(groups) < len(rows) else groups


def _parse_moving(row: Mapping[str, Any]) -> MovingGroup:
    sums, primary = row["stat_sum"], whole(row["acting_primary"])
    up, acting = _osds(row["up"]), _osds(row["acting"])
    # With a complete log it recovers on its acting OSDs: which of them lack objects is not said.
    receive = up - acting or up
    return MovingGroup(
        pgid=text(row["pgid"]),
        left=max(0, whole(sums["num_objects_degraded"]) + whole(sums["num_objects_misplaced"])),
        osds=receive | _osds([primary]),
        moving=not _MOVES_NOW.isdisjoint(row["state"].split("+")),
    )


def _osds(numbers: Sequence[Any]) -> frozenset[int]:
    return frozenset(osd for osd in map(whole, numbers) if 0 <= osd < _NO_OSD)


def _parse_pg(row: Mapping[str, Any]) -> PgStat:
    pgid = row["pgid"]
    sums = row["stat_sum"]
    return PgStat(
        pgid=pgid,
        pool=int(pgid.partition(".")[0]),
        primary=whole(row["acting_primary"]),
        states=frozenset(row["state"].split("+")),
        scrubbed=parse_stamp(row["last_scrub_stamp"]),
        deep_scrubbed=parse_stamp(row["last_deep_scrub_stamp"]),
        changed=parse_stamp(row["last_change"]),
        # Sums that Ceph has lost count of are below zero, and counters grow by these.
        objects=max(0, whole(sums["num_objects"])),
        bytes=max(0, whole(sums["num_bytes"])),
        objects_scrubbed=(
            max(0, whole(row["objects_scrubbed"])) if "objects_scrubbed" in row else None
        ),
        duration=_parse_duration(row),
        # Without it the listing of trimming groups is not understood, and that is counted there.
        trim_queue=whole(row.get("snaptrimq_len", 0)),
    )


def _parse_duration(row: Mapping[str, Any]) -> float | None:
    """Seconds of the last scrub.

    `last_scrub_duration` is in whole seconds, rounded up. `scrub_duration` is exact, in seconds
    with a fraction on 18.2 and in whole milliseconds on 20.2.
    """
    whole = row.get("last_scrub_duration")
    if not whole:
        return None
    exact = float(row.get("scrub_duration", 0))
    if not exact:
        return float(whole)
    milliseconds = exact.is_integer() or exact > whole + 0.001
    return exact / 1000 if milliseconds else exact


def count_states(pgs_by_state: Mapping[str, int]) -> dict[str, int]:
    """How many placement groups are in each state, alone or among others."""
    counts: dict[str, int] = {}
    for names, count in pgs_by_state.items():
        for name in names.split("+"):
            counts[name] = counts.get(name, 0) + count
    return counts


def count_states_by_pool(
    rows: Sequence[Mapping[str, Any]], not_understood: NotUnderstood
) -> dict[int, dict[str, int]] | None:
    """The same by pool, from placement groups in brief; None if none of them is understood."""
    by_pool: dict[int, dict[str, int]] = {}
    groups = not_understood.each("a placement group", rows, _parse_brief)
    if rows and not groups:
        return None
    for group, state in groups:
        pool = by_pool.setdefault(group, {})
        pool[state] = pool.get(state, 0) + 1
    return {pool: count_states(states) for pool, states in by_pool.items()}


def _parse_brief(row: Mapping[str, Any]) -> tuple[int, str]:
    return int(row["pgid"].partition(".")[0]), text(row["state"])
