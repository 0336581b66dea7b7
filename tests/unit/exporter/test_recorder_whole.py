"""The recorder as a whole, and what triggers it."""

import asyncio
import contextlib
import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from cephqos_exporter.config import Settings
from cephqos_exporter.daemon import Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.flight_recorder import options
from cephqos_exporter.flight_recorder.operations import OPERATIONS_HEAD, Operations
from cephqos_exporter.flight_recorder.recorder import Recorder
from cephqos_exporter.flight_recorder.ring import Ring, Stamp
from cephqos_exporter.flight_recorder.triggers import SLOW_OPERATIONS, Triggers
from cephqos_exporter.labels import LabelText, render_labels
from cephqos_exporter.not_understood import MISREAD
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render
from cephqos_loadgen.recorded_pieces.pages import pages_of

from .test_recorder import ALERT


def page(up: str, slow: float, reason: str = "", cluster: str = "c") -> Page:
    labels = {"ceph_daemon": "osd.3", "cluster": cluster}
    daemon = Family("cephqos_daemon_up", "gauge", "Up.")
    daemon.add(render_labels({**labels, "reason": reason}), float(up))
    ops = Family("cephqos_ops_slow_total", "counter", "Slow.")
    ops.add(render_labels(labels), slow)
    found = Page()
    found.add(render([daemon, ops]))
    return found


def test_a_daemon_that_stops_answering_is_one_reason_each_time() -> None:
    triggers = Triggers()
    looks = [("0", "timeout"), ("1", ""), ("0", "timeout"), *[("0", "closed")] * 3, ("1", "")]
    looks += [("0", "timeout")] * 2 + [("1", "")] + [("0", "refused")] * 3
    found = [triggers.look(page(up, 0, why), at) for at, (up, why) in enumerate(looks)]
    names = [(at, it.name) for at, reasons in enumerate(found) for it in reasons]
    assert names == [(at, "a daemon does not answer: osd.3") for at in (3, 8)]


def test_a_name_with_an_odd_line_end_costs_no_scrape() -> None:
    triggers = Triggers()
    assert not triggers.look(page("1", 0, cluster="one\x85two\u2028"), 1.0)


def test_slow_operations_that_jump_are_a_reason_and_those_that_drip_are_not() -> None:
    triggers = Triggers()
    drip = [triggers.look(page("1", n), n * 10.0) for n in range(60)]
    assert not any(drip)
    (reason,) = triggers.look(page("1", 59 + SLOW_OPERATIONS), 601.0)
    assert reason.name == "many slow operations: osd.3" and reason.local
    assert not triggers.look(page("1", 59 + SLOW_OPERATIONS), 602.0)
    assert not triggers.look(page("1", 0), 603.0), "the OSD was restarted"


def test_a_clock_that_is_set_back_makes_no_jump_of_what_drips() -> None:
    triggers = Triggers()
    looks = [triggers.look(page("1", n), 1e6 if n == 0 else n * 61.0) for n in range(30)]
    assert not any(looks)


# -- operations --------------------------------------------------------------------------------


def operation(number: int, seconds: float, key: str, *events: str) -> dict[str, Any]:
    """As Ceph writes it."""
    steps = [
        {"time": f"2026-11-25T03:00:0{at}.000000+0000", "event": it} for at, it in enumerate(events)
    ]
    return {
        "description": f"osd_op(client.4128.0:{number} 2.1 2:8253546a:::rbd_data.17af.0{number}"
        ":head [write 0~4096] snapc 0=[] ondisk+write e20)",
        "initiated_at": "2026-11-25T03:00:00.000000+0000",
        key: seconds,
        "type_data": {"events": steps},
    }


def view(daemon: Daemon, **replies: object) -> DaemonView:
    host = Host(*[Path("/none")] * 3)
    return DaemonView(daemon, LabelText(""), replies, {}, 0.0, host)


def taken(found: Operations) -> list[tuple[str, float, bool]]:
    text = found.take().decode().removeprefix(OPERATIONS_HEAD)
    return [(it["ceph_daemon"], it["seconds"], it["finished"]) for it in json.loads(text or "[]")]


def test_the_slowest_operations_since_the_last_page_are_few_and_each_is_new() -> None:
    found, osd = Operations(), Daemon("osd", "3", "c1", Path("/run/a.asok"))
    record = [operation(n, 30.0 + n, "duration", "initiated", "done") for n in range(4)]
    found.look(view(osd, dump_historic_slow_ops={"Ops": record}))
    assert taken(found) == [], "what the record has at first is old"
    record.append(operation(9, 11.0, "duration", "initiated", "done"))
    listed = {"ops": [operation(n, n / 10, "age", "initiated", "started") for n in range(20, 60)]}
    for _ in range(2):  # two rounds before the next page
        found.look(view(osd, dump_historic_slow_ops={"Ops": record}, ops=listed))
    found.look(view(Daemon("osd", "4", "c1", Path("/run/b.asok")), ops={"ops": []}))
    assert taken(found) == [("osd.3", 11.0, True), ("osd.3", 5.9, False), ("osd.3", 5.8, False)]
    found.look(view(osd, dump_historic_slow_ops={"Ops": record}))
    assert taken(found) == []


@pytest.mark.parametrize(
    "op",
    [{}, [], None, {"description": 1}, operation(1, 1.0, "age") | {"type_data": None},
     operation(1, 1.0, "age") | {"age": "x"}, operation(1, 1.0, "age") | {"initiated_at": []}],
)  # fmt: skip
def test_odd_operations_are_left_out(op: object) -> None:
    found = Operations()
    with contextlib.suppress(*MISREAD):  # as the scrape does
        found.look(view(Daemon("osd", "3", "c1", Path("/x")), ops={"ops": [op]}))
    assert taken(found) == []


# -- all of it -----------------------------------------------------------------------------------


def settings(folder: Path) -> Settings:
    return Settings().given({options.MINUTES.name: 10.0, options.PATH.name: str(folder)})


async def recorded(recorder: Recorder, number: int) -> None:
    async def so_many() -> bool:
        values = {it.name: it.samples for it in recorder.families()}
        return values["cephqos_recorder_pages_total"][0][2] == number

    await until(so_many, f"{number} pages", 10)


async def test_pages_are_recorded_as_they_were_answered_and_kept_pieces_are_read_back(
    tmp_path: Path,
) -> None:
    recorder = Recorder(settings(tmp_path))
    recorder.start()
    first, second = page("1", 0), page("1", 1)
    body = first.body(openmetrics=True)
    recorder.take(Stamp(1000, 1000), first, gzip.compress(body), compressed=True)
    recorder.take(Stamp(1001, 1001), first, body, compressed=False)  # at the same time
    recorder.take(Stamp(2000, 2000), second, second.body(openmetrics=False), compressed=False)
    await recorded(recorder, 2)
    piece = await recorder.keep([ALERT])
    listing = await recorder.listing()
    (listed,) = listing["pieces"]
    assert listed["id"] == piece.id and listed["grows"]
    (name,) = listed["segments"]
    segment = await recorder.segment(piece.id, name)
    assert segment is not None
    texts = [it.text.encode() for it in pages_of(segment)]
    assert texts == [body, second.body(openmetrics=False)]
    assert await recorder.segment(piece.id, "x") is None
    await recorder.close()


async def test_what_the_exporter_sees_itself_is_kept(tmp_path: Path) -> None:
    recorder = Recorder(settings(tmp_path))
    recorder.start()
    for at, up in enumerate("1100"):
        shown = page(up, 0, "" if up == "1" else "timeout")
        recorder.take(Stamp(at * 1000, at * 1000), shown, b"", compressed=False)
    (piece,) = (await recorder.listing())["pieces"]
    assert [it["name"] for it in piece["reasons"]] == ["a daemon does not answer: osd.3"]
    await recorder.close()


async def test_two_exporters_do_not_record_into_one_folder(tmp_path: Path) -> None:
    first, second = Recorder(settings(tmp_path)), Recorder(settings(tmp_path))
    first.start()
    await first.keep([ALERT])
    second.start()
    second.take(Stamp(1000, 1000), page("1", 0), b"", compressed=False)
    with pytest.raises(OSError, match="another exporter records here"):
        await second.keep([ALERT])
    await first.close()
    assert len((await second.listing())["pieces"]) == 1, "it goes on where the first one ended"
    lost = next(it for it in second.families() if it.name == "cephqos_recorder_lost_total")
    assert lost.samples == [("", 'reason="disk"', 1)]
    await second.close()


async def test_one_that_never_started_is_closed_without_an_error(tmp_path: Path) -> None:
    """As when the exporter's address is taken: that is what its user has to read."""
    await Recorder(settings(tmp_path)).close()


async def test_a_folder_that_cannot_be_written_costs_the_recording_only(tmp_path: Path) -> None:
    (tmp_path / "ring").write_text("a file where a folder should be")
    recorder = Recorder(settings(tmp_path))
    recorder.start()
    recorder.take(Stamp(1000, 1000), page("1", 0), b"", compressed=False)
    await recorder.listing()
    lost = next(it for it in recorder.families() if it.name == "cephqos_recorder_lost_total")
    assert lost.samples == [("", 'reason="disk"', 1)]
    await recorder.close()


async def test_a_disk_that_hangs_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, held = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        hangs.set()
        held.wait(60)

    monkeypatch.setattr(Ring, "add", hang)
    recorder = Recorder(settings(tmp_path))
    recorder.start()
    recorder.take(Stamp(1, 1000), page("1", 0), b"", compressed=False)
    assert await asyncio.to_thread(hangs.wait, 60)  # nothing more leaves the queue
    for at in range(2, 52):
        recorder.take(Stamp(at * 1000, at * 1000), page("1", 0), b"", compressed=False)
    lost = next(it for it in recorder.families() if it.name == "cephqos_recorder_lost_total")
    assert lost.samples[0][1] == 'reason="busy"' and lost.samples[0][2] >= 40
    with pytest.raises(Exception, match="too slow"):
        await recorder.keep([ALERT])
    held.set()
