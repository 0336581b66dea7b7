"""Shipped scenarios at study scale: what test_studies.py does not compare with publications."""

import pytest
from tests.shipped_plans import only, shipped_plan

from cephqos_loadgen.check import plan_text
from cephqos_loadgen.phase_kinds.pin import Pin
from cephqos_loadgen.plan import planned
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.pools import free_space
from cephqos_loadgen.scenario import library

# What the plan must say where no publication does, so that test_studies.py does not compare it.
SAID = {
    "baseline": (
        "throttle: 128K, 256K, 512K, 1M, 2M, 4M, 10M, 40M, 64M",
        "1 volume; after capacity",
    ),
    "client-vs-recovery": ("media: ssd, hdd, hdd_db", "pool recovery; after settled"),
    "client-vs-scrub-recovery": ("phase hold: set norecover, set nobackfill",),
    "io-scheduler": (
        "phase read: rados bench, 8 instances: sequential reads of 4 KiB, 16 in flight in all;"
        " after write",
    ),
    "noisy-neighbour": (
        "6 points of the matrix x 3 repeats = 18 runs",
        "sessions: 1, 4, 16",
        "scheduler: wpq, mclock",
        "phase noisy: fio, librbd on pool noisy: randwrite of 4 KiB, depth 32, 1 volume",
        "phase beside: fio, librbd on pool quiet: randwrite of 4 KiB, depth 4, 1 volume; with"
        " noisy + 5 s, for 10 min",
    ),
    "qos-demo": (
        "1 point of the matrix x 1 repeat = 1 run",
        "100,000 objects of 32 KiB",
        "phase baseline: fio, librbd on pool client: randwrite of 4 KiB, depth 64, 1 volume",
    ),
    "rbd-surface": ("path: librbd, qemu, qemu_cache, one_guest, one_guest_cache, krbd",),
    "response-curve": ("distribution: random", "random_distribution random"),
}


def study(name: str, **axes: str) -> planned.Plan:
    return shipped_plan(name, "study", only=only(**axes))


def printed(plan: planned.Plan) -> str:
    return "\n".join(plan_text.lines(plan, ProgramPaths(), commands=False))


@pytest.mark.parametrize("name", SAID)
def test_the_plan_at_study_scale_says_what_it_does(name: str) -> None:
    text = printed(study(name))
    assert [words for words in SAID[name] if words not in text] == []


@pytest.mark.parametrize("name", ["noisy-neighbour", "qos-demo"])
def test_what_repeats_no_study_has_four_osds(name: str) -> None:
    assert {point.lab.osds for point in study(name).points} == {4}


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


@pytest.mark.parametrize("name", sorted(set(library.shipped()) - {"io-scheduler"}))
def test_the_labs_of_the_studies_have_room_for_them(name: str) -> None:
    for point in study(name).points:
        assert free_space.plan_bytes([point]) < 0.85 * point.lab.osds * point.lab.osd_size
