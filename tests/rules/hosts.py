"""Cases of what the network of hosts loses, and of memory that runs out."""

from dataclasses import replace
from typing import Any, Final

from .across import WAITS, WELL, three
from .cases import CaseMoment, RuleCase, firing, silent
from .qos import VIOLATED, violated
from .series import CLUSTER, Series, flat, merged

_HOST: Final = {"job": "cephqos", "instance": "host1"}
_OSD: Final = {"cluster": CLUSTER, "ceph_daemon": "osd.0"}
_WARNING: Final = {"instance": "host1", "severity": "warning"}
_LINK: Final = {**_WARNING, "device": "eth0"}


def _case(alert: str, name: str, series: Series, *moments: CaseMoment) -> RuleCase:
    return RuleCase(name=name, alert=alert, series=series, moments=moments, group="hosts")


def _segments(again: str, sent: str = "0+150000x240") -> Series:
    """Of ten thousand per second."""
    name = "cephqos_host_tcp_segments_total"
    return merged(
        flat(name, sent, kind="sent", **_HOST), flat(name, again, kind="retransmitted", **_HOST)
    )


def _link(name: str, values: str, **labels: Any) -> Series:
    return flat(f"cephqos_host_link_{name}", values, device="eth0", **_HOST, **labels)


_CPUS: Final = flat("cephqos_host_cpus", 8, **_HOST)
_SMALL: Final = {"device": "eth1", "instance": "host2"}
_LOST: Final = {"direction": "receive", "reason": "errors"}
_NEVER_SLOW: Final = replace(WAITS, replica_latency=0.006)

NETWORK: Final = [
    _case(
        "CephQosPacketsLost",
        "a host that sends one segment of a hundred again, for a quarter of an hour",
        _segments("0x40 0+1500x60 90000x140"),
        silent(16),
        firing(18, _WARNING),
        firing(24, _WARNING),
        silent(36),
    ),
    _case(
        "CephQosPacketsLost",
        "a host that is well, and one that is idle and sends one of ten again",
        merged(
            _segments("0+150x240"),
            *(
                flat("cephqos_host_tcp_segments_total", f"0+{n}x240", kind=kind, instance="host2")
                for kind, n in (("sent", 100), ("retransmitted", 10))
            ),
        ),
        silent(20),
        silent(50),
    ),
    _case(
        "CephQosLinkUnwell",
        "a link with errors, for an hour after the last",
        _link("lost_packets_total", "0x40 0+10x20 200x300", **_LOST),
        silent(9),
        firing(14, {**_LINK, "seen": "errors"}),
        firing(60, {**_LINK, "seen": "errors"}),
        silent(78),
    ),
    _case(
        "CephQosLinkUnwell",
        "a card without room for packets, for an hour after the last, and one that missed a few",
        merged(
            _link("missed_packets_total", "0x40 0+200x20 4000x300"),
            flat("cephqos_host_link_missed_packets_total", "0x40 0+20x20 400x300", **_SMALL),
        ),
        silent(10),
        firing(16, {**_LINK, "seen": "missed"}),
        silent(78),
    ),
    _case(
        "CephQosLinkUnwell",
        "a link that flaps, for an hour after the last time",
        _link("changes_total", "2x40 2+1x8 10x300"),
        silent(10),
        firing(12, {**_LINK, "seen": "flaps"}),
        silent(76),
    ),
    _case(
        "CephQosLinkUnwell",
        "a link that loses its signal, until it is back",
        merged(_link("up", "1x40 0x60 1x140"), _CPUS),
        silent(14),
        firing(17, {**_LINK, "seen": "down"}),
        silent(28),
    ),
    _case(
        "CephQosLinkUnwell",
        "an interface that is gone since the host restarted",
        merged(_link("up", "1x40 _x200"), flat("cephqos_host_cpus", "8x40 _x20 8x180", **_HOST)),
        silent(17),
        firing(23, {**_LINK, "seen": "down"}),
    ),
    _case(
        "CephQosLinkUnwell",
        "a port that was never up, a link that is away for two minutes, and a host that is off",
        merged(
            flat("cephqos_host_link_up", "0x240", device="eth1", **_HOST),
            _link("up", "1x40 0x8 1x192"),
            _CPUS,
            *(
                flat(name, "1x40 _x200", **labels, instance="host2")
                for name, labels in (
                    ("cephqos_host_link_up", {"device": "eth0"}),
                    ("cephqos_host_cpus", {}),
                )
            ),
        ),
        silent(16),
        silent(40),
    ),
    _case(
        "CephQosLinkUnwell",
        "a link that comes back slower, until it is as quick as before",
        _link("speed_bytes_per_second", "1250000000x40 125000000x120 1250000000x100"),
        silent(24),
        firing(27, {**_LINK, "seen": "speed"}),
        silent(43),
    ),
    _case(
        "CephQosLinkUnwell",
        "a link that transmits nearly all that it can, for a quarter of an hour",
        merged(
            _link("speed_bytes_per_second", "1250000000x240"),
            _link("bytes_total", "0x40 0+17625000000x60 1057500000000x140", direction="transmit"),
            _link("bytes_total", "0+1500000000x240", direction="receive"),
        ),
        silent(14),
        firing(22, {**_LINK, "seen": "full"}),
        firing(24, {**_LINK, "seen": "full"}),
        silent(30),
    ),
    _case(
        "CephQosLinkUnwell",
        "a link that is half full in both directions, and one whose speed is not known",
        merged(
            _link("speed_bytes_per_second", "1250000000x240"),
            *(
                _link("bytes_total", "0+9375000000x240", direction=direction)
                for direction in ("receive", "transmit")
            ),
            flat(
                "cephqos_host_link_bytes_total",
                "0+17625000000x240",
                device="eth1",
                direction="receive",
                **_HOST,
            ),
        ),
        silent(20),
        silent(50),
    ),
    _case(
        "CephQosLinkUnwell",
        "an MTU that becomes smaller, until it is as before",
        _link("mtu_bytes", "9000x40 1500x120 9000x100"),
        silent(24),
        firing(27, {**_LINK, "seen": "mtu"}),
        silent(43),
    ),
    _case(
        "CephQosLinkUnwell",
        "drops without errors, a link that was restarted once, and a link that got quicker",
        merged(
            _link("mtu_bytes", "1500x40 9000x200"),
            _link("lost_packets_total", "0+100x240", direction="receive", reason="drops"),
            _link("changes_total", "2x40 4x200"),
            _link("speed_bytes_per_second", "125000000x40 1250000000x200"),
        ),
        silent(20),
        silent(50),
    ),
    _case(
        "CephQosPgsLaggy",
        "placement groups whose leases are not renewed, until they are",
        flat("cephqos_recovery_cluster_pgs", "0x40 7x40 0x100", cluster=CLUSTER, state="laggy"),
        silent(11.5),
        firing(13, {"cluster": CLUSTER, "severity": "critical"}),
        silent(22),
    ),
    _case(
        "CephQosPgsLaggy",
        "placement groups that wait for a minute after a restart",
        flat("cephqos_recovery_cluster_pgs", "0x40 7x3 0x100", cluster=CLUSTER, state="wait"),
        silent(12),
        silent(20),
    ),
]
MEMORY: Final = [
    _case(
        "CephQosOutOfMemory",
        "a process that was killed for memory, for an hour",
        flat("cephqos_host_oom_kills_total", "3x40 4x300", **_HOST),
        silent(10),
        firing(12, _WARNING),
        silent(73),
    ),
    _case(
        "CephQosOutOfMemory",
        "what was killed before the exporter began",
        flat("cephqos_host_oom_kills_total", "_x20 3x200", **_HOST),
        silent(12),
        silent(40),
    ),
    _case(
        "CephQosMemoryNearLimit",
        "an OSD at 95 % of its limit, until it is at 80 % again",
        merged(
            flat("cephqos_daemon_resident_bytes", "8e8x40 9.5e8x100 8e8x100", **_OSD, **_HOST),
            flat("cephqos_cgroup_memory_limit_bytes", 1e9, **_OSD, **_HOST),
        ),
        silent(9),
        firing(12, _OSD),
        silent(37),
    ),
    _case(
        "CephQosMemoryNearLimit",
        "an OSD that is larger than the limit of another, and has none",
        flat("cephqos_daemon_resident_bytes", 9e9, **_OSD, **_HOST),
        silent(12),
        silent(40),
    ),
    _case(
        "CephQosPgLogLarge",
        "logs of placement groups that grow to most of an OSD's memory, until they are trimmed",
        merged(
            flat("cephqos_daemon_resident_bytes", 4e9, **_OSD, **_HOST),
            flat(
                "cephqos_daemon_mempool_bytes",
                "5e8x40 3e9x100 5e8x100",
                pool="osd_pglog",
                **_OSD,
                **_HOST,
            ),
            flat("cephqos_daemon_mempool_bytes", 3.9e9, pool="buffer_anon", **_OSD, **_HOST),
        ),
        silent(9),
        firing(12, _OSD),
        silent(37),
    ),
    _case(
        "CephQosPgLogLarge",
        "a large cache with short logs",
        merged(
            flat("cephqos_daemon_resident_bytes", 4e9, **_OSD, **_HOST),
            flat("cephqos_daemon_mempool_bytes", 5e8, pool="osd_pglog", **_OSD, **_HOST),
        ),
        silent(12),
        silent(40),
    ),
]


def _pings(seconds: str, slow: str, number: int = 0, worst: str = "osd.2") -> Series:
    own = {"cluster": CLUSTER, "ceph_daemon": f"osd.{number}", **_HOST, "interface": "back"}
    return merged(
        flat("cephqos_network_ping_worst_seconds", seconds, window="5m", **own),
        flat("cephqos_network_slow_peers", slow, **own),
        flat("cephqos_network_worst_peer_info", 1, peer=worst, **own),
    )


HEARTBEATS: Final = [
    _case(
        "CephQosHeartbeatsSlow",
        "two OSDs whose heartbeats with a third take minutes, until they do not",
        merged(
            *(_pings("0.001x40 200x80 0.001x120", "0x40 1x80 0x120", number=n) for n in (0, 1)),
            _pings("0.001x40 200x80 0.001x120", "0x40 2x80 0x120", number=2, worst="osd.0"),
        ),
        silent(10),
        firing(12, {**_OSD, "ceph_daemon": "osd.2"}),
        firing(29, {**_OSD, "ceph_daemon": "osd.2"}),
        silent(33),
    ),
    _case(
        "CephQosHeartbeatsSlow",
        "an OSD with three slow peers, each of which has none but it",
        merged(
            _pings("2x240", "3x240", worst="osd.1"),
            _pings("2x240", "1x240", number=1, worst="osd.0"),
        ),
        firing(13, _OSD),
    ),
    _case(
        "CephQosHeartbeatsSlow",
        "busy OSDs whose heartbeats take half a second",
        _pings("0.5x240", "3x240"),
        silent(13),
        silent(40),
    ),
]
_LOSSY: Final = {**violated("critical", "network"), "by": "lost_packets"}
LOSSY: Final = [
    RuleCase(
        name="OSDs whose writes wait on a host that loses packets have cause network",
        alert=VIOLATED,
        series=merged(
            three((10, WELL), culprit=_NEVER_SLOW, others=_NEVER_SLOW), _segments("0x40 0+1500x80")
        ),
        moments=(
            silent(10),
            firing(26, *({**_LOSSY, "ceph_daemon": f"osd.{i}"} for i in range(3))),
        ),
    ),
    RuleCase(
        name="OSDs whose writes wait on a host with a full link have cause network",
        alert=VIOLATED,
        series=merged(
            three((10, WELL), culprit=_NEVER_SLOW, others=_NEVER_SLOW),
            _link("speed_bytes_per_second", "1250000000x240"),
            _link("bytes_total", "0x40 0+17625000000x80", direction="receive"),
        ),
        moments=(
            silent(10),
            firing(
                26, *({**_LOSSY, "by": "full_link", "ceph_daemon": f"osd.{i}"} for i in range(3))
            ),
        ),
    ),
    RuleCase(
        name="OSDs that are well on a host that loses packets alert nobody",
        alert=VIOLATED,
        series=merged(three((10, WELL), culprit=WELL, others=WELL), _segments("0x40 0+1500x80")),
        moments=(silent(10), silent(26)),
    ),
]
CASES: Final = [*NETWORK, *MEMORY, *HEARTBEATS]
