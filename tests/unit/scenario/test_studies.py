"""Every published parameter of the studies against the plan at scale study. What differs has its
reason beside it, here and in STUDIES.md, which holds the same table."""

from functools import partial
from pathlib import Path

import pytest
from tests.shipped_plans import shipped_plan

import cephqos_loadgen
from cephqos_loadgen.plan.words import size
from cephqos_loadgen.scenario import library

from .study_readings import (
    BOOST,
    BR,
    CLIENT,
    OWN,
    RANDOM,
    SEQUENTIAL,
    UNSAID,
    A,
    B,
    C,
    D,
    E,
    L,
    R,
    Row,
    _without_depth,
    axis,
    bench,
    bench_sizes,
    capacity,
    cores,
    curve,
    dwell,
    fio,
    flags,
    images,
    jobs,
    lab,
    length,
    load,
    media,
    objects,
    one,
    option,
    osd_bench,
    osds,
    passes,
    pool,
    prefill,
    ramp,
    search,
    starts,
    steady,
    stops,
    study,
)

P = "precondition"
PAGE = Path(cephqos_loadgen.__file__).parent.parent / "STUDIES.md"

TABLE = (
    # A: recovery
    Row(A, "OSDs", "4", lambda: osds(A)),
    Row(A, "replicas", "3", lambda: pool(A, "client", "size")),
    Row(A, "repeats", "3", lambda: str(study(A).repeats)),
    Row(A, "media", "SSD / rotating / rotating + DB", lambda: media(A)),
    Row(A, "capacity", "21,500 / 315 / 340 IOPS", lambda: capacity(A), OWN),
    Row(
        A,
        "placement groups of a pool",
        "not said",
        lambda: pool(A, "client", "pg_num"),
        f"{UNSAID}; OSDs stay below the 250 that monitors allow",
    ),
    Row(A, "client load", CLIENT, lambda: load(A, "client")),
    Row(A, "client starts", "when recovery_started", lambda: starts(A, "client")),
    Row(
        A, "objects recovered, NVMe", "100,000 x 4 MiB", lambda: prefill(A, "prefill", media="ssd")
    ),
    Row(A, "objects recovered, HDD", "5,000 x 4 MiB", lambda: prefill(A, "prefill", media="hdd")),
    Row(A, "one recovery pool for all policies", "True", lambda: pool(A, "recovery", "emptied")),
    Row(
        A,
        "BlueStore throttles, NVMe",
        "256K",
        lambda: option(A, "bluestore_throttle_bytes", media="ssd"),
    ),
    Row(
        A,
        "BlueStore throttles, HDD",
        "40M",
        lambda: option(A, "bluestore_throttle_bytes", media="hdd"),
    ),
    Row(
        A,
        "policies",
        "wpq_default wpq_boosted high_client_ops balanced high_recovery_ops",
        lambda: axis(A, "policy"),
    ),
    *(
        Row(
            A,
            f"{name}, {policy}",
            value,
            partial(option, A, name, policy=policy),
        )
        for policy in ("wpq_boosted", "high_client_ops", "balanced", "high_recovery_ops")
        for name, value in zip(BOOST, ("1000", "1000", "1"), strict=True)
    ),
    Row(
        A,
        "osd_max_backfills, wpq_default",
        "default",
        lambda: option(A, "osd_max_backfills", policy="wpq_default"),
    ),
    # B: scrub
    Row(B, "OSDs", "4", lambda: osds(B)),
    Row(B, "replicas", "3", lambda: pool(B, "client", "size")),
    Row(B, "repeats", "3", lambda: str(study(B).repeats)),
    Row(B, "media", "SSD", lambda: media(B)),
    Row(B, "capacity", "15,007 IOPS", lambda: capacity(B), OWN),
    Row(B, "placement groups of a pool", "64", lambda: pool(B, "scrub", "pg_num")),
    Row(B, "BlueStore throttles", "2M", lambda: option(B, "bluestore_throttle_bytes")),
    Row(B, "osd_scrub_sleep", "0", lambda: option(B, "osd_scrub_sleep")),
    Row(B, "osd_scrub_during_recovery", "true", lambda: option(B, "osd_scrub_during_recovery")),
    Row(B, "osd_max_scrubs", "5", lambda: option(B, "osd_max_scrubs", experiment="scrub")),
    Row(
        B,
        "osd_max_scrubs, more scrubs",
        "10",
        lambda: option(B, "osd_max_scrubs", experiment="ten_scrubs"),
    ),
    Row(
        B,
        "osd_requested_scrub_priority",
        "5",
        lambda: option(B, "osd_requested_scrub_priority", experiment="scrub"),
    ),
    Row(
        B,
        "osd_requested_scrub_priority, scrub cost",
        "120",
        lambda: option(B, "osd_requested_scrub_priority", experiment="cost_20m"),
    ),
    Row(
        B,
        "osd_scrub_cost, before",
        "50M",
        lambda: option(B, "osd_scrub_cost", experiment="cost_50m"),
    ),
    Row(
        B,
        "osd_scrub_cost, after",
        "20M",
        lambda: option(B, "osd_scrub_cost", experiment="cost_20m"),
    ),
    Row(
        B,
        "policies",
        "wpq high_client_ops balanced high_recovery_ops custom",
        lambda: axis(B, "policy"),
    ),
    *(
        Row(
            B,
            f"custom: {who} {what}",
            value,
            partial(option, B, f"osd_mclock_scheduler_background_{who}_{what}", policy="custom"),
        )
        for who, values in (("recovery", ("0.05", "1", "1")), ("best_effort", ("0.9", "2", "0")))
        for what, value in zip(("res", "wgt", "lim"), values, strict=True)
    ),
    Row(B, "objects scrubbed", "10,000,000 x 32 KiB", lambda: objects(B, "scrub")),
    Row(B, "client load", CLIENT, lambda: load(B, "client")),
    Row(B, "client alone, for its loss", "5 min", lambda: length(B, "alone")),
    Row(B, "client with the scrub", "14 min", lambda: length(B, "client")),
    Row(B, "client starts", "when scrub_started", lambda: starts(B, "client")),
    # B: scrub and recovery
    Row(BR, "OSDs", "4", lambda: osds(BR)),
    Row(BR, "replicas", "3", lambda: pool(BR, "client", "size")),
    Row(BR, "repeats", "3", lambda: str(study(BR).repeats)),
    Row(BR, "media", "SSD", lambda: media(BR)),
    Row(BR, "capacity", "15,007 IOPS", lambda: capacity(BR), OWN),
    Row(BR, "placement groups of a pool", "64", lambda: pool(BR, "client", "pg_num")),
    Row(BR, "BlueStore throttles", "2M", lambda: option(BR, "bluestore_throttle_bytes")),
    Row(BR, "osd_scrub_sleep", "0", lambda: option(BR, "osd_scrub_sleep")),
    Row(BR, "osd_scrub_during_recovery", "true", lambda: option(BR, "osd_scrub_during_recovery")),
    Row(BR, "osd_max_scrubs", "5", lambda: option(BR, "osd_max_scrubs")),
    Row(
        BR, "osd_requested_scrub_priority", "5", lambda: option(BR, "osd_requested_scrub_priority")
    ),
    Row(
        BR,
        "policies",
        "wpq high_client_ops balanced high_recovery_ops",
        lambda: axis(BR, "policy"),
    ),
    Row(BR, "objects recovered", "50,000 x 4 MiB", lambda: prefill(BR, "prefill")),
    Row(BR, "objects scrubbed", "100,000 x 4 MiB", lambda: prefill(BR, "prefill_scrub")),
    Row(BR, "client load", CLIENT, lambda: load(BR, "client")),
    Row(BR, "client", "9 min", lambda: length(BR, "client")),
    Row(BR, "recovery starts", "when scrub_started", lambda: starts(BR, "release")),
    # A, B: what the capacity of clients was taken from
    Row("baseline", "OSDs", "4", lambda: osds("baseline")),
    Row("baseline", "repeats", "3", lambda: str(study("baseline").repeats)),
    Row(
        "baseline",
        "bench of each OSD",
        "12,288,000 bytes in 4 KiB",
        lambda: osd_bench("baseline"),
    ),
    Row("baseline", "replicas", "3", lambda: pool("baseline", "client", "size")),
    Row("baseline", "placement groups", "64", lambda: pool("baseline", "client", "pg_num")),
    Row("baseline", "media", "SSD", lambda: media("baseline")),
    Row("baseline", "client load", CLIENT, lambda: load("baseline", "client")),
    Row("baseline", "client", "5 min", lambda: length("baseline", "client")),
    # C: I/O schedulers
    Row(C, "OSDs", "8", lambda: osds(C)),
    Row(C, "media", "rotating", lambda: media(C)),
    Row(
        C,
        "schedulers",
        "cfq deadline noop",
        lambda: axis(C, "scheduler"),
        "those of today's kernels; CFQ is in none",
    ),
    Row(
        C, "instances of rados bench, a pool each", "8", lambda: str(len(study(C).points[0].pools))
    ),
    Row(C, "placement groups of a pool", "2048", lambda: pool(C, "bench0", "pg_num")),
    Row(C, "sizes", "4KiB 128KiB 4MiB", bench_sizes),
    Row(C, "in flight in all", "16 256", lambda: bench(C, "in_flight")),
    Row(
        C,
        "write, then read",
        "5 min / 5 min",
        lambda: f"{length(C, 'write')} / {length(C, 'read')}",
    ),
    Row(C, "everything made again between runs", "True", lambda: lab(C, "fresh_for")),
    # D: 4K RBD
    Row(D, "OSDs", "8", lambda: osds(D)),
    Row(D, "volumes", "1 2 3 4 5 6 7 8", lambda: axis(D, "volumes")),
    Row(
        D,
        "in flight per volume",
        "1 to 16",
        lambda: curve(D, "surface"),
        "eight depths of the sixteen",
    ),
    Row(
        D,
        "file systems below OSDs",
        "btrfs ext4 xfs",
        lambda: axis(D, "filesystem"),
        "FileStore is in 16.2 only, see below",
    ),
    Row(
        D,
        "guests",
        "one with all volumes / one with each",
        lambda: " / ".join(
            {"guest": "one with all volumes", "nbd": "one with each"}[engine]
            for engine in sorted({fio(p, "surface").engine for p in study(D).points})
            if engine in ("guest", "nbd")
        ),
    ),
    Row(
        D,
        "placement groups of a pool",
        "not said",
        lambda: pool(D, "client", "pg_num"),
        UNSAID,
    ),
    Row(D, "size of a volume", "64 GiB", lambda: images(D).split(" x ")[1]),
    Row(D, "loads", "randread randwrite read write", lambda: axis(D, "rw")),
    Row(
        D,
        "block size",
        "4 KiB",
        lambda: one([size(fio(p, "surface").block_size) for p in study(D).points]),
    ),
    # E: CPU placement
    Row(E, "OSDs", "1 3 5 8", lambda: osds(E)),
    Row(E, "reactors of an OSD", "1 2 4 5 6", lambda: axis(E, "shards")),
    Row(E, "strategies", "default by_osd by_socket", lambda: axis(E, "strategy")),
    Row(E, "replicas, of 8 OSDs", "3", lambda: pool(E, "client", "size", osds="8")),
    Row(
        E,
        "replicas, of 1 OSD",
        "3",
        lambda: pool(E, "client", "size", osds="1"),
        "there is room for one",
    ),
    Row(E, "placement groups of a pool", "32", lambda: pool(E, "client", "pg_num")),
    Row(E, "volumes", "8 x 10 GiB", lambda: images(E)),
    Row(E, "fio jobs of a volume", "1", lambda: jobs(E, "curve")),
    Row(E, "repeats", "3", lambda: str(study(E).repeats)),
    *(
        row
        for name in (E, R)
        for row in (
            Row(
                name,
                "depths, random",
                RANDOM,
                partial(curve, name, "curve", load="randread"),
            ),
            Row(
                name,
                "depths, sequential",
                SEQUENTIAL,
                partial(curve, name, "curve", load="write"),
            ),
            Row(
                name,
                "loads",
                "randread 4 KiB / randwrite 4 KiB / read 64 KiB / write 64 KiB",
                partial(_without_depth, name),
            ),
            Row(name, "ramp of a depth, not counted", "30s", partial(ramp, name, "curve")),
            Row(name, "a depth", "5 min", partial(dwell, name, "curve")),
            Row(
                name,
                "ends early",
                "ends early above a mean of 20 ms",
                partial(stops, name, "curve"),
            ),
            Row(
                name,
                "off during the curves",
                "noscrub nodeep-scrub no balancer no autoscaler no scrubs",
                partial(flags, name),
            ),
        )
    ),
    Row(E, "CPUs of fio, and of nobody", "fio 4-5, OSDs never 0-1,4-5", cores),
    Row(R, "placement groups of a pool", "32", lambda: pool(R, "client", "pg_num")),
    Row(R, "volumes", "8 x 10 GiB", lambda: images(R)),
    Row(R, "fio jobs of a volume", "1", lambda: jobs(R, "curve")),
    Row(R, "OSDs", "8", lambda: osds(R)),
    Row(R, "replicas", "3", lambda: pool(R, "client", "size")),
    Row(R, "repeats", "3", lambda: str(study(R).repeats)),
    Row(
        R,
        "volumes preconditioned until",
        "iops:5% over 300s",
        lambda: steady(R, "precondition"),
    ),
    Row(R, "preconditioning at most", "1 h", lambda: length(R, "precondition")),
    Row(L, "target", "10 ms at p99.9", lambda: search("target")),
    Row(L, "greatest depth", "128", lambda: search("most")),
    Row(L, "placement groups of a pool", "32", lambda: pool(L, "client", "pg_num")),
    Row(L, "volumes", "8 x 10 GiB", lambda: images(L)),
    Row(L, "OSDs", "8", lambda: osds(L)),
    Row(P, "drives, first", "write 64 KiB, 70% of it, 2 times", lambda: passes(P, "fill")),
    Row(P, "drives, then until", "iops:5% over 300s", lambda: steady(P, "settle")),
    Row(P, "at most", "1 h", lambda: length(P, "settle")),
)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.scenario}: {row.parameter}")
def test_a_parameter_is_the_published_one_or_says_why_not(row: Row) -> None:
    if row.here() == row.published:
        assert not row.why, "it says why it differs, and does not"
    else:
        assert row.why, f"published {row.published}, here {row.here()}"


def test_the_page_of_the_studies_holds_the_same_table() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [row.line() for row in TABLE]


def test_every_scenario_that_repeats_a_study_is_in_the_table() -> None:
    assert {row.scenario for row in TABLE} == set(library.shipped()) - {"qos-demo"}


@pytest.mark.parametrize("scale", ["tiny", "lab"])
@pytest.mark.parametrize("name", sorted(library.shipped()))
def test_smaller_scales_keep_the_structure(name: str, scale: str) -> None:
    """The same axes; the same phases, each starting with the same and ending in the same way."""
    small = shipped_plan(name, scale)
    shapes = [
        {
            (p.name, p.action.kind, p.start.kind, p.start.phase, p.start.event, p.until.kind)
            for point in plan.points
            for p in point.phases
        }
        for plan in (small, study(name))
    ]
    assert shapes[0] == shapes[1]
    assert [a for a, _ in small.points[0].axes] == [a for a, _ in study(name).points[0].axes]
    assert (small.capacity is None) == (study(name).capacity is None)
    assert small.quiet == study(name).quiet
    assert small.points[0].flags == study(name).points[0].flags


if __name__ == "__main__":  # the rows, for the page
    print("\n".join(row.line() for row in TABLE))
