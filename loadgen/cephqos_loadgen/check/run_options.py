"""What the command line decides about a run."""

from dataclasses import dataclass
from pathlib import Path

from cephqos_base.command import Group
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
    # A repeat is made again if other programs used more of this host's CPUs; None: it is not.
    others_cpu: float | None = None

    @property
    def given(self) -> bool:
        """Whether a cluster is named, so that the run does not make a lab of its own."""
        return bool(self.lab or self.conf)


def add_cluster(group: Group, *, changes: str, work: str) -> None:
    """The options that name a cluster which is there. `changes`: what is done to it."""
    group.option("--lab NAME", "a running lab (cephqos lab list)")
    group.option("--conf FILE", "ceph.conf of an existing cluster")
    group.option("--keyring FILE", "keyring of the client, with --conf")
    group.option("--user NAME", "name of the client (default: admin)", default="admin")
    group.option(
        "--i-know-this-cluster FSID", f"required with --conf: {changes}", dest="known_fsid"
    )
    defaults = RunOptions(out=Path())
    group.option(
        "--python PROGRAM",
        "Python interpreter that can import rados (default: %(default)s)",
        default=defaults.python,
    )
    group.option("--work DIR", f"{work} (default: %(default)s)", default=defaults.work)
