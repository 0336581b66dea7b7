"""Paths of labs and of the cache. They are composed here only."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """Release trees and other files that are kept between runs."""
    if folder := os.environ.get("CEPHQOS_CACHE"):
        return Path(folder).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cephqos"


def labs_dir() -> Path:
    """The folder of running labs and their lock files."""
    return Path(os.environ.get("CEPHQOS_LABS", "/var/lib/cephqos/labs")).absolute()


class LabPaths:
    """The files of one lab. Inside its namespaces they have the same names as outside."""

    def __init__(self, base: Path, name: str) -> None:
        self.base, self.name = base, name
        # Locked by the lab's keeper and its process 1 while they run.
        self.lock = base / f"{name}.lock"
        self.dir = base / name
        self.state = self.dir / "lab.json"
        self.conf = self.dir / "ceph.conf"
        self.control = self.dir / "control.sock"
        # The mount point of the release tree; an empty folder outside the namespaces.
        self.root = self.dir / "root"
        self.sockets = self.dir / "run"
        self.logs = self.dir / "log"
        self.work = self.dir / "work"  # for files of the lab's user
        self.bin = self.dir / "bin"  # ceph, rados, rbd … of this lab, callable from outside
        self.keys = self.dir / "keys"  # keyrings, in a lab with authentication

    @classmethod
    def of(cls, name: str) -> "LabPaths":
        return cls(labs_dir(), name)

    def keyring(self, entity: str) -> Path:
        return self.keys / f"{entity}.keyring"

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
