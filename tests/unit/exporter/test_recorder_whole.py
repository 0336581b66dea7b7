"""The recorder as a whole, and what triggers it."""

import asyncio
import gzip
import threading
from pathlib import Path

import pytest
from tests.waiting import until

from cephqos_exporter.config import Settings
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels
from cephqos_exporter.recorder import options
from cephqos_exporter.recorder.recorder import Recorder
from cephqos_exporter.recorder.ring import Ring, Stamp
from cephqos_exporter.recorder.triggers import SLOW_OPERATIONS, Triggers
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render
from cephqos_loadgen.recorder.pages import pages_of

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
