"""Checks of a cluster for what a run that was killed, a repair or an upgrade has left behind."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cephqos_base.terminal import first_names
from cephqos_doctor.cluster_facts import ClusterFacts, tables
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import version_of

# As cephqos_loadgen.cluster.run_keys writes them; a test compares.
KEY: Final = "cephqos/run"
HEARTBEAT: Final = f"{KEY}/heartbeat"
STEPS: Final = f"{KEY}/steps/"
_STALE_SECONDS: Final = 60.0
RESTORE: Final = "cephqos run --restore-only --conf /etc/ceph/ceph.conf"
# What a run sets for its own time, and an operator for maintenance.
_FLAGS: Final = frozenset((
    "norecover", "nobackfill", "norebalance", "noscrub", "nodeep-scrub", "noout", "noin",
    "nodown", "noup", "nosnaptrim", "pauserd", "pausewr",
))  # fmt: skip
_PAUSES: Final = ("pauserd", "pausewr")  # `ceph osd unset` knows them as one
# Options that each OSD has by itself: what it measured, what its host has room for, where it is.
_OWN: Final = (
    "osd_mclock_max_capacity_iops",
    "osd_memory_target",
    "crush_location",
    "container_image",
    "bluestore_prefer_deferred_size",
    "cluster_addr",
    "public_addr",
)
# What an OSD stores with. A size of its cache takes the place of the one that it finds by itself.
_STORE: Final = (
    "bluestore_rocksdb_options",
    "bluestore_allocator",
    "bluefs_allocator",
    "bluestore_cache_size",
)
_APPLICATION: Final = "cephqos"
_BEING_MADE: Final = re.compile(r"cephqos\.[0-9a-f]{16}\..+")


def _run(facts: ClusterFacts) -> Iterator[Finding]:
    """A key of a run that has died, or steps without a key."""
    keys = facts.run_keys or {}
    holder = _table(keys.get(KEY))
    steps = [key for key in keys if key.startswith(STEPS)]
    if not keys or _lives(facts):
        return
    who = f"run {holder.get('run', '?')} on {holder.get('host', '?')}" if holder else "a run"
    changed = (
        f"left {len(steps)} changes that are not undone" if steps else "left its key, and no change"
    )
    yield Finding(KEY, f"{who} has died or was ended: it {changed}", RESTORE)


def _lives(facts: ClusterFacts) -> bool:
    """Whether a run lives, as far as this is known."""
    keys = facts.run_keys or {}
    holder, beat = _table(keys.get(KEY)), _table(keys.get(HEARTBEAT))
    last = beat.get("time") if beat.get("token") == holder.get("token") else holder.get("began")
    return isinstance(last, int | float) and abs(time.time() - last) < _STALE_SECONDS


def _table(value: Any) -> Mapping[str, Any]:
    try:
        data = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _flags(facts: ClusterFacts) -> Iterator[Finding]:
    """Flags that hold work up while no run lives: they silence alerts of ours, too."""
    if _lives(facts):
        return
    known = "no run is under way" if facts.run_keys is not None else "if no run is under way"
    flags = str(facts.osd_map.get("flags", "")).split(",")
    for flag in sorted(_FLAGS.intersection(flags)):
        yield Finding(
            "the cluster",
            f"the flag {flag} is set ({known}): it holds work up, and may silence"
            " alerts about that for four hours",
            f"ceph osd unset {'pause' if flag in _PAUSES else flag}   # unless someone works on the"
            " cluster",
        )
    for osd in tables(facts.osd_map.get("osds")):
        if "noup" in osd.get("state", ()):
            name = quoted(f"osd.{osd.get('osd')}")
            yield Finding(
                name,
                f"it has the flag noup ({known}): it cannot come up",
                f"ceph osd unset-group noup {name}   # unless someone works on it",
            )
    for kind in ("crush_node_flags", "device_class_flags"):
        groups = facts.osd_map.get(kind)
        for group, names in groups.items() if isinstance(groups, dict) else ():
            for flag in names if isinstance(names, list) else ():
                yield Finding(
                    str(group),
                    f"its OSDs have the flag {flag} ({known})",
                    f"ceph osd unset-group {quoted(str(flag))} {quoted(str(group))}   # unless"
                    " someone works on it",
                )


def _pools(facts: ClusterFacts) -> Iterator[Finding]:
    """Pools that a run was still making or filling when it died."""
    if _lives(facts):
        return
    for pool in facts.pools:
        name, applications = pool.get("pool_name", ""), pool.get("application_metadata")
        mark = applications.get(_APPLICATION) if isinstance(applications, dict) else None
        unfinished = isinstance(mark, dict) and "spec" not in mark
        if unfinished or _BEING_MADE.fullmatch(str(name)):
            run = mark.get("run", "?") if isinstance(mark, dict) else "?"
            yield Finding(
                f"pool {name}",
                f"run {run} has made it and did not fill it to its end: nothing uses it",
                f"{RESTORE}   # if that names nothing: ceph osd pool rm {quoted(name)}"
                f" {quoted(name)} --yes-i-really-really-mean-it",
            )


def _reweights(facts: ClusterFacts) -> Iterator[Finding]:
    """Overrides of weights: right for an hour, and forgotten for years."""
    weights = {osd.get("osd"): osd.get("weight") for osd in tables(facts.osd_map.get("osds"))}
    less = [f"osd.{osd}" for osd, it in weights.items() if isinstance(it, float) and 0 < it < 1]
    if less:
        are = "OSD is" if len(less) == 1 else "OSDs are"
        yield Finding(
            ", ".join(less[:5]) + ("" if len(less) <= 5 else " …"),
            f"{len(less)} {are} reweighted: each gets less data than its size says",
            f"ceph osd reweight {less[0]} 1   # one at a time, if the layout for which it was set"
            " is gone. Not an OSD that would then be full",
        )


def _set_for_some(facts: ClusterFacts) -> Iterator[Finding]:
    """Options that only some OSDs have: one of these may be why it is not like the others."""
    if _lives(facts):
        return
    present = {f"osd.{osd.get('osd')}" for osd in tables(facts.osd_map.get("osds"))}
    values: dict[str, dict[str, str]] = {}  # by option and OSD
    for entry in tables(facts.stored):
        section, name = str(entry.get("section")), str(entry.get("name"))
        if section in present and not entry.get("mask") and not name.startswith(_OWN):
            values.setdefault(name, {})[section] = str(entry.get("value"))
    for name, by_osd in sorted(values.items()):
        if len(by_osd) < len(present):
            shown = first_names([f"{osd} ({value})" for osd, value in by_osd.items()])
            first = next(iter(by_osd))
            yield Finding(
                name,
                f"it is set for {shown}, and not for the other OSDs",
                f"ceph config get osd {quoted(name)}   # what others have\nceph config rm"
                f" {quoted(first)} {quoted(name)}   # unless this OSD is meant to differ",
            )


def _store_changed(facts: ClusterFacts) -> Iterator[Finding]:
    """Options of BlueStore and RocksDB, right for an older release or another disk."""
    for entry in tables(facts.stored):
        section, name = str(entry.get("section")), str(entry.get("name"))
        if section in ("global", "osd") and name.startswith(_STORE):
            mask = f"/{entry['mask']}" if entry.get("mask") else ""
            yield Finding(
                name,
                f"it is set for {section}{mask} ({entry.get('value')}): releases choose it well,"
                " unless it has a reason, and an old value makes commits slow on a newer one",
                f"ceph config rm {quoted(section + mask)} {quoted(name)}   # then restart one OSD,"
                " and compare its commits with those of others for a day",
            )


def _stored_unknown(facts: ClusterFacts) -> str:
    return "" if facts.stored is not None else "the options that monitors keep are not known"


def _upgrade(facts: ClusterFacts) -> Iterator[Finding]:
    """All OSDs run a later release than the map requires. Names go by the alphabet: r is 18."""
    required = str(facts.osd_map.get("require_osd_release", ""))
    versions = (facts.versions or {}).get("osd", ())
    majors = {version_of(text)[:1] for text in versions}
    if not required or len(majors) != 1 or majors == {()}:
        return
    ((major,),) = majors
    if ord(required[0]) - ord("a") + 1 < major:
        named = re.search(r"\) ([a-z]+) \(", versions[0])
        name = named[1] if named else "NAME"
        yield Finding(
            "the cluster",
            f"all OSDs run Ceph {major}, and the map still allows those of {required}: the last"
            " step of the upgrade is missing",
            f"ceph osd require-osd-release {name}   # cannot be taken back",
        )


def _release_unknown(facts: ClusterFacts) -> str:
    known = facts.osd_map.get("require_osd_release") and facts.versions
    return "" if known else "the releases of the OSDs, or what the map requires, are not known"


def _keys_unknown(facts: ClusterFacts) -> str:
    return "" if facts.run_keys is not None else "needs client.admin, or --try-powers"


def _no_map(facts: ClusterFacts) -> str:
    return "" if facts.osd_map else "the map of the OSDs is not known"


CHECKS: Final = (
    Check("no-run-left", _run, _keys_unknown),
    Check("no-flag-left", _flags, _no_map),
    Check("no-pool-left", _pools, _no_map),
    Check("no-reweight-left", _reweights, _no_map),
    Check("set-for-all", _set_for_some, _stored_unknown),
    Check("store-as-released", _store_changed, _stored_unknown),
    Check("upgrade-finished", _upgrade, _release_unknown),
)
