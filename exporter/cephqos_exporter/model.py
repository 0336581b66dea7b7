"""What flows through a scrape: daemons and their replies in, metric families out.

Everything here is plain data. Collectors are pure: they turn a `DaemonView` (one daemon's
replies) into families; fetching, deadlines, isolation and timing belong to `scrape.py`, writing to
`exposition.py`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, NewType, Protocol, Self

# Rendered once and used for every sample of every scrape: `ceph_daemon="osd.3",cluster="…"`.
# Rendering labels for each sample was the largest cost of writing an exposition.
LabelText = NewType("LabelText", str)

FamilyType = Literal["counter", "gauge", "histogram", "summary", "info", "unknown"]

# (suffix, labels, value): `_bucket`, `_sum`, `_count` or an empty suffix.
Sample = tuple[str, LabelText, float]


def escape_label_value(value: str) -> str:
    """Escape a label value as text format 0.0.4 and OpenMetrics want it.

    Halves of characters, as names of files may have, are replaced.
    """
    if not value.isascii():
        value = value.encode(errors="replace").decode()
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def render_labels(labels: Mapping[str, str]) -> LabelText:
    """Render labels in the order given; the caller keeps the result."""
    return LabelText(",".join(f'{k}="{escape_label_value(v)}"' for k, v in labels.items()))


def extend_labels(base: LabelText, labels: Mapping[str, str]) -> LabelText:
    """Add labels behind those already rendered."""
    more = render_labels(labels)
    return LabelText(f"{base},{more}") if base and more else LabelText(base or more)


@dataclass(slots=True)
class Family:
    """One metric family. A counter of ours carries its `_total` in the name; Ceph's names stay."""

    name: str
    type: FamilyType
    help: str
    samples: list[Sample] = field(default_factory=list)

    def add(self, labels: LabelText, value: float, suffix: str = "") -> None:
        self.samples.append((suffix, labels, value))


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Families that come at every scrape, all of them but their numbers.

    A collector makes it once for a daemon, and again when a series comes or goes. What is written
    of it once needs no second look: so one form is never changed, and is only like itself.
    """

    families: tuple[Family, ...]  # the values of their samples mean nothing
    places: int

    @classmethod
    def of(cls, families: Iterable[Family]) -> Self:
        """The form of families that the caller gives away."""
        own = tuple(families)
        return cls(own, sum(len(family.samples) for family in own))

    def fill(self, values: Sequence[float]) -> "FilledForm":
        """The families with the numbers of a scrape, in the order of their samples."""
        if len(values) != self.places:
            raise ValueError(f"{len(values)} numbers for {self.places} places")
        return FilledForm(self, values)


@dataclass(frozen=True, slots=True, eq=False)
class FilledForm:
    """The families of a form with the numbers of one scrape: `Form.fill` makes it."""

    form: Form
    values: Sequence[float]

    def __iter__(self) -> Iterator[Family]:
        rest = iter(self.values)
        for one in self.form.families:
            samples = [(s, labels, next(rest)) for s, labels, _ in one.samples]
            yield Family(one.name, one.type, one.help, samples)


def single(name: str, kind: FamilyType, text: str, labels: LabelText, value: float) -> Family:
    """A family with one sample."""
    return Family(name, kind, text, [("", labels, value)])


class Command(NamedTuple):
    """An admin-socket command of the read-only list, and how long its reply stays good.

    `ttl` 0: fetched at every scrape. Infinity: once per daemon start (schemas).
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
    run: Path = Path("/run")


class ReplyMissing(Exception):
    """A reply that a collector needs did not come; `reason` is one of the daemon_up reasons."""

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"{command}: {reason}")
        self.command = command
        self.reason = reason


@dataclass(frozen=True, slots=True)
class DaemonView:
    """All that a collector may know of one daemon in one scrape."""

    daemon: Daemon
    labels: LabelText  # rendered daemon.labels
    replies: Mapping[str, Any]  # command prefix -> parsed JSON; absent when it did not come
    errors: Mapping[str, str]  # command prefix -> reason it is absent
    time: float  # wall clock when the replies came
    host: Host

    def reply(self, prefix: str) -> Any:
        """The parsed reply, or ReplyMissing with the reason."""
        try:
            return self.replies[prefix]
        except KeyError:
            raise ReplyMissing(prefix, self.errors.get(prefix, "not fetched")) from None


class Collector(Protocol):
    """One file, one class. Opens no sockets, starts no processes, times nothing.

    An instance lives as long as the exporter and may keep state per daemon; `forget` drops it when
    a daemon has gone or restarted. `collect` is called once per daemon and scrape: what it raises
    costs that daemon's samples of this collector and nothing else.
    """

    name: str

    def commands(self, daemon: Daemon) -> Sequence[Command]: ...

    def collect(self, view: DaemonView) -> Iterable[Family]: ...

    def finish(self) -> Iterable[Family]:
        """Families about the host rather than one daemon, after all `collect` of a scrape."""
        ...

    def forget(self, daemon: Daemon) -> None: ...
