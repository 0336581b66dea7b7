"""What a folder of saved replies says of a cluster: files that people send one another.

`gather` reads the files and makes DumpFacts, which `cephqos doctor dump` judges. A file is known by
what is in it, never by its name alone, since everybody names such files in another way. Only where
the reply itself does not say which OSD gave it, the name must.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.units import osd_order
from cephqos_doctor.cluster_facts import scrub_hours
from cephqos_doctor.host_facts import OsdFacts, read_osd, version_of
from cephqos_exporter.ceph.stamps import parse_stamp
from cephqos_exporter.not_understood import MISREAD, NotUnderstood
from cephqos_exporter.qos.tags import MCLOCK
from cephqos_insight.capacity.from_prometheus import model_of

_LARGEST: Final = 256 << 20  # bytes of a file: placement groups of a large cluster
_MOST_FILES: Final = 20_000
_OSD_IN_NAME: Final = re.compile(r"osd[._-]?(\d+)(?!\d)")
# Where a reply begins: at most _NEAR characters behind what a command wrote before it, or behind
# another reply. `ceph tell osd.*` writes the name of each OSD first.
_BEGIN: Final = re.compile(r"^(?:(osd\.\d+): *)?(?=[\[{])", re.MULTILINE)
_NEAR: Final = 16 << 10
# By command: what people name a file with its reply. If such a file holds no reply, a finding
# says so.
_FILE_NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    command: re.compile(command.replace(" ", ".?").replace("dump_op_", ""))
    for command in (
        *("balancer status", "config diff", "config dump", "config show", "dump_op_pq_state"),
        *("osd metadata", "osd tree", "pg dump"),
    )
}
_OTHER_DAEMON: Final = re.compile(r"ceph-(?:mon|mgr|mds|client|rgw)|(?:mon|mgr|mds|client|rgw)\.")
_FIRST_MCLOCK: Final = 17  # the first release whose OSDs run mClock by default
# Defaults of the options that checks need, where their values were not saved.
_DEFAULTS: Final[Mapping[str, str]] = {
    "osd_mclock_profile": "balanced",
    "osd_mclock_override_recovery_settings": "false",
    "osd_mclock_max_sequential_bandwidth_ssd": "1258291200",
    "osd_memory_target": "4294967296",
    "bluestore_throttle_bytes": "67108864",
    "bluestore_throttle_cost_per_io": "0",
    "bluestore_throttle_cost_per_io_hdd": "670000",
    "bluestore_throttle_cost_per_io_ssd": "4000",
}
# `ceph config dump` as a person reads it, and the levels of its options.
_TABLE: Final = re.compile(r"^WHO\s+MASK\s+LEVEL\s+OPTION\s+VALUE", re.MULTILINE)
_LEVELS: Final = ("basic", "advanced", "dev", "unknown")
# `ceph config show osd.N`, which monitors and the manager answer, and the sources of its values.
_SHOWN: Final = re.compile(r"^NAME\s+VALUE\s+SOURCE\b.*", re.MULTILINE)
_NOT_SET: Final = ("default", "override")
_SOURCES: Final = (*_NOT_SET, "mon", "file", "env", "cmdline")
_DEEP_SECONDS: Final = 7 * 86400.0  # the default of osd_deep_scrub_interval
# The default of mon_warn_pg_not_deep_scrubbed_ratio: Ceph warns when a deep scrub is late by this
# share of its interval. It begins with the first scrub after its interval, so on a healthy cluster
# many are a day or two late.
_WARN_RATIO: Final = 0.75


@dataclass(frozen=True, slots=True)
class SetOption:
    """A line of `ceph config dump`."""

    section: str  # global, osd, osd.3
    mask: str  # class:hdd, host:a; empty: none
    name: str
    value: str


@dataclass(slots=True)
class Saved:
    """What the files of a folder hold. Reading a file adds to it."""

    options: list[SetOption] = field(default_factory=list)
    metadata: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by OSD
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)  # by OSD and command
    # By OSD: source and value of each option, as `ceph config show osd.N` has them.
    shown: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    tree: list[Mapping[str, Any]] = field(default_factory=list)
    placement: Mapping[str, Any] = field(default_factory=dict)
    balancing: bool | None = None


@dataclass(frozen=True, kw_only=True)
class DumpFacts:
    """A cluster as saved replies show it."""

    osds: Sequence[OsdFacts]
    policy: bool = False
    read: Sequence[str] = ()  # the commands whose replies were found
    unread: Mapping[str, Path] = field(default_factory=dict)  # by command: a file without its reply
    balancing: bool | None = None  # whether the balancer is on; None: not known
    window_hours: float | None = None  # of a week in which scrubs may start; None: not known
    pgs: int = 0  # placement groups whose times are understood
    overdue: int = 0  # placement groups so late that Ceph warns of their deep scrub


def gather(folder: Path) -> DumpFacts:
    """Read every file of the folder. Files that are no replies of Ceph are passed over."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder with saved replies, such as a sosreport")
    saved = Saved()
    files_with_reply = Counter[str]()  # by command
    unread: dict[str, Path] = {}
    for path in _files(folder):
        commands = _store_file(saved, path)
        files_with_reply.update(commands)
        if not commands and not _OTHER_DAEMON.search(path.name):
            for command, name in _FILE_NAMES.items():
                if name.search(path.name):
                    unread.setdefault(command, path.relative_to(folder))
    if not files_with_reply:
        raise UsageError(
            f"{folder}: no file in it is a reply of Ceph that is understood. Expected any of: ceph"
            " config dump, ceph osd metadata, ceph osd tree, ceph pg dump, ceph balancer status,"
            " ceph report (with --format json), ceph config show osd.N, and ceph daemon osd.N"
            " config show, config diff, dump_op_pq_state"
        )
    pgs, overdue = _overdue(saved)
    read = sorted(files_with_reply.items())
    return DumpFacts(
        osds=tuple(_osds(saved)),
        read=tuple(f"{command} ({n} files)" if n > 1 else command for command, n in read),
        unread={command: unread[command] for command in sorted(unread.keys() - files_with_reply)},
        balancing=_balancing(saved),
        window_hours=_window(saved.options),
        pgs=pgs,
        overdue=overdue,
    )


def _files(folder: Path) -> Iterator[Path]:
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if number >= _MOST_FILES:
            raise UsageError(f"{folder}: more than {_MOST_FILES} files: name the folder of Ceph")
        try:
            if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= _LARGEST:
                yield path
        except OSError:
            continue


def _store_file(saved: Saved, path: Path) -> set[str]:
    """Store the replies of a file. Returns the commands that they answer."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    commands = {_store_reply(saved, reply, osd, path) for osd, reply in _replies(text)}
    if match := _TABLE.search(text, 0, _NEAR):
        saved.options += _rows_of_table(text[match.end() :])
        commands.add("config dump")
    if match := _SHOWN.search(text, 0, _NEAR):
        rows = (line.split()[:3] for line in text[match.end() :].splitlines())
        commands.add(_store_shown(saved, [row for row in rows if len(row) == 3], _osd_of(path)))
    return commands - {""}


def _replies(text: str) -> Iterator[tuple[str, Any]]:
    """Each reply of a file, and the OSD that gave it where the line says so."""
    end = 0
    while match := _BEGIN.search(text, end, end + _NEAR):
        try:
            reply, end = json.JSONDecoder().raw_decode(text, match.end())
            yield match[1] or "", reply
        except (ValueError, RecursionError):
            if end:
                return
            end = match.end() + 1  # a line of something else, such as `[WRN] …`


def _osd_of(path: Path) -> str:
    """The last OSD in a file's name; empty without one. Folders may bear the names of others."""
    names = _OSD_IN_NAME.findall(path.name)
    return f"osd.{names[-1]}" if names else ""


def _store_reply(saved: Saved, reply: Any, osd: str, path: Path) -> str:
    """Store one reply. Returns the command that it answers; empty if that is not used here."""
    osd = osd or _osd_of(path)
    if isinstance(reply, list):
        return _store_list(saved, reply, osd)
    return _store_object(saved, reply, osd) if isinstance(reply, dict) else ""


def _store_shown(saved: Saved, rows: Iterable[Sequence[Any]], osd: str) -> str:
    """Store options of an OSD from rows of name, value and source, as `_store_reply` does."""
    options = {
        str(name): (str(source), str(value))
        for name, value, source in rows
        if str(source) in _SOURCES
    }
    if not osd or not options:
        return ""
    saved.shown.setdefault(osd, {}).update(options)
    return "config show"


def _rows_of_table(text: str) -> Iterator[SetOption]:
    """The rows of the table that `ceph config dump` writes: WHO MASK LEVEL OPTION VALUE."""
    for line in text.splitlines():
        words = line.split()
        level = next((n for n, word in enumerate(words) if word in _LEVELS), None)
        if level not in (1, 2) or len(words) < level + 3:
            continue
        mask = words[1] if level == 2 else ""  # in most rows the column is empty
        yield SetOption(words[0], mask, name=words[level + 1], value=words[level + 2])


def _store_list(saved: Saved, reply: list[Any], osd: str) -> str:
    rows = [row for row in reply if isinstance(row, dict)]
    if not rows:
        return ""
    if {"section", "name", "value"} <= rows[0].keys():
        for row in rows:
            if {"section", "name", "value"} <= row.keys():
                section, name, value = (str(row[key]) for key in ("section", "name", "value"))
                saved.options.append(SetOption(section, str(row.get("mask", "")), name, value))
        return "config dump"
    if {"id", "osd_data"} <= rows[0].keys() or {"id", "osd_objectstore"} <= rows[0].keys():
        saved.metadata |= {f"osd.{row['id']}": row for row in rows if "id" in row}
        return "osd metadata"
    shown = [row for row in rows if {"name", "value", "source"} <= row.keys()]
    return _store_shown(saved, [(row["name"], row["value"], row["source"]) for row in shown], osd)


def _store_object(saved: Saved, reply: Mapping[str, Any], osd: str) -> str:
    if isinstance(reply.get("osd_metadata"), list):  # of `ceph report`
        return _store_list(saved, reply["osd_metadata"], osd)
    if {"id", "osd_data"} <= reply.keys():  # of one OSD
        return _store_list(saved, [reply], osd)
    if isinstance(reply.get("nodes"), list) and "stray" in reply:
        saved.tree += [node for node in reply["nodes"] if isinstance(node, dict)]
        return "osd tree"
    placement = reply.get("pg_map", reply)
    if isinstance(placement, dict) and isinstance(placement.get("pg_stats"), list):
        saved.placement = placement
        return "pg dump"
    if {"active", "mode", "plans"} <= reply.keys():
        saved.balancing = bool(reply["active"])
        return "balancer status"
    command, name = _command_and_osd(reply)
    name = name or osd
    if not command or not name:
        return ""
    saved.replies.setdefault(name, {})[command] = reply
    return command


def _command_and_osd(reply: Mapping[str, Any]) -> tuple[str, str]:
    """The command that an OSD answered, and the OSD; empty where the reply does not say it."""
    if "osd_op_queue" in reply and str(reply.get("name", "")).startswith("osd."):
        return "config show", str(reply["name"])
    if isinstance(reply.get("diff"), dict):
        return "config diff", ""
    if any(key.startswith("OSD:ShardedOpWQ") for key in reply):
        return "dump_op_pq_state", ""
    return "", ""


def _osds(saved: Saved) -> Iterator[OsdFacts]:
    names = (
        saved.metadata.keys()
        | saved.replies.keys()
        | saved.shown.keys()
        | {str(node.get("name")) for node in saved.tree if node.get("type") == "osd"}
    )
    classes = {str(node.get("name")): str(node.get("device_class", "")) for node in saved.tree}
    for name in sorted(names, key=osd_order):
        metadata = saved.metadata.get(name, {})
        rotational = str(metadata.get("bluestore_bdev_rotational", metadata.get("rotational")))
        device_class = classes.get(name) or str(metadata.get("default_device_class", ""))
        version = version_of(str(metadata.get("ceph_version_short", "")))
        release = version[0] if version else None
        osd = read_osd(name, _replies_of(saved, name, device_class, release))
        if osd is None:
            continue
        yield replace(
            osd,
            version=version,
            rotational={"1": True, "0": False}.get(rotational),
            device_class=device_class,
            model=model_of(metadata),
        )


def _replies_of(
    saved: Saved, osd: str, device_class: str, release: int | None
) -> Mapping[str, Any]:
    """The replies of an OSD. For one that was not saved: what it would be, as far as known.

    The value of an option is from the first of these that has it:
    1. `ceph config show osd.N`,
    2. `ceph config dump`, only where the first was not saved,
    3. the release's default of osd_op_queue,
    4. `_DEFAULTS`.
    If neither 1 nor 2 was saved, nothing is known: not even that options have their defaults.
    """
    if shown := saved.shown.get(osd, {}):
        changed = {name: value for name, (source, value) in shown.items() if source not in _NOT_SET}
    else:
        changed = dict(_set_for_osd(saved.options, osd, saved.metadata.get(osd, {}), device_class))
    options = dict(_configuration(changed, release)) if saved.options or shown else {}
    options |= {name: value for name, (_, value) in shown.items()}
    diff = {name: {"mon": value, "final": _final(name, value)} for name, value in changed.items()}
    supposed = {"config diff": {"diff": diff}, "config show": options}
    return supposed | saved.replies.get(osd, {})


def _set_for_osd(
    options: Iterable[SetOption], osd: str, metadata: Mapping[str, Any], device_class: str
) -> Mapping[str, str]:
    """What `config dump` sets for an OSD. The nearer section wins, then a line with a mask, then
    the later line."""
    masks = {"", f"host:{metadata.get('hostname', '')}", f"class:{device_class}"}
    order = {"global": 0, "osd": 1, osd: 2}
    applied = [option for option in options if option.section in order and option.mask in masks]
    applied.sort(key=lambda option: (order[option.section], option.mask != ""))
    return {option.name: option.value for option in applied}


def _final(name: str, value: str) -> str:
    """The value in force: mClock sets every sleep to 0. What else an OSD changed is not known.

    Under WPQ a sleep keeps its value, but `tuning` looks at sleeps only of OSDs with mClock.
    """
    return "0" if re.search(r"_sleep(_|$)", name) else value


def _configuration(changed: Mapping[str, str], release: int | None) -> Mapping[str, str]:
    """Options that were changed, and the defaults of this release for the others."""
    known = dict(_DEFAULTS)
    if release is not None:
        known["osd_op_queue"] = MCLOCK if release >= _FIRST_MCLOCK else "wpq"
    return known | {name: _final(name, value) for name, value in changed.items()}


def _balancing(saved: Saved) -> bool | None:
    """Whether the balancer is on, by its status or else by its option."""
    if saved.balancing is not None:
        return saved.balancing
    for option in saved.options:
        if option.name == "mgr/balancer/active":
            return option.value.lower() in ("true", "1")
    return None


def _set_for_all(options: Iterable[SetOption], sections: Collection[str]) -> Mapping[str, str]:
    """What is set in these sections without a mask: for every daemon of the kind."""
    return {
        option.name: option.value
        for option in options
        if option.section in sections and not option.mask
    }


def _window(options: Iterable[SetOption]) -> float | None:
    """Hours of a week in which scrubs may start, by what is set for all OSDs."""
    values = _set_for_all(options, ("global", "osd"))
    try:
        hours = [float(values.get(f"osd_scrub_{end}_hour", 0)) for end in ("begin", "end")]
        days = [float(values.get(f"osd_scrub_{end}_week_day", 0)) for end in ("begin", "end")]
    except ValueError:
        return None
    return scrub_hours(*hours, *days)


def _overdue(saved: Saved) -> tuple[int, int]:
    """Placement groups whose times are understood, and those of whose deep scrub Ceph warns."""
    stats = [row for row in saved.placement.get("pg_stats", ()) if isinstance(row, dict)]
    known = [row for row in stats if row.get("state") != "unknown"]  # the others' times are 0
    values = _set_for_all(saved.options, ("global", "mon", "mgr", "osd"))
    try:
        now = parse_stamp(saved.placement["stamp"])
        interval = float(values.get("osd_deep_scrub_interval", _DEEP_SECONDS))
        ratio = float(values.get("mon_warn_pg_not_deep_scrubbed_ratio", _WARN_RATIO))
    except MISREAD:
        now = 0.0
    if not now:
        return 0, 0
    stamps = NotUnderstood().each(
        "a placement group", known, lambda row: parse_stamp(row["last_deep_scrub_stamp"])
    )
    return len(stamps), sum(now - stamp > interval * (1 + ratio) for stamp in stamps)
