"""Checks of pools and hosts: do copies lie as far apart as the cluster allows, can one be missing,
and does anyone see it?"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cephqos_base.terminal import first_names
from cephqos_doctor.cluster_facts import REPLICATED, ClusterFacts, tables
from cephqos_doctor.finding import Check, Finding, quoted

_ROTATES: Final = {"hdd": True, "ssd": False, "nvme": False}  # what a device class says


def _copies(facts: ClusterFacts) -> Iterator[Finding]:
    for pool, rule in _pools_with_rule(facts):
        yield from _few(pool, _needed_parts(pool, facts.osd_map))
        near, counts = _spread(rule, facts.osd_tree)
        if far := _wider(near, counts, pool.get("size", 0)):
            name = quoted(pool["pool_name"])
            yield Finding(
                str(pool["pool_name"]),
                f"this pool's rule puts each of {pool['size']} copies or parts on another {near},"
                f" and there are {counts[far]} of type {far}: one {far} that fails can take"
                " several",
                _new_rule(pool, far, _steps(rule)[0].get("item_name", ""))
                + f"ceph osd pool set {name} crush_rule by-{far}   # at a quiet hour: all its data"
                " moves",
            )


def _pools_with_rule(facts: ClusterFacts) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    rules = {rule.get("rule_id"): rule for rule in tables(facts.crush_rules)}
    for pool in facts.pools:
        yield pool, rules.get(pool.get("crush_rule"), {})


def _without_osds(facts: ClusterFacts) -> Iterator[Finding]:
    """Pools whose rule finds fewer buckets with OSDs than it needs. OSDs that are down or out
    count: they come back, or others report them."""
    for pool, rule in _pools_with_rule(facts):
        near, counts = _spread(rule, facts.osd_tree)
        size, there = pool.get("size", 0), counts.get(near, 0)
        if not near or there >= size:
            continue
        device_class = str(_steps(rule)[0].get("item_name")).partition("~")[2]
        of_class = f" of device class {device_class}" if device_class else ""
        give_class = _give_class(device_class, "osd.N") if device_class else ""
        yield Finding(
            str(pool["pool_name"]),
            f"this pool's rule puts {size} copies or parts on {size} of type {near}, and finds"
            f" {there} with an OSD{of_class}: its placement groups lack copies, or have no service",
            f"ceph osd pool set {quoted(pool['pool_name'])} crush_rule RULE   # one of `ceph osd"
            f" crush rule ls` that finds enough: data moves there{give_class}",
        )


def _give_class(device_class: str, osd: str) -> str:
    name = quoted(osd)
    return (
        f"\nceph osd crush rm-device-class {name}; ceph osd crush set-device-class"
        f" {quoted(device_class)} {name}   # for OSDs that have the wrong class: data moves, too"
    )


def _classes(facts: ClusterFacts) -> Iterator[Finding]:
    """OSDs whose device class says another medium than their device."""
    wrong: dict[tuple[str, bool], list[str]] = {}
    for node in tables(facts.osd_tree.get("nodes")):
        kind, rotates = str(node.get("device_class")), (facts.rotates or {}).get(node.get("id", -1))
        if rotates is not None and kind in _ROTATES and _ROTATES[kind] != rotates:
            wrong.setdefault((kind, rotates), []).append(str(node.get("name")))
    for (kind, rotates), osds in wrong.items():
        rotates_or_not = "rotates" if rotates else "does not rotate"
        yield Finding(
            first_names(osds),
            f"the device class is {kind}, and the device {rotates_or_not}, as the OSD sees it:"
            f" pools for {kind} lie there, or mClock takes the options of the other medium",
            "cat /sys/block/*/queue/rotational   # 1: disk. If it is wrong there, see"
            " docs/operate/runbooks/devices.md, Virtual disks. A cache in front of a disk (bcache)"
            " says 0: leave the class. Else:" + _give_class("hdd" if rotates else "ssd", osds[0]),
        )


def _classes_unknown(facts: ClusterFacts) -> str:
    known = facts.osd_tree and facts.rotates is not None
    return "" if known else "the tree of the OSDs, or what their devices are, is not known"


def _reporters(facts: ClusterFacts) -> Iterator[Finding]:
    """Clusters in which no one may report the OSDs of a host that dies."""
    nodes = tables(facts.osd_tree.get("nodes"))
    osds = {node.get("id") for node in nodes if node.get("type") == "osd"}
    hosts = [node for node in nodes if node.get("type") == "host"]
    hosts = [host for host in hosts if osds.intersection(host.get("children", ()))]
    if facts.reporters is None or not 1 < len(hosts) <= facts.reporters:
        return
    yield Finding(
        "monitors",
        f"{len(hosts)} hosts have OSDs, and {facts.reporters} must report an OSD that does not"
        " answer: OSDs of a host that dies stay up for 15 minutes, and clients wait",
        f"ceph config set mon mon_osd_min_down_reporters {len(hosts) - 1}   # then hosts with a bad"
        " link can mark the other down",
    )


def _reporters_unknown(facts: ClusterFacts) -> str:
    known = facts.osd_tree and facts.reporters is not None
    return "" if known else "the tree of the OSDs, or how many must report one, is not known"


def _needed_parts(pool: Mapping[str, Any], osd_map: Mapping[str, Any]) -> int | None:
    """How many copies or parts an object is read from (`k`); None: not known."""
    if pool.get("type") == REPLICATED:
        return 1
    profiles = osd_map.get("erasure_code_profiles")
    profile = profiles.get(pool.get("erasure_code_profile")) if isinstance(profiles, dict) else None
    k = str(profile.get("k", "")) if isinstance(profile, dict) else ""
    return int(k) if k.isdecimal() else None


def _few(pool: Mapping[str, Any], needed: int | None) -> Iterator[Finding]:
    """Pools in which one OSD that dies costs data, or service."""
    size, least = pool.get("size"), pool.get("min_size")
    if not isinstance(size, int) or not isinstance(least, int) or needed is None:
        return
    change = f"ceph osd pool set {quoted(pool['pool_name'])}"
    if size < 3:
        said = "one disk that dies loses data, or leaves a single copy of it"
    elif least == needed:
        said = "while OSDs are down, it takes writes that one disk more can lose"
    elif least == size:
        said = "one OSD that is down stops its clients"
    else:
        return
    if size < 3:
        mend = f"{change} size 3"
    elif size == needed + 1:  # one part to spare: no `min_size` is right
        mend = (
            f"ceph osd erasure-code-profile set PROFILE k={needed} m=2   # for a pool in its place"
        )
    else:
        mend = f"{change} min_size {needed + 1}"
    yield Finding(
        str(pool["pool_name"]),
        f"this pool's size is {size} and its min_size {least}: {said}",
        mend,
    )


def _steps(rule: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Where a rule takes and where it chooses; empty if it does either more than once."""
    known = [(str(step.get("op")), step) for step in tables(rule.get("steps"))]
    steps = [step for op, step in known if op != "emit" and not op.startswith("set_")]
    operations = [str(step.get("op")).partition("_")[0] for step in steps]
    return steps if operations in (["take", "choose"], ["take", "chooseleaf"]) else []


def _spread(rule: Mapping[str, Any], tree: Mapping[str, Any]) -> tuple[str, Mapping[str, int]]:
    """Over which type of bucket a rule spreads copies, and how many of each type hold an OSD that
    it may take, the widest type first. Empty if the rule takes or chooses more than once."""
    nodes = {node.get("id"): node for node in tables(tree.get("nodes"))}
    if not (steps := _steps(rule)) or not nodes:
        return "", {}
    root, _, device_class = str(steps[0].get("item_name")).partition("~")
    start = next((id_ for id_, node in nodes.items() if node.get("name") == root), None)
    held: dict[tuple[int, str], set[Any]] = {}  # by rank and type

    def holds(id_: Any) -> bool:
        node = nodes.get(id_, {})
        if node.get("type") == "osd":
            found = not device_class or node.get("device_class") == device_class
        else:
            found = any([holds(child) for child in node.get("children", ())])
        if found and id_ != start:
            kind = node.get("type_id", 0), str(node.get("type"))
            held.setdefault(kind, set()).add(id_)
        return found

    holds(start)
    counts = {kind: len(held[rank, kind]) for rank, kind in sorted(held, reverse=True)}
    return str(steps[1].get("type")), counts


def _wider(near: str, counts: Mapping[str, int], size: int) -> str:
    """The widest type of which there are enough, if it is wider than that of the rule."""
    enough = (kind for kind, count in counts.items() if kind == near or count >= size > 1)
    far = next(enough, near)
    return "" if far == near or near not in counts else far


def _new_rule(pool: Mapping[str, Any], far: str, taken: str) -> str:
    root, _, device_class = taken.partition("~")
    if pool.get("type") == REPLICATED:
        words = " ".join(quoted(word) for word in (root, far, device_class) if word)
        return f"ceph osd crush rule create-replicated by-{far} {words}\n"
    profile = quoted(pool.get("erasure_code_profile") or "PROFILE")
    return (
        f"ceph osd erasure-code-profile get {profile}   # make another with the same k, m and"
        f" plugin, and crush-failure-domain={far}; then\n"
        f"ceph osd crush rule create-erasure by-{far} OTHER_PROFILE\n"
    )


def _unknown(facts: ClusterFacts) -> str:
    known = facts.osd_map and facts.osd_tree and facts.crush_rules is not None
    return "" if known else "pools, rules or the tree of the OSDs are not known"


CHECKS: Final = (
    Check("copies-apart", _copies, _unknown),
    Check("rules-have-osds", _without_osds, _unknown),
    Check("classes-as-media", _classes, _classes_unknown),
    Check("down-is-reported", _reporters, _reporters_unknown),
)
