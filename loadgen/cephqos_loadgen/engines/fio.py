"""fio: command lines, and its `json+` output as it comes.

With `--status-interval` fio writes one JSON document per interval, each cumulative since the start,
one behind the other, sometimes with lines of text between them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from cephqos_loadgen.engines.place import Place, pinned
from cephqos_loadgen.scenario.model import Fio

DIRECTIONS = ("read", "write")
_NS = 1e-9


# -- command lines -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Client:
    """One fio process of a phase: its name, and the volumes that it loads."""

    name: str
    volumes: tuple[int, ...]


def clients(action: Fio) -> list[Client]:
    """The processes that share out the volumes; engines without volumes have one job each."""
    if action.engine in ("rbd", "krbd", "nbd"):
        share = action.volumes // action.clients
        return [
            Client(f"client.{n}", tuple(range(n * share, (n + 1) * share)))
            for n in range(action.clients)
        ]
    return [Client(f"client.{n}", (n,)) for n in range(action.clients)]


def nbd_socket(place: Place, phase: str, volume: int) -> str:
    return f"{place.work}/{phase}.{volume}.nbd"


def qemu_nbd_argv(action: Fio, place: Place, phase: str, volume: int) -> list[str]:
    """QEMU's block layer, without a guest, on one image."""
    image = f"rbd:{action.pool}/volume.{volume}:conf={place.conf}:id={place.user}"
    if place.keyring:
        image += f":keyring={place.keyring}"
    options = ["--socket", nbd_socket(place, phase, volume), "--format=raw"]
    return ["qemu-nbd", *options, f"--cache={action.cache}", "--persistent", image]


def argv(
    action: Fio,
    client: Client,
    place: Place,
    *,
    phase: str,
    seconds: float,
    depth: int | None = None,
    devices: Mapping[int, str] | None = None,
) -> list[str]:
    """The command line of one client; `devices` are the mapped krbd devices by volume."""
    command = [*pinned(action.cpus), "fio"]
    command += ["--output-format=json+", "--status-interval=1", "--eta=never"]
    for volume in client.volumes:
        command.append(f"--name=volume.{volume}")
        command += _target(action, client, place, phase, volume, devices or {})
        command += [f"--rw={action.rw}", f"--bs={action.block_size}"]
        command += [f"--iodepth={depth or action.depth}"]
        command += ["--time_based=1", f"--runtime={max(1, round(seconds))}"]
        if action.size:
            command.append(f"--size={action.size}")
        if action.rate_iops:
            command.append(f"--rate_iops={max(1, action.rate_iops // action.clients)}")
        if action.read_percent is not None:
            command.append(f"--rwmixread={action.read_percent}")
        command += [f"--{name}={value}" for name, value in action.options]
    return command


def _target(
    action: Fio, client: Client, place: Place, phase: str, volume: int, devices: Mapping[int, str]
) -> list[str]:
    engine = action.engine
    if engine == "rbd":
        image = [f"--pool={action.pool}", f"--rbdname=volume.{volume}"]
        return ["--ioengine=rbd", f"--clientname={place.user}", *image]
    if engine == "rados":
        # Object names come from the job's name and number: clients must not share them.
        names = [f"--filename={phase}.{client.name}"]
        return ["--ioengine=rados", f"--clientname={place.user}", f"--pool={action.pool}", *names]
    if engine == "nbd":
        socket = nbd_socket(place, phase, volume)
        return ["--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}"]
    if engine == "krbd":
        device = devices.get(volume, f"/dev/rbd/{action.pool}/volume.{volume}")
        return ["--ioengine=libaio", "--direct=1", f"--filename={device}"]
    return [f"--ioengine={engine}", "--direct=1", f"--filename={action.path}"]


def ends_by_itself(action: Fio) -> bool:
    """Whether fio is told to end when its figures no longer change."""
    return any(name == "steadystate" for name, _ in action.options)


def prefill_argv(pool: str, volume: int, place: Place) -> list[str]:
    """Write an image through once, so that every block exists."""
    job = [f"--name=volume.{volume}", "--ioengine=rbd", f"--clientname={place.user}"]
    job += [f"--pool={pool}", f"--rbdname=volume.{volume}", "--rw=write", "--bs=4M", "--iodepth=8"]
    return ["fio", "--output-format=json+", "--status-interval=1", "--eta=never", *job]


# -- output --------------------------------------------------------------------------------------


class JsonStream:
    """Takes output as it comes, gives the documents that are whole."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Documents begin with a line `{` and end with a line `}`; what is between is text."""
        self._rest += data
        found = []
        while (end := self._rest.find(b"\n}\n")) >= 0:
            document, self._rest = self._rest[: end + 2], self._rest[end + 3 :]
            begin = 0 if document.startswith(b"{\n") else document.rfind(b"\n{\n") + 1
            try:
                found.append(orjson.loads(document[begin:]))
            except orjson.JSONDecodeError:
                continue  # a document that was torn, by a signal or a full disk
        return found


def documents(data: bytes) -> list[dict[str, Any]]:
    """All documents of a recorded output, also of one whose last newline is missing."""
    return JsonStream().feed(data if data.endswith(b"\n") else data + b"\n")


@dataclass(frozen=True, slots=True)
class Figures:
    """Cumulative figures of one direction; latencies (completion) in seconds."""

    ios: int = 0
    bytes: int = 0
    latency_count: int = 0
    latency_sum: float = 0.0
    latency_squares: float = 0.0
    latency_max: float = 0.0
    bins: Mapping[float, int] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return self.latency_sum / self.latency_count if self.latency_count else 0.0

    @property
    def deviation(self) -> float:
        if not self.latency_count:
            return 0.0
        return math.sqrt(max(0.0, self.latency_squares / self.latency_count - self.mean**2))

    def percentile(self, percent: float) -> float:
        """From the bins, each 1.6 % wide at most."""
        left = self.latency_count * percent / 100
        value = 0.0
        for value in sorted(self.bins):
            left -= self.bins[value]
            if left <= 0:
                break
        return value


@dataclass(frozen=True, slots=True)
class Status:
    """One document: per job and direction, with when it was written (seconds since the epoch)."""

    time: float
    jobs: Mapping[str, Mapping[str, Figures]]
    errors: Mapping[str, int]
    runtime: float
    # of jobs that were to run to fio's own steady state: whether they reached it
    steady: Mapping[str, bool] = field(default_factory=dict)

    @property
    def total(self) -> Figures:
        return add(f for job in self.jobs.values() for f in job.values())

    def of(self, direction: str) -> Figures:
        return add(job[direction] for job in self.jobs.values())


def read_status(document: Mapping[str, Any]) -> Status:
    """A document as figures. Field names are the same in fio 3.33, 3.39 and 3.41."""
    jobs: dict[str, Mapping[str, Figures]] = {}
    errors: dict[str, int] = {}
    steady: dict[str, bool] = {}
    runtime = 0.0
    for job in document["jobs"]:
        name = job["jobname"]
        jobs[name] = {direction: _figures(job[direction]) for direction in DIRECTIONS}
        errors[name] = job["error"]
        if "steadystate" in job:
            steady[name] = bool(job["steadystate"]["attained"])
        runtime = max(runtime, *(job[d]["runtime"] / 1000 for d in DIRECTIONS))
    return Status(document["timestamp_ms"] / 1000, jobs, errors, runtime, steady)


def _figures(entry: Mapping[str, Any]) -> Figures:
    latency = entry["clat_ns"]
    count = latency["N"]
    mean, deviation = latency["mean"] * _NS, latency["stddev"] * _NS
    return Figures(
        ios=entry["total_ios"],
        bytes=entry["io_bytes"],
        latency_count=count,
        latency_sum=mean * count,
        latency_squares=(deviation**2 + mean**2) * count,
        latency_max=latency["max"] * _NS,
        bins={int(ns) * _NS: n for ns, n in latency.get("bins", {}).items()},
    )


def add(parts: Iterable[Figures]) -> Figures:
    """Figures of jobs or directions taken together."""
    total = Figures()
    bins: dict[float, int] = {}
    for part in parts:
        for value, count in part.bins.items():
            bins[value] = bins.get(value, 0) + count
        total = Figures(
            total.ios + part.ios,
            total.bytes + part.bytes,
            total.latency_count + part.latency_count,
            total.latency_sum + part.latency_sum,
            total.latency_squares + part.latency_squares,
            max(total.latency_max, part.latency_max),
            bins,
        )
    return total


def since(later: Figures, earlier: Figures) -> Figures:
    """What happened between two cumulative figures."""
    before = earlier.bins
    bins = {v: n - before.get(v, 0) for v, n in later.bins.items() if n > before.get(v, 0)}
    return Figures(
        later.ios - earlier.ios,
        later.bytes - earlier.bytes,
        later.latency_count - earlier.latency_count,
        max(0.0, later.latency_sum - earlier.latency_sum),
        max(0.0, later.latency_squares - earlier.latency_squares),
        max(bins, default=0.0),
        bins,
    )


def _bounds() -> tuple[float, ...]:
    """Four per octave from 12.5 µs to 105 s. Every octave's start is a bound of the OSDs' own
    latency histograms too (100 µs times a power of two), so that the two can be laid together."""
    found = [12.5e-6 * 2**octave * (1 + part / 4) for octave in range(23) for part in range(4)]
    return tuple(round(bound, 12) for bound in [*found, 12.5e-6 * 2**23])


BOUNDS = _bounds()


def buckets(bins: Mapping[float, int], bounds: tuple[float, ...] = BOUNDS) -> list[int]:
    """Cumulative counts for `le` of each bound, and last of +Inf."""
    ordered = sorted(bins.items())
    counts: list[int] = []
    total = at = 0
    for bound in bounds:
        while at < len(ordered) and ordered[at][0] <= bound:
            total += ordered[at][1]
            at += 1
        counts.append(total)
    return [*counts, total + sum(count for _, count in ordered[at:])]
