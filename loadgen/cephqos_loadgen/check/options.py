"""What the command line decides about a run."""

from dataclasses import dataclass
from pathlib import Path

from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN

DEFAULT_RELEASE = "reef"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """Which cluster, where to record, what to show."""

    out: Path
    lab: str | None = None
    release: str = DEFAULT_RELEASE
    conf: Path | None = None
    keyring: Path | None = None
    user: str = "admin"
    known_fsid: str | None = None
    python: str = "/usr/bin/python3"  # one that has the rados module
    work: Path = Path("/run/cephqos")  # the clients' conf and sockets
    paths: tuple[str, ...] = ()  # devices and files that the scenario may load
    exporters: tuple[str, ...] = ()
    sockets: Path | None = None
    listen: str = DEFAULT_LISTEN
    listen_given: bool = False
    take_over: bool = False
    grafana: str | None = None
    loki: str | None = None
    resume: Path | None = None
