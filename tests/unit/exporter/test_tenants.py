"""Whose operations are found in a list: descriptions as three releases write them."""

import random
from collections import Counter

import pytest
from tests.recorded import RELEASES

from cephqos_base.tenant_shares import interval
from cephqos_exporter.collectors import build_enabled
from cephqos_exporter.collectors.base import CollectorInputs
from cephqos_exporter.collectors.tenants import TenantsCollector
from cephqos_exporter.config import Settings
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.largest import Largest
from cephqos_exporter.qos.tenants import (
    NAMED_TENANTS,
    NOBODY,
    SentFor,
    Tenant,
    TenantMeter,
    described,
)
from cephqos_exporter.qos.waits import OperationWait, SampledOperations, in_progress

from ..hostile_text import HOSTILE
from ..osd_views import RecordedOsd, by_name, recorded_ops

ZONE = "1c8e5f4c-93e8-4f43-a3a1-9b5f6e1d2c3b"


def write(name: str, client: str = "client.4128", pool: int = 3, space: str = "") -> str:
    return (
        f"osd_op({client}.0:77 {pool}.1f {pool}:f81c2d4a:{space}::{name}:head [write 0~4096 in="
        "4096b] snapc 0=[] ondisk+write+known_if_redirected+supports_pool_eio e123)"
    )


def queued(client: str, pool: int = 3) -> str:
    return f"osd_op({client}.0:78 {pool}.1f {pool}.f81c2d4a (undecoded) ondisk+write e123)"


@pytest.mark.parametrize(
    ("name", "tenant"),
    [
        ("rbd_data.10226b8b4567.0000000000000a1f", Tenant("image", "3", "10226b8b4567")),
        # Digits only, with and without the pool of an image whose data is in another one.
        ("rbd_data.1022.0000000000000a1f", Tenant("image", "3", "1022")),
        ("rbd_data.7.10226b8b4567.0000000000000a1f", Tenant("image", "7", "10226b8b4567")),
        ("rbd_header.10226b8b4567", Tenant("image", "3", "10226b8b4567")),
        ("rbd_object_map.10226b8b4567.0000000000000004", Tenant("image", "3", "10226b8b4567")),
        ("10000000000.00000000", Tenant("cephfs", "3", "client.4128")),
        (f"{ZONE}.4137.1_photos%2fcat.jpg", Tenant("bucket", "3", f"{ZONE}.4137.1")),
        (f"{ZONE}.4137.12__shadow_.xYz_1", Tenant("bucket", "3", f"{ZONE}.4137.12")),
        (f".dir.{ZONE}.4137.1.7", Tenant("bucket", "3", f"{ZONE}.4137.1")),
        ("default.4137.1_file", Tenant("bucket", "3", "default.4137.1")),
        ("benchmark_data_vm_4008_object1320", Tenant("client", "3", "client.4128")),
        ("rbd_id.vm-17", Tenant("client", "3", "client.4128")),
        ("rbd_data.x y.1", Tenant("client", "3", "client.4128")),
        ("", Tenant("client", "3", "client.4128")),
    ],
)
def test_the_name_of_an_object_tells_whose_it_is(name: str, tenant: Tenant) -> None:
    assert described(write(name)) == SentFor("client.4128", "3", tenant)
    in_a_namespace = described(write(name, space="team-a"))
    assert in_a_namespace is not None and in_a_namespace.tenant == tenant


def test_servers_are_clients_too() -> None:
    found = described(write("600.00000000", client="mds.0", pool=2))
    assert found == SentFor("mds.0", "2", Tenant("cephfs", "2", "mds.0"))


def test_a_replica_write_and_a_shard_name_their_tenant() -> None:
    name = "rbd_data.10226b8b4567.0000000000000a1f"
    tenant = Tenant("image", "2", "10226b8b4567")
    replica = f"osd_repop(client.4128.0:1458 2.1 e28/19 2:874596b5:::{name}:head v 28'1)"
    assert described(replica) == SentFor("client.4128", "2", tenant)
    undecoded = "osd_repop(client.4127.0:22690 1.4 e11/9)"
    assert described(undecoded) == SentFor("client.4127", "1", None)
    shard = f"osd_op(client.4140.0:1 2.3s0 2:c0faa12a:::{name}:head [read 0~8192])"
    assert described(shard) == SentFor("client.4140", "2", tenant)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("moment", ["slow_replica", "ec_slow", "ec_read", "rep_read"])
def test_operations_of_real_clusters_are_understood(release: str, moment: str) -> None:
    kinds: Counter[str] = Counter()
    for osd in range(3):
        for op in recorded_ops(release, moment, osd)["ops"]:
            if op["description"].startswith(("osd_op(", "osd_repop(")):
                found = described(op["description"])
                assert found is not None
                kinds[found.tenant.kind if found.tenant else ""] += 1
                # The OSD decodes an operation when it takes it from the queue.
                events = [event["event"] for event in op["type_data"]["events"]]
                assert (found.tenant is None) == (events[-1] == "queued_for_pg")
    assert set(kinds) <= {"client", ""}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_become_no_label(text: str) -> None:
    for name in (text, f"rbd_data.{text}.0", f"{ZONE}.1.2_{text}", f"rbd_header.{text}"):
        found = described(write(name))
        if found is not None and found.tenant is not None:
            assert found.tenant.name in ("client.4128", f"{ZONE}.1.2")


def test_any_text_gives_short_plain_labels_or_nothing() -> None:
    rng = random.Random(34)  # noqa: S311 - no secret
    pieces = [*HOSTILE.values(), "osd_op(", "client.1", ".0:1 ", "3.1f ", "3:ab:::", "rbd_data."]
    pieces += ["9" * 5000, ":", "a" * 300, " (undecoded)", "(", "\n", ".0000000000000001"]
    start = "osd_op(client.1.0:1 3.1f 3:ab:::rbd_data."
    for _ in range(2000):
        text = rng.choice(["", start]) + "".join(rng.choices(pieces, k=rng.randrange(8)))
        found = described(text)
        if found is not None and found.tenant is not None:
            labels = "".join(found.tenant)
            assert len(labels) < 200 and labels.isascii() and labels.isprintable()


# In a meter.


def sampled(
    description: str, event: str = "commit", seconds: float = 10.0, kind: str = "client"
) -> SampledOperations:
    return SampledOperations(kind, ((OperationWait(kind, event), seconds),), [description])


def image(number: int) -> str:
    return write(f"rbd_data.{number:x}.0000000000000001", client=f"client.{number}")


def id_of(number: int) -> Tenant:
    return Tenant("image", "3", f"{number:x}")


def test_queued_operations_count_for_what_their_client_did_last() -> None:
    meter, odd = TenantMeter(), NotUnderstood()
    meter.sample([sampled(image(1)), sampled(image(2))], 0.0, odd)
    assert meter.seconds[id_of(1), "working"] == 0.0  # series begin at 0
    assert meter.seconds[NOBODY, "working"] == 20.0
    waiting = [sampled(queued(f"client.{n}"), "queue") for n in (1, 1, 2, 9)]
    meter.sample([*waiting, sampled(image(2), "subops")], 10.0, odd)
    assert meter.seconds[id_of(1), "waiting"] == 20.0
    assert meter.seconds[id_of(2), "waiting"] == 20.0
    assert meter.seconds[NOBODY, "waiting"] == 10.0  # its client is not known
    assert meter.squares["working"] == 200.0  # two images at first, none later
    assert not odd.found


def test_clients_that_are_seen_once_keep_no_places_from_the_images() -> None:
    """Those that open an image or run one command; a place is kept for minutes otherwise."""
    meter = TenantMeter()
    names = ("rbd_directory", "rbd_id.vm-17", "rbd_info", "rbd_children", "main.db.0")
    opening = [write(name, client=f"client.{90 + n}") for n, name in enumerate(names)]
    meter.sample([sampled(it) for it in opening], 0.0, NotUnderstood())
    images = range(NAMED_TENANTS)
    for now in (10.0, 20.0, 30.0):
        meter.sample([sampled(image(n)) for n in images] * 2, now, NotUnderstood())
    assert {tenant for tenant, _ in meter.seconds} == {*map(id_of, images), NOBODY}
    assert all(meter.seconds[id_of(n), "working"] == 20.0 for n in images)


def test_who_comes_once_each_takes_no_place_from_another() -> None:
    """Series are bounded: only who is there again replaces one that was there once."""
    meter = TenantMeter()
    for now in range(0, 300, 10):
        meter.sample([sampled(image(now))] * (now + 1), float(now), NotUnderstood())
    named = {tenant for tenant, _ in meter.seconds} - {NOBODY}
    assert named == {id_of(now) for now in range(0, 10 * NAMED_TENANTS, 10)}


def test_what_a_tenant_has_in_a_sample_is_squared_however_many_operations_it_is() -> None:
    meter = TenantMeter()
    meter.sample([sampled(image(1))] * 100, 0.0, NotUnderstood())
    assert meter.squares == {"waiting": 0.0, "working": 1000.0**2}
    meter.sample([sampled(image(n)) for n in (1, 2)] * 3, 10.0, NotUnderstood())
    assert meter.squares["working"] == 1000.0**2 + 2 * 30.0**2


def test_intervals_hold_for_tenants_whose_work_comes_in_bursts() -> None:
    """With a writeback cache, the image that flushes has nearly all operations in progress."""
    rng = random.Random(34)  # noqa: S311 - no secret
    true_shares = [0.5, 0.3, 0.2]
    held = 0
    for _ in range(100):
        meter = TenantMeter()
        for now in range(0, 400, 10):
            (flushes,) = rng.choices((0, 1, 2), true_shares)
            ops = [sampled(image(n)) for n in (0, 1, 2)] + [sampled(image(flushes))] * 200
            meter.sample(ops, float(now), NotUnderstood())
        seconds = meter.seconds[id_of(0), "working"]
        total = sum(meter.seconds[id_of(n), "working"] for n in (0, 1, 2))
        low, high = interval(seconds / total, total**2 / meter.squares["working"])
        held += low <= true_shares[0] <= high
    assert held >= 90


def test_a_replica_write_is_work_and_no_waiting() -> None:
    meter = TenantMeter()
    replica = "osd_repop(client.1.0:2 3.1 e28/19 3:874596b5:::rbd_data.1.0000000000000001:head v 1)"
    for now in (0.0, 10.0):
        meter.sample(
            [sampled(replica, event, kind="replica") for event in ("commit", "queue")],
            now,
            NotUnderstood(),
        )
    assert meter.seconds[id_of(1), "working"] == 10.0
    assert meter.seconds[id_of(1), "waiting"] == 0.0


def test_what_is_not_understood_is_counted_without_its_name() -> None:
    meter, odd = TenantMeter(), NotUnderstood()
    meter.sample([sampled("osd_op(secret of a later release)")], 0.0, odd)
    assert odd.found == {"operation": (1, "client: its client or object")}
    meter.sample([sampled("osd_repop_reply(client.1.0:2 3.1 e28/19 ondisk)")], 0.0, odd)
    assert odd.found["operation"][0] == 1


def test_series_are_bounded_whatever_tenants_do() -> None:
    meter, rng = TenantMeter(), random.Random(34)  # noqa: S311 - no secret
    seen: set[Tenant] = set()
    for now in range(0, 3600, 10):
        ops = [sampled(image(rng.randrange(100_000))) for _ in range(100)]
        meter.sample(ops, float(now), NotUnderstood())
        shown = {tenant for tenant, _ in meter.seconds}
        assert len(shown) <= NAMED_TENANTS + 1
        seen |= shown
    # A place changes hands every five minutes at most.
    assert len(seen) <= NAMED_TENANTS * 12 + 1


def test_a_tenant_keeps_its_place_until_it_is_clearly_beaten() -> None:
    meter = TenantMeter()

    def sample(now: float, *numbers: int) -> set[str]:
        meter.sample([sampled(image(n)) for n in numbers], now, NotUnderstood())
        return {tenant.name for tenant, _ in meter.seconds if tenant.name}

    first = sample(0.0, *range(1, NAMED_TENANTS + 1))
    assert len(first) == NAMED_TENANTS
    assert sample(10.0, *[99] * 5, *range(1, NAMED_TENANTS + 1)) == first  # too early
    for now in range(20, 900, 10):  # as much is not enough
        assert sample(float(now), 98, *range(1, NAMED_TENANTS + 1)) == first
    assert sample(900.0, *[97] * 40, *range(1, NAMED_TENANTS + 1)) == first  # not there before
    later = sample(910.0, *[97] * 40, *range(1, NAMED_TENANTS + 1))
    assert "61" in later and len(later - first) == 1


@pytest.mark.parametrize("release", RELEASES)
def test_times_of_a_real_list_are_all_counted(release: str) -> None:
    meter, odd = TenantMeter(), NotUnderstood()
    ops = recorded_ops(release, "slow_replica", 1)["ops"]
    taken = in_progress(ops, 10.0, odd)
    meter.sample(taken, 0.0, odd)
    meter.sample(taken, 10.0, odd)
    assert sum(meter.seconds.values()) == 20.0 * len(ops)
    assert {tenant.kind for tenant, _ in meter.seconds} == {"client", "other"}
    assert not odd.found


def test_the_largest_have_places_which_do_not_change_hands_for_every_change_of_rank() -> None:
    places: Largest[str] = Largest(2)
    assert not places.add({"osd.1": 10.0, "osd.2": 9.0, "osd.3": 8.0})
    assert not places.add({"osd.1": 10.0, "osd.2": 9.0, "osd.3": 12.0})
    assert list(places.shown) == ["osd.1", "osd.2"]
    assert places.add({"osd.1": 10.0, "osd.3": 60.0}) == ["osd.2"]
    assert list(places.shown) == ["osd.1", "osd.3"]


# In a collector.


@pytest.mark.parametrize("release", RELEASES)
def test_an_osd_shows_its_tenants_and_none_with_the_collector_off(release: str) -> None:
    osd = RecordedOsd(release, "load")
    osd.replies["ops"] = recorded_ops(release, "slow_replica", 1)
    collector = TenantsCollector()
    names: set[str] = set()
    for _ in range(3):
        osd.time += 10
        names = set(by_name(osd.scrape(collector)))
    assert names == {"cephqos_tenants_seconds_total", "cephqos_tenants_squared_seconds_total"}
    assert not osd.not_understood
    off = Settings().given({TenantsCollector.switch().name: False})
    assert "tenants" not in {one.name for one in build_enabled(CollectorInputs(off))}
