"""A situation: a cluster, a load, a fault, and the alerts that have to come. One small file each.

The files are in `situations/` here and in tests/truth. Their keys are the fields of these classes.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.thresholds import THRESHOLDS
from cephqos_base.yamlfile import read
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.spec import LabSpec

HERE: Final = Path(__file__).parent / "situations"
GIB: Final = 1 << 30
# Windows of rules and holds of alerts are 30 times as short here as in production.
FASTER: Final = 30


@dataclass(frozen=True, kw_only=True)
class StagedCluster:
    """What situations can share: they run one after the other on one lab."""

    release: str = "reef"
    osds: int = 3
    media: str = "ssd"
    op_queue: str | None = "mclock_scheduler"
    device_iops: int | None = None  # what every device is held to
    db_mib: int | None = None  # of a device for the DB; None: no such device
    settings: tuple[tuple[str, str], ...] = ()  # in ceph.conf, for [osd]

    def spec(self, name: str) -> LabSpec:
        return LabSpec(
            name=name,
            release=self.release,
            osds=self.osds,
            osd_size=20 * GIB,  # of a sparse file: five minutes of large writes fit
            backing="loop",
            rotational=self.media == "hdd",
            op_queue=self.op_queue,
            device_iops=self.device_iops,
            db_size=None if self.db_mib is None else self.db_mib << 20,
            settings=tuple(CephOption("osd", *setting) for setting in self.settings),
        )


@dataclass(frozen=True, kw_only=True)
class StagedAction:
    """A load or a fault: its kind (of LOADS or FAULTS in `faults`), and its other keys."""

    kind: str
    after: float = 0.0  # seconds after the loads began
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ExpectedFinding:
    """An alert that is expected, or allowed. What is None may be anything."""

    alert: tuple[str, ...]
    osd: int | None = None
    # Labels of the alert; `a|b`: either. `cause` and `by` may also be read from its description.
    cause: str | None = None
    by: str | None = None
    seen: str | None = None
    class_: str | None = None
    severity: str | None = None
    within: float = 30.0  # seconds after the fault


@dataclass(frozen=True, kw_only=True)
class Situation:
    """One situation, as its file has it."""

    name: str
    about: str
    digest: str
    cluster: StagedCluster
    size: int = 3  # of the pool; 0 is erasure-coded, 2+1
    # Placement groups of the pool. With few, one OSD may lead three times as many as another: where
    # that decides, there are more.
    groups: int = 32
    history: bool = True  # whether the OSDs were seen saturated before
    capacity: float | None = 0.5  # share of what they deliver saturated; above 10: ops per second
    config: dict[str, str] = field(default_factory=dict)
    target: float | None = None  # of a policy: a share of what all clients got before the fault
    loads: tuple[StagedAction, ...] = ()
    faults: tuple[StagedAction, ...] = ()
    seconds: float = 36.0  # of load
    stay: float = 0.0  # seconds of load after all alerts have come, or while nothing is wrong
    happened: str | None = None  # a counter that grows if the fault really took place
    needs: str = ""  # what the host must have; without it no alert is due
    expect: tuple[ExpectedFinding, ...] = ()
    allow: tuple[ExpectedFinding, ...] = ()

    @property
    def healthy(self) -> bool:
        return not self.expect


def load(path: Path) -> Situation:
    """Read and check the file of a situation. An unknown key is an error."""
    plain = read(path).plain()
    if not isinstance(plain, dict) or "about" not in plain:
        raise UsageError(f"{path}: expected a situation, with the key about")
    try:
        expect = tuple(_finding(entry) for entry in plain.pop("expect", ()))
        return Situation(
            name=path.stem,
            digest=hashlib.sha256(path.read_bytes()).hexdigest()[:12],
            cluster=_cluster(plain.pop("cluster", {})),
            loads=tuple(_action(entry) for entry in plain.pop("loads", ())),
            faults=tuple(_action(entry) for entry in plain.pop("faults", ())),
            expect=expect,
            allow=(
                *(_finding(entry) for entry in plain.pop("allow", ())),
                *_true_anyway(plain, healthy=not expect),
            ),
            config=_as_ceph_writes(plain.pop("config", {})),
            **plain,
        )
    except TypeError as exc:
        raise UsageError(f"{path}: {exc}") from exc


def _true_anyway(plain: dict[str, Any], *, healthy: bool) -> Iterator[ExpectedFinding]:
    """Placement groups may lie unevenly, as the balancer needs minutes. With a fault, a store may
    need longer than its bound for an operation. A capacity may be a small share of what OSDs do."""
    yield ExpectedFinding(alert=("CephQosPgsUneven", "CephQosPrimariesUneven"), severity="info")
    if not healthy:
        yield ExpectedFinding(alert=("CephQosStoreSlow",), severity="warning")
    capacity = plain.get("capacity", Situation.capacity)
    if capacity is not None and capacity * THRESHOLDS.more < 1:
        yield ExpectedFinding(alert=("CephQosCapacityUnderstated",), seen="delivered")


def _cluster(plain: dict[str, Any]) -> StagedCluster:
    settings = _as_ceph_writes(plain.pop("settings", {}))
    return StagedCluster(settings=tuple(settings.items()), **plain)


def _as_ceph_writes(options: dict[str, Any]) -> dict[str, str]:
    """`true` in a file is True in Python, which Ceph refuses."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


def _action(plain: dict[str, Any]) -> StagedAction:
    kind, after = plain.pop("kind"), float(plain.pop("after", 0))
    return StagedAction(kind=kind, after=after, options=plain)


def _finding(plain: dict[str, Any]) -> ExpectedFinding:
    alerts = tuple(f"CephQos{name.strip()}" for name in plain.pop("alert").split("|"))
    return ExpectedFinding(alert=alerts, class_=plain.pop("class", None), **plain)
