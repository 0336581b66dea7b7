"""Caveats about made-up figures, each twice: a run that deserves it, and one that does not."""

from pathlib import Path

import pytest
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.caveats.every import caveats
from cephqos_loadgen.report.figures.analysis import analyse
from cephqos_loadgen.results.phase import RecoveryFigures

from .test_report_caveats_each import SATURATED, STEADY

RISING = [500.0] * 10 + [750.0] * 10 + [1000.0] * 10
OTHERWISE: dict[str, tuple[str, Builder, Builder]] = {
    "too few repeats": (
        "Too few repeats: 2 repeats", Builder(points={"a": STEADY[:2]}),
        Builder(points={"a": STEADY}),
    ),
    "a single repeat": (
        "Too few repeats: one repeat", Builder(points={"a": STEADY[:1]}),
        Builder(points={"a": STEADY[:2]}),
    ),
    "repeats differ": (
        "differs much between repeats",
        Builder(points={"a": [SyntheticRepeat(v) for v in (850.0, 1000.0, 1150.0)]}),
        Builder(points={"a": [SyntheticRepeat(v) for v in (950.0, 1000.0, 1050.0)]}),
    ),
    "throughput drifts": (
        "drifts: the last third", Builder(points={"a": [SyntheticRepeat(RISING)] * 3}),
        Builder(points={"a": [SyntheticRepeat([980.0] * 15 + [1020.0] * 15)] * 3}),
    ),
    "a scrub explains the drift": (
        "drifts", Builder(points={"a": [SyntheticRepeat(RISING)] * 3}),
        Builder(
            points={"a": [SyntheticRepeat([500.0] * 12 + [1000.0] * 18, scrub_seconds=12.0)] * 3}
        ),
    ),
    "a load stood still": (
        "Nothing completed in the load client of policy=a, repeat 2. 0 I/Os in 30 s.",
        Builder(points={"a": [STEADY[0], SyntheticRepeat(0.0), STEADY[2]]}),
        Builder(points={"a": STEADY}),
    ),
    "too few completions": (
        "Too few completions for p99.9 in 1 row: fewer than one is beyond it, so what is shown is"
        " the slowest one. Least: 990 completions, client of policy=a.",
        Builder(points={"a": [SyntheticRepeat(11.0)] * 3}),
        Builder(points={"a": [SyntheticRepeat(12.0)] * 3}),
    ),
    "latencies beyond the last bin": (
        "p99, p99.5 and p99.9 of 1 row is in fio's last bin, 17.1 s",
        Builder(points={"a": [SyntheticRepeat(1000.0, latency_ms=11_445.0)] * 3}),
        Builder(points={"a": [SyntheticRepeat(1000.0, latency_ms=11_400.0)] * 3}),
    ),
    "steal": (
        "(steal)", Builder(points={"a": STEADY}, busy={"steal": 0.02}),
        Builder(points={"a": STEADY}, busy={"steal": 0.005}),
    ),
    "other processes": (
        "Other processes", Builder(points={"a": STEADY}, busy={"others": 0.15}),
        Builder(points={"a": STEADY}, busy={"others": 0.05}),
    ),
    "disks by others": (
        "Other programs used the OSDs' disks", Builder(points={"a": STEADY}, busy={"disks": 0.08}),
        Builder(points={"a": STEADY}, busy={"disks": 0.03}),
    ),
    "who used the disks most": (
        "0.0 MiB/s at least on sda, most of it by cp",
        Builder(points={"a": STEADY}, busy={"disks": 0.08}), Builder(points={"a": STEADY}),
    ),
    "who used the CPUs most": (
        "Most: 15%, policy=a, most of it by make",
        Builder(points={"a": STEADY}, busy={"others": 0.15}),
        Builder(points={"a": STEADY}, busy={"others": 0.05}),
    ),
    "the client is at its ceiling": (
        "The client limits", Builder(points={"a": STEADY}, busy={"client": 0.95}),
        Builder(points={"a": STEADY}, busy={"client": 0.8}),
    ),
    "the plan limits the load": (
        "The plan limits", Builder(points={"a": STEADY}, rate_iops=900),
        Builder(points={"a": STEADY}, rate_iops=None),
    ),
    "the run was aborted": (
        "The run is aborted", Builder(points={"a": STEADY}, status="aborted"),
        Builder(points={"a": STEADY}),
    ),
    "the profile is another": (
        "planned balanced, in force high_client_ops on osd.0 and osd.1",
        Builder(points={"a": STEADY}, profile_in_force="high_client_ops"),
        Builder(points={"a": STEADY}, profile_in_force="balanced"),
    ),
    "nothing was put to the test": (
        "at most 300 of 500 reserved", Builder(points={"a": STEADY}, osds=Osds(attained=300.0)),
        Builder(points={"a": STEADY}, osds=Osds(attained=300.0, waiting=5.0)),
    ),
    "the load went beyond its reservation": (
        "Nothing was put to the test", Builder(points={"a": STEADY}, osds=Osds(attained=499.0)),
        Builder(points={"a": STEADY}, osds=Osds(attained=501.0)),
    ),
    "reservations are not known": (
        "whether reservations were kept there is not known", Builder(points={"a": STEADY}),
        Builder(points={"a": STEADY}, osds=SATURATED),
    ),
    "capacity was never real": (
        "capacity 1,000, delivered at most 490",
        Builder(points={"a": STEADY}, osds=Osds(attained=490.0, waiting=5.0)),
        Builder(points={"a": STEADY}, osds=Osds(attained=510.0, waiting=5.0)),
    ),
    "without demand capacity is not judged": (
        "was never real",
        Builder(points={"a": STEADY}, osds=Osds(attained=490.0, waiting=5.0)),
        Builder(points={"a": STEADY}, osds=Osds(attained=490.0, waiting=0.0)),
    ),
    "background work is too short": (
        "Background work covers less than 80%",
        Builder(points={"a": [SyntheticRepeat(1000.0, scrub_seconds=20.0)] * 3}),
        Builder(points={"a": [SyntheticRepeat(1000.0, scrub_seconds=26.0)] * 3}),
    ),
    "recovery was not finished": (
        "Recovery was not finished",
        Builder(
            points={"a": [SyntheticRepeat(9.0, recovery=RecoveryFigures(9, 9, 5.0, False))] * 3}
        ),
        Builder(
            points={"a": [SyntheticRepeat(9.0, recovery=RecoveryFigures(9, 9, 5.0, True))] * 3}
        ),
    ),
    "the scrub found nothing": (
        "found no objects",
        Builder(points={"a": [SyntheticRepeat(9.0, scrub_seconds=9.0, scrub_objects=0)] * 3}),
        Builder(points={"a": [SyntheticRepeat(9.0, scrub_seconds=9.0)] * 3}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_caveat_of_a_load_appears_and_stays_away(tmp_path: Path, name: str) -> None:
    words, wrong, right = OTHERWISE[name]
    for builder, said in ((wrong, True), (right, False)):
        found = caveats(analyse(open_archive(builder.write(tmp_path / str(said)))))
        assert any(words in f"{f.text} {f.evidence}" for f in found) is said
