"""Recovery per OSD, on recordings of three releases."""

import json

import pytest
from tests.recorded import RECORDINGS, RELEASES

from cephqos_exporter.collectors.recovery import RecoveryCollector
from cephqos_exporter.daemon import ReplyMissing

from ..osd_views import OSD, RecordedOsd, value, values

NAME = "cephqos_recovery_slots"


def recovering_osd(release: str, osd: int) -> RecordedOsd:
    """An OSD while another one's data is spread again."""
    recorded = RecordedOsd(release)
    path = (
        RECORDINGS / "cluster" / release / "recovery" / f"osd{osd}_dump_recovery_reservations.json"
    )
    recorded.replies["dump_recovery_reservations"] = json.loads(path.read_text())
    return recorded


@pytest.mark.parametrize("release", ["reef", "tentacle"])
def test_the_primary_holds_a_local_and_its_peer_a_remote_reservation(release: str) -> None:
    primary = recovering_osd(release, 0).scrape(RecoveryCollector())
    peer = recovering_osd(release, 2).scrape(RecoveryCollector())
    held = {"state": "in_progress", "kind": "recovery"}
    assert value(primary, NAME, side="local", **held) == 1
    assert value(primary, NAME, side="remote", **held) == 0
    assert value(peer, NAME, side="local", **held) == 0
    assert value(peer, NAME, side="remote", **held) == 1
    assert value(primary, "cephqos_recovery_slots_max", side="local") == 1


def test_reservations_that_wait_are_queued() -> None:
    families = recovering_osd("reef", 0).scrape(RecoveryCollector())
    assert value(families, NAME, side="local", state="queued", kind="recovery") == 1
    assert value(families, NAME, side="local", state="queued", kind="backfill") == 0


def test_a_rare_kind_shows_from_its_first_time_on_and_then_falls_to_zero() -> None:
    osd, collector = RecordedOsd("reef"), RecoveryCollector()
    assert not values(osd.scrape(collector), NAME, {"kind": "inactive"})
    local = osd.replies["dump_recovery_reservations"]["local_reservations"]
    kept = local["in_progress"]
    local["in_progress"] = [{"item": "2.1", "prio": 223, "can_preempt": True}]
    labels = {"side": "local", "state": "in_progress", "kind": "inactive"}
    assert value(osd.scrape(collector), NAME, **labels) == 1
    local["in_progress"] = kept
    assert value(osd.scrape(collector), NAME, **labels) == 0


@pytest.mark.parametrize("release", RELEASES)
def test_counters_and_times_are_the_daemons_own(release: str) -> None:
    osd = RecordedOsd(release)
    osd.counters("osd").update(recovery_ops=4321, recovery_bytes=283115544, push=4320)
    osd.counters("recoverystate_perf")["waitlocalbackfillreserved_latency"] = {
        "avgcount": 5,
        "sum": 109.3,
        "avgtime": 21.86,
    }
    families = osd.scrape(RecoveryCollector())
    assert value(families, "cephqos_recovery_ops_total") == 4321
    assert value(families, "cephqos_recovery_bytes_total") == 283115544
    assert value(families, "cephqos_recovery_pushes_total") == 4320
    waited = {"state": "backfill_wait_local"}
    assert value(families, "cephqos_recovery_state_seconds_sum", **waited) == 109.3
    assert value(families, "cephqos_recovery_state_seconds_count", **waited) == 5


def test_what_an_osd_receives_is_not_shown_as_zero() -> None:
    """subop_push is declared and never counted: a series of it would say that nothing comes in."""
    families = RecordedOsd("reef").scrape(RecoveryCollector())
    assert not [family.name for family in families if "subop" in family.name]


@pytest.mark.parametrize(
    ("logger", "counter", "family"),
    [
        ("osd", "recovery_bytes", "cephqos_recovery_bytes_total"),
        ("recoverystate_perf", "recovering_latency", "cephqos_recovery_state_seconds_sum"),
    ],
)
def test_a_counter_that_is_renamed_costs_its_own_figure(
    logger: str, counter: str, family: str
) -> None:
    osd = RecordedOsd("reef")
    counters = osd.counters(logger)
    counters[f"{counter}_2"] = counters.pop(counter)
    found, before = (one.scrape(RecoveryCollector()) for one in (osd, RecordedOsd("reef")))
    assert len(values(before, family)) - len(values(found, family)) == 1
    assert len(values(found, NAME)) == len(values(before, NAME))
    assert osd.not_understood == {"counter"}


@pytest.mark.parametrize("reserver", [{}, [3, 0, [], []], {"max_allowed": 1, "in_progress": [7]}])
def test_reservations_of_another_shape_cost_their_side(reserver: object) -> None:
    osd = RecordedOsd("reef")
    osd.replies["dump_recovery_reservations"]["remote_reservations"] = reserver
    found = osd.scrape(RecoveryCollector())
    assert not values(found, NAME, {"side": "remote"})
    assert values(found, NAME, {"side": "local"})
    assert osd.not_understood == {"reply"}


def test_without_reservations_the_counters_are_there() -> None:
    osd = RecordedOsd("reef")
    del osd.replies["dump_recovery_reservations"]
    osd.errors["dump_recovery_reservations"] = "timeout"
    with pytest.raises(ReplyMissing) as failure:
        osd.scrape(RecoveryCollector())
    assert values(failure.value.families, "cephqos_recovery_bytes_total")


def test_a_daemon_that_is_no_osd_is_asked_nothing() -> None:
    monitor = RecordedOsd("reef", daemon=OSD.__class__("mon", "a", OSD.cluster, OSD.socket))
    assert monitor.scrape(RecoveryCollector()) == []
    assert monitor.asked == [[]]
