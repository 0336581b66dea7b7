"""Checks of pools and hosts: do copies lie as far apart as the cluster allows, can one be missing,
and does anyone see it?"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cephqos_doctor.cluster_facts import REPLICATED, ClusterFacts, tables
from cephqos_doctor.finding import Check, Finding, quoted


def _copies(facts: ClusterFacts) -> Iterator[Finding]:
    rules = {rule.get("rule_id"): rule for rule in tables(facts.crush_rules)}
    for pool in facts.pools:
        yield from _few(pool, _needed_parts(pool, facts.osd_map))
        rule = rules.get(pool.get("crush_rule"), {})
        near, far, count = _wider(pool, rule, facts.osd_tree)
        if far:
            name = quoted(pool["pool_name"])
            yield Finding(
                str(pool["pool_name"]),
                f"this pool's rule puts each of {pool['size']} copies or parts on another {near},"
                f" and there are {count} of type {far}: one {far} that fails can take several",
                _new_rule(pool, far, _steps(rule)[0].get("item_name", ""))
                + f"ceph osd pool set {name} crush_rule by-{far}   # at a quiet hour: all its data"
                " moves",
            )


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


def _wider(
    pool: Mapping[str, Any], rule: Mapping[str, Any], tree: Mapping[str, Any]
) -> tuple[str, str, int]:
    """Over which buckets a rule spreads, the widest that would do for its size, and their number.

    The latter empty if there is none.
    """
    nodes = {node.get("id"): node for node in tables(tree.get("nodes"))}
    ranks = {str(node.get("type")): node.get("type_id", 0) for node in nodes.values()}
    if not (steps := _steps(rule)):
        return "", "", 0
    root, _, device_class = str(steps[0].get("item_name")).partition("~")
    start = next((id_ for id_, node in nodes.items() if node.get("name") == root), None)
    near = str(steps[1].get("type"))

    buckets: dict[str, set[Any]] = {}  # those with OSDs, by type

    def holds(id_: Any) -> bool:
        node = nodes.get(id_, {})
        if node.get("type") == "osd":
            return not device_class or node.get("device_class") == device_class
        held = [holds(child) for child in node.get("children", ())]
        if any(held) and id_ != start:
            buckets.setdefault(str(node.get("type")), set()).add(id_)
        return any(held)

    holds(start)
    for far in sorted(buckets, key=lambda kind: -ranks[kind]):
        if ranks[far] > ranks.get(near, 0) and len(buckets[far]) >= pool.get("size", 0) > 1:
            return near, far, len(buckets[far])
    return near, "", 0


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
    Check("down-is-reported", _reporters, _reporters_unknown),
)
