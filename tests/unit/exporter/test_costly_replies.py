"""What a daemon says is read in little time, whatever it is: one thread reads for all of them."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedHost

from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.replies import decode_reply
from cephqos_exporter.daemon_errors import Malformed
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.tags import QueueDump, read_queue_dump
from cephqos_exporter.qos.waits import SampledOperations, completed, in_progress
from cephqos_exporter.scrape import fetch
from cephqos_exporter.scrape.validity import valid_name

from .scraping import REPLIES, StatusCollector, scraping, text, up

MIB = 1 << 20


def queue_dump(clients: str) -> QueueDump:
    body = {"mClockClients": {"clients": clients}, "queue_sizes": {}}
    return read_queue_dump({"OSD:ShardedOpWQ:0": body})


def descriptions(found: Sequence[SampledOperations]) -> int:
    return sum(len(it.descriptions) for it in found)


def operation(name: str, event: str = "started") -> dict[str, object]:
    description = f"osd_op(client.4143.0:458 3.3 3:c2cabe05:::{name}:head [write 0~8192])"
    return {"description": description, "age": 1, "type_data": {"events": [{"event": event}]}}


def history(events: int) -> dict[str, object]:
    """A completed operation with that many events."""
    event = {"event": "waiting for subops from 1", "time": "2026-11-21T02:57:38.000000+0000"}
    return {
        "description": "osd_op(x)",
        "duration": 1,
        "type_data": {"events": [event] * events},
    }


@pytest.mark.parametrize(
    ("read", "found"),
    [
        # Each of them took between four seconds and minutes. What is found shows that it was read.
        (lambda: len(str(decode_reply(b'"' + b"]" * (8 * MIB) + b'"'))), 8 * MIB),
        (
            lambda: len(str(decode_reply(b'"' + b"[" * 200 + b"a" * (8 * MIB) + b'"'))),
            8 * MIB + 200,
        ),
        (
            lambda: queue_dump("record:{ ClientRec:: client:{ class_id:1" * 2500).shards[0].whole,
            False,
        ),
        (
            lambda: (
                queue_dump("record:{ ClientRec:: client:{ class_id:" + "1" * 100_000)
                .shards[0]
                .whole
            ),
            False,
        ),
        (
            lambda: descriptions(in_progress([operation("(" * 2048)] * 512, 1.0, NotUnderstood())),
            512,
        ),
        (lambda: descriptions(in_progress([operation("(" * 100_000)], 1.0, NotUnderstood())), 1),
        (lambda: len(completed([history(20)] * 20_000, NotUnderstood())), 20_000),
        (lambda: len(completed([history(100_000)], NotUnderstood())), 1),
        (lambda: {valid_name("é" * MIB).strip("_") for _ in range(50)}, {""}),
    ],
    ids=[
        "brackets",
        "a bracket",
        "records",
        "a class",
        "objects",
        "an object",
        "a long record",
        "events",
        "names",
    ],
)
def test_texts_that_were_made_to_be_slow_to_read_are_read_in_time(
    read: Callable[[], object], found: object
) -> None:
    began = time.thread_time()
    assert read() == found
    assert time.thread_time() - began < 2


def test_replies_of_brackets_alone_are_refused() -> None:
    with pytest.raises(Malformed, match="depth"):
        decode_reply(b"[" * 1025 + b"]" * 1025)
    with pytest.raises(Malformed):
        decode_reply(b"[" + b"]" * (2 * MIB))
    with pytest.raises(Malformed):
        decode_reply(b'"]' * (2 * MIB))


def test_more_osds_than_have_replicas_are_not_waited_for() -> None:
    waiting = {
        "description": "osd_op(x)",
        "age": 1,
        "type_data": {
            "events": [
                {"event": "waiting for subops from " + "1," * MIB},
                {"event": "op_commit"},
            ]
        },
    }
    (sampled,) = in_progress([waiting], 1.0, NotUnderstood())
    assert len(sampled.spent[0][0].peers) <= 51


async def test_who_a_daemon_is_takes_few_bytes(tmp_path: Path) -> None:
    """It is asked at each scrape until it has told: 32 MiB of it would be read each time."""
    host = ReplayedHost(tmp_path)
    host.add(RecordedDaemon(REPLIES | {"config get": REPLIES["config get"] + b" " * 70_000}))
    host.add(RecordedDaemon(REPLIES))
    async with scraping(host, [StatusCollector()]) as scraper:
        page = await text(scraper)
    assert 'reason="too_large"} 0' in page
    assert up(page) == ["osd.1"]


async def test_what_a_daemon_that_hung_answers_to_a_probe_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only of the replies of a scrape it is known what to read them costs."""
    read: list[bytes | bytearray] = []

    def reading(body: bytes | bytearray) -> object:
        read.append(body)
        return decode_reply(body)

    monkeypatch.setattr(asok, "decode_reply", reading)
    monkeypatch.setattr(fetch, "PROBE_PATIENCE_SECONDS", 0.7)
    host = ReplayedHost(tmp_path)
    daemon = host.add(RecordedDaemon(REPLIES))
    async with scraping(host, [StatusCollector()]) as scraper:
        assert up(await text(scraper)) == ["osd.0"]
        daemon.fault = Fault.HANG
        assert not up(await text(scraper, 0.2))
        daemon.fault = Fault.NONE
        async with asyncio.timeout(10):
            while not up(await text(scraper)):
                await asyncio.sleep(0.05)
    assert REPLIES["version"] not in read
