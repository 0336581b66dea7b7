"""`cephqos doctor collect`: replies of an OSD and of the monitors, without names.

What it writes is a folder of tests/contract, with recordings of its own. So a maintainer can try a
release of Ceph that runs only at the user's. What may pass is a closed list, as with
`cephqos record --redact`: numbers, times and words of Ceph. Of the monitors' replies only what the
exporter reads is taken.
"""

import asyncio
import gzip
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from cephqos_base.errors import UsageError
from cephqos_base.pseudonyms import pseudonym
from cephqos_base.version import __version__
from cephqos_exporter.ceph import asok, cluster
from cephqos_exporter.ceph.cluster import ClusterQuery
from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_exporter.ceph.discovery import Socket
from cephqos_exporter.daemon_errors import DaemonError, ErrorReply, UnknownCommand

APART_SECONDS: Final = 10.0  # between the two recordings: counters are compared
_ANSWER_SECONDS: Final = 10.0
_GZIP_FROM_BYTES: Final = 8192
_OSDS: Final = 3  # of the cluster; the placement groups that they lead come with them
_GROUPS: Final = 500  # placement groups in brief

Ask = Callable[[ClusterQuery], Awaitable[Any]]
Replies = dict[str, Any]

_WORD_LIST: Final = """
    activating Active active all_read append apply Apr at Aug back backfill backfill_toofull
    backfill_unfound backfill_wait backfilling background_best_effort background_recovery balanced
    bytes cache call cephfs class_id clean cleanup client client_id ClientRec ClientReq commit
    commit_sent create creating creating_pool custom debug_random Dec deep default degraded
    delayed delete dev dispatched done down due duration duration_seconds e ec ec_overwrites
    erasure event failed_repair false Feb file for forced forced_backfill forced_recovery Fri from
    front full Given hashpspool hdd head header_read HEALTH_ERR HEALTH_OK HEALTH_WARN
    high_client_ops high_recovery_ops immediate in incomplete inconsistent Initial initiated Jan
    Jul Jun known_if_redirected l laggy last Latency LIMIT limit_top linear log Mar max May
    mclock_scheduler mgr min mlcod mode Mon mon msec nautilus no no_rw_locks nobackfill
    nodeep_scrub nodelete nodown noin none noout nopgchange norebalance norecover normal noscrub
    nosizechange nosnaptrim noup Nov number object_size Oct octopus of off ok omap on ondisk
    op_applied op_commit operator operator_requested ops or osd osd_backoff osd_op osd_op_reply
    osd_repop osd_repop_reply override p pacific pauserd pausewr pct peer peered peering periodic
    periodic_regular pg pglog_hardlimit ping prev_tag Primary prioritized prioritycache
    PriorityQueue profile_id purged_snapdirs queue queued queued_for_pg quincy r random rbd rc
    reached_pg read READY ready ready_top record recovering recovery_deletes recovery_toofull
    recovery_unfound recovery_wait redirected reef regular remapped repair replica ReplicaActive
    replicas replicated req_count Request requested RequestTag require_min_compat_client RESER
    reservation_top Reset retry rgw rw Sat scheduled scheduler scrub scrubbing selfmanaged_snaps
    sent Sep set_alloc_hint setxattr shallow size snapc snaptrim snaptrim_error snaptrim_wait
    sortbitwise sparse_read squid ssd stable stale Started started stat state Stray sub
    sub_op_applied sub_op_commit_rec sub_op_committed sub_op_started subops Sun supports_pool_eio
    tag tentacle throttled Thu top_req true truncate Tue umbrella undecoded undersized unknown
    unknown_client usec v w waiting Wed wpq write write_fadvise_dontneed write_size writefull zero
    """
_WORDS: Final = frozenset(_WORD_LIST.split())
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_-]*")
# What is no word: a placement group, the hash of an object, numbers and times.
_NO_WORDS: Final = re.compile(
    r"\b[0-9]+\.[0-9a-f]+(s[0-9]+)?\b|(?<=:)[0-9a-f]{8}(?=:)|(?<![A-Za-z_])[0-9][0-9a-fTZxs]*"
)
_ADDRESS: Final = re.compile(
    r"(v[12]:)?([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-f:]+\])(:[0-9]+)?(/[0-9]+)?"
)
_NO_ADDRESS: Final = "127.0.0.1:0/0"
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# As Ceph writes an object: pool:hash:namespace:key:name:snapshot.
_OBJECT: Final = re.compile(
    r"(-?[0-9]+:[0-9a-f]{8}:)(.*?)(:(?:head|snapdir|[0-9a-f]+))(?=[ ,)]|\Z)"
)
_IMAGE: Final = re.compile(r".*\brbd_data\.")
# Texts of Ceph's sources, in schemas.
_OF_SOURCES: Final = frozenset({"description", "metric_type", "nick", "units", "value_type"})
_NAMES: Final = frozenset({"pool_name", "entity", "quorum_names"})


class Cleaning:
    """Replaces all that may be a name in replies. The key is not kept."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def clean(self, value: Any, passed: frozenset[str] = frozenset(), key: str = "") -> Any:
        """The reply with numbers, times and words of Ceph; anything else is a pseudonym. Texts of
        the keys `passed` stay."""
        if isinstance(value, dict):
            return {name: self.clean(part, passed, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.clean(part, passed, key) for part in value]
        if not isinstance(value, str) or key in passed:
            return value
        return self.pseudonym("name", value) if key in _NAMES else self._text(value)

    def pseudonym(self, kind: str, name: str) -> str:
        return pseudonym(self._key, kind, name)

    def _text(self, text: str) -> str:
        if _UUID.fullmatch(text):
            return f"c0ffee00-0000-4000-8000-00{self.pseudonym('', text)[1:]}"
        objects: list[str] = []

        def taken(found: re.Match[str]) -> str:
            name = self.pseudonym("object", found[2])
            if _IMAGE.match(found[2]):
                name = f"rbd_data.{name.removeprefix('object-')}.{0:016x}"
            objects.append(name)
            return f"{found[1]}::\0{found[3]}"

        without = _ADDRESS.sub(_NO_ADDRESS, _OBJECT.sub(taken, text))
        words = _WORD.findall(_NO_WORDS.sub("", without))
        if any(word.replace("-", "_").strip("_") not in _WORDS for word in words):
            return self.pseudonym("text", text)
        for name in objects:
            without = without.replace("\0", name, 1)
        return without


async def osd_replies(socket: Socket) -> tuple[Replies, list[str]]:
    """What an OSD answers to all read-only commands, and those that it does not know."""
    replies: Replies = {}
    unknown: list[str] = []
    for prefix in sorted(READ_ONLY_COMMANDS):
        arguments = {"var": "fsid"} if prefix == "config get" else None
        try:
            answer = await asok.ask(str(socket.path), prefix, arguments, timeout=_ANSWER_SECONDS)
        except UnknownCommand:
            unknown.append(prefix)
        except ErrorReply:
            continue
        except DaemonError as error:
            found = f"osd.{socket.id}: {prefix}: {error.reason} ({error})"
            raise UsageError(f"{found}; expected an answer: cephqos doctor host") from error
        else:
            replies[prefix] = answer.value
    return replies, unknown


async def cluster_replies(ask: Ask) -> Replies:
    """What the exporter asks monitors and manager, of three OSDs, by the names of the files."""
    status = await ask(cluster.STATUS)
    osd_dump = await ask(cluster.OSD_DUMP)
    osds = [one for one in osd_dump["osds"] if one["up"]][:_OSDS]
    brief = await ask(cluster.PGS_IN_BRIEF)
    groups = brief["pg_stats"] if isinstance(brief, dict) else brief
    replies = {
        "status": _status(status),
        "osd_dump": _osd_dump(osd_dump, osds),
        "osd_tree": _osd_tree(await ask(cluster.OSD_TREE)),
        "osd_use": await ask(cluster.OSD_USE),
        "pools": await ask(cluster.POOL_TOTALS),
        "brief": {**brief, "pg_stats": groups[:_GROUPS]}
        if isinstance(brief, dict)
        else groups[:_GROUPS],
        "scrubbing": await ask(cluster.SCRUBBING_PGS),
    }
    for one in osds:
        replies[f"primary_{one['osd']}"] = await ask(cluster.pgs_of_primary(one["osd"]))
    return replies


def _picked(reply: Mapping[str, Any], *keys: str) -> Replies:
    return {key: reply[key] for key in keys if key in reply}


def _status(reply: Mapping[str, Any]) -> Replies:
    health = reply.get("health", {})
    checks = {
        name: _picked(check, "severity", "muted")
        | {"summary": _picked(check.get("summary", {}), "count")}
        for name, check in health.get("checks", {}).items()
    }
    return {
        **_picked(reply, "fsid", "pgmap", "election_epoch"),
        "health": _picked(health, "status") | {"checks": checks},
        "osdmap": _picked(reply.get("osdmap", {}), "epoch"),
        "mgrmap": _picked(reply.get("mgrmap", {}), "available"),
    }


def _osd_tree(reply: Mapping[str, Any]) -> Replies:
    """Without the names of hosts and racks."""
    return {
        part: [
            {key: value for key, value in node.items() if key != "name"}
            | {"name": node["name"] if node["type"] == "osd" else f"n{abs(node['id'])}"}
            for node in reply[part]
        ]
        for part in ("nodes", "stray")
        if part in reply
    }


_OF_A_POOL: Final = (
    "pool",
    "pool_name",
    "type",
    "size",
    "min_size",
    "pg_num",
    "flags_names",
    "read_balance",
)


_OF_THE_MAP: Final = (
    *("epoch", "fsid", "flags", "require_osd_release"),
    *("nearfull_ratio", "backfillfull_ratio", "full_ratio"),
)


def _osd_dump(reply: Mapping[str, Any], osds: Sequence[Mapping[str, Any]]) -> Replies:
    pools = [
        {
            **_picked(pool, *_OF_A_POOL),
            "options": {k: v for k, v in pool["options"].items() if isinstance(v, int | float)},
            "application_metadata": {
                name: {} for name in pool.get("application_metadata", {}) if name in _WORDS
            },
        }
        for pool in reply["pools"]
    ]
    kept = [_picked(one, "osd", "up", "in") for one in osds]
    return {
        **_picked(reply, *_OF_THE_MAP),
        "pools": pools,
        "osds": kept,
    }


def check_empty(folder: Path) -> None:
    """UsageError where something could be written over."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: found files in it, expected a new or empty folder")


async def record(
    socket: Socket, ask: Ask | None, folder: Path, *, apart: float = APART_SECONDS
) -> None:
    """Ask twice, and write the folder. `ask`: puts a question to the cluster; None: it is left."""
    cleaning = Cleaning()
    unknown: list[str] = []
    version = "an unknown release"
    of_cluster = None if ask is None else await cluster_replies(ask)  # may be denied: at once
    for moment in ("first", "later"):
        if moment == "later":
            await asyncio.sleep(apart)
        replies, unknown = await osd_replies(socket)
        version = str(replies.get("version", {}).get("version", version))
        _write(folder / moment, replies, cleaning)
    release: Replies = {
        "made": "recorded",
        "osd": ".",
        "moments": ["first", *("later",) * 4],
        "unknown_commands": unknown,
    }
    if of_cluster is not None:
        _write(folder / "cluster", of_cluster, cleaning)
        release["cluster"] = "."
    # JSON is YAML; the first keys need no quotes to be read by people.
    lines = [f"{key}: {orjson.dumps(value).decode()}\n" for key, value in release.items()]
    (folder / "release.yaml").write_text("".join(lines))
    (folder / "ORIGIN.md").write_text(
        f"Recorded from an OSD of {version} by `cephqos doctor collect` of cephqos {__version__}."
        " Names are replaced.\n"
    )


def _write(folder: Path, replies: Replies, cleaning: Cleaning) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, reply in replies.items():
        passed = _OF_SOURCES if prefix.endswith(" schema") else frozenset[str]()
        body = orjson.dumps(cleaning.clean(reply, passed))
        name = f"{prefix.replace(' ', '+')}.json"
        if len(body) < _GZIP_FROM_BYTES:
            (folder / name).write_bytes(body)
        else:
            (folder / f"{name}.gz").write_bytes(gzip.compress(body, 9, mtime=0))
