"""Archives on disk with chosen figures, written with the recorder's own types and writers."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cephqos_base.series import DaemonSeries, DisksSeries, PlacementSeries, QosSeries, ThreadsSeries
from cephqos_loadgen.phase_kinds.fio import FioResult
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.results.figures import Interval, LoadFigures
from cephqos_loadgen.results.host import (
    BytesAsked,
    CpuUse,
    CpuUsers,
    DiskUse,
    DiskUsers,
    HostUse,
    ProcessUse,
    ThreadUse,
)
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.phase import EndedBy, PhaseRecord, RecoveryFigures, Step
from cephqos_loadgen.results.repeat import (
    InForce,
    Manifest,
    MetricsRecording,
    RecordingCost,
    RepeatLine,
    RepeatRecord,
    Summary,
)
from cephqos_loadgen.run_recording.columns import ColumnWriter
from cephqos_loadgen.run_recording.files import JsonLines, write_json
from cephqos_loadgen.run_recording.layout import FORMAT, repeat_folder

START = 1_795_000_000.0


@dataclass(frozen=True)
class SyntheticRepeat:
    """What one repeat found. A rate may be given per second of the load."""

    iops: float | Sequence[float]
    latency_ms: float = 5.0
    seconds: int = 30
    scrub_seconds: float | None = None
    scrub_bytes: int = 1 << 30
    scrub_objects: int = 1000
    recovery: RecoveryFigures | None = None
    jobs: int = 1
    alone: float | None = None  # IOPS of a phase with nothing beside it, of as many seconds
    ended_by: EndedBy = "duration"
    depths: Sequence[int] = ()  # a curve: one after the other, each does as much more as the first


@dataclass(frozen=True)
class Osds:
    """The metrics of OSDs, the same for all of them."""

    count: int = 2
    capacity: float = 1000.0
    reservation: float = 500.0
    attained: float = 300.0
    attained_each: Sequence[float] = ()  # second by second, instead
    waiting: float = 0.0  # in the clients' queue
    groups: Sequence[str] = ("tp_osd_tp", "msgr-worker", "bstore_kv_sync")
    in_progress: float = 0.0  # clients' operations at every sample
    busy: tuple[int, int] | None = None  # seconds in which they are in progress; None: all
    in_store: float = 0.0  # transactions on average
    store_latency: float = 0.02  # seconds of each
    media: str = ""
    share_disk: bool = False
    fillers: int = 0  # other series per OSD
    cpus: Sequence[str] = ()  # that each OSD may use
    reactors: Sequence[int] = ()  # the CPU of the only reactor of each OSD
    restart_at: int | None = None  # a second: counters of CPU restart


@dataclass
class Builder:
    """Points with their repeats; `write` makes the archive."""

    run: str = "made-up"
    status: str = "complete"
    osds: Osds | None = None
    profile_in_force: str = "balanced"
    rate_iops: int | None = None
    # Shares of CPU time: steal, and others. disks: the share of others in the bytes of a disk that
    # is always busy.
    busy: Mapping[str, float] = field(default_factory=dict)
    points: dict[str, list[SyntheticRepeat]] = field(default_factory=dict)
    axes: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # by point, instead of policy
    variables: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        lines, number, at = [], 0, START
        for value, repeats in self.points.items():
            for index, repeat in enumerate(repeats, start=1):
                number += 1
                point = f"policy={value}"
                name = repeat_folder(number, point, index)
                (folder / name).mkdir(parents=True)
                self._repeat(folder / name, name, point, index, repeat, at)
                lines.append(RepeatLine(name, point, index, "finished", ""))
                at += repeat.seconds + 60
        write_json(folder / "archive.json", to_json(self._manifest(lines, at)))
        write_json(folder / "plan.json", self._plan())
        write_json(folder / "environment.json", _ENVIRONMENT)
        digest = hashlib.sha256((folder / "archive.json").read_bytes()).hexdigest()
        (folder / "archive.sha256").write_text(f"{digest}  archive.json\n")
        return folder

    def _manifest(self, lines: Sequence[RepeatLine], end: float) -> Manifest:
        return Manifest(
            format=FORMAT, cephqos="0.1.0", run=self.run, scenario="client-vs-scrub",
            scale="study", status=self.status, error="", start_unix_seconds=START,  # type: ignore[arg-type]
            end_unix_seconds=end, repeats_planned=len(lines), repeats=tuple(lines),
            summary=Summary({}), restore_commands=(), files={},
        )  # fmt: skip

    def _plan(self) -> dict[str, Any]:
        alone = any(r.alone is not None for found in self.points.values() for r in found)
        action = {"kind": "fio", "rw": "randwrite", "block_size": 4096, "rate_iops": self.rate_iops}
        return {
            "about": "A made-up run with chosen figures.",
            "repeats": max(map(len, self.points.values())),
            "variables": [[name, value] for name, value in self.variables.items()],
            "points": [
                {
                    "name": f"policy={value}",
                    "settings": [
                        {"section": "osd", "name": "osd_mclock_profile", "value": "balanced"}
                    ],
                    "pools": [],
                    "phases": [
                        {"name": "client", "action": action, "against": "alone" if alone else ""}
                    ],
                }
                for value in self.points
            ],
        }

    def _repeat(
        self, folder: Path, name: str, point: str, index: int, repeat: SyntheticRepeat, start: float
    ) -> None:
        value = point.partition("=")[2]
        rates = _per_second(repeat)
        phases = {"client": _client(repeat, rates, start)}
        if repeat.alone is not None:
            phases["alone"] = _client(repeat, [repeat.alone] * repeat.seconds, start)
        if repeat.scrub_seconds is not None:
            result = ScrubResult(
                32, repeat.scrub_objects, repeat.scrub_bytes, repeat.scrub_seconds, 5
            )
            end = start + repeat.scrub_seconds
            phases["scrub"] = PhaseRecord("scrub", start, end, "done", "", result)
        if repeat.recovery:
            phases["osd_in"] = PhaseRecord(
                "osd_in", start, start + 5, "condition", recovery=repeat.recovery
            )
        end = start + repeat.seconds
        options = {f"osd.{n}": {"osd_mclock_profile": self.profile_in_force} for n in (0, 1)}
        record = RepeatRecord(
            folder=name, point=point, repeat=index, axes=self.axes.get(value, {"policy": value}),
            status="finished", start_unix_seconds=start, end_unix_seconds=end,
            in_force=InForce(options, {}, {}, {}, ()), phases=phases,
            cost=RecordingCost(repeat.seconds, 0.2, 0.1, 0.3, 0.01),
            metrics=MetricsRecording(
                repeat.seconds, 100, {"exporter": 0}, "", seconds=repeat.seconds
            ),
        )  # fmt: skip
        write_json(folder / "repeat.json", to_json(record))
        write_json(folder / "host.json", to_json({"client": self._host(repeat.seconds)}))
        _write_lines(folder / "intervals.jsonl.gz", _intervals(repeat, rates, start))
        looks = ({"time": start + s, "osds_up": 2, "pgmap": {}} for s in range(repeat.seconds))
        _write_lines(folder / "cluster.jsonl.gz", looks)
        if self.osds:
            write_metrics(folder / "metrics.columns", self.osds, start, repeat.seconds)

    def _host(self, seconds: float) -> HostUse:
        ours, total = 0.4 * 2 * seconds, 2 * seconds
        steal, others = (self.busy.get(name, 0.0) * total for name in ("steal", "others"))
        cpu = CpuUse(2, ours + others, 0.0, 0.0, 0.0, steal, total - ours - others - steal)
        thread = ThreadUse(ours, 0.0, 4, self.busy.get("client", 0.3) * seconds)
        processes = {"client.client.0": ProcessUse(1 << 20, {"fio": thread})}
        users = CpuUsers(ours, others, "make")
        return HostUse(seconds, cpu, *self._disks(seconds, processes), users)

    def _disks(
        self, seconds: float, processes: dict[str, ProcessUse]
    ) -> tuple[dict[str, DiskUse], dict[str, ProcessUse], DiskUsers | None]:
        if "disks" not in self.busy:
            return {}, processes, None
        whole = 2000 * 512
        others = round(whole * self.busy["disks"])
        disk = DiskUse(0, 0, 0, 0, 9, 0, 2000, 0, 0, round(seconds * 1e3), 0)
        asked = (BytesAsked(0, whole - others), BytesAsked(0, others))
        return {"sda": disk}, processes, DiskUsers(("sda",), (), *asked, "cp", 0)


_ENVIRONMENT: Mapping[str, Any] = {
    "cephqos": "0.1.0",
    "host": {"cpus": 2, "cpu_models": ["a CPU"], "memory_bytes": 1 << 34, "kernel": "6.1"},
    "tools": {"fio": "fio-3.39"},
    "cluster": {
        "osds": [{"id": n, "hostname": "h", "osd_objectstore": "bluestore"} for n in (0, 1)],
        "versions": {},
    },
}


def _per_second(repeat: SyntheticRepeat) -> list[float]:
    if isinstance(repeat.iops, int | float):
        return [float(repeat.iops)] * repeat.seconds
    return list(repeat.iops)


def figures(ios: int, seconds: float, latency_ms: float, spread: int = 20) -> LoadFigures:
    """Completions around a latency, in bins of their own."""
    centres = [round(latency_ms * 1e6 * (0.5 + n / spread)) for n in range(spread + 1)]
    counts = [ios // len(centres)] * len(centres)
    counts[len(centres) // 2] += ios - sum(counts)
    bins = {centre: count for centre, count in zip(centres, counts, strict=True) if count}
    mean = sum(c * n for c, n in bins.items()) / max(1, ios) * 1e-9
    return LoadFigures(ios, ios / seconds, ios * 4096 / seconds, mean, mean / 4, mean * 2, {}, bins)


def _client(repeat: SyntheticRepeat, rates: Sequence[float], start: float) -> PhaseRecord:
    seconds = len(rates)
    ios = round(sum(rates))
    total = figures(ios, seconds, repeat.latency_ms)
    jobs = {
        f"client.0/volume.{n}": figures(ios // repeat.jobs, seconds, repeat.latency_ms)
        for n in range(repeat.jobs)
    }
    step = Step(64, start, start + seconds, seconds, total, None, total, jobs)
    curve = enumerate(repeat.depths, start=1)
    steps = [_step(repeat, depth, n, start) for n, depth in curve] or [step]
    result = FioResult("rbd", "load", tuple(steps))
    return PhaseRecord("fio", start, start + seconds, repeat.ended_by, "", result)


def _step(repeat: SyntheticRepeat, depth: int, number: int, start: float) -> Step:
    """One of a curve, for reports that need no intervals of it."""
    seconds = repeat.seconds / len(repeat.depths)
    ios = round(float(np.mean(repeat.iops)) * number * seconds)
    found = figures(ios, seconds, repeat.latency_ms)
    begin = start + (number - 1) * seconds
    jobs = {"client.0/volume.0": found}
    return Step(depth, begin, begin + seconds, seconds, found, None, found, jobs)


def _intervals(repeat: SyntheticRepeat, rates: Sequence[float], start: float) -> Iterable[Any]:
    for second, rate in enumerate(rates):
        for job in range(repeat.jobs):
            found = figures(round(rate / repeat.jobs), 1.0, repeat.latency_ms)
            yield to_json(
                Interval(
                    start + second + 1, 1.0, "client", "client.0", f"volume.{job}", 64, None, found
                )
            )


def _write_lines(path: Path, lines: Iterable[Any]) -> None:
    file = JsonLines(path)
    for line in lines:
        file.write(line)
    file.close()


def write_metrics(path: Path, osds: Osds, start: float, seconds: int) -> None:
    """One sample a second of every OSD."""
    writer = ColumnWriter(path)
    random = np.random.default_rng(3)
    names = [f'ceph_osd_filler_{n}{{ceph_daemon="osd.{osd}"}}'
             for osd in range(osds.count) for n in range(osds.fillers)]  # fmt: skip
    for second in range(seconds + 1):
        values: dict[str, float] = {}
        for osd in range(osds.count):
            label = f'cluster="c",ceph_daemon="osd.{osd}"'
            values |= _osd_sample(label, osds, second)
            if osds.cpus:
                values[f'{PlacementSeries.INFO}{{{label},cpus="{osds.cpus[osd]}"}}'] = 1.0
            if osds.reactors:
                values[f'{PlacementSeries.REACTOR_CPU}{{{label},reactor="0"}}'] = osds.reactors[osd]
        values |= dict(zip(names, (random.random(len(names)) * second).tolist(), strict=True))
        writer.add(start + second, values)
    writer.close()


def _osd_sample(label: str, osds: Osds, second: int) -> dict[str, float]:
    client = f'{label},class="client"'
    attained = sum(osds.attained_each[:second]) or osds.attained * second
    idle = osds.busy is not None and not osds.busy[0] <= second < osds.busy[1]
    restarted = osds.restart_at is not None and second >= osds.restart_at
    began = (osds.restart_at or 0) if restarted else 0
    device = "vda" if osds.share_disk else f"vd{label[-2]}"
    disk = f'{label},device="{device}",op="write"'
    groups = {
        f'{ThreadsSeries.CPU_SECONDS}{{{label},group="{group}",mode="user"}}': 0.1 * second
        for group in osds.groups
    }
    return {
        f"{QosSeries.OPS}{{{client}}}": attained,
        f"{QosSeries.DELIVERED_OPS}{{{label}}}": attained,
        f"{QosSeries.RESERVATION_OPS}{{{client}}}": osds.reservation,
        f"{QosSeries.CAPACITY_OPS}{{{label}}}": osds.capacity,
        f'{QosSeries.QUEUE_LENGTH}{{{client},shard="0"}}': osds.waiting,
        f'{DaemonSeries.CPU_SECONDS}{{{label},mode="user"}}': 0.4 * (second - began),
        f"{DaemonSeries.RESIDENT_BYTES}{{{label}}}": 1e9,
        f"{QosSeries.CLIENT_OPS_IN_PROGRESS}{{{label}}}": 0.0 if idle else osds.in_progress,
        f"{QosSeries.CLIENT_WAIT_SECONDS}{{{label}}}": osds.waiting * second,
        f"{QosSeries.STORE_SECONDS}{{{label}}}": osds.in_store * second,
        f"{QosSeries.STORE_TRANSACTIONS}{{{label}}}": osds.in_store / osds.store_latency * second,
        f"{DisksSeries.OPS}{{{disk}}}": 50.0 * second,
        f"{DisksSeries.TIME_SECONDS}{{{disk}}}": 0.1 * second,
        f"{DisksSeries.BYTES}{{{disk}}}": 4096.0 * second,
        **groups,
        **(
            {f'{QosSeries.SCHEDULER_INFO}{{{label},media="{osds.media}"}}': 1.0}
            if osds.media
            else {}
        ),
    }
