"""Paths of labs and of the cache. They are composed here only."""

import os
from dataclasses import dataclass
from pathlib import Path


def cache_dir() -> Path:
    """Release trees and other files that are kept between runs."""
    if own := os.environ.get("CEPHQOS_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cephqos"


def labs_dir() -> Path:
    """The folder of running labs and their lock files."""
    return Path(os.environ.get("CEPHQOS_LABS", "/var/lib/cephqos/labs")).absolute()


@dataclass(frozen=True, slots=True)
class LabPaths:
    """The files of one lab. Inside its namespaces they have the same names as outside."""

    base: Path
    name: str

    @classmethod
    def of(cls, name: str) -> "LabPaths":
        return cls(labs_dir(), name)

    @property
    def dir(self) -> Path:
        return self.base / self.name

    @property
    def lock(self) -> Path:
        """Locked by the lab's keeper and its process 1 while they run."""
        return self.base / f"{self.name}.lock"

    @property
    def state(self) -> Path:
        return self.dir / "lab.json"

    @property
    def conf(self) -> Path:
        return self.dir / "ceph.conf"

    @property
    def root(self) -> Path:
        """The mount point of the release tree; an empty folder outside the namespaces."""
        return self.dir / "root"

    @property
    def sockets(self) -> Path:
        return self.dir / "run"

    @property
    def logs(self) -> Path:
        return self.dir / "log"

    @property
    def work(self) -> Path:
        """For files of the lab's user: their paths are the same inside and outside."""
        return self.dir / "work"

    @property
    def bin(self) -> Path:
        """ceph, rados, rbd … of this lab, callable from outside."""
        return self.dir / "bin"

    @property
    def keys(self) -> Path:
        """Keyrings, in a lab with authentication."""
        return self.dir / "keys"

    def keyring(self, entity: str) -> Path:
        return self.keys / f"{entity}.keyring"

    @property
    def control(self) -> Path:
        return self.dir / "control.sock"

    def data(self, daemon: str) -> Path:
        return self.dir / "data" / daemon

    def socket(self, daemon: str) -> Path:
        return self.sockets / f"ceph-{daemon}.asok"

    def log(self, daemon: str) -> Path:
        return self.logs / f"ceph-{daemon}.log"

    def output(self, daemon: str) -> Path:
        """What the daemon wrote to its standard output and error."""
        return self.logs / f"ceph-{daemon}.out"

    def disk(self, osd: int, role: str) -> Path:
        return self.dir / "disks" / f"osd.{osd}.{role}"
