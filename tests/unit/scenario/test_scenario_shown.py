"""What a run shows while it works: counters, progress, annotations."""

from typing import Any

import pytest

from cephqos_loadgen.engines.fio_output import ClientStatus, IoTotals, JobStatus
from cephqos_loadgen.live.metrics import LiveMetrics
from cephqos_loadgen.live.notify import annotation, push
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.load.recovery_watch import read_look


def status(ios: int, runtime: float) -> ClientStatus:
    done = IoTotals(ios, ios * 4096, ios, ios * 0.001, 0.0, 0.001, {1_000_000: ios})
    return ClientStatus(
        0.0, {"volume.0": JobStatus({"read": IoTotals(), "write": done}, 0.0, runtime)}
    )


def samples(live: Live, name: str) -> list[float]:
    return [s.value for m in LiveMetrics(live).collect() for s in m.samples if s.name == name]


def test_counters_of_a_client_go_on_when_its_process_starts_anew() -> None:
    live = Live(RunPlace("r", "s", "fsid"))
    live.start_client("load", "client.0", "rbd")
    live.status("load", "client.0", status(100, 1.0))
    interval = live.status("load", "client.0", status(250, 2.0))
    assert interval.ios == 150
    assert live.iops("load") == 150
    live.start_client("load", "client.0", "rbd")
    assert samples(live, "cephqos_client_ops_total") == [250]
    live.status("load", "client.0", status(10, 1.0))
    assert samples(live, "cephqos_client_ops_total") == [260]
    assert max(samples(live, "cephqos_client_latency_seconds_count")) == 260


def test_what_a_queue_still_does_at_the_end_of_a_load_is_no_rate() -> None:
    """The last status comes 5 ms after the one before it, with the 64 I/Os that were in flight: a
    terminal once said "0 IOPS, 49.2 MiB/s"."""
    live = Live(RunPlace("r", "s", "fsid"))
    live.start_client("load", "client.0", "rbd")
    for ios, runtime in ((1000, 10.0), (1200, 11.0), (1264, 11.005)):
        live.status("load", "client.0", status(ios, runtime))
    client = live.clients["load", "client.0"]
    assert live.iops("load") == pytest.approx(264 / 1.005)
    assert client.bytes_per_second() == pytest.approx(live.iops("load") * 4096)
    assert client.together.latency_count == 264
    live.status("load", "client.0", status(1264, 11.005))  # fio's last document comes twice
    assert live.iops("load") == pytest.approx(264 / 1.005)


def test_a_job_that_counts_anew_after_its_ramp_does_not_change_the_rate_of_the_others() -> None:
    """A slow cluster did less in all of the ramp than in the second after it."""
    live = Live(RunPlace("r", "s", "fsid"))
    live.start_client("load", "client.0", "rbd")
    live.status("load", "client.0", status(3, 30.0))
    live.status("load", "client.0", status(5, 1.0))
    assert live.iops("load") == 5.0


def test_progress_is_read_from_status_and_pools() -> None:
    sums = {"num_objects_recovered": 3, "num_objects_misplaced": 2}
    pools = {"pool_stats": [{"poolid": 7, "stat_sum": sums}]}
    state = {"state_name": "active+remapped+backfilling", "count": 4}
    now = read_look(1.0, {"pgmap": {"pgs_by_state": [state]}}, pools)
    assert now.recovering
    assert not now.calm
    assert (now.objects, now.misplaced) == ({7: 3}, 2)
    calm = {"state_name": "active+clean", "count": 4}
    none: dict[str, Any] = {"pool_stats": [{"poolid": 7, "stat_sum": {}}]}
    assert read_look(1.0, {"pgmap": {"pgs_by_state": [calm]}}, none).calm


def test_annotations_and_log_lines_name_run_and_phase() -> None:
    details = {"run": "r1", "phase": "scrub"}
    assert annotation("phase_started", details, 1.5, "c1") == {
        "time": 1500,
        "tags": ["cephqos", "c1", "phase_started", "r1", "scrub"],
        "text": "phase_started run=r1 phase=scrub",
    }
    (stream,) = push("phase_started", details, 1.5, "c1")["streams"]
    line = '{"time": 1.5, "event": "phase_started", "run": "r1", "phase": "scrub"}'
    assert stream["values"] == [["1500000000", line, {"event": "phase_started", **details}]]
