"""A slow device among those that turn: the other half of what the end-to-end cases say of SSDs."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.lab.conftest import LabPool

from cephqos_base.recorded import PerOsdPlace

from .conftest import Watched, lab_spec, watched

pytestmark = pytest.mark.full
CAPACITY = "osd_mclock_max_capacity_iops_hdd"
VIOLATED = "CephQosReservationViolated"


@pytest.fixture(scope="module")
def disks(labs: LabPool) -> Iterator[Watched]:
    yield from watched(labs, lab_spec("disks", rotational=True))


@pytest.fixture(scope="module")
def proven(labs: LabPool, disks: Watched) -> Watched:
    """Disks that were seen to deliver what their capacity says."""
    labs.call(_prove(disks))
    return disks


async def _prove(disks: Watched) -> None:
    """Set a capacity that the disks deliver, and not so little that an alert says it is too low.

    It is far more than the slow disk delivers later.
    """
    await disks.pool("size2", 2)
    await disks.config(CAPACITY, 1000)
    await disks.write("size2", 12)
    assert len(await disks.stack.query('osd:cephqos_media:info{media="hdd"}')) == 3
    most = await disks.number('max(osd:cephqos_delivered_ops:max1d{when="ever"})')
    assert most, "what the disks delivered is recorded"
    await disks.config(CAPACITY, round(most / 1.4))


async def test_a_slow_disk_is_named_and_no_other_also_when_it_ends_nothing_any_more(
    proven: Watched,
) -> None:
    begin = await proven.quiet()
    await proven.lab.faults.throttle(1, wiops=100)
    load = proven.write("size2", 40)
    try:
        alert = await proven.received(begin, alertname=VIOLATED, cause="device")
        slow, fast = [
            await proven.number(f'{PerOsdPlace.SECONDS}{{ceph_daemon="osd.{osd}",at="device"}}')
            for osd in (1, 0)
        ]
        await proven.lab.faults.throttle(1, wiops=1)
        await asyncio.sleep(14)  # longer than any rate of this clock looks back, and a hold
        stalled = await proven.number(
            'osd:cephqos_condition:bool{condition="store_stalled",ceph_daemon="osd.1"}'
        )
        said = proven.webhook.since(begin)
    finally:
        await proven.lab.faults.throttle(1)
    await load
    assert alert.receiver == "critical"
    assert alert.has(ceph_daemon="osd.1", class_="client")
    assert slow is not None and fast is not None and slow > 3 * fast, "the device proves it"
    assert stalled == 1
    assert [dict(a.labels) for a in said if a.accuses_another_than("osd.1")] == []
    told = [(round(a.time - begin), a.status, dict(a.said)) for a in said]
    clients = [a for a in said if a.labels["alertname"] == VIOLATED and a.has(class_="client")]
    assert clients[-1].status == "firing", told
