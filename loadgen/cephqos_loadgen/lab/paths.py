"""Paths of labs and of the cache. They are composed here only."""

import os
import re
from pathlib import Path
from typing import Final

from cephqos_base import marked
from cephqos_base.errors import UsageError

_DEFAULT_LABS: Final = "/var/lib/cephqos/labs"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


def cache_dir() -> Path:
    """Release trees and other files that are kept between runs."""
    if folder := os.environ.get("CEPHQOS_CACHE"):
        return Path(folder).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cephqos"


def labs_dir() -> Path:
    """The folder of all labs. Its entries are removed when a lab ends, so it is never a guess."""
    folder = os.environ.get("CEPHQOS_LABS", _DEFAULT_LABS)
    if not Path(folder).is_absolute():
        found = f"the relative path {folder!r}" if folder else "nothing"
        raise UsageError(
            f"CEPHQOS_LABS: found {found}; expected the absolute path of a folder for labs, such as"
            f" {_DEFAULT_LABS}: set it to one, or unset it"
        )
    return Path(folder)


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    if not is_name(name):
        raise UsageError(
            f"name {name!r}: expected at most 30 of a-z, 0-9 and -, not starting with -"
        )


class LabPaths:
    """The files of one lab. Inside its namespaces they have the same names as outside."""

    def __init__(self, base: Path, name: str) -> None:
        self.base, self.name = base, name
        self.dir = base / name
        # The folder's mark. The lab's keeper and its process 1 hold a lock on it while they run.
        self.lock = self.dir / marked.MARK
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
        self.cgroups = self.dir / "cgroups"  # which control groups this lab has made

    @classmethod
    def of(cls, name: str) -> "LabPaths":
        check_name(name)
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
