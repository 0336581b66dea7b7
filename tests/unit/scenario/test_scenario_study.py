"""The study scale of every shipped scenario, as `--check` prints it, against the published studies:
sizes, counts, lengths, repeats, matrix."""

import pytest
from tests.shipped_plans import only, shipped_plan

from cephqos_loadgen.check import plan_text
from cephqos_loadgen.phase_kinds.pin import Pin
from cephqos_loadgen.plan import planned
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.pools import free_space
from cephqos_loadgen.scenario import library

SCRUB_STUDY = (
    "ceph config set osd bluestore_throttle_bytes 2M",
    "ceph config set osd osd_scrub_sleep 0",
    "ceph config set osd osd_max_scrubs 5",
    "ceph config set osd osd_scrub_during_recovery true",
    "ceph config set osd osd_requested_scrub_priority 5",
)
RANDOM_WRITE = "fio, librbd on pool client: randwrite of 4 KiB, depth 64, 1 volume"
DEPTHS = "depths 1 2 4 8 16 24 32 40 52 64, each for 5 min, 1 volume, ramp_time 30s"

# scenario -> OSDs, repeats, axes, what the plan of a point must say
STUDIES: dict[str, tuple[int, int, dict[str, str], tuple[str, ...]]] = {
    "baseline": (
        4,
        3,
        {"db": "keep", "throttle": "128K 256K 512K 1M 2M 4M 10M 40M 64M"},
        (
            "phase capacity: bench of each OSD",
            f"phase client: {RANDOM_WRITE}; after capacity, for 5 min",
        ),
    ),
    "client-vs-scrub": (
        4,
        3,
        {
            "experiment": "scrub ten_scrubs cost_50m cost_20m",
            "policy": "wpq high_client_ops balanced high_recovery_ops custom",
        },
        (
            *SCRUB_STUDY,
            "ceph osd pool set scrub size 3",
            "10,000,000 objects of 32 KiB",
            f"phase alone: {RANDOM_WRITE}; at 0 s, for 5 min",
            "phase scrub: deep scrub of pool scrub; after alone",
            f"phase client: {RANDOM_WRITE}; when scrub_started, for 14 min",
        ),
    ),
    "client-vs-recovery": (
        4,
        3,
        {
            "media": "ssd hdd hdd_db",
            "policy": "wpq_default wpq_boosted high_client_ops balanced high_recovery_ops",
        },
        (
            "ceph config set osd bluestore_throttle_bytes 256K",
            "ceph osd pool set recovery size 3",
            "phase prefill: 100,000 objects of 4 MiB into pool recovery; after settled",
            f"phase client: {RANDOM_WRITE}; when recovery_started, until recovery done",
        ),
    ),
    "client-vs-scrub-recovery": (
        4,
        3,
        {"policy": "wpq high_client_ops balanced high_recovery_ops"},
        (
            *SCRUB_STUDY,
            "phase prefill: 50,000 objects of 4 MiB into pool recovery",
            "phase hold: set norecover, set nobackfill",
            "phase prefill_scrub: 100,000 objects of 4 MiB into pool scrub",
            "phase release: unset norecover, unset nobackfill; when scrub_started",
            f"phase client: {RANDOM_WRITE}; with release, for 9 min",
        ),
    ),
    "response-curve": (
        8,
        3,
        {"load": "randread randwrite read write", "jobs": "1", "distribution": "random"},
        (
            "1 image of 10 GiB",
            f"phase curve: fio, librbd on pool client: randread of 4 KiB, {DEPTHS},"
            " random_distribution random; at 0 s",
        ),
    ),
    "latency-target": (8, 3, {}, ("1 image of 10 GiB", "the depth whose p99.9 is 10 ms")),
    "io-scheduler": (
        8,
        3,
        {
            "filesystem": "keep",
            "scheduler": "none mq-deadline kyber bfq",
            "nr_requests": "keep",
            "read_ahead": "keep",
            "object": "4K 128K 4M",
            "in_flight": "16 256",
        },
        (
            *(f"ceph osd pool create bench{n} 2048" for n in range(8)),
            "phase write: rados bench, 8 instances: writes of 4 KiB, 16 in flight in all; at 0 s,"
            " for 5 min",
            "phase read: rados bench, 8 instances: sequential reads of 4 KiB, 16 in flight in all;"
            " after write, for 5 min",
        ),
    ),
    "rbd-surface": (
        8,
        3,
        {
            "filesystem": "keep",
            "path": "librbd qemu qemu_cache one_guest one_guest_cache krbd",
            "rw": "randread randwrite read write",
            "volumes": "1 2 3 4 5 6 7 8",
        },
        ("randread of 4 KiB, depths 1 2 3 4 6 8 12 16, each for 1 min, 1 volume",),
    ),
    "cpu-placement": (
        1,
        3,
        {
            "osds": "1 3 5 8",
            "shards": "1 2 4 5 6",
            "strategy": "default by_osd by_socket",
            "load": "randread randwrite read write",
        },
        ("ceph config set osd osd_op_num_shards_ssd 1", "1 image of 10 GiB"),
    ),
    "precondition": (
        1,
        1,
        {},
        (
            "phase settle: fio, libaio on /dev/DRIVE: randwrite of 64 KiB, depth 256, steadystate"
            " iops:5%, steadystate_duration 300s; at 0 s, until done, 1 h at most",
        ),
    ),
    "noisy-neighbour": (
        4,
        3,
        {"sessions": "1 4 16", "scheduler": "wpq mclock"},
        (
            "phase noisy: fio, librbd on pool noisy: randwrite of 4 KiB, depth 32, 1 volume",
            "phase beside: fio, librbd on pool quiet: randwrite of 4 KiB, depth 4, 1 volume; with"
            " noisy + 5 s, for 10 min",
        ),
    ),
    "qos-demo": (4, 1, {}, ("100,000 objects of 32 KiB", f"phase baseline: {RANDOM_WRITE}")),
}


def study(name: str, **axes: str) -> planned.Plan:
    return shipped_plan(name, "study", only=only(**axes))


def printed(plan: planned.Plan) -> str:
    return "\n".join(plan_text.lines(plan, ProgramPaths(), commands=False))


def test_every_shipped_scenario_has_its_study_here() -> None:
    assert set(STUDIES) == set(library.shipped())


@pytest.mark.parametrize("name", list(STUDIES))
def test_the_plan_at_study_scale_is_that_of_the_study(name: str) -> None:
    osds, repeats, axes, said = STUDIES[name]
    plan = study(name)
    assert plan.points[0].lab.osds == osds
    assert {axis: " ".join(values) for axis, values in plan_text.axes(plan).items()} == axes
    text = printed(plan)
    points = len(plan.points)
    plural = ["s" if number != 1 else "" for number in (points, repeats, points * repeats)]
    runs = f"{points} point{plural[0]} of the matrix x {repeats} repeat{plural[1]}"
    assert f"  {runs} = {points * repeats} run{plural[2]}, about " in text
    for axis, values in axes.items():
        assert f"\n  {axis}: {values.replace(' ', ', ')}\n" in text
    first = text.split("\npoint ")[1]
    for words in said:
        assert words in first


def test_on_hdd_the_recovery_study_moves_5000_objects() -> None:
    for media in ("hdd", "hdd_db"):
        plan = study("client-vs-recovery", media=media, policy="balanced")
        text = printed(plan)
        assert "phase prefill: 5,000 objects of 4 MiB into pool recovery" in text
        assert "ceph config set osd bluestore_throttle_bytes 40M" in text
        assert plan.points[0].lab.rotational
        assert (plan.points[0].lab.db_size is not None) == (media == "hdd_db")


def test_recovery_is_let_loose_by_the_same_three_options_under_wpq_and_mclock() -> None:
    for policy in ("wpq_boosted", "high_client_ops", "balanced", "high_recovery_ops"):
        plan = study("client-vs-recovery", media="ssd", policy=policy)
        settings = {option.name: option.value for option in plan.points[0].settings}
        assert settings["osd_max_backfills"] == settings["osd_recovery_max_active"] == "1000"
        assert settings["osd_async_recovery_min_cost"] == "1"
        override = "osd_mclock_override_recovery_settings" in settings
        assert override == (policy != "wpq_boosted")
    plan = study("client-vs-recovery", media="ssd", policy="wpq_default")
    assert "osd_max_backfills" not in {option.name for option in plan.points[0].settings}


def test_only_paths_with_a_cache_have_one_and_it_does_not_wait_for_a_flush() -> None:
    for point in study("rbd-surface").points:
        cached = dict(point.axes)["path"] in ("qemu_cache", "one_guest_cache")
        client = dict(point.client)
        assert client["rbd_cache"] == ("true" if cached else "false")
        assert client.get("rbd_cache_writethrough_until_flush") == ("false" if cached else None)


def test_osds_get_as_many_cpus_as_they_have_shards() -> None:
    for point in study("cpu-placement").points:
        pin = point.phases[0].action
        assert isinstance(pin, Pin)
        assert pin.cpus_per_osd == int(dict(point.axes)["shards"])
        assert point.lab.osds == int(dict(point.axes)["osds"])


@pytest.mark.parametrize("name", ["client-vs-scrub", "client-vs-recovery", "rbd-surface"])
def test_no_osd_gets_more_placement_groups_than_monitors_allow(name: str) -> None:
    """250 by default: a pool beyond that is refused."""
    for point in study(name).points:
        copies = sum(pool.pg_num * (pool.size or 3) for pool in point.pools)
        assert copies / point.lab.osds <= 250


# -- room ----------------------------------------------------------------------------------------

GIB = 1 << 30


def test_pools_are_counted_with_all_copies_and_what_phases_write_into_them() -> None:
    plan = study("client-vs-scrub-recovery", policy="wpq")
    held = 100 * GIB + 150_000 * (4 << 20)  # an image, two prefills
    assert free_space.plan_bytes(plan.points) == 3 * held
    assert "  pools of 2.01 TiB with all copies" in printed(plan)


def test_pools_that_points_share_count_once_and_those_that_are_there_not_at_all() -> None:
    plan = study("client-vs-scrub")
    whole = free_space.plan_bytes(plan.points)
    assert whole == 3 * (100 * GIB + 10_000_000 * (32 << 10))
    assert free_space.plan_bytes(plan.points, ("scrub",)) == 300 * GIB


@pytest.mark.parametrize("name", sorted(set(STUDIES) - {"io-scheduler"}))
def test_the_labs_of_the_studies_have_room_for_them(name: str) -> None:
    for point in study(name).points:
        assert free_space.plan_bytes([point]) < 0.85 * point.lab.osds * point.lab.osd_size
