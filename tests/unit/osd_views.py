"""Views of recorded OSDs for the tests of the collectors that read counters and queues."""

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon

from cephqos_exporter.collectors.operation_samples import OperationSample, OperationSamples
from cephqos_exporter.daemon import Collector, Command, Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels

OSD = Daemon(
    kind="osd",
    id="3",
    cluster="c0ffee00-0000-4000-8000-000000000001",
    socket=Path("/run/ceph/ceph-osd.3.asok"),
    pid=4711,
    start=1,
)


class RecordedOsd:
    """An OSD that answers from a recording, and whose answers a test may change."""

    def __init__(
        self,
        release: str,
        moment: str = "load",
        daemon: Daemon = OSD,
        host: Host = Host(proc=Path("/nowhere"), sys=Path("/nowhere")),  # noqa: B008 - frozen
    ) -> None:
        bodies = RecordedDaemon.load(RECORDINGS / release / moment).replies
        self.replies: dict[str, Any] = {k: json.loads(v) for k, v in bodies.items()}
        self.daemon = daemon
        self.host = host
        self.errors: dict[str, str] = {}  # of commands that fail
        self.asked: list[list[str]] = []
        self.time = 1_000_000_000.0
        self.not_understood: set[str] = set()  # kinds, in the last scrape

    def scrape(self, collector: Collector) -> list[Family]:
        """What the collector makes of the replies to the commands that it asks for."""
        view = self.view(collector.commands(self.daemon))
        families = list(collector.collect(view))
        self.not_understood = set(view.not_understood.found)
        return families

    def sample(self, samples: OperationSamples) -> OperationSample | None:
        """The operations that a scrape samples, if it does."""
        return samples.of(self.view(samples.commands(self.daemon)))

    def view(self, commands: Iterable[Command]) -> DaemonView:
        """What a scrape sees of the OSD that asks it this."""
        wanted = [command.prefix for command in commands]
        self.asked.append(wanted)
        return DaemonView(
            daemon=self.daemon,
            labels=render_labels(self.daemon.labels),
            replies={p: copy.deepcopy(self.replies[p]) for p in wanted if p in self.replies},
            errors={
                p: self.errors.get(p, "unknown_command") for p in wanted if p not in self.replies
            },
            time=self.time,
            host=self.host,
        )

    def counters(self, logger: str) -> dict[str, Any]:
        """The counters of a logger, to read or to change; in both forms of the dump."""
        found: dict[str, Any]
        if "counter dump" in self.replies:
            found = next(
                entry["counters"]
                for entry in self.replies["counter dump"][logger]
                if not entry["labels"]
            )
        else:
            found = self.replies["perf dump"][logger]
        return found

    def add_ops(self, kind: str, size: int, count: int, row: int = 9) -> None:
        """Let the OSD complete client ops of one size, as counters and histogram would show it."""
        counters = self.counters("osd")
        counters["op"] += count
        counters[kind] += count
        if kind == "op_r":
            counters["op_r_out_bytes"] += size * count
            return
        counters[f"{kind}_in_bytes"] += size * count
        histogram = self.replies["perf histogram dump"]["osd"][f"{kind}_latency_in_bytes_histogram"]
        rows = histogram["axes"][1]["ranges"]
        column = next(
            i for i, r in enumerate(rows) if r.get("min", -1) <= size <= r.get("max", size)
        )
        histogram["values"][row][column] += count

    def set_option(self, key: str, value: object, source: str = "mon") -> None:
        """Set an option as `ceph config set` (mon) or the socket (override) does."""
        diff = self.replies["config diff"]["diff"]
        default = diff.get(key, {}).get("default", self.replies["config show"].get(key))
        diff[key] = {"default": default, source: value, "final": value}


def recorded_ops(release: str, moment: str, osd: int) -> dict[str, Any]:
    """The list of operations in progress of an OSD of a cluster of three, under load."""
    reply: dict[str, Any] = json.loads(waits(release, moment).replies[f"osd{osd}_ops"])
    return reply


def recorded_history(release: str) -> list[dict[str, Any]]:
    """The record of completed operations of an OSD under load."""
    bodies = RecordedDaemon.load(RECORDINGS / release / "load").replies
    record: list[dict[str, Any]] = json.loads(bodies["dump_historic_ops"])["ops"]
    return record


def waits(release: str, moment: str = "") -> RecordedDaemon:
    """What a cluster of three was asked while operations waited."""
    return RecordedDaemon.load(RECORDINGS / "waits" / release / moment)


def by_name(families: Iterable[Family]) -> dict[str, Family]:
    """Families by their name, each once."""
    found: dict[str, Family] = {}
    for family in families:
        assert family.name not in found, f"{family.name} came twice"
        found[family.name] = family
    return found


def samples(families: Iterable[Family], own: str = "") -> dict[str, float]:
    """The values of all samples by `name{labels}`, each once; without the labels that all have."""
    found: dict[str, float] = {}
    for family in families:
        for suffix, labels, number in family.samples:
            key = f"{family.name}{suffix}{{{labels.removeprefix(own).removeprefix(',')}}}"
            assert key not in found, f"{key} came twice"
            found[key] = number
    return found


def value(families: Iterable[Family], series: str, **labels: str) -> float:
    """The value of the one sample of that name with at least those labels."""
    found = values(families, series, labels)
    assert len(found) == 1, f"{series}{labels}: {len(found)} samples"
    return next(iter(found.values()))


def values(
    families: Iterable[Family], series: str, labels: Mapping[str, str] | None = None
) -> dict[str, float]:
    """The values of all samples of that name with at least those labels, by their labels."""
    wanted = [f'{key.rstrip("_")}="{text}"' for key, text in (labels or {}).items()]
    return {
        text: number
        for family in families
        for suffix, text, number in family.samples
        if family.name + suffix == series and all(part in text for part in wanted)
    }
