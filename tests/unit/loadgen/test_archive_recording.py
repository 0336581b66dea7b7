"""What is missing of the exporters' metrics is noticed, and one exporter does not cost another."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.fake_server import serving

from cephqos_base.servers import Address
from cephqos_loadgen.programs import free_ports
from cephqos_loadgen.results.findings import findings
from cephqos_loadgen.results.repeat import Gap, MetricsRecording
from cephqos_loadgen.run_recording import metrics
from cephqos_loadgen.run_recording.columns import read
from cephqos_loadgen.run_recording.daemon_watch import DaemonWatch
from cephqos_loadgen.run_recording.metrics import MetricsRecorder, labelled, too_much_missing
from cephqos_loadgen.run_recording.own_exporter import OwnExporter

PAGE = "# HELP a A.\n# TYPE a gauge\na 1\n"


class RecordingSource:
    """An exporter that can be told to hang, or to fail."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.status = 200
        self.page = PAGE
        self.asked: list[str | None] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("X-Prometheus-Scrape-Timeout-Seconds"))
        await self.go.wait()
        return web.Response(text=self.page, status=self.status)


@asynccontextmanager
async def served(source: RecordingSource) -> AsyncIterator[Address]:
    async with serving({"GET /metrics": source.answer}) as url:
        try:
            yield Address(f"{url}/metrics")
        finally:
            source.go.set()


@pytest.fixture
def events() -> list[tuple[str, dict[str, Any]]]:
    return []


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything a tenth as long."""
    for name in ("INTERVAL", "_TICK_SECONDS", "_GAP_SECONDS", "_TIMEOUT"):
        monkeypatch.setattr(metrics, name, getattr(metrics, name) / 10)


def noting(events: list[tuple[str, dict[str, Any]]]) -> Callable[..., None]:
    return lambda kind, **details: events.append((kind, details))


async def recorded(recorder: MetricsRecorder, seconds: float) -> None:
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.usefixtures("fast")
async def test_a_source_that_hangs_does_not_slow_the_others_and_its_gap_is_an_event(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    good, hung = RecordingSource(), RecordingSource()
    async with served(good) as first, served(hung) as second:
        sources = {"good": first, "hung": second}
        recorder = MetricsRecorder(sources, "f", tmp_path / "m.columns", noting(events))
        hung.go.clear()
        await recorded(recorder, 2.0)
        hung.go.set()
        await recorder.finish()
        recorder.close()
    series = read(tmp_path / "m.columns").series
    assert len(series["a"]) >= 12, "one sample per interval, for two seconds"
    summary = recorder.summary()
    assert set(summary.gaps) == {"hung"}
    assert sum(gap.seconds for gap in summary.gaps["hung"]) >= 1.5
    assert [details["source"] for kind, details in events if kind == "recording_gap"] == ["hung"]


@pytest.mark.usefixtures("fast")
async def test_equal_series_of_two_exporters_are_both_kept(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    one, two = RecordingSource(), RecordingSource()
    async with served(one) as first, served(two) as second:
        sources = {"one": first, "two": second}
        recorder = MetricsRecorder(sources, "f", tmp_path / "m.columns", noting(events))
        await recorded(recorder, 0.5)
        recorder.close()
    series = read(tmp_path / "m.columns").series
    assert {len(name.split("exporter=")) for name in series} == {1, 2}
    assert len(series) == 2
    assert events == []


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("page", ["<html>\nlog in, please\n</html>\n", "<p>\n", "a b c\n"])
async def test_a_page_that_is_none_is_missing_metrics_and_ends_nothing(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]], page: str
) -> None:
    """As of a proxy whose server went away in the middle of a run."""
    good, odd = RecordingSource(), RecordingSource()
    async with served(good) as first, served(odd) as second:
        recorder = MetricsRecorder(
            {"good": first, "odd": second}, "f", tmp_path / "m.columns", noting(events)
        )
        odd.page = page
        await recorded(recorder, 1.0)
        odd.page = PAGE
        await recorder.finish()
        recorder.close()
    assert len(read(tmp_path / "m.columns").series["a"]) >= 6
    summary = recorder.summary()
    assert summary.failures["good"] == 0
    assert summary.failures["odd"] >= 6
    assert summary.last_error.startswith("odd: this is no page of metrics")
    assert "odd" in summary.gaps
    assert_only_late(events, "good")


def assert_only_late(events: list[tuple[str, dict[str, Any]]], source: str) -> None:
    """On a busy machine an answer may come late. Nothing else may happen to this source."""
    reasons = {gap["reason"] for _, gap in events if gap["source"] == source}
    assert reasons <= {"its answer came late"}


def daemons(**up: str) -> dict[str, float]:
    """What a page says of osd_0, osd_1 …: `up`, or why not."""
    page = {}
    for name, why in up.items():
        reason = "" if why == "up" else why
        labels = f'ceph_daemon="{name.replace("_", ".")}",cluster="f",reason="{reason}"'
        page[f"cephqos_daemon_up{{{labels}}}"] = float(why == "up")
    return page


def test_an_osd_that_does_not_answer_its_exporter_leaves_a_gap_and_one_that_ended_does_not(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    """As while it benchmarks its store: 6 to 8 seconds without any of its series."""
    watch = DaemonWatch(noting(events))
    watch.look(daemons(osd_0="up", osd_1="up", osd_2="up"), 0.0, 2.5)
    for second in range(1, 7):
        watch.look(daemons(osd_0="timeout", osd_1="refused", osd_2="up"), second, 2.5)
    watch.look(daemons(osd_0="up", osd_1="up", osd_2="timeout"), 7.0, 2.5)
    watch.look(daemons(osd_0="up", osd_1="up", osd_2="up"), 8.0, 2.5)
    assert watch.gaps == {"osd.0": [Gap(0.0, 7.0, "timeout")]}
    watch.look(daemons(osd_0="up", osd_1="closed", osd_2="up"), 9.0, 2.5)
    watch.finish(20.0, 2.5)
    assert watch.gaps["osd.1"] == [Gap(8.0, 12.0, "closed")]
    assert [(details["source"], details["reason"]) for _, details in events] == [
        ("osd.0", "timeout"),
        ("osd.1", "closed"),
    ]


def test_an_osd_that_hangs_and_then_dies_keeps_its_gap(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    watch = DaemonWatch(noting(events))
    watch.look(daemons(osd_0="up"), 0.0, 2.5)
    for second in range(1, 7):
        watch.look(daemons(osd_0="timeout"), second, 2.5)
    for second in range(7, 10):
        watch.look(daemons(osd_0="refused"), second, 2.5)
    watch.look(daemons(osd_0="up"), 10.0, 2.5)
    watch.finish(20.0, 2.5)
    assert watch.gaps == {"osd.0": [Gap(0.0, 7.0, "timeout")]}
    assert [details["source"] for _, details in events] == ["osd.0"]


@pytest.mark.usefixtures("fast")
async def test_what_an_exporter_says_of_an_osd_is_in_the_summary(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    def page(**up: str) -> str:
        return "".join(f"{series} {value:g}\n" for series, value in daemons(**up).items())

    source = RecordingSource()
    async with served(source) as address:
        recorder = MetricsRecorder(
            {"exporter": address}, "f", tmp_path / "m.columns", noting(events)
        )
        for up, seconds in (("up", 0.3), ("timeout", 0.8), ("up", 0.3)):
            source.page = page(osd_0=up, osd_1="up")
            await recorded(recorder, seconds)
        await recorder.finish()
        recorder.close()
    summary = recorder.summary()
    assert set(summary.daemon_gaps) == {"osd.0"}
    assert summary.gaps == {}
    assert set(source.asked) == {"3"}, "or the exporter would wait for an OSD that hangs"
    assert [details["source"] for _, details in events] == ["osd.0"]


@pytest.mark.parametrize(("missing", "failed"), [(16.0, True), (14.0, False)])
def test_an_osd_without_metrics_for_most_of_a_repeat_fails_it(missing: float, failed: bool) -> None:
    gaps = {"osd.1": (Gap(1.0, missing),)}
    recording = MetricsRecording(30, 100, {"exporter": 0}, "", {}, gaps, 30.0)
    said = "recording failed: osd.1 gave no metrics for 16 of 30 s (no answer)"
    assert too_much_missing(recording) == (said if failed else "")
    assert findings({}, {}, recording) == (
        f"recording: no metrics of osd.1 for {missing:.0f} s (1 gap)",
    )


@pytest.mark.usefixtures("fast")
async def test_why_an_exporter_gave_nothing_is_recorded_and_how_long_it_was_asked(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    late, broken = RecordingSource(), RecordingSource()
    async with served(late) as first, served(broken) as second:
        sources = {"late": first, "broken": second}
        recorder = MetricsRecorder(sources, "f", tmp_path / "m.columns", noting(events))
        await recorded(recorder, 0.3)
        late.go.clear()
        broken.status = 503
        asyncio.get_running_loop().call_later(0.4, late.go.set)
        await recorded(recorder, 1.0)
        await recorder.finish()
        recorder.close()
    summary = recorder.summary()
    assert {gap.reason for gap in summary.gaps["late"]} == {"its answer came late"}
    (why,) = {gap.reason for gap in summary.gaps["broken"]}
    assert "503" in why
    assert (summary.seconds or 0.0) >= 1.2
    assert any(line.endswith(f"s (1 gap: {why})") for line in findings({}, {}, summary))


class JumpingClock:
    """The clock of a host that is set back or forth while a run records."""

    def __init__(self) -> None:
        self.moved = 0.0

    def time(self) -> float:
        return time.time() + self.moved

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moved", [3600.0, -3600.0])
async def test_a_clock_that_is_set_makes_no_gap_and_hides_none(
    tmp_path: Path,
    events: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    moved: float,
) -> None:
    clock = JumpingClock()
    monkeypatch.setattr(metrics, "time", clock)
    good, hung = RecordingSource(), RecordingSource()
    async with served(good) as first, served(hung) as second:
        sources = {"good": first, "hung": second}
        recorder = MetricsRecorder(sources, "f", tmp_path / "m.columns", noting(events))
        await recorded(recorder, 0.3)
        hung.go.clear()
        clock.moved = moved
        asyncio.get_running_loop().call_later(1.0, hung.go.set)
        await recorded(recorder, 1.5)
        await recorder.finish()
        recorder.close()
    gaps = recorder.summary().gaps
    assert "hung" in gaps
    assert_only_late(events, "good")
    assert 0.5 < sum(gap.seconds for gap in gaps["hung"]) < 5


def of_clusters(*fsids: str) -> str:
    lines = [f'ceph_osd_op{{ceph_daemon="osd.0",cluster="{fsid}"}} {len(fsid)}' for fsid in fsids]
    return "\n".join([*lines, "node_disks 2", ""])


@pytest.mark.usefixtures("fast")
async def test_osds_of_another_cluster_on_the_same_host_are_not_recorded(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    """They have the same names: their operations would be added to those of the run's cluster."""
    source = RecordingSource()
    source.page = of_clusters("ours", "a-strangers")
    async with served(source) as address:
        sources = {"exporter.0": address}
        recorder = MetricsRecorder(sources, "ours", tmp_path / "m.columns", noting(events))
        await recorded(recorder, 0.4)
        recorder.close()
    found = read(tmp_path / "m.columns").series
    assert set(found) == {'ceph_osd_op{ceph_daemon="osd.0",cluster="ours"}', "node_disks"}


@pytest.mark.usefixtures("fast")
async def test_an_exporter_that_shows_another_cluster_in_mid_run_gives_no_metrics(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    """As where a lab ended, and another one's exporter got its port."""
    source = RecordingSource()
    source.page = of_clusters("ours")
    async with served(source) as address:
        sources = {"exporter.0": address}
        recorder = MetricsRecorder(sources, "ours", tmp_path / "m.columns", noting(events))
        await recorded(recorder, 0.4)
        source.page = of_clusters("a-strangers")
        await recorded(recorder, 0.8)
        await recorder.finish()
        recorder.close()
    summary = recorder.summary()
    assert summary.last_error == "exporter.0: it shows the cluster a-strangers, not ours"
    assert {gap.reason for gap in summary.gaps["exporter.0"]} == {
        "it shows the cluster a-strangers, not ours"
    }


@pytest.mark.usefixtures("fast")
async def test_an_exporter_that_was_restarted_is_a_finding_though_nothing_is_missing(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    source = RecordingSource()
    async with served(source) as address:
        sources = {"exporter.0": address}
        recorder = MetricsRecorder(sources, "f", tmp_path / "m.columns", noting(events))
        for started in (1.0, 2.0, 2.0):
            source.page = f"{PAGE}process_start_time_seconds {started}\n"
            await recorded(recorder, 0.3)
        source.page = PAGE  # of an exporter that does not say
        await recorded(recorder, 0.3)
        recorder.close()
    summary = recorder.summary()
    assert (summary.gaps, summary.restarts) == ({}, {"exporter.0": 1})
    assert [kind for kind, _ in events] == ["exporter_replaced"]
    assert findings({}, {}, summary) == (
        "recording: exporter.0 was restarted (1 time): what it counts itself began at zero again",
    )


def test_a_label_is_added_to_series_with_and_without_labels() -> None:
    assert labelled("a", "x") == 'a{exporter="x"}'
    assert labelled('a{b="c"}', "x") == 'a{b="c",exporter="x"}'


@pytest.mark.parametrize(
    ("missing", "seconds", "failed"), [(8.0, 32.0, False), (23.0, 32.0, True), (23.0, 900.0, False)]
)
def test_a_repeat_that_lacks_too_much_is_failed(
    missing: float, seconds: float, failed: bool
) -> None:
    gaps = {"exporter": (Gap(1.0, missing),)}
    recording = MetricsRecording(32, 100, {"exporter": 9}, "gone", gaps, seconds=seconds)
    said = too_much_missing(recording)
    assert bool(said) is failed
    if failed:
        assert said == "recording failed: exporter gave no metrics for 23 of 32 s (gone)"


SERVER = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"a 1\\n")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""


async def test_an_exporter_that_ends_is_started_again_on_the_same_port(
    tmp_path: Path, events: list[tuple[str, dict[str, Any]]]
) -> None:
    [port] = free_ports(1)
    command = [sys.executable, "-c", SERVER, str(port)]
    own = OwnExporter(command, f"http://127.0.0.1:{port}/", tmp_path, noting(events))
    async with own.running():
        first = own.pid
        assert first is not None
        # Not by SIGINT, which is ignored in whatever a shell has started in the background.
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(20):
            while own.pid in (None, first):
                await asyncio.sleep(0.1)
            while [kind for kind, _ in events] != ["exporter_ended", "exporter_restarted"]:
                await asyncio.sleep(0.1)
    assert own.pid is None, "it ends with the run"
