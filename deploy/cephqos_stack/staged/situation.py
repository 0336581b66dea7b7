"""A situation: a cluster, a load, a fault, and what has to be said of it. One small file each."""

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
# As at production windows of 5 minutes for a hold: everything here is 30 times as fast.
FASTER: Final = 30


@dataclass(frozen=True, kw_only=True)
class StagedCluster:
    """What situations can share: they run one after the other on one lab."""

    release: str = "reef"
    osds: int = 3
    media: str = "ssd"
    op_queue: str | None = "mclock_scheduler"
    device_iops: int | None = None  # what every device is held to
    settings: tuple[tuple[str, str], ...] = ()  # in ceph.conf, for [osd]

    def spec(self, name: str) -> LabSpec:
        return LabSpec(
            name=name,
            release=self.release,
            osds=self.osds,
            osd_size=6 * GIB,
            backing="loop",
            rotational=self.media == "hdd",
            op_queue=self.op_queue,
            device_iops=self.device_iops,
            settings=tuple(CephOption("osd", *one) for one in self.settings),
        )


@dataclass(frozen=True, kw_only=True)
class StagedAction:
    """A load or a fault: what kind, and how much."""

    kind: str
    after: float = 0.0  # seconds after the loads began
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ExpectedFinding:
    """An alert that is expected, or allowed. What is None may be anything."""

    alert: tuple[str, ...]
    osd: int | None = None
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
    history: bool = True  # the OSDs were seen at their end before
    capacity: float | None = 0.5  # of what they deliver then; above 10: operations per second
    config: dict[str, str] = field(default_factory=dict)
    target: float | None = None  # of a policy: clients' share of the whole cluster before the fault
    loads: tuple[StagedAction, ...] = ()
    faults: tuple[StagedAction, ...] = ()
    seconds: float = 36.0  # of load
    stay: float = 0.0  # more of it: after all has come, or of health
    happened: str | None = None  # a counter that grows if what is staged took place
    needs: str = ""  # of the host, or what is expected is not due
    expect: tuple[ExpectedFinding, ...] = ()
    allow: tuple[ExpectedFinding, ...] = ()

    @property
    def healthy(self) -> bool:
        return not self.expect


def load(path: Path) -> Situation:
    """A file, read and checked: an unknown key is an error."""
    plain = read(path).plain()
    if not isinstance(plain, dict) or "about" not in plain:
        raise UsageError(f"{path}: expected a situation, with the key about")
    try:
        return Situation(
            name=path.stem,
            digest=hashlib.sha256(path.read_bytes()).hexdigest()[:12],
            cluster=_cluster(plain.pop("cluster", {})),
            loads=tuple(_action(it) for it in plain.pop("loads", ())),
            faults=tuple(_action(it) for it in plain.pop("faults", ())),
            expect=tuple(_finding(it) for it in plain.pop("expect", ())),
            allow=(*(_finding(it) for it in plain.pop("allow", ())), *_also_true(plain)),
            config=_as_ceph_has_it(plain.pop("config", {})),
            **plain,
        )
    except TypeError as exc:
        raise UsageError(f"{path}: {exc}") from exc


def _also_true(plain: dict[str, Any]) -> Iterator[ExpectedFinding]:
    """Where the capacity is a small share of what the OSDs did, an alert that says so is true."""
    capacity = plain.get("capacity", Situation.capacity)
    if capacity is not None and capacity * THRESHOLDS.more < 1:
        yield ExpectedFinding(alert=("CephQosCapacityUnderstated",), seen="delivered")


def _cluster(plain: dict[str, Any]) -> StagedCluster:
    settings = _as_ceph_has_it(plain.pop("settings", {}))
    return StagedCluster(settings=tuple(settings.items()), **plain)


def _as_ceph_has_it(options: dict[str, Any]) -> dict[str, str]:
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
