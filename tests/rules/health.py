"""Cases of what was forgotten, of the health of the cluster, and of findings of slow OSDs."""

from collections.abc import Mapping
from typing import Final

from cephqos_base.recorded import PerOsd, PerOsdPlace

from .cases import CaseMoment, RuleCase, firing, silent
from .series import CLUSTER, Series, flat, merged

_OSD: Final = {"cluster": CLUSTER, "ceph_daemon": "osd.0"}
_FORGOTTEN: Final = {"cluster": CLUSTER, "severity": "warning"}
_MINUTE: Final = 60
_MONTH: Final = 30 * 288  # samples, one in five minutes
_FORTNIGHT: Final = 14 * 288
_QUARTER: Final = 90 * 288


def _case(
    alert: str,
    name: str,
    series: Series,
    *moments: CaseMoment,
    group: str = "state",
    interval: int = 15,
) -> RuleCase:
    return RuleCase(
        name=name, alert=alert, series=series, moments=moments, group=group, interval=interval
    )


def _forgotten(name: str, series: Series, *moments: CaseMoment) -> RuleCase:
    return _case(
        "CephQosSettingForgotten", name, series, *moments, group="forgotten", interval=_MINUTE
    )


def _flag(values: str, flag: str = "noout") -> Series:
    return flat("cephqos_cluster_flag", values, cluster=CLUSTER, flag=flag)


def _reserved(client: float, recovery: float) -> Series:
    name = "cephqos_qos_reservation_ratio"
    return merged(
        flat(name, f"{client:g}x400", **_OSD, class_="client"),
        flat(name, f"{recovery:g}x400", **_OSD, class_="background_recovery"),
    )


def _slots(most: int) -> Series:
    return flat("cephqos_recovery_slots_max", f"{most}x400", **_OSD, side="local")


def _custom(reservations: str) -> Series:
    info = {"in_force": "mclock_scheduler", "profile": "custom", "reservations": reservations}
    return flat("cephqos_qos_scheduler_info", "1x400", **_OSD, **info)


_CUSTOM: Final = _custom("config")
_NOOUT: Final = {**_FORGOTTEN, "setting": "noout"}
FORGOTTEN: Final = [
    _forgotten(
        "noout for four hours, until it is cleared",
        _flag("0x9 1x400 0x60"),
        silent(250),
        firing(252, _NOOUT),
        firing(400, _NOOUT),
        silent(415),
    ),
    _forgotten(
        "an exporter that is away for a while does not make a flag younger",
        _flag("0x9 1x100 _x10 1x300"),
        silent(250),
        firing(252, _NOOUT),
    ),
    _forgotten("noout for three hours", _flag("0x9 1x180 0x200"), silent(185), silent(300)),
    _forgotten(
        "high_recovery_ops, which gives recovery more than clients",
        _reserved(0.3, 0.7),
        silent(239),
        firing(243, {**_FORGOTTEN, "setting": "osd_mclock_profile"}),
    ),
    _forgotten(
        "a custom profile with little for clients",
        merged(_reserved(0.2, 0.1), _CUSTOM),
        silent(239),
        firing(243, {**_FORGOTTEN, "setting": "osd_mclock_scheduler_client_res"}),
    ),
    _forgotten(
        "a custom profile with nothing for clients",
        _CUSTOM,
        silent(239),
        firing(243, {**_FORGOTTEN, "setting": "osd_mclock_scheduler_client_res"}),
    ),
    _forgotten(
        "a custom profile with enough for clients",
        merged(_reserved(0.3, 0.3), _CUSTOM),
        silent(390),
    ),
    _forgotten(
        "a custom profile of mClock before 18.2, of which no reservation is known",
        _custom("none"),
        silent(390),
    ),
    _forgotten(
        "noout of a host, until it is cleared",
        flat(
            "cephqos_cluster_health_check",
            "_x9 1x300 stale",
            cluster=CLUSTER,
            check="OSD_FLAGS",
            severity="warning",
        ),
        silent(239),
        firing(252, {**_FORGOTTEN, "setting": "OSD_FLAGS"}),
        silent(330),
    ),
    _forgotten(
        "balanced, and the backfills of 16.2",
        merged(_reserved(0.5, 0.5), _slots(1000)),
        silent(241),
        silent(390),
    ),
    _forgotten(
        "32 backfills of an OSD at once",
        _slots(32),
        silent(239),
        firing(243, {**_FORGOTTEN, "setting": "osd_max_backfills"}),
    ),
    _case(
        "CephQosMaintenance",
        "a flag silences what it causes for four hours and no longer",
        _flag("0x9 1x400"),
        firing(20, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
        firing(250, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
        silent(253),
        silent(400),
        group="forgotten",
        interval=_MINUTE,
    ),
    _case(
        "CephQosMaintenance",
        "a flag of a run that lives silences for as long as the run",
        merged(
            _flag("0x9 1x400"),
            flat("cephqos_run_info", "1x400", cluster=CLUSTER, run="r1", scenario="s", phase="l"),
        ),
        firing(20, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
        firing(390, {"cluster": CLUSTER, "flag": "noout", "severity": "none"}),
        group="forgotten",
        interval=_MINUTE,
    ),
]


_BLOCKED: Final = "cephqos_ops_blocked"
_UP: Final = "cephqos_cluster_osd_up"


def _check(check: str, values: str, severity: str = "warning") -> Series:
    return flat(
        "cephqos_cluster_health_check", values, cluster=CLUSTER, check=check, severity=severity
    )


def _health(
    alert: str,
    check: str,
    minutes: float,
    *,
    by_check: bool = True,
    severity: str = "warning",
    more: Mapping[str, str] | None = None,
) -> list[RuleCase]:
    """A check that fails from minute 5 to 40, and another one that is not this alert's."""
    labels = {"cluster": CLUSTER, "severity": severity, **({"check": check} if by_check else {})}
    labels |= more or {}
    return [
        _case(
            alert,
            f"{check}, until it is gone",
            _check(check, "_x20 2x140 stale"),
            silent(5 + minutes - 0.5),
            firing(5 + minutes + 1, labels),
            silent(43),
        ),
        _case(
            alert,
            f"{check} for a moment, and what other alerts are about",
            merged(
                _check(check, "_x20 2x2 stale"),
                _check("POOL_APP_NOT_ENABLED", "1x200"),
                # As healthy clusters of 18.2 and 20.2 say.
                _check("MGR_MODULE_DEPENDENCY", "1x200"),
                # OSDs say that they have none.
                _check("SLOW_OPS", "1x200"),
                flat(_BLOCKED, "0x240", **_OSD),
                _check("MDS_UP_LESS_THAN_MAX", "1x200"),
            ),
            silent(6.5),
            silent(45),
        ),
    ]


def _elections(values: str) -> Series:
    return flat("cephqos_cluster_elections_total", values, cluster=CLUSTER)


def _degraded(values: str) -> Series:
    return flat("cephqos_recovery_pool_degraded_objects", values, cluster=CLUSTER, pool="p")


HEALTH: Final = [
    *_health("CephQosDaemonCrashed", "RECENT_CRASH", 1, by_check=False),
    *_health("CephQosScrubErrors", "PG_DAMAGED", 1, by_check=False),
    *_health("CephQosMonitorDiskLow", "MON_DISK_LOW", 5, by_check=False),
    *_health("CephQosMonitorsUnwell", "MON_CLOCK_SKEW", 15)[:1],
    _case(
        "CephQosMonitorsUnwell",
        "slow operations that no OSD has are those of monitors",
        merged(_check("SLOW_OPS", "_x20 2x140 stale"), flat(_BLOCKED, "0x240", **_OSD)),
        silent(19),
        firing(22, {"cluster": CLUSTER, "severity": "warning", "check": "SLOW_OPS"}),
        silent(43),
    ),
    _case(
        "CephQosMonitorsUnwell",
        "slow operations where OSDs do not say whether they have any: on 16.2 and 17.2",
        _check("SLOW_OPS", "_x20 2x140 stale"),
        silent(30),
    ),
    _case(
        "CephQosHealthCheckFails",
        "slow operations where OSDs do not say whether they have any: on 16.2 and 17.2",
        _check("SLOW_OPS", "_x20 2x140 stale"),
        silent(19),
        firing(22, {"cluster": CLUSTER, "severity": "warning", "check": "SLOW_OPS"}),
        silent(43),
    ),
    _case(
        "CephQosHealthCheckFails",
        "slow operations that an OSD shows",
        merged(
            _check("SLOW_OPS", "_x20 2x140 stale"),
            flat("cephqos_ops_oldest_age_seconds", "_x20 40x240", **_OSD),
        ),
        silent(30),
    ),
    _case(
        "CephQosMonitorsUnwell",
        "slow operations of an OSD, and a monitor that is down for five minutes",
        merged(
            _check("SLOW_OPS", "_x20 2x140 stale"),
            _check("MON_DOWN", "_x20 1x20 stale"),
            flat(_BLOCKED, "_x20 2x240", **_OSD),
        ),
        silent(22),
        silent(38),
    ),
    _case(
        "CephQosMonitorsUnwell",
        "a monitor that goes and comes back twice, until an hour later",
        _elections("8x20 8+1x4 12x400"),
        silent(19),
        firing(22, {"cluster": CLUSTER, "severity": "warning", "check": "ELECTIONS"}),
        silent(68),
    ),
    _case(
        "CephQosMonitorsUnwell",
        "a monitor that is restarted, and elections before the exporter began",
        _elections("_x20 8x20 9x8 10x300"),
        silent(22),
        silent(60),
    ),
    *(
        case
        for check in ("LARGE_OMAP_OBJECTS", "MANY_OBJECTS_PER_PG", "POOL_TOO_FEW_PGS")
        for case in _health("CephQosPiecesTooLarge", check, 15, more={"seen": "health"})
    ),
    *_health("CephQosPgsInactive", "PG_AVAILABILITY", 2, by_check=False, severity="critical"),
    *_health("CephQosManagerFailing", "MGR_MODULE_ERROR", 5),
    *_health("CephQosFilesystemDown", "MDS_ALL_DOWN", 5, severity="critical"),
    *_health("CephQosMdsBehind", "MDS_TRIM", 15),
    *_health("CephQosPoolFull", "POOL_FULL", 2, by_check=False, severity="critical"),
    *(
        case
        for check in ("DEVICE_HEALTH_IN_USE", "PG_RECOVERY_FULL", "CEPHADM_FAILED_DAEMON")
        for case in _health("CephQosHealthCheckFails", check, 15)
    ),
    _case(
        "CephQosHealthCheckFails",
        "groups that lack copies while no object does",
        merged(_check("PG_DEGRADED", "_x20 3x140"), _degraded("0x160")),
        silent(19),
        firing(22, {"cluster": CLUSTER, "severity": "warning", "check": "PG_DEGRADED"}),
    ),
    *(
        _case(
            "CephQosHealthCheckFails",
            f"groups that lack copies, and {what}, which other alerts are about",
            merged(_check("PG_DEGRADED", "_x20 3x140"), series),
            silent(22),
            silent(38),
        )
        for what, series in (
            ("objects are degraded", _degraded("900x160")),
            ("an OSD is down", merged(_degraded("0x160"), flat(_UP, "0x160", **_OSD))),
        )
    ),
    _case(
        "CephQosManagerFailing",
        "no manager: the cluster's figures are absent, and the exporter says why",
        flat("cephqos_cluster_up", "_x20 0x100 stale", cluster=CLUSTER, reason="no_manager"),
        silent(9.5),
        firing(11, {"cluster": CLUSTER, "severity": "warning", "check": "MGR_DOWN"}),
        silent(33),
    ),
]

_FOUND: Final = {**_OSD, "severity": "warning"}


def _median(values: str) -> Series:
    return flat(PerOsdPlace.SECONDS_MEDIAN1D, values, **_OSD, at="device")


def _work(values: str) -> Series:
    return flat(PerOsd.DEVICE_WORK_MAX1D, values, **_OSD, unit="requests")


def _weeks(name: str, series: Series, *moments: CaseMoment) -> RuleCase:
    return _case(
        "CephQosDeviceSlowerThanBefore", name, series, *moments, group="months", interval=300
    )


# The first sample after so many, in minutes: whole hours, as these rules are looked at.
_SLOW_AFTER_MONTH: Final = (_MONTH + 300) * 5
_SLOW_AFTER_FORTNIGHT: Final = (_FORTNIGHT + 36) * 5
_SLOW_AFTER_QUARTER: Final = (_QUARTER + 12) * 5
FINDINGS: Final = [
    _case(
        "CephQosOperationsBlocked",
        "operations that are blocked all the time, until they are not",
        flat(_BLOCKED, "0x19 3x60 0x60", **_OSD),
        silent(9),
        firing(10.5, _FOUND),
        silent(22),
        group="found",
    ),
    _case(
        "CephQosOperationsBlocked",
        "operations that are blocked now and then",
        flat(_BLOCKED, " ".join(["0x9 3x9"] * 12), **_OSD),
        silent(20),
        silent(50),
        group="found",
    ),
    _case(
        "CephQosOperationsBlocked",
        "16.2 does not count them: the oldest one is older than half a minute",
        flat("cephqos_ops_oldest_age_seconds", "1x19 40x60 2x60", **_OSD),
        silent(9),
        firing(10.5, _FOUND),
        silent(22),
        group="found",
    ),
    _case(
        "CephQosOsdStaysDown",
        "an OSD that is down for a quarter of an hour",
        flat(_UP, "1x10 0x100 1x60", **_OSD),
        silent(16),
        firing(20, _FOUND),
        group="found",
    ),
    _case(
        "CephQosOsdStaysDown",
        "an OSD that is down for ten minutes",
        flat(_UP, "1x10 0x40 1x220", **_OSD),
        silent(12),
        silent(50),
        group="found",
    ),
    _case(
        "CephQosOsdFlapping",
        "an OSD that goes and comes back twice, until an hour later",
        flat(_UP, "1x10 0x3 1x3 0x3 1x300", **_OSD),
        silent(5.5),
        firing(7, _FOUND),
        silent(66),
        group="found",
    ),
    _case(
        "CephQosOsdFlapping",
        "an OSD that restarts",
        flat(_UP, "1x10 0x10 1x220", **_OSD),
        silent(10),
        silent(50),
        group="found",
    ),
    _weeks(
        "six times as slow as a month ago, with as much work",
        merged(_median(f"0.001x{_MONTH + 299} 0.006x100 0.001x100"), _work(f"500x{_MONTH + 500}")),
        silent(_SLOW_AFTER_MONTH - 1),
        firing(_SLOW_AFTER_MONTH + 1, _FOUND),
        silent(_SLOW_AFTER_MONTH + 520),
    ),
    _weeks(
        "six times as slow as a fortnight ago, where nothing older is kept",
        merged(
            _median(f"0.001x{_FORTNIGHT + 35} 0.006x100"),
            _work(f"500x{_FORTNIGHT + 200}"),
        ),
        silent(_SLOW_AFTER_FORTNIGHT - 1),
        firing(_SLOW_AFTER_FORTNIGHT + 1, _FOUND),
    ),
    _weeks(
        "slower little by little: twice as slow as a month ago, four times as a quarter ago",
        merged(_median("0.001x12000 0.0025x13000 0.0045x1500"), _work(f"500x{_QUARTER + 1000}")),
        silent(_SLOW_AFTER_QUARTER - 120),
        firing(_SLOW_AFTER_QUARTER + 1, _FOUND),
    ),
    _weeks(
        "as slow, and it does twice as much",
        merged(
            _median(f"0.001x{_MONTH + 299} 0.006x100"),
            _work(f"500x{_MONTH + 299} 1000x100"),
        ),
        silent(_SLOW_AFTER_MONTH + 1),
        silent(_SLOW_AFTER_MONTH + 400),
    ),
]

CASES: Final = [*FORGOTTEN, *HEALTH, *FINDINGS]
