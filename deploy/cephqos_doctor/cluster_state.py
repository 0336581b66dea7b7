"""Checks of a cluster: is there a manager to ask, do the monitors' clocks agree, has each OSD
addresses of its own, and is a client fenced?"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.key import set_caps


def _manager(facts: ClusterFacts) -> Iterator[Finding]:
    manager = facts.status.get("mgrmap")
    if isinstance(manager, dict) and manager.get("available") is False:
        yield Finding(
            "the cluster",
            "no manager is active: figures of scrub, recovery and pools stand still",
            "ceph mgr stat   # and start a manager: systemctl start ceph-mgr.target"
            " (cephadm: ceph orch ps --daemon-type mgr; Rook: the deployment rook-ceph-mgr-a)",
        )
    elif facts.unanswered:
        yield Finding(
            "the manager",
            f"it is active and did not answer `{facts.unanswered}` of {facts.name}: it hangs, or"
            " the key has no caps for managers, which are then silent",
            f"{set_caps(facts.name)}   # if it has no mgr caps: ceph auth get\n"
            "ceph mgr fail   # if it hangs: another one takes over",
        )


def _clocks(facts: ClusterFacts) -> Iterator[Finding]:
    skew = facts.health_check("MON_CLOCK_SKEW")
    if isinstance(skew, dict):
        message = skew.get("summary", {}).get("message", "clock skew detected")
        yield Finding(
            "the cluster",
            f"the monitors' clocks differ ({message}): what happens on two hosts cannot be"
            " compared",
            "chronyc makestep   # on those hosts; ceph time-sync-status tells which",
        )


# Where an OSD listens: each has several addresses with a port.
_LISTENS: Final = (
    "public_addrs",
    "cluster_addrs",
    "heartbeat_front_addrs",
    "heartbeat_back_addrs",
)


def addresses(osd_map: Mapping[str, Any]) -> dict[str, set[str]]:
    """By address and port, the OSDs that are up and listen there."""
    found: dict[str, set[str]] = {}
    for osd in osd_map.get("osds", ()):
        for kind in _LISTENS if osd.get("up") else ():
            for one in osd.get(kind, {}).get("addrvec", ()):
                address = str(one.get("addr", ":0"))
                if not address.endswith(":0"):
                    found.setdefault(address, set()).add(f"osd.{osd.get('osd')}")
    return found


def _shared_addresses(facts: ClusterFacts) -> Iterator[Finding]:
    """Each pair of OSDs once, with the first of the addresses that they share."""
    told = set()
    for address, osds in sorted(addresses(facts.osd_map).items()):
        names = ", ".join(sorted(osds))
        if len(osds) > 1 and names not in told:
            told.add(names)
            port = address.rpartition(":")[2]
            restart = max(osds)
            yield Finding(
                names,
                f"they have one address, {address}: others reach one of them only, and placement"
                " groups of the other stay inactive",
                f"ss -ltnp 'sport = :{port}'   # on their host: which process listens? Restart"
                f" {restart} once, after: ceph osd ok-to-stop {restart}. The same again, after an"
                " update of the host: start its older kernel",
            )


def _no_addresses(facts: ClusterFacts) -> str:
    return "" if addresses(facts.osd_map) else "no OSD that is up shows its addresses"


def _fenced(facts: ClusterFacts) -> Iterator[Finding]:
    """Clients in the blocklist, by host. A manager or MDS that lost its place is left out.

    The monitors put its own addresses there, which have ports, and those of its clients, all until
    the same moment.
    """
    listed = dict(facts.osd_map.get("blocklist", {}))
    place = {address: address.rpartition(":")[0] for address in listed}
    daemons = {
        (place[address], until)
        for address, until in listed.items()
        if not address.rpartition(":")[2].startswith("0/")
    }
    fenced: dict[str, list[str]] = {}
    for address, until in listed.items():
        if (place[address], until) not in daemons:
            fenced.setdefault(place[address], []).append(str(until))
    for client, until_each in sorted(fenced.items()):
        yield Finding(
            client,
            f"a client on this host is fenced ({len(until_each)} in the blocklist, until"
            f" {max(until_each)}): what it has mapped or mounted gives I/O errors or is read-only",
            "ceph osd blocklist ls   # was it killed, and started since? Then only a lock may be"
            f" left: rbd lock ls POOL/IMAGE. Otherwise unmap and map again, or restart {client}."
            " See docs/operate/others.md, When Ceph is well",
        )
    for network, until in sorted(facts.osd_map.get("range_blocklist", {}).items()):
        name = network.removeprefix("cidr:").replace(":0/", "/")
        yield Finding(
            name,
            f"all clients of this network are fenced until {until}: a command did that",
            f"ceph osd blocklist range rm {quoted(name)}   # once its hosts were restarted",
        )


def _no_blocklist(facts: ClusterFacts) -> str:
    return "" if "blocklist" in facts.osd_map else "the map of the OSDs shows no blocklist"


def left_for_clients(facts: ClusterFacts) -> str:
    """What such pools leave for client writes. It is no finding: no setting changes it."""
    shares = [f"{1 / size:.0%} (size {size})" for size in facts.sizes if size > 1]
    if not shares:
        return ""
    return (
        "replica writes have no reservation and go first: while clients write, a saturated OSD can"
        f" give them this share of what it does: {', '.join(shares)}"
    )


CHECKS: Final = (
    Check("manager-active", _manager),
    Check("monitor-clocks", _clocks),
    Check("addresses-unique", _shared_addresses, _no_addresses),
    Check("clients-fenced", _fenced, _no_blocklist),
)
