"""Every published parameter of the studies against the plan at scale study. What differs has its
reason beside it, here and in docs/internals/studies.md."""

from pathlib import Path

import pytest
from tests.shipped_plans import shipped_plan

from cephqos_loadgen.scenario import library

from .study_readings import (
    BOOST,
    BR,
    CLIENT,
    LOADS,
    OWN,
    QUIET,
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
    axis,
    bench,
    bench_sizes,
    block_size,
    capacity,
    cores,
    count_of_pools,
    curve,
    dwell,
    flags,
    fresh_lab,
    guests,
    image_size,
    images,
    jobs,
    length,
    load,
    media,
    objects,
    option,
    osd_bench,
    osds,
    passes,
    pool,
    prefill,
    ramp,
    repeats,
    row,
    search,
    starts,
    steady,
    stops,
    study,
    without_depth,
)

P = "precondition"
PAGE = Path("docs/internals/studies.md")

TABLE = (
    # A: recovery
    row(A, "OSDs", "4", osds),
    row(A, "replicas", "3", pool, "client", "size"),
    row(A, "repeats", "3", repeats),
    row(A, "media", "SSD / rotating / rotating + DB", media),
    row(A, "capacity", "21,500 / 315 / 340 IOPS", capacity, why=OWN),
    row(
        A,
        "placement groups of a pool",
        "not said",
        pool,
        "client",
        "pg_num",
        why=f"{UNSAID}; OSDs stay below the 250 that monitors allow",
    ),
    row(A, "client load", CLIENT, load, "client"),
    row(A, "client starts", "when recovery_started", starts, "client"),
    row(A, "objects recovered, NVMe", "100,000 x 4 MiB", prefill, "prefill", media="ssd"),
    row(A, "objects recovered, HDD", "5,000 x 4 MiB", prefill, "prefill", media="hdd"),
    row(A, "one recovery pool for all policies", "True", pool, "recovery", "emptied"),
    row(A, "BlueStore throttles, NVMe", "256K", option, "bluestore_throttle_bytes", media="ssd"),
    row(A, "BlueStore throttles, HDD", "40M", option, "bluestore_throttle_bytes", media="hdd"),
    row(
        A,
        "policies",
        "wpq_default wpq_boosted high_client_ops balanced high_recovery_ops",
        axis,
        "policy",
    ),
    *(
        row(A, f"{name}, {policy}", value, option, name, policy=policy)
        for policy in ("wpq_boosted", "high_client_ops", "balanced", "high_recovery_ops")
        for name, value in zip(BOOST, ("1000", "1000", "1"), strict=True)
    ),
    row(
        A,
        "osd_max_backfills, wpq_default",
        "default",
        option,
        "osd_max_backfills",
        policy="wpq_default",
    ),
    # B: scrub
    row(B, "OSDs", "4", osds),
    row(B, "replicas", "3", pool, "client", "size"),
    row(B, "repeats", "3", repeats),
    row(B, "media", "SSD", media),
    row(B, "capacity", "15,007 IOPS", capacity, why=OWN),
    row(B, "placement groups of a pool", "64", pool, "scrub", "pg_num"),
    row(B, "BlueStore throttles", "2M", option, "bluestore_throttle_bytes"),
    row(B, "osd_scrub_sleep", "0", option, "osd_scrub_sleep"),
    row(B, "osd_scrub_during_recovery", "true", option, "osd_scrub_during_recovery"),
    row(B, "osd_max_scrubs", "5", option, "osd_max_scrubs", experiment="scrub"),
    row(B, "osd_max_scrubs, more scrubs", "10", option, "osd_max_scrubs", experiment="ten_scrubs"),
    row(
        B,
        "osd_requested_scrub_priority",
        "5",
        option,
        "osd_requested_scrub_priority",
        experiment="scrub",
    ),
    row(
        B,
        "osd_requested_scrub_priority, scrub cost",
        "120",
        option,
        "osd_requested_scrub_priority",
        experiment="cost_20m",
    ),
    row(B, "osd_scrub_cost, before", "50M", option, "osd_scrub_cost", experiment="cost_50m"),
    row(B, "osd_scrub_cost, after", "20M", option, "osd_scrub_cost", experiment="cost_20m"),
    row(B, "policies", "wpq high_client_ops balanced high_recovery_ops custom", axis, "policy"),
    *(
        row(
            B,
            f"custom: {who} {what}",
            value,
            option,
            f"osd_mclock_scheduler_background_{who}_{what}",
            policy="custom",
        )
        for who, values in (("recovery", ("0.05", "1", "1")), ("best_effort", ("0.9", "2", "0")))
        for what, value in zip(("res", "wgt", "lim"), values, strict=True)
    ),
    row(B, "objects scrubbed", "10,000,000 x 32 KiB", objects, "scrub"),
    row(B, "client load", CLIENT, load, "client"),
    row(B, "client alone, for its loss", "5 min", length, "alone"),
    row(B, "client with the scrub", "14 min", length, "client"),
    row(B, "client starts", "when scrub_started", starts, "client"),
    # B: scrub and recovery
    row(BR, "OSDs", "4", osds),
    row(BR, "replicas", "3", pool, "client", "size"),
    row(BR, "repeats", "3", repeats),
    row(BR, "media", "SSD", media),
    row(BR, "capacity", "15,007 IOPS", capacity, why=OWN),
    row(BR, "placement groups of a pool", "64", pool, "client", "pg_num"),
    row(BR, "BlueStore throttles", "2M", option, "bluestore_throttle_bytes"),
    row(BR, "osd_scrub_sleep", "0", option, "osd_scrub_sleep"),
    row(BR, "osd_scrub_during_recovery", "true", option, "osd_scrub_during_recovery"),
    row(BR, "osd_max_scrubs", "5", option, "osd_max_scrubs"),
    row(BR, "osd_requested_scrub_priority", "5", option, "osd_requested_scrub_priority"),
    row(BR, "policies", "wpq high_client_ops balanced high_recovery_ops", axis, "policy"),
    row(BR, "objects recovered", "50,000 x 4 MiB", prefill, "prefill"),
    row(BR, "objects scrubbed", "100,000 x 4 MiB", prefill, "prefill_scrub"),
    row(BR, "one recovery pool for all policies", "True", pool, "recovery", "emptied"),
    row(BR, "one scrub pool for all policies", "True", pool, "scrub", "emptied"),
    row(BR, "client load", CLIENT, load, "client"),
    row(BR, "client", "9 min", length, "client"),
    row(BR, "recovery starts", "when scrub_started", starts, "release"),
    # A, B: what the capacity of clients was taken from
    row("baseline", "OSDs", "4", osds),
    row("baseline", "repeats", "3", repeats),
    row("baseline", "bench of each OSD", "12,288,000 bytes in 4 KiB", osd_bench),
    row("baseline", "replicas", "3", pool, "client", "size"),
    row("baseline", "placement groups", "64", pool, "client", "pg_num"),
    row("baseline", "media", "SSD", media),
    row("baseline", "client load", CLIENT, load, "client"),
    row("baseline", "client", "5 min", length, "client"),
    # C: I/O schedulers
    row(C, "OSDs", "8", osds),
    row(C, "media", "rotating", media),
    row(C, "repeats", "3", repeats),
    row(
        C,
        "schedulers",
        "cfq deadline noop",
        axis,
        "scheduler",
        why="those of today's kernels; CFQ is in none",
    ),
    row(C, "instances of rados bench, a pool each", "8", count_of_pools),
    row(C, "placement groups of a pool", "2048", pool, "bench0", "pg_num"),
    row(C, "sizes", "4KiB 128KiB 4MiB", bench_sizes),
    row(C, "in flight in all", "16 256", bench, "in_flight"),
    row(C, "write, then read", "5 min / 5 min", length, "write", "read"),
    row(C, "everything made again between runs", "True", fresh_lab),
    # D: 4K RBD
    row(D, "OSDs", "8", osds),
    row(D, "repeats", "3", repeats),
    row(D, "volumes", "1 2 3 4 5 6 7 8", axis, "volumes"),
    row(D, "in flight per volume", "1 to 16", curve, "surface", why="eight depths of the sixteen"),
    row(
        D,
        "file systems below OSDs",
        "btrfs ext4 xfs",
        axis,
        "filesystem",
        why="FileStore is in 16.2 only, see below",
    ),
    row(D, "guests", "one with all volumes / one with each", guests),
    row(D, "placement groups of a pool", "not said", pool, "client", "pg_num", why=UNSAID),
    row(D, "size of a volume", "64 GiB", image_size),
    row(D, "loads", "randread randwrite read write", axis, "rw"),
    row(D, "block size", "4 KiB", block_size, "surface"),
    # E: CPU placement
    row(E, "OSDs", "1 3 5 8", osds),
    row(E, "reactors of an OSD", "1 2 4 5 6", axis, "shards"),
    row(E, "strategies", "default by_osd by_socket", axis, "strategy"),
    row(E, "replicas, of 8 OSDs", "3", pool, "client", "size", osds="8"),
    row(
        E, "replicas, of 1 OSD", "3", pool, "client", "size", osds="1", why="there is room for one"
    ),
    row(E, "placement groups of a pool", "32", pool, "client", "pg_num"),
    row(E, "volumes", "8 x 10 GiB", images),
    row(E, "fio jobs of a volume", "1", jobs, "curve"),
    row(E, "repeats", "3", repeats),
    *(
        each
        for name in (E, R)
        for each in (
            row(name, "depths, random", RANDOM, curve, "curve", load="randread"),
            row(name, "depths, sequential", SEQUENTIAL, curve, "curve", load="write"),
            row(name, "loads", LOADS, without_depth),
            row(name, "ramp of a depth, not counted", "30s", ramp, "curve"),
            row(name, "a depth", "5 min", dwell, "curve"),
            row(name, "ends early", "ends early above a mean of 20 ms", stops, "curve"),
            row(name, "off during the curves", QUIET, flags),
        )
    ),
    row(E, "CPUs of fio, and unused CPUs", "fio 4-5, OSDs never 0-1,4-5", cores),
    row(R, "placement groups of a pool", "32", pool, "client", "pg_num"),
    row(R, "volumes", "8 x 10 GiB", images),
    row(R, "fio jobs of a volume", "1", jobs, "curve"),
    row(R, "OSDs", "8", osds),
    row(R, "replicas", "3", pool, "client", "size"),
    row(R, "repeats", "3", repeats),
    row(R, "volumes preconditioned until", "iops:5% over 300s", steady, "precondition"),
    row(R, "preconditioning at most", "1 h", length, "precondition"),
    row(L, "target", "10 ms at p99.9", search, "target"),
    row(L, "greatest depth", "128", search, "most"),
    row(L, "placement groups of a pool", "32", pool, "client", "pg_num"),
    row(L, "volumes", "8 x 10 GiB", images),
    row(L, "OSDs", "8", osds),
    row(L, "replicas", "3", pool, "client", "size"),
    row(L, "repeats", "3", repeats),
    row(
        L,
        "off during the search",
        QUIET,
        flags,
    ),
    row(P, "drives, first", "write 64 KiB, 70% of it, 2 times", passes, "fill"),
    row(P, "drives, then until", "iops:5% over 300s", steady, "settle"),
    row(P, "at most", "1 h", length, "settle"),
)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.scenario}: {row.parameter}")
def test_a_parameter_is_the_published_one_or_says_why_not(row: Row) -> None:
    if row.here() == row.published:
        assert not row.why, "it says why it differs, and does not"
    else:
        assert row.why, f"published {row.published}, here {row.here()}"


def test_the_page_of_the_studies_says_what_differs() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [row.line() for row in TABLE if row.why]


def test_every_scenario_that_repeats_a_study_is_in_the_table() -> None:
    assert {row.scenario for row in TABLE} == set(library.shipped()) - {
        "qos-demo",
        "noisy-neighbour",
    }


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
