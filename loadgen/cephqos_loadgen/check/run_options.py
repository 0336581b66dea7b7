"""What the command line decides about a run."""

from dataclasses import dataclass
from pathlib import Path

from cephqos_base.servers import Address


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """Which cluster, where to record, what to show."""

    out: Path
    lab: str | None = None
    conf: Path | None = None
    keyring: Path | None = None
    user: str = "admin"
    known_fsid: str | None = None
    python: str = "/usr/bin/python3"  # one that has the rados module
    work: Path = Path("/run/cephqos")  # the clients' conf and sockets
    paths: tuple[str, ...] = ()  # devices and files that the scenario may load
    exporters: tuple[Address, ...] = ()  # their pages of metrics
    sockets: Path | None = None
    listen: str | None = None  # None: the default, or another port where that is taken
    take_over: bool = False
    restart_osds: int | None = None  # as many OSDs of a given cluster may be restarted
    grafana: Address | None = None
    loki: Address | None = None
    resume: Path | None = None

    @property
    def given(self) -> bool:
        """Whether a cluster is named, so that the run does not make a lab of its own."""
        return bool(self.lab or self.conf)
