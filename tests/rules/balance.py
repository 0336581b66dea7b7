"""Cases of how full OSDs are, how evenly placement groups lie, and of deleted snapshots."""

from typing import Final

from .cases import CaseMoment, RuleCase, firing, silent
from .series import CLUSTER, Series, flat, merged

_OSD: Final = {"cluster": CLUSTER, "ceph_daemon": "osd.0"}
_POOL: Final = {"cluster": CLUSTER, "pool": "p"}
_WARNING: Final = {"severity": "warning"}
_RATIOS: Final = merged(
    *(
        flat("cephqos_cluster_full_ratio", f"{value}x2000", cluster=CLUSTER, level=level)
        for level, value in (("nearfull", 0.85), ("backfillfull", 0.9), ("full", 0.95))
    )
)
_DAY: Final = 288  # samples, one in five minutes


def _case(
    alert: str,
    name: str,
    series: Series,
    *moments: CaseMoment,
    group: str = "found",
    interval: int = 15,
) -> RuleCase:
    return RuleCase(
        name=name, alert=alert, series=series, moments=moments, group=group, interval=interval
    )


def _used(values: str) -> Series:
    return merged(flat("cephqos_balance_used_ratio", values, **_OSD), _RATIOS)


_SOON: Final = "CephQosOsdFillsUp"
_LATER: Final = "CephQosOsdFillsUpCanWait"
FULL: Final = [
    _case(
        _SOON,
        "an OSD beyond nearfull that will be full in four hours, until it grows no more",
        _used("0.7x240 0.7+0.0002x800 0.86x400"),
        silent(70),
        silent(240),
        firing(258, _OSD),
        silent(330),
        group="hours",
    ),
    _case(
        _SOON,
        "an OSD that grows as fast and has much room",
        _used("0.1x240 0.1+0.0002x1200"),
        silent(120),
        silent(350),
        group="hours",
    ),
    _case(
        _SOON,
        "an OSD beyond nearfull that grows by a thousandth in an hour",
        _used("0.86+0.000004x1200"),
        silent(120),
        silent(290),
        group="hours",
    ),
    _case(_SOON, "a full OSD that grows no more", _used("0.951x200"), firing(5, _OSD)),
    _case(
        _LATER,
        "an OSD beyond nearfull, until it has room again",
        _used("0.84x40 0.86x80 0.84x80"),
        silent(9),
        firing(12, {**_OSD, "seen": "nearfull"}),
        silent(32),
    ),
    _case(
        _LATER,
        "an OSD that will be full within a week as it grew in a day, until it grows less",
        _used(f"0.5x{_DAY} 0.5+0.00035x{_DAY} 0.6x{2 * _DAY}"),
        silent(24 * 60),
        firing(48 * 60, {**_OSD, "seen": "growth"}),
        silent(80 * 60),
        group="months",
        interval=300,
    ),
    _case(
        _LATER,
        "an OSD that will be full in a month",
        _used(f"0.6+0.00003x{3 * _DAY}"),
        silent(30 * 60),
        silent(60 * 60),
        group="months",
        interval=300,
    ),
    _case(
        _LATER,
        "an OSD that was filled to a third in an hour",
        _used(f"0.01x{_DAY} 0.01+0.03x10 0.34x{_DAY}"),
        silent(26 * 60),
        silent(30 * 60),
        group="months",
        interval=300,
    ),
]


def _groups(values: str, share: float, moving: str = "0x400") -> Series:
    """An OSD with so many placement groups, and the share that it should have."""
    ratios = " ".join(
        f"{float(count) / share:g}x{times}"
        for count, times in (part.split("x") for part in values.split())
    )
    return merged(
        flat("cephqos_balance_pgs", values, **_OSD, root="default", device_class="ssd"),
        flat("cephqos_balance_pgs_ratio", ratios, **_OSD),
        flat("cephqos_recovery_cluster_pgs", moving, cluster=CLUSTER, state="remapped"),
    )


UNEVEN: Final = [
    _case(
        "CephQosPgsUneven",
        "an OSD with 190 placement groups where 100 are its share, until they have moved",
        _groups("190x60 120x100", 100),
        firing(5, _OSD),
        silent(20),
    ),
    _case(
        "CephQosPgsUneven",
        "an OSD with 14 placement groups where eight are its share, as chance has it",
        _groups("14x200", 8),
        silent(5),
        silent(40),
    ),
    _case(
        "CephQosPgsUneven",
        "three OSDs with 33 placement groups that are nearly even",
        _groups("24x200", 22),
        silent(5),
        silent(40),
    ),
    _case(
        "CephQosPgsUneven",
        "an OSD that has not yet given what moves away",
        _groups("190x200", 100, "20x200"),
        silent(5),
        silent(40),
    ),
]


def _primaries(score: float, demand: float | str) -> Series:
    return merged(
        flat("cephqos_balance_pool_read_score", score, **_POOL),
        flat("cluster:cephqos_osds:count", 12, cluster=CLUSTER),
        flat(
            "instance_class:cephqos_osds:sum",
            demand,
            cluster=CLUSTER,
            instance="host1",
            class_="client",
            figure="demand",
        ),
    )


PRIMARIES: Final = [
    _case(
        "CephQosPrimariesUneven",
        "a pool whose primaries lie unevenly, while clients wait on 3 of 12 OSDs",
        _primaries(2.2, "3x100 0x100"),
        silent(14.5),
        firing(16, {**_POOL, **_WARNING}),
        silent(27),
        group="state",
    ),
    _case(
        "CephQosPrimariesUneven",
        "such a pool while no client waits",
        _primaries(2.2, 0),
        silent(17),
        silent(50),
        group="state",
    ),
    _case(
        "CephQosPrimariesUneven",
        "such a pool while clients wait on all OSDs",
        _primaries(2.2, 12),
        silent(17),
        silent(50),
        group="state",
    ),
    _case(
        "CephQosPrimariesUneven",
        "primaries that are nearly even while clients wait on some OSDs",
        _primaries(1.3, 3),
        silent(17),
        silent(50),
        group="state",
    ),
]


def _pieces(values: str) -> Series:
    return flat("cephqos_balance_pool_pg_size_ratio", values, **_POOL)


PIECES: Final = [
    _case(
        "CephQosPiecesTooLarge",
        "a pool of which a placement group fills a twelfth of an OSD, until it is split",
        _pieces("0.088x120 0.044x120"),
        silent(14),
        firing(16, {**_POOL, **_WARNING, "seen": "size"}),
        silent(32),
        group="state",
    ),
    _case(
        "CephQosPiecesTooLarge",
        "three OSDs that are nearly full of 32 placement groups",
        _pieces("0.027x240"),
        silent(17),
        silent(50),
        group="state",
    ),
]
_TRIM: Final = "CephQosSnapTrimBehind"


def _snapshots(values: str) -> Series:
    return flat("cephqos_snaptrim_pool_snapshots", values, **_POOL)


TRIMMING: Final = [
    _case(
        _TRIM,
        "deleted snapshots that do not become fewer in an hour, until they do",
        _snapshots("0x20 128x400 128-1x127 0x100"),
        silent(79.5),
        firing(81, {**_POOL, **_WARNING}),
        firing(104, {**_POOL, **_WARNING}),
        silent(125),
        group="state",
    ),
    _case(
        _TRIM,
        "a trim of twenty minutes, and the next one an hour later",
        _snapshots("0x20 128-1.6x79 0x160 128-1.6x79 0x60"),
        silent(15),
        silent(85),
        silent(95),
        group="state",
    ),
    _case(
        _TRIM,
        "a trim of three hours that goes on",
        _snapshots("0x20 720-1x719 0x60"),
        silent(90),
        silent(150),
        group="state",
    ),
    _case(
        _TRIM,
        "a trim that will take two days",
        merged(
            _snapshots("0x20 100000-1x200"),
            flat("cephqos_snaptrim_pool_eta_seconds", "_x60 180000x100", **_POOL),
        ),
        silent(14),
        firing(33, {**_POOL, **_WARNING}),
        group="state",
    ),
]
CASES: Final = [*FULL, *UNEVEN, *PIECES, *PRIMARIES, *TRIMMING]
