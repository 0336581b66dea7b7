"""Cases of the alerts on scrub, recovery and saturation."""

from dataclasses import replace
from typing import Final

from .cases import CaseMoment, RuleCase, firing, silent
from .series import BUSY, CLUSTER, IDLE, Series, SimulatedOsd, flat, merged

POOL: Final = {"cluster": CLUSTER, "pool": "p"}
AT: Final = {"cluster": CLUSTER, "ceph_daemon": "osd.0"}
TICKET: Final = {"severity": "warning"}


def case(
    alert: str,
    name: str,
    series: Series,
    *moments: CaseMoment,
    group: str = "state",
    only: bool = False,
) -> RuleCase:
    return RuleCase(name=name, alert=alert, series=series, moments=moments, group=group, only=only)


def _running(objects: str, pgs: float = 2) -> Series:
    return merged(
        flat("cephqos_scrub_pool_running_pgs", pgs, level="deep", **POOL),
        flat("cephqos_scrub_pool_objects_total", objects, level="deep", **POOL),
    )


_ETA = "cephqos_scrub_pool_backlog_eta_seconds"
_LIKELY = {"level": "deep", "bound": "likely", **POOL}
_HIGH = flat(_ETA, 1900000, **_LIKELY | {"bound": "high"})
_INTERVAL = flat("cephqos_scrub_pool_interval_seconds", 604800, level="deep", **POOL)
_DEEP = {**POOL, **TICKET, "level": "deep"}
_OVERDUE = {"state": "overdue", "level": "deep", **POOL}
_HOURLY = 240  # samples
_DAY = f"{{}}x{26 * _HOURLY}"  # and two hours

SCRUB = [
    case(
        "CephQosScrubStalled",
        "scrubs under way that scrub nothing, until they do",
        _running("0+10x60 600x140 600+10x100"),
        silent(44.5),
        firing(45, _DEEP),
        silent(55),
    ),
    case(
        "CephQosScrubStalled",
        "slow scrubs that move",
        _running("0+0.1x240"),
        silent(30),
        silent(59),
    ),
    case(
        "CephQosDeepScrubCannotKeepUp",
        "deep scrubs that would take longer than their interval",
        merged(_INTERVAL, flat(_ETA, "700000x120 500000x100", **_LIKELY)),
        silent(14),
        firing(16, {**POOL, **TICKET}),
        silent(40),
    ),
    case(
        "CephQosDeepScrubCannotKeepUp",
        "deep scrubs that will just be done in time",
        merged(_INTERVAL, flat(_ETA, 600000, **_LIKELY), _HIGH),
        silent(16),
        silent(59),
    ),
    case(
        "CephQosScrubsOverdueGrowing",
        "more placement groups overdue than a day ago",
        flat(
            "cephqos_scrub_pool_schedule_pgs",
            f"1x{24 * _HOURLY - 1} 5x{4 * _HOURLY} 1x{4 * _HOURLY}",
            **_OVERDUE,
        ),
        silent(24 * 60 + 10),
        firing(24 * 60 + 20, _DEEP),
        silent(29 * 60),
        group="overdue",
    ),
    case(
        "CephQosScrubsOverdueGrowing",
        "one more among 300 of 1,024 is no growth",
        merged(
            flat(
                "cephqos_scrub_pool_schedule_pgs",
                f"300x{24 * _HOURLY} 301x{4 * _HOURLY}",
                **_OVERDUE,
            ),
            flat(
                "cephqos_scrub_pool_schedule_pgs",
                f"723x{28 * _HOURLY}",
                **{**_OVERDUE, "state": "ok"},
            ),
        ),
        silent(25 * 60),
        silent(27 * 60),
        group="overdue",
    ),
    case(
        "CephQosScrubsOverdueGrowing",
        "a backlog that shrinks",
        flat(
            "cephqos_scrub_pool_schedule_pgs",
            f"9x{24 * _HOURLY} 5x{4 * _HOURLY}",
            **_OVERDUE,
        ),
        silent(25 * 60),
        silent(27 * 60),
        group="overdue",
    ),
]


def _recovery(done: str, degraded: str, misplaced: str = "0x240") -> Series:
    return merged(
        flat("cephqos_recovery_pool_objects_total", done, **POOL),
        flat("cephqos_recovery_pool_degraded_objects", degraded, **POOL),
        flat("cephqos_recovery_pool_misplaced_objects", misplaced, **POOL),
    )


RECOVERY = [
    case(
        "CephQosRecoveryStalled",
        "recovery that stopped short of the end, until it goes on",
        _recovery("0+10x60 600x100 600+5x80", "1000-10x60 400x100 400-5x80"),
        silent(29.5),
        firing(30, {**POOL, **TICKET}),
        silent(45),
    ),
    case(
        "CephQosRecoveryStalled",
        "a pool that waits for its turn while another one recovers",
        merged(
            _recovery("0x240", "1000x240"),
            {
                name.replace('pool="p"', 'pool="q"'): values
                for name, values in _recovery("0+10x240", "9000-10x240").items()
            },
        ),
        silent(30),
        silent(59),
    ),
    case(
        "CephQosRecoveryStalled",
        "a pool of which nothing was recovered in a day, while another one recovers",
        merged(
            _recovery(_DAY.format("0"), _DAY.format("1000"), _DAY.format("0")),
            {
                name.replace('pool="p"', 'pool="q"'): values
                for name, values in _recovery(
                    _DAY.format("0+10"), _DAY.format("90000-10"), _DAY.format("0")
                ).items()
            },
        ),
        silent(23 * 60),
        firing(24.5 * 60, {**POOL, **TICKET, "seen": "pool"}),
        group="overdue",
    ),
    case(
        "CephQosRecoveryStalled",
        "recovery that is slow but moves",
        _recovery("0+0.1x240", "1000x240"),
        silent(30),
        silent(59),
    ),
    case(
        "CephQosRecoveryTooSlow",
        "recovery that takes days",
        flat("cephqos_recovery_pool_eta_seconds", "200000x120 3000x100", **POOL),
        silent(14),
        firing(16, {**POOL, **TICKET}),
        silent(40),
    ),
    case(
        "CephQosRecoveryTooSlow",
        "recovery that takes hours",
        flat("cephqos_recovery_pool_eta_seconds", 40000, **POOL),
        silent(16),
        silent(59),
    ),
    case(
        "CephQosObjectsUnfound",
        "objects that nobody has",
        flat("cephqos_recovery_pool_unfound_objects", "3x60 0x100", **POOL),
        silent(4),
        firing(6, {**POOL, "severity": "critical"}),
        silent(20),
    ),
    case(
        "CephQosObjectsUnfound",
        "objects that were unfound for a moment while an OSD restarted",
        flat("cephqos_recovery_pool_unfound_objects", "0x20 3x8 0x100", **POOL),
        silent(6),
        silent(20),
    ),
]


def _thread(share: float, group: str) -> Series:
    return flat(
        "cephqos_threads_busiest_cpu_seconds_total", f"0+{share * 15:g}x240", group=group, **AT
    )


_UTILISATION = "cephqos_crimson_reactor_utilization_ratio"
_SHARED = "cephqos_placement_reactors_shared"
_WELL = replace(BUSY, client=1500)
_LATE = replace(_WELL, device_latency=0.02)
_DISK = replace(_WELL, device_latency=0.02, db_latency=0.001)

SATURATION = [
    case(
        "CephQosThreadAtCeiling",
        "a thread that has no more to give",
        merged(SimulatedOsd(((25, replace(IDLE, thread=0.99)), (15, IDLE)))),
        silent(0),
        firing(2, {**AT, **TICKET, "group": "bstore_kv_sync"}),
        silent(27),
        group="found",
    ),
    case(
        "CephQosThreadAtCeiling",
        "a reactor that is busy all the time by its own account",
        merged(
            _thread(1.0, "reactor"),
            flat(_UTILISATION, 0.2, shard="0", **AT),
            flat(_UTILISATION, "0.99x100 0.3x140", shard="1", **AT),
        ),
        firing(1, {**AT, **TICKET, "group": "reactor"}),
        silent(30),
        group="found",
    ),
    case(
        "CephQosThreadAtCeiling",
        "a reactor that polls all the time and has little to do",
        merged(_thread(1.0, "reactor"), flat(_UTILISATION, 0.2, shard="0", **AT)),
        silent(17),
        silent(59),
        group="found",
    ),
    case(
        "CephQosThreadAtCeiling",
        "a busy thread, and a busy one that does not matter",
        merged(_thread(0.8, "bstore_kv_sync"), _thread(1.0, "other")),
        silent(17),
        silent(59),
        group="found",
    ),
    case(
        "CephQosOsdSlow",
        "a device that answers far later than it used to, until it does not",
        merged(SimulatedOsd(((40, _WELL), (25, _LATE), (10, _WELL)))),
        silent(50),
        firing(58, {**AT, **TICKET, "cause": "device"}),
        silent(70),
        group="long",
    ),
    case(
        "CephQosOsdSlow",
        "a DB's device that answers far later than it used to, beside a disk that is slower still",
        merged(SimulatedOsd(((40, _DISK), (25, replace(_DISK, db_latency=0.012)), (10, _DISK)))),
        silent(50),
        firing(58, {**AT, **TICKET, "cause": "db_device"}),
        silent(70),
        group="long",
    ),
    case(
        "CephQosOsdSlow",
        "a device that is busy all the time and answers as it always did",
        merged(SimulatedOsd(((30, _WELL), (30, replace(_WELL, device_latency=0.002, depth=20))))),
        silent(48),
        silent(59),
        group="long",
        only=True,
    ),
    case(
        "CephQosOsdSlow",
        "a device that answers later now that hardly anything is asked of it",
        merged(SimulatedOsd(((38, _WELL), (22, replace(_LATE, depth=0.8))))),
        silent(56),
        silent(59),
        group="long",
    ),
    case(
        "CephQosOsdSlow",
        "a device that takes many times as long as it used to, which is still very little",
        merged(
            SimulatedOsd(
                (
                    (38, replace(_WELL, device_latency=0.0003)),
                    (22, replace(_WELL, device_latency=0.004)),
                )
            )
        ),
        silent(56),
        silent(59),
        group="long",
    ),
    case(
        "CephQosReactorShared",
        "reactors with company on their CPU",
        flat(_SHARED, "0x5 2x60 0x100", by="thread", **AT),
        silent(1),
        firing(2, {**AT, **TICKET, "by": "thread"}),
        silent(20),
        group="found",
    ),
    case(
        "CephQosReactorShared",
        "reactors that are alone",
        flat(_SHARED, 0, by="thread", **AT),
        silent(6),
        silent(59),
        group="found",
    ),
]

CASES = [*SCRUB, *RECOVERY, *SATURATION]
