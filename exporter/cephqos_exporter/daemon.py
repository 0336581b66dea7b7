"""A daemon of this host: who it is, what it is asked, and what a collector sees of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cephqos_exporter.families import Family
from cephqos_exporter.labels import LabelText
from cephqos_exporter.not_understood import NotUnderstood


class Command(NamedTuple):
    """An admin-socket command of the read-only list, and how long its reply stays good.

    `ttl` in seconds. 0: fetched at every scrape; infinity: once per daemon start (schemas).
    """

    prefix: str
    ttl: float = 0.0


@dataclass(frozen=True, slots=True)
class Daemon:
    """A Ceph daemon found on this host."""

    kind: str  # osd, mon, mgr, mds, client
    id: str
    cluster: str  # fsid
    socket: Path
    pid: int | None = None
    start: int | None = None  # of the process, in clock ticks since the boot
    _hash: int = field(init=False, repr=False, compare=False)  # every collector looks it up

    def __post_init__(self) -> None:
        known = (self.kind, self.id, self.cluster, self.socket, self.pid, self.start)
        object.__setattr__(self, "_hash", hash(known))

    def __hash__(self) -> int:
        return self._hash

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.id}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels that every series of this daemon carries, in this order."""
        return {"ceph_daemon": self.name, "cluster": self.cluster}


@dataclass(frozen=True, slots=True)
class Host:
    """Where the host's files are: the real roots, or fixture trees."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")


class ReplyMissing(Exception):
    """A reply that a collector needs did not come; `reason` is one of the daemon_up reasons.

    `families`: those that the collector could make without that reply.
    """

    def __init__(self, command: str, reason: str, families: Sequence[Family] = ()) -> None:
        super().__init__(f"{command}: {reason}")
        self.command = command
        self.reason = reason
        self.families = families


@dataclass(frozen=True, slots=True)
class DaemonView:
    """All that a collector may know of one daemon in one scrape."""

    daemon: Daemon
    labels: LabelText  # rendered daemon.labels
    replies: Mapping[str, Any]  # command prefix -> parsed JSON; absent when it did not come
    errors: Mapping[str, str]  # command prefix -> reason it is absent
    time: float  # wall clock when the replies came
    host: Host
    down: str = ""  # why the daemon is not up; empty if it is
    not_understood: NotUnderstood = field(default_factory=NotUnderstood)

    def reply(self, prefix: str) -> Any:
        """The parsed reply, or ReplyMissing with the reason."""
        try:
            return self.replies[prefix]
        except KeyError:
            raise ReplyMissing(prefix, self.errors.get(prefix, "not fetched")) from None


class Collector(Protocol):
    """Makes families from a daemon's replies. It opens no sockets and starts no processes.

    An instance lives as long as the exporter and may keep state per daemon; `forget` drops it when
    a daemon has gone or restarted. `collect` is called once per daemon and scrape. If it raises,
    only that daemon's samples of this collector are missing.
    """

    name: str

    def commands(self, daemon: Daemon) -> Sequence[Command]: ...

    def collect(self, view: DaemonView) -> Iterable[Family]: ...

    def finish(self) -> Iterable[Family]:
        """Families about the host rather than one daemon, after all `collect` of a scrape."""
        ...

    def forget(self, daemon: Daemon) -> None: ...
