"""Each caveat twice: a run that deserves it, and one beside it that does not."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.caveats.every import caveats
from cephqos_loadgen.report.figures.analysis import ReportRun, analyse

STEADY = [SyntheticRepeat(1000.0), SyntheticRepeat(1010.0), SyntheticRepeat(990.0)]
SATURATED = Osds(attained=800.0, waiting=5.0)
Edit = Callable[[Path], None]


def run(
    folder: Path, edit: Edit, repeats: list[SyntheticRepeat] = STEADY, osds: Osds = SATURATED
) -> ReportRun:
    archive = Builder(points={"balanced": repeats}, osds=osds).write(folder)
    edit(archive)
    return analyse(open_archive(archive))


def each_json(archive: Path, pattern: str) -> Iterator[tuple[Path, Any]]:
    for path in sorted(archive.glob(pattern)):
        data = json.loads(path.read_text())
        yield path, data
        path.write_text(json.dumps(data))


def record(change: Callable[[dict[str, Any]], object]) -> Edit:
    """Change repeat.json of the first repeat."""

    def edit(archive: Path) -> None:
        path = next(iter(sorted(archive.glob("repeats/*/repeat.json"))))
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))

    return edit


def everywhere(pattern: str, change: Callable[[dict[str, Any]], object]) -> Edit:
    def edit(archive: Path) -> None:
        for _, data in each_json(archive, pattern):
            change(data)

    return edit


def looks(change: Callable[[int, dict[str, Any]], bool]) -> Edit:
    """Change, and keep or drop, each look at the cluster of the first repeat."""

    def edit(archive: Path) -> None:
        path = sorted(archive.glob("repeats/*/cluster.jsonl.gz"))[0]
        lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        kept = [line for number, line in enumerate(lines) if change(number, line)]
        path.write_bytes(gzip.compress("".join(json.dumps(it) + "\n" for it in kept).encode()))

    return edit


def intervals(keep: Callable[[int], bool]) -> Edit:
    def edit(archive: Path) -> None:
        path = sorted(archive.glob("repeats/*/intervals.jsonl.gz"))[0]
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        path.write_bytes(gzip.compress(b"".join(x for n, x in enumerate(lines) if keep(n))))

    return edit


def ended(phase: str, by: str) -> Edit:
    return record(lambda data: data["phases"][phase].update(ended_by=by))


def jobs(low: float) -> Edit:
    """The second job of the load does this share of the first."""

    def change(data: dict[str, Any]) -> None:
        own = data["phases"]["client"]["result"]["steps"][0]["jobs"]
        first = next(iter(own.values()))
        own["client.0/volume.1"] = {**first, "iops": first["iops"] * low}

    return record(change)


def force(name: str, value: Any) -> Edit:
    return record(lambda data: data["in_force"].update({name: value}))


def planned(setting: str, value: str) -> Edit:
    def change(plan: dict[str, Any]) -> None:
        settings = [{"section": "osd", "name": setting, "value": value}]
        plan["points"][0]["settings"] = settings

    return everywhere("plan.json", change)


def both(*edits: Edit) -> Edit:
    def edit(archive: Path) -> None:
        for one in edits:
            one(archive)

    return edit


def osds(**facts: str) -> Edit:
    def change(environment: dict[str, Any]) -> None:
        for osd in environment["cluster"]["osds"]:
            osd.update(facts)

    return everywhere("environment.json", change)


def pools(prefill: bool) -> Edit:
    pool = {"name": "client", "images": {"prefill": prefill}}
    return everywhere("plan.json", lambda plan: plan["points"][0].update(pools=[pool]))


def steady_first(steady: bool) -> Edit:
    phase = {"name": "before", "action": {"kind": "fio", "rw": "randwrite"}}
    until = {"steady": {"variation": 0.1} if steady else None}

    def change(plan: dict[str, Any]) -> None:
        plan["points"][0]["phases"].insert(0, {**phase, "until": until})

    return both(everywhere("plan.json", change), osds(rotational="0"))


def steady_by_fio(archive: Path) -> None:
    """As in response-curve: fio ends it when figures no longer change."""
    steady_first(False)(archive)
    options = [["steadystate", "iops:5%"], ["steadystate_duration", "300s"]]
    edit: Callable[[dict[str, Any]], object] = lambda plan: plan["points"][0]["phases"][0][  # noqa: E731
        "action"
    ].update(options=options)
    everywhere("plan.json", edit)(archive)


PLANNED = record(
    lambda data: data["phases"].update(
        out={**data["phases"]["client"], "kind": "osd_out", "result": None}
    )
)


def capacities(first: float, others: float) -> Edit:
    return both(
        everywhere(
            "repeats/*/repeat.json",
            lambda data: data["in_force"].update(capacity_iops={"osd.0": others, "osd.1": 9.0}),
        ),
        force("capacity_iops", {"osd.0": first, "osd.1": 9.0}),
    )


def throttled(seconds: float) -> Edit:
    cpu: Callable[[dict[str, Any]], object] = lambda host: host["client"]["cpu"].update(  # noqa: E731
        throttled_seconds=seconds
    )
    return everywhere("repeats/*/host.json", cpu)


def bench(iops: float) -> Edit:
    def change(data: dict[str, Any]) -> None:
        osd = {"osd.0": {"iops": iops, "bytes_per_second": 4096.0 * iops}}
        data["phases"]["capacity"] = {
            **{k: v for k, v in data["phases"]["client"].items() if k != "result"},
            "kind": "osd_bench",
            "result": {"kind": "osd_bench", "version": 1, "osds": osd},
        }

    return record(change)


def nothing(archive: Path) -> None:
    """The run as it is."""


def gone(name: str) -> Edit:
    return lambda archive: next(iter(sorted(archive.glob(f"repeats/*/{name}")))).unlink()


EDITED: dict[str, tuple[str, Edit, Edit]] = {
    "a repeat failed": (
        "failed and is left out",
        record(lambda data: data.update(status="failed", error="osd.1 died")),
        nothing,
    ),
    "a file is missing": ("lacks host.json", gone("host.json"), nothing),
    "a phase was cut off": (
        "was cut off by at_most", ended("client", "cut_off"), ended("client", "done"),
    ),
    "a phase failed": ("repeat 1, failed", ended("client", "failed"), ended("client", "duration")),
    "jobs differ": ("differ by more than 20%", jobs(0.7), jobs(0.85)),
    "a load syncs": (
        "syncs: latencies are of its writes, without the syncs that follow them. fsync is 1",
        everywhere("plan.json", lambda plan: plan["points"][0]["phases"][0]["action"].update(
            options=[["fsync", "1"], ["fdatasync", "0"]])),
        everywhere("plan.json", lambda plan: plan["points"][0]["phases"][0]["action"].update(
            options=[["fsync", "0"], ["offset", "1M"]])),
    ),
    "fio is slowed down": (
        "its throughput says what was asked for, not what the cluster can do. rate is 10m and"
        " thinktime is 5ms",
        everywhere("plan.json", lambda plan: plan["points"][0]["phases"][0]["action"].update(
            options=[["rate", "10m"], ["thinktime", "5ms"]])),
        everywhere("plan.json", lambda plan: plan["points"][0]["phases"][0]["action"].update(
            options=[["offset", "1M"]])),
    ),
    "images were not written": ("were not written before", pools(False), pools(True)),
    "flash is fresh": ("steady state", steady_first(False), steady_first(True)),
    "fio made flash steady": ("steady state", steady_first(False), steady_by_fio),
    "flash is not there": ("steady state", steady_first(False), osds(rotational="1")),
    "the scheduler is another": (
        "planned wpq, in force mclock_scheduler on osd.0",
        both(planned("osd_op_queue", "wpq"), force("schedulers", {"osd.0": "mclock_scheduler"})),
        both(planned("osd_op_queue", "wpq"), force("schedulers", {"osd.0": "wpq"})),
    ),
    "the run warned of settings": (
        "osd_scrub_cost is ignored", force("warnings", ["osd_scrub_cost is ignored"]),
        force("warnings", []),
    ),
    "an OSD was down": (
        "restarted or went down",
        looks(lambda n, look: look.update(osds_up=1 if n == 9 else 2) is None),
        looks(lambda n, look: look.update(osds_up=2) is None),
    ),
    "an OSD was taken down by plan": (
        "restarted or went down",
        looks(lambda n, look: look.update(osds_up=1 if n == 9 else 2) is None),
        both(
            looks(lambda n, look: look.update(osds_up=1 if n == 9 else 2) is None), PLANNED,
        ),
    ),
    "the cluster was not seen": (
        "The cluster was not always seen in policy=balanced, repeat 1: recovery at that time is"
        " known by its sums only. not seen for 15 s",
        record(lambda data: data.update(findings=["cluster: not seen for 15 s"])),
        nothing,
    ),
    "removed pools were still deleted": (
        "OSDs still deleted what removed pools had held when policy=balanced, repeat 1 began",
        record(lambda data: data.update(findings=["cluster: still deleted when it began"])),
        nothing,
    ),
    "its own benchmark denies the capacity": (
        "benchmark of osd.0", bench(400.0), bench(600.0),
    ),
    "recording was costly": (
        "Recording took more than 3%",
        record(lambda data: data["cost"].update(core_share=0.05)),
        record(lambda data: data["cost"].update(core_share=0.02)),
    ),
    "OSDs are on files": (
        "on files of one host",
        osds(bluestore_bdev_access_mode="file"), osds(bluestore_bdev_access_mode="blk"),
    ),
    "scrapes failed": (
        "Samples of the exporters are missing",
        record(lambda data: data["metrics"].update(failures={"exporter": 4})),
        record(lambda data: data["metrics"].update(failures={"exporter": 0})),
    ),
    "scrapes did not happen": (
        "Samples of the exporters are missing",
        record(lambda data: data["metrics"].update(scrapes=20)),
        record(lambda data: data["metrics"].update(scrapes=28)),
    ),
    "an OSD did not answer its exporter": (
        "Without figures: osd.1 12 s (timeout).",
        record(lambda data: data["metrics"].update(daemon_gaps={
            "osd.1": [{"start_unix_seconds": 9.0, "seconds": 12.0, "reason": "timeout"}]})),
        record(lambda data: data["metrics"].update(daemon_gaps={})),
    ),
    "the clock was set": (
        "this host's clock moved by +3600.0 s",
        record(lambda data: data.update(findings=["clock: this host's clock moved by +3600.0 s"])),
        nothing,
    ),
    "someone else changed a setting": (
        "part of it ran with others than planned. osd osd_mclock_profile was set to balanced",
        record(lambda data: data.update(
            findings=["setting: osd osd_mclock_profile was set to balanced by someone else"])),
        nothing,
    ),
    "an OSD went down beside the one that the plan takes down": (
        "restarted or went down in policy=balanced, repeat 1. osd.1 went down and came back",
        both(PLANNED, record(lambda data: data.update(
            findings=["osd.1 went down and came back during the repeat"]))),
        PLANNED,
    ),
    "the capacity was measured anew": (
        "The capacity of 1 OSD was measured more than once, and differs. Reservations and limits"
        " are shares of it. Most: osd.0, 300 IOPS in policy=balanced, repeat 1; 400 IOPS in",
        capacities(300.0, 400.0), capacities(300.0, 310.0),
    ),
    "the run noted much": (
        "; and 2 more",
        record(lambda data: data.update(findings=[f"a{n}: went on" for n in range(7)])),
        record(lambda data: data.update(findings=[f"a{n}: went on" for n in range(5)])),
    ),
    "recording begins when the pools are ready": (
        "They were asked 30 times in 40 s",
        record(lambda data: data["metrics"].update(seconds=40.0)),
        record(lambda data: data["cost"].update(wall_seconds=40.0)),
    ),
    "seconds of clients are missing": (
        "Seconds of the clients are missing",
        intervals(lambda n: n < 25), intervals(lambda n: n < 29),
    ),
    "CPUs were throttled": ("throttled", throttled(3.0), throttled(0.3)),
    "the run noted something": (
        "The run noted in policy=balanced, repeat 1: scrub: went on for 9 s",
        record(lambda data: data.update(findings=["scrub: went on for 9 s after it"])),
        record(lambda data: data.update(findings=["client: other programs used 40% of this host"])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITED)
def test_a_caveat_appears_and_stays_away(tmp_path: Path, name: str) -> None:
    words, wrong, right = EDITED[name]
    said = [f"{f.text} {f.evidence}" for f in caveats(run(tmp_path / "wrong", wrong))]
    assert any(words in text for text in said), said
    said = [f"{f.text} {f.evidence}" for f in caveats(run(tmp_path / "right", right))]
    assert not any(words in text for text in said)


def test_the_short_last_interval_of_a_load_is_no_drift(tmp_path: Path) -> None:
    """A queue of 64 drains in 5 ms: as a second of its own it would be one of 64 I/Os."""

    def drained(archive: Path) -> None:
        for path in archive.glob("repeats/*/intervals.jsonl.gz"):
            lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
            last = json.loads(json.dumps(lines.pop()))
            last.update(seconds=0.005, end_unix_seconds=last["end_unix_seconds"] - 0.4)
            last["write"].update(ios=64, latency_bins_ns={"5000000": 64})
            text = "".join(json.dumps(line) + "\n" for line in [*lines, last])
            path.write_bytes(gzip.compress(text.encode()))

    short = [SyntheticRepeat(1000.0, seconds=10)] * 3
    assert not [d for d in caveats(run(tmp_path / "a", drained, short)) if "drifts" in d.text]


def test_a_restart_is_seen_by_the_counters_of_an_osd(tmp_path: Path) -> None:
    for restart_at, said in ((15, True), (None, False)):
        builder = Builder(points={"a": STEADY}, osds=Osds(attained=800, restart_at=restart_at))
        found = caveats(analyse(open_archive(builder.write(tmp_path / str(said)))))
        assert any("osd.0 and osd.1 restarted" in f.evidence for f in found) is said


def test_what_is_alike_in_many_repeats_is_said_once_and_marks_all_rows(tmp_path: Path) -> None:
    builder = Builder(points={name: STEADY for name in "abcd"})
    found = caveats(analyse(open_archive(builder.write(tmp_path / "a"))))
    (lacking,) = [f for f in found if "lacks metrics.columns" in f.text]
    assert lacking.text.endswith("The same 11 times more.")
    assert {key.point for key in lacking.rows} == {f"policy={name}" for name in "abcd"}
