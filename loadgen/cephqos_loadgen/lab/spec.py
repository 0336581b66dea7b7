"""The specification of a lab: validated once, then frozen."""

import dataclasses
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.units import GIB
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.isolation.ports import PORTS_PER_LAB
from cephqos_loadgen.lab.paths import check_name
from cephqos_loadgen.lab.releases import Release, find_release

MAX_OSDS = 16
IO_SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
OP_QUEUES = ("wpq", "mclock_scheduler")
BACKINGS = ("file", "loop")
OBJECTSTORES = ("bluestore", "filestore")
AUTHS = ("none", "cephx")
FILESYSTEMS = ("xfs", "ext4", "btrfs")
SECTIONS = re.compile(r"global|mon|mgr|osd|client|(mon|mgr|osd|client)\.[a-z0-9]+")
FSID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_PORT = 65535 - PORTS_PER_LAB
# BlueStore refuses smaller devices, and FileStore's journal alone takes half of it.
MIN_OSD_SIZE = 1 * GIB


@dataclass(frozen=True, slots=True)
class Regime:
    """Settings that belong together, for a purpose that the ordinary lab does not serve.

    There, BlueStore takes all work at once, eight shards never have a queue, and the CPUs are the
    bound before the devices are: no scheduler has anything to decide.
    """

    about: str
    lab: dict[str, Any]  # fields of LabSpec, where the user gives none
    options: dict[str, str]  # of every OSD

    @property
    def settings(self) -> tuple[CephOption, ...]:
        return tuple(CephOption("osd", name, value) for name, value in self.options.items())


REGIMES: Final = {
    "scheduler": Regime(
        about="slow devices, one shard and narrow throttles, so that the scheduler decides",
        lab={"backing": "loop", "rotational": False, "device_iops": 300, "one_budget": True},
        options={
            # One queue, so that all that waits is in it; several threads, so that one operation
            # that waits for the device does not stop the others.
            "osd_op_num_shards": "1",
            "osd_op_num_threads_per_shard": "4",
            # BlueStore takes no more than the device works off in a few milliseconds.
            "bluestore_throttle_bytes": "32768",
            "bluestore_throttle_deferred_bytes": "32768",
        },
    )
}


def osds_in_words(count: int) -> str:
    """`1 OSD`, `4 OSDs`."""
    return f"{count} OSD{'' if count == 1 else 's'}"


def osds_there_are(count: int) -> str:
    """The OSDs of a lab with that many: `OSDs 0 to 3 only`."""
    return "osd.0 only" if count == 1 else f"OSDs 0 to {count - 1} only"


@dataclass(frozen=True, kw_only=True, slots=True)
class LabSpec:
    """What lab to start. `validate` is called before anything is changed."""

    name: str = "lab"
    release: str = "reef"
    osds: int = 4
    osd_size: int = 10 * GIB
    backing: str = "file"  # what holds an OSD's data: a file, or a loop device on a file
    # Of the loop devices; None: not set.
    io_scheduler: str | None = None
    rotational: bool | None = None
    db_size: int | None = None  # of a device for BlueStore's DB and WAL; None: no such device
    regime: str | None = None  # a name in REGIMES; `with_regime` has applied it already
    device_iops: int | None = None  # requests per second, reads and writes each; None: no limit
    one_budget: bool | None = None  # reads and writes share that limit, as in a real drive
    request_size: int | None = None  # bytes; of that one budget, a larger request takes several
    setuser: str | None = None
    op_queue: str | None = None
    objectstore: str = "bluestore"
    fs: str | None = None
    mkfs: str = ""  # options of mkfs and mount, as they are typed
    mount: str = ""
    auth: str = "none"
    settings: tuple[CephOption, ...] = ()
    cpus: tuple[tuple[int, tuple[int, ...]], ...] = ()  # OSDs that are pinned, each with its CPUs
    port: int | None = None
    fsid: str | None = None  # None: a new one
    timeout: float = 120.0

    @property
    def ceph(self) -> Release:
        return find_release(self.release)

    @property
    def loop(self) -> bool:
        return self.backing == "loop"

    @property
    def device_limits(self) -> dict[str, int]:
        """The limits of a control group for every OSD's device while no fault throttles it."""
        if self.device_iops is None or self.one_budget:
            return {}
        return {"riops": self.device_iops, "wiops": self.device_iops}

    @property
    def filesystem(self) -> str:
        """The filesystem under FileStore."""
        return self.fs or FILESYSTEMS[0]

    def cpus_of(self, osd: int) -> tuple[int, ...]:
        return dict(self.cpus).get(osd, ())

    def validate(self) -> None:
        """UsageError for what no machine can run. `checks` looks at this machine."""
        find_release(self.release)
        check_name(self.name)
        if not 1 <= self.osds <= MAX_OSDS:
            raise UsageError(f"--osds {self.osds}: expected 1 to {MAX_OSDS}")
        if self.fsid is not None and not FSID.fullmatch(self.fsid):
            raise UsageError(f"fsid {self.fsid!r}: expected a UUID in lower case")
        if self.osd_size < MIN_OSD_SIZE:
            raise UsageError(f"--osd-size of {self.osd_size} bytes: expected at least 1G")
        self._validate_numbers()
        _one_of("--backing", self.backing, BACKINGS)
        _one_of("--op-queue", self.op_queue, OP_QUEUES)
        _one_of("--regime", self.regime, tuple(REGIMES))
        _one_of("--io-scheduler", self.io_scheduler, IO_SCHEDULERS)
        _one_of("--objectstore", self.objectstore, OBJECTSTORES)
        _one_of("--fs", self.fs, FILESYSTEMS)
        _one_of("--auth", self.auth, AUTHS)
        if self.setuser not in (None, "ceph"):
            raise UsageError(f"--setuser {self.setuser!r}: the release trees have only ceph")
        self._validate_devices()
        for setting in self.settings:
            if not SECTIONS.fullmatch(setting.section):
                raise UsageError(
                    f"--set {setting.section}:{setting.name}: section {setting.section!r} is not"
                    " one of global, mon, mgr, osd, client or a daemon such as osd.0"
                )
        for osd, _ in self.cpus:
            if osd >= self.osds:
                raise UsageError(f"--cpus {osd}=…: the lab has {osds_there_are(self.osds)}")

    def _validate_numbers(self) -> None:
        if self.port is not None and not 1024 <= self.port <= MAX_PORT:
            raise UsageError(f"--port {self.port}: expected 1024 to {MAX_PORT}")
        if self.device_iops is not None and self.device_iops < 1:
            raise UsageError(f"--device-iops {self.device_iops}: expected 1 or more")
        if self.one_budget and self.device_iops is None:
            raise UsageError("--one-budget says how --device-iops is meant: add that")
        if self.request_size is not None and not (self.one_budget and self.request_size >= 4096):
            raise UsageError(
                f"--request-size of {self.request_size} bytes: expected 4K or more, and"
                " --one-budget 1"
            )
        if self.one_budget and not self.ceph.storage_daemon:
            raise UsageError(
                f"--one-budget 1: the tree of {self.release} has no qemu-storage-daemon."
                " Choose reef or tentacle, or --one-budget 0"
            )
        if not 0 < self.timeout < float("inf"):
            raise UsageError(f"--timeout {self.timeout}: expected a number of seconds above 0")

    def _validate_devices(self) -> None:
        for option, value in (
            ("--io-scheduler", self.io_scheduler),
            ("--rotational", self.rotational),
            ("--db-device", self.db_size),
            ("--device-iops", self.device_iops),
        ):
            if value is not None and not self.loop:
                raise UsageError(f"{option} needs a device of the OSD's own: add --backing loop")
        if self.fs is not None and self.objectstore != "filestore":
            raise UsageError("--fs is FileStore's: add --objectstore filestore")
        if (self.mkfs or self.mount) and self.objectstore != "filestore":
            raise UsageError("mkfs and mount are of FileStore's filesystem: objectstore filestore")
        if self.objectstore == "filestore":
            if not self.ceph.filestore:
                raise UsageError(
                    f"--objectstore filestore: Ceph {self.ceph.version} no longer has FileStore;"
                    " of the lab's releases only pacific (16.2) has"
                )
            if not self.loop:
                raise UsageError("--objectstore filestore needs --backing loop for its filesystem")
            if self.db_size is not None:
                raise UsageError("--db-device is BlueStore's: FileStore has no DB device")

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "LabSpec":
        settings = tuple(CephOption(**setting) for setting in data["settings"])
        cpus = tuple((osd, tuple(cpus)) for osd, cpus in data["cpus"])
        known = {field.name for field in dataclasses.fields(cls)}  # another version may have more
        kept = {name: value for name, value in data.items() if name in known}
        return cls(**{**kept, "settings": settings, "cpus": cpus})


def with_regime(asked: dict[str, Any], decided: Collection[str] = ()) -> dict[str, Any]:
    """Fields for a LabSpec: those that were asked for, and for the others what the regime sets.

    A field that is None was not asked for. The settings of both are kept; where both set an
    option, the later one wins, which was asked for. `decided` names options that are set in the
    monitors' configuration: OSDs obey it only where their ceph.conf says nothing.
    """
    fields = {key: value for key, value in asked.items() if value is not None}
    regime = REGIMES.get(fields.get("regime", ""))
    if regime is None:  # `validate` refuses an unknown name
        return fields
    left = (option for option in regime.settings if option.name not in decided)
    return {**regime.lab, **fields, "settings": (*left, *fields["settings"])}


def _one_of(option: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise UsageError(f"{option} {value!r}: expected one of {', '.join(allowed)}")
