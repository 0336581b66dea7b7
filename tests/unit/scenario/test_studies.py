"""Every published parameter of the studies (tests/study/published.yaml) against the plan at scale
study. What differs has its reason there, and in docs/internals/studies.md."""

from pathlib import Path

import pytest
import yaml
from tests.shipped_plans import shipped_plan

from cephqos_loadgen.scenario import library

from .study_readings import (
    BOOST,
    BR,
    A,
    B,
    C,
    D,
    E,
    L,
    R,
    Row,
    allocation,
    axis,
    bench,
    bench_sizes,
    block_size,
    capacity,
    cores,
    count_of_pools,
    curve,
    dwell,
    ends,
    flags,
    fresh_lab,
    guests,
    image_size,
    images,
    jobs,
    journal,
    length,
    load,
    made_and_mounted,
    media,
    objects,
    option,
    osd_bench,
    osds,
    pool,
    prefill,
    ramp,
    recycled,
    repeats,
    row,
    search,
    share,
    starts,
    steady,
    stops,
    study,
    without_depth,
)

P = "precondition"
PRIORITY = "osd_requested_scrub_priority"
PUBLISHED = yaml.safe_load(Path("tests/study/published.yaml").read_text())
PAGE = Path("docs/internals/studies.md")

TABLE = (
    # A: recovery
    row(A, "OSDs", osds),
    row(A, "replicas", pool, "client", "size"),
    row(A, "repeats", repeats),
    row(A, "media", media),
    row(A, "capacity", capacity),
    row(A, "placement groups of a pool", pool, "client", "pg_num"),
    row(A, "size of the client's image", image_size),
    row(A, "client load", load, "client"),
    row(A, "client alone, for its loss", length, "alone"),
    row(A, "client starts", starts, "client"),
    row(A, "client ends", ends, "client"),
    row(A, "objects prefilled, NVMe", prefill, "prefill", media="ssd"),
    row(A, "objects prefilled, HDD", prefill, "prefill", media="hdd"),
    row(A, "recovery pool", recycled, "recovery"),
    row(A, "BlueStore throttles, NVMe", option, "bluestore_throttle_bytes", media="ssd"),
    row(A, "BlueStore throttles, HDD", option, "bluestore_throttle_bytes", media="hdd"),
    row(A, "policies", axis, "policy"),
    *(
        row(A, name, option, name, policy=policy)
        for policy in ("wpq_boosted", "high_client_ops", "balanced", "high_recovery_ops")
        for name in BOOST
    ),
    row(A, f"{BOOST[0]}, wpq_default", option, BOOST[0], policy="wpq_default"),
    *(
        row(A, f"published_{profile}: {work}", allocation, f"published_{profile}", work)
        for profile in ("high_client_ops", "balanced", "high_recovery_ops")
        for work in ("client", "background_recovery", "background_best_effort")
    ),
    # B: scrub
    row(B, "OSDs", osds),
    row(B, "replicas", pool, "client", "size"),
    row(B, "repeats", repeats),
    row(B, "media", media),
    row(B, "capacity", capacity),
    row(B, "placement groups of the client's pool", pool, "client", "pg_num"),
    row(B, "placement groups of the scrub pool", pool, "scrub", "pg_num"),
    row(B, "size of the client's image", image_size),
    row(B, "BlueStore throttles", option, "bluestore_throttle_bytes"),
    row(B, "osd_scrub_sleep", option, "osd_scrub_sleep"),
    row(B, "osd_scrub_during_recovery", option, "osd_scrub_during_recovery"),
    row(B, "osd_max_scrubs", option, "osd_max_scrubs", experiment="scrub"),
    row(B, "osd_max_scrubs, more scrubs", option, "osd_max_scrubs", experiment="ten_scrubs"),
    row(B, PRIORITY, option, PRIORITY, experiment="scrub"),
    row(B, f"{PRIORITY}, scrub cost", option, PRIORITY, experiment="cost_20m"),
    row(B, "osd_scrub_cost, before", option, "osd_scrub_cost", experiment="cost_50m"),
    row(B, "osd_scrub_cost, after", option, "osd_scrub_cost", experiment="cost_20m"),
    row(B, "policies", axis, "policy"),
    row(B, "custom: client", option, "osd_mclock_scheduler_client_res", policy="custom"),
    *(
        row(
            B,
            f"custom: {who} {what}",
            option,
            f"osd_mclock_scheduler_background_{who}_{what}",
            policy="custom",
        )
        for who in ("recovery", "best_effort")
        for what in ("res", "wgt", "lim")
    ),
    row(B, "objects scrubbed", objects, "scrub"),
    row(B, "client load", load, "client"),
    row(B, "client alone, for its loss", length, "alone"),
    row(B, "client with the scrub", length, "client"),
    row(B, "client starts", starts, "client"),
    # B: scrub and recovery
    row(BR, "OSDs", osds),
    row(BR, "replicas", pool, "client", "size"),
    row(BR, "repeats", repeats),
    row(BR, "media", media),
    row(BR, "capacity", capacity),
    row(BR, "placement groups of the client's pool", pool, "client", "pg_num"),
    row(BR, "BlueStore throttles", option, "bluestore_throttle_bytes"),
    row(BR, "osd_scrub_sleep", option, "osd_scrub_sleep"),
    row(BR, "osd_scrub_during_recovery", option, "osd_scrub_during_recovery"),
    row(BR, "osd_max_scrubs", option, "osd_max_scrubs"),
    row(BR, PRIORITY, option, PRIORITY),
    row(BR, "policies", axis, "policy"),
    row(BR, "objects prefilled for recovery", prefill, "prefill"),
    row(BR, "objects scrubbed", prefill, "prefill_scrub"),
    row(BR, "recovery pool", recycled, "recovery"),
    row(BR, "scrub pool", recycled, "scrub"),
    row(BR, "client load", load, "client"),
    row(BR, "client alone, for its loss", length, "alone"),
    row(BR, "client", length, "client"),
    row(BR, "recovery starts", starts, "release"),
    # A, B: what the capacity of clients was taken from
    row("baseline", "OSDs", osds),
    row("baseline", "repeats", repeats),
    row("baseline", "bench of each OSD", osd_bench),
    row("baseline", "replicas", pool, "client", "size"),
    row("baseline", "placement groups", pool, "client", "pg_num"),
    row("baseline", "media", media),
    row("baseline", "client load", load, "client"),
    row("baseline", "client", length, "client"),
    # C: I/O schedulers
    row(C, "OSDs", osds),
    row(C, "media", media),
    row(C, "repeats", repeats),
    row(C, "replicas", pool, "bench0", "size"),
    row(C, "schedulers", axis, "scheduler"),
    row(C, "nr_requests", axis, "nr_requests"),
    row(C, "instances of rados bench, a pool each", count_of_pools),
    row(C, "placement groups of a pool", pool, "bench0", "pg_num"),
    row(C, "sizes", bench_sizes),
    row(C, "in flight in all", bench, "in_flight"),
    row(C, "write, then read", length, "write", "read"),
    row(C, "everything made again between runs", fresh_lab),
    *(row(C, f"{fs}: mkfs, mount", made_and_mounted, fs) for fs in ("xfs", "ext4", "btrfs")),
    row(C, "journal, MiB", journal),
    # D: 4K RBD
    row(D, "OSDs", osds),
    row(D, "replicas", pool, "client", "size"),
    row(D, "repeats", repeats),
    row(D, "volumes", axis, "volumes"),
    row(D, "in flight per volume", curve, "surface"),
    row(D, "time of a depth", dwell, "surface"),
    row(D, "file systems below OSDs", axis, "filesystem"),
    row(D, "guests", guests),
    row(D, "placement groups of a pool", pool, "client", "pg_num"),
    row(D, "size of a volume", image_size),
    row(D, "loads", axis, "rw"),
    row(D, "block size", block_size, "surface"),
    # E: CPU placement
    row(E, "OSDs", osds),
    row(E, "reactors of an OSD", axis, "shards"),
    row(E, "strategies", axis, "strategy"),
    row(E, "replicas, of 8 OSDs", pool, "client", "size", osds="8"),
    row(E, "replicas, of 1 OSD", pool, "client", "size", osds="1"),
    row(E, "CPUs of fio, and unused CPUs", cores),
    *(
        each
        for name in (E, R)
        for each in (
            row(name, "placement groups of a pool", pool, "client", "pg_num"),
            row(name, "volumes", images),
            row(name, "fio jobs of a volume", jobs, "curve"),
            row(name, "repeats", repeats),
            row(name, "depths", curve, "curve"),
            row(name, "loads", without_depth),
            row(name, "ramp of a depth, not counted", ramp, "curve"),
            row(name, "a depth", dwell, "curve"),
            row(name, "ends early", stops, "curve"),
            row(name, "off during the curves", flags),
        )
    ),
    row(R, "OSDs", osds),
    row(R, "replicas", pool, "client", "size"),
    row(L, "target", search, "target"),
    row(L, "greatest depth", search, "most"),
    row(L, "placement groups of a pool", pool, "client", "pg_num"),
    row(L, "volumes", images),
    row(L, "OSDs", osds),
    row(L, "replicas", pool, "client", "size"),
    row(L, "repeats", repeats),
    row(L, "off during the search", flags),
    row(P, "load", load, "settle"),
    row(P, "jobs of a drive", jobs, "settle"),
    row(P, "share of the drive", share, "settle"),
    row(P, "until", steady, "settle"),
    row(P, "at most", length, "settle"),
)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.scenario}: {row.parameter}")
def test_a_parameter_is_the_published_one_or_says_why_not(row: Row) -> None:
    said = PUBLISHED[row.scenario][row.parameter]
    if row.here() == said["published"]:
        assert "why" not in said, "it says why it differs, and does not"
    else:
        assert said.get("why"), f"published {said['published']}, here {row.here()}"


def test_what_a_study_says_has_its_words_and_place_and_what_it_does_not_has_none() -> None:
    for name, values in PUBLISHED.items():
        for parameter, said in values.items():
            quoted = {"says", "at"} & set(said)
            wanted = set() if said["published"] == "not said" else {"says", "at"}
            assert quoted == wanted, f"{name}: {parameter}"
            if quoted:
                assert said["at"].split()[0] in "ABCDE", f"{name}: {parameter}"
                assert len(said["says"].split()) < 15, f"{name}: {parameter}: a few words"


def test_every_published_value_is_compared_with_a_plan() -> None:
    published = {(name, parameter) for name, values in PUBLISHED.items() for parameter in values}
    assert published == {(row.scenario, row.parameter) for row in TABLE}


def lines() -> list[str]:
    """What differs, as the table of studies.md says it."""
    found = []
    for name, parameter, here in TABLE:
        said = PUBLISHED[name][parameter]
        if why := said.get("why"):
            found.append(f"| `{name}` | {parameter} | {said['published']} | {here()} | {why} |")
    return found


def test_the_page_of_the_studies_says_what_differs() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == lines()


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
    print("\n".join(lines()))
