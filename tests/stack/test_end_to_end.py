"""What reaches the receiver when reservations of a real cluster are kept or violated.

The cases run one after the other on one lab, each from quiet to quiet, on a clock thirty times as
fast as production's. The capacity is set to what the OSDs of this machine were seen to deliver.
"""

import asyncio
import re
import time
from collections.abc import Iterator

import pytest
from tests.lab.conftest import LabPool
from tests.waiting import until

from .conftest import CAPACITY, SLOS, Watched, lab_spec, watched, watching

VIOLATED = "CephQosReservationViolated"
SATURATED = 30.0  # seconds of load: long enough for a hold of 10 s to pass
PAGES_COME = 8.0  # seconds after a first alert: what else is wrong has reached the receiver


@pytest.fixture(scope="module")
def base(labs: LabPool) -> Iterator[Watched]:
    yield from watched(labs, lab_spec("e2e"))


@pytest.fixture(scope="module")
def cluster(labs: LabPool, base: Watched) -> Watched:
    """The lab with pools of each size, and the capacity that it has."""
    labs.call(_prepare(base))
    return base


async def _prepare(on: Watched) -> None:
    for size in (1, 2, 3):
        await on.pool(f"size{size}", size)
    await on.config(CAPACITY, 2000)
    load = on.write("size3", 14)
    await _calibrate(on)
    await load
    await on.quiet()


async def _calibrate(on: Watched, after: float = 11) -> None:
    """While the OSDs have all they can do, set the capacity to what they deliver."""
    await asyncio.sleep(after)
    delivered = await on.number("avg(avg_over_time(osd:cephqos_saturated_ops:rate[5s]))")
    assert delivered, "a saturating load shows what the OSDs can do"
    await on.config(CAPACITY, round(1.1 * delivered))


async def _keep_calibrated(on: Watched) -> None:
    """What a shared machine can do changes by the second: keep the capacity true."""
    await _calibrate(on)
    while True:
        await _calibrate(on, after=3)


async def _ended(load: asyncio.Task[float]) -> None:
    """What it had to show is seen."""
    load.cancel()
    await asyncio.gather(load, return_exceptions=True)


@pytest.fixture
def afresh(labs: LabPool, cluster: Watched) -> Iterator[Watched]:
    """The same lab, with SLOs, watched by a Prometheus that knows of no operations before."""
    yield from watching(labs, cluster.lab, f"afresh-{time.monotonic_ns()}", slos=SLOS)


async def test_a_load_below_its_reservation_wakes_nobody(afresh: Watched) -> None:
    begin = await afresh.quiet()
    lab = afresh.lab
    await lab.exec(["rbd", "create", "size3/image", "--size", "512M"])
    fio = ["fio", "--name=a", "--ioengine=rbd", "--clientname=admin", "--pool=size3"]
    fio += ["--rbdname=image", "--rw=randwrite", "--bs=4k", "--iodepth=4", "--rate_iops=60"]
    await lab.exec([*fio, "--time_based", "--runtime=18", "--output-format=json"], within=90)
    assert [dict(a.labels) for a in afresh.webhook.firing_since(begin)] == []
    attained = await afresh.number(
        'sum(max_over_time(osd_class:cephqos_attained_ops:rate{class="client"}[15s]))'
    )
    assert attained is not None and attained > 30  # there was a load to be silent about
    assert afresh.webhook.watchdogs() >= 1


@pytest.mark.full
async def test_replica_work_that_fills_the_osds_is_a_ticket_and_no_page(cluster: Watched) -> None:
    """After half an hour, which is a minute here."""
    begin = await cluster.quiet()
    load = cluster.write("size3", 5 * SATURATED)
    calibration = asyncio.create_task(_keep_calibrated(cluster))
    wide = f"{VIOLATED}Widely"
    alert = await cluster.received(begin, 140, alertname=wide, cause="replica_writes")
    await asyncio.sleep(PAGES_COME)
    calibration.cancel()
    await _ended(load)
    assert alert.receiver == "warning"
    assert alert.has(severity="warning", class_="client")
    description = alert.annotations["description"]
    assert "Likely cause: replica_writes by immediate" in description
    said = re.search(r"Clients can have ([\d.]+)% of it beside", " ".join(description.split()))
    assert said and float(said[1]) < 60, description  # a third, of what they deliver
    # Where other programs take the machine's CPUs, an alert that says so is true.
    critical = [a for a in cluster.webhook.firing_since(begin) if a.receiver == "critical"]
    assert [a for a in critical if not a.has(cause="cpu")] == []
    await cluster.received(begin, status="resolved", alertname=wide, cause="replica_writes")


async def test_an_overstated_capacity_is_found_on_its_osd_and_resolves_when_set_right(
    cluster: Watched,
) -> None:
    begin = await cluster.quiet()
    await cluster.config(CAPACITY, 50000, who="osd.1")
    load = cluster.write("size1", 2 * SATURATED)
    violated = await cluster.received(begin, alertname=VIOLATED, cause="capacity")
    overstated = await cluster.received(begin, alertname="CephQosCapacityOverstated")
    assert violated.has(ceph_daemon="osd.1", class_="client", severity="warning")
    assert overstated.has(cause="capacity", severity="warning")
    await cluster.unset(CAPACITY, who="osd.1")
    for name in (VIOLATED, "CephQosCapacityOverstated"):
        await cluster.received(begin, status="resolved", alertname=name)
    await _ended(load)
    # One alert is of the cluster, and counts OSDs.
    named = {
        a.labels.get("ceph_daemon", "the cluster")
        for a in cluster.webhook.firing_since(begin)
        if a.has(cause="capacity")
    }
    assert named == {"osd.1", "the cluster"}


async def test_a_stopped_osd_does_not_answer_and_nothing_else_is_said_of_it(
    cluster: Watched,
) -> None:
    begin = await cluster.quiet()
    await cluster.lab.faults.stop(2)
    try:
        alert = await cluster.received(begin, alertname="CephQosDaemonNotAnswering")
        await asyncio.sleep(8)
    finally:
        await cluster.lab.faults.resume(2)
    assert alert.receiver == "critical"
    assert alert.has(ceph_daemon="osd.2")
    said = cluster.webhook.firing_since(begin)
    assert [dict(a.labels) for a in said if a.labels != alert.labels] == []

    async def answers() -> bool:
        return await cluster.number('cephqos_daemon_up{ceph_daemon="osd.2"}') == 1

    await until(answers, "osd.2 answers again")
    await cluster.received(begin, status="resolved", alertname="CephQosDaemonNotAnswering")


async def test_a_slow_device_is_named_and_no_other(cluster: Watched) -> None:
    begin = await cluster.quiet()
    await cluster.lab.faults.throttle(1, wiops=60)
    try:
        load = cluster.write("size2", SATURATED)
        alert = await cluster.received(begin, alertname=VIOLATED, cause="device")
        await load
    finally:
        await cluster.lab.faults.throttle(1)
    assert alert.receiver == "critical"
    assert alert.has(ceph_daemon="osd.1", class_="client")
    said = cluster.webhook.firing_since(begin)
    others = [a for a in said if a.accuses_another_than("osd.1")]
    assert [(a.receiver, a.time - alert.time, dict(a.labels)) for a in others] == []


async def _says(on: Watched, alert: str, text: str) -> bool:
    return any(
        it["labels"]["alertname"] == alert and text in it["annotations"]["description"]
        for it in await on.stack.alerts()
    )


async def test_a_small_limit_is_named_while_the_device_idles_and_the_slo_burns(
    afresh: Watched,
) -> None:
    begin = await afresh.quiet()
    custom = {
        # So that the whole of the limits is the same on every machine: 512 writes wait 1.7 s.
        "max_capacity_iops_ssd": 2000,
        "profile": "custom",
        "scheduler_client_res": 0,
        "scheduler_client_lim": 0.05,
    }
    for option, value in custom.items():
        await afresh.config(f"osd_mclock_{option}", value)
    try:
        load = afresh.write("size1", 4 * SATURATED, depth=512)
        held = await afresh.received(begin, alertname="CephQosAtLimitWhileIdle")
        burn = await afresh.received(begin, alertname="CephQosLatencySloBurn")
        # The budget of so short a past may burn before any cause has lasted.
        text = "Likely cause: limit, on most OSDs whose clients wait."
        await until(lambda: _says(afresh, "CephQosLatencySloBurn", text), text)
        await _ended(load)
    finally:
        for option in reversed(custom):
            await afresh.unset(f"osd_mclock_{option}")
    assert held.has(class_="client", cause="limit", severity="warning")
    assert burn.receiver == "critical"
    assert burn.has(slo="e2e", op="write", severity="critical")
    assert [a for a in afresh.webhook.firing_since(begin) if a.has(alertname=VIOLATED)] == []
