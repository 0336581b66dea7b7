"""What a daemon says or is called costs its own samples, never the page of the others."""

import gc
import json
import os
import re
import socket
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families
from tests.recorded import RECORDINGS
from tests.replay.daemons import Fault, RecordedDaemon, ReplayedDaemon, ReplayedHost

from cephqos_exporter import labels
from cephqos_exporter.app import build_scraper
from cephqos_exporter.ceph.discovery import find_sockets
from cephqos_exporter.ceph.pids import process_start
from cephqos_exporter.ceph.replies import decode_reply
from cephqos_exporter.cli import read_settings
from cephqos_exporter.daemon import Command, Daemon, DaemonView, Host
from cephqos_exporter.daemon_errors import Malformed
from cephqos_exporter.families import Family
from cephqos_exporter.scrape import validity
from cephqos_exporter.scrape.scraper import Scraper
from cephqos_exporter.sysfs import read_text

from .scraping import FSID, REPLIES, StatusCollector, names, scraping, text, up

GOOD = RecordedDaemon.load(RECORDINGS / "reef/load")


@asynccontextmanager
async def hosting(
    tmp_path: Path, *bad: RecordedDaemon, **flags: str
) -> AsyncIterator[tuple[Scraper, ReplayedHost]]:
    """Daemons with these replies, and last a good one."""
    host = ReplayedHost(tmp_path)
    for recording in (*bad, GOOD):
        host.add(recording)
    settings = {"discovery.sockets": str(tmp_path), "web.disable-exporter-metrics": "1"} | {
        name.replace("__", ".").replace("_", "-"): value for name, value in flags.items()
    }
    scraper = build_scraper(read_settings(settings, {}))
    async with host:
        try:
            yield scraper, host
        finally:
            await scraper.close()


def changed(**replies: object) -> RecordedDaemon:
    encoded = {
        name.replace("_", " "): value if isinstance(value, bytes) else json.dumps(value).encode()
        for name, value in replies.items()
    }
    return RecordedDaemon(GOOD.replies | encoded)


async def page_of(scraper: Scraper) -> str:
    """The page, which both formats' parsers can read."""
    page = await scraper.page(10)
    openmetrics = page.body(openmetrics=True).decode()
    assert list(openmetrics_parser.text_string_to_metric_families(openmetrics))  # type: ignore[no-untyped-call]
    came = page.body(openmetrics=False).decode()
    series = [
        (sample.name, tuple(sample.labels.items()))
        for family in text_string_to_metric_families(came)
        for sample in family.samples
    ]
    assert len(set(series)) == len(series)
    return came


def failed(page: str, osd: str = "osd.0") -> list[str]:
    """The collectors that failed, but for those that need a process, which no replayed one has."""
    found = re.findall(
        rf'^cephqos_collector_success{{.*"{osd}".*collector="(\w+)"}} 0$', page, re.M
    )
    return [name for name in found if name not in ("threads", "disks", "placement", "cgroup")]


def logger(
    name: str, counter: str, description: object = "", labels: object = None
) -> dict[str, object]:
    about = {"type": 10, "priority": 8, "description": description}
    return {
        "counter_schema": {name: [{"labels": labels or {}, "counters": {counter: about}}]},
        "counter_dump": {name: [{"labels": labels or {}, "counters": {counter: 5}}]},
    }


@pytest.mark.parametrize(
    "name", ["a\nb", 'a"b', "a b", "a@b", "aéb", "librbd-1-pool-my@image", "a{", "a\ud800"]
)
async def test_odd_names_of_loggers_and_counters_are_made_valid(tmp_path: Path, name: str) -> None:
    async with hosting(tmp_path, changed(**logger(name, "x")), changed(**logger("x", name))) as (
        scraper,
        _,
    ):
        page = await page_of(scraper)
    assert names(page, "cephqos_daemon_up") == ["osd.0", "osd.1", "osd.2"]
    if name.isprintable():
        assert len(re.findall(r"^ceph_\w+{[^}]*} 5$", page, re.M)) == 2


@pytest.mark.parametrize("label", ["ceph_daemon", "", "1st", "a b", "__name__", "é"])
async def test_labels_that_no_page_can_have_fail_that_daemons_collector(
    tmp_path: Path, label: str
) -> None:
    async with hosting(tmp_path, changed(**logger("x", "y", labels={label: "v"}))) as (scraper, _):
        page = await page_of(scraper)
    assert failed(page)[0] == "perf"
    assert not failed(page, "osd.1")
    assert re.search(
        r'^cephqos_daemon_samples_left_out{ceph_daemon="osd.0",.*reason="invalid"} 1$', page, re.M
    )


@pytest.mark.parametrize("value", ["\0", "a\0b", "\0\0"])
async def test_a_label_with_a_zero_byte_costs_its_own_series_at_every_scrape(
    tmp_path: Path, value: str
) -> None:
    bad = changed(**logger("x", "y", labels={"a": value}))
    async with hosting(tmp_path, bad) as (scraper, _):
        for _ in range(5):
            page = await page_of(scraper)
            assert "\0" not in page
            assert failed(page)[0] == "perf"
            assert not failed(page, "osd.1")


@pytest.mark.parametrize("description", [7, None, ["x"], {"a": {}}, "x" * 100_000, "\0"])
async def test_a_description_that_is_no_text_is_replaced(
    tmp_path: Path, description: object
) -> None:
    async with hosting(tmp_path, changed(**logger("x", "y", description))) as (scraper, _):
        page = await page_of(scraper)
    assert 'ceph_x_y{ceph_daemon="osd.0"' in page
    assert max(map(len, page.splitlines())) < 2100
    assert "\0" not in page


@pytest.mark.parametrize("deep", [65, 1010, 100_000])
@pytest.mark.parametrize("command", ["config_show", "counter_dump", "dump_op_pq_state", "status"])
async def test_deeply_nested_replies_cost_what_needs_them(
    tmp_path: Path, deep: int, command: str
) -> None:
    for opening, closing in ((b'{"a":', b"}"), (b"[", b"]"), (b'["]",', b',"["]')):
        nested = opening * deep + b"1" + closing * deep
        if deep > 1024:
            with pytest.raises(Malformed):
                decode_reply(nested)
        name = f"{command}-{len(opening)}"
        async with hosting(tmp_path / name, changed(**{command: nested})) as (scraper, _):
            page = await page_of(scraper)
            assert names(page, "cephqos_daemon_up") == ["osd.0", "osd.1"]
            assert not failed(page, "osd.1")


def test_brackets_in_texts_are_no_nesting() -> None:
    assert decode_reply(json.dumps(["[{" * 500, "\\" * 99 + '"[' * 200]).encode())


async def test_a_socket_whose_name_is_no_text_is_one_more_daemon(tmp_path: Path) -> None:
    host = ReplayedHost(tmp_path)
    host.add(RecordedDaemon(REPLIES))
    odd = ReplayedDaemon(tmp_path / os.fsdecode(b"ceph-osd.\xff.asok"), RecordedDaemon(REPLIES))
    host.daemons.append(odd)
    async with scraping(host, [StatusCollector()]) as scraper:
        page = await text(scraper)
        assert up(page) == ["osd.0", "osd.\N{REPLACEMENT CHARACTER}"]
        odd.stop(unlink=False)
        assert up(await text(scraper)) == ["osd.0"]


@pytest.mark.parametrize("fsid", ["x" * (1 << 20), "a\nb", "\ud800", 'a"', 7, None, [], "00000000"])
async def test_a_cluster_that_is_no_fsid_makes_no_label(tmp_path: Path, fsid: object) -> None:
    bad = changed(config_get={"fsid": fsid}, status={"cluster_fsid": fsid})
    async with hosting(tmp_path, bad) as (scraper, _):
        page = await page_of(scraper)
    assert len(page) < 200_000
    reason = "too_large" if isinstance(fsid, str) and len(fsid) > 1000 else "malformed"
    assert re.search(rf'^cephqos_daemon_up{{.*"osd.0",.*reason="{reason}"}} 0$', page, re.M)
    assert names(page, "cephqos_daemon_up") == ["osd.1"]


@pytest.mark.parametrize(
    "body", [b"[" + b"{}," * (10 << 20) + b"{}]", b"[" + b"1," * (15 << 20) + b"1]"]
)
async def test_a_reply_of_many_values_is_refused_before_it_becomes_objects(
    tmp_path: Path, body: bytes
) -> None:
    every = {prefix: body for prefix in GOOD.replies if prefix not in ("config get", "status")}
    async with hosting(tmp_path, RecordedDaemon(GOOD.replies | every)) as (scraper, _):
        await page_of(scraper)
        tracemalloc.start()
        try:
            page = await page_of(scraper)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 200e6
    assert not failed(page, "osd.1")
    assert "perf" in failed(page)


def made_new(number: int) -> RecordedDaemon:
    """Valid replies with names that have not been there before."""
    odd = [f"{number}-{i}-" + "x" * 300 for i in range(200)]
    queue = next(iter(json.loads(GOOD.replies["dump_op_pq_state"]).values()))
    about = {"type": 10, "priority": 8, "description": ""}
    sets = [{"labels": {"a": name}} for name in odd]
    scrubs = [
        {"labels": {"level": name, "pooltype": "replicated"}, "counters": counters}
        for name in odd
        for counters in [
            dict.fromkeys(("write_blocked_by_scrub", "preemptions", "chunk_selected"), 1)
        ]
    ]
    counters = json.loads(GOOD.replies["counter dump"])
    schema = json.loads(GOOD.replies["counter schema"])
    return changed(
        dump_op_pq_state={f"OSD:{name}": queue for name in odd},
        counter_dump=counters
        | {"x": [one | {"counters": {"y": 1}} for one in sets], "osd_scrub_sh_repl": scrubs},
        counter_schema=schema | {"x": [one | {"counters": {"y": about}} for one in sets]},
    )


async def test_a_daemon_with_new_names_at_each_scrape_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "VALID_BYTES_AT_MOST", 1 << 20)
    monkeypatch.setattr(labels.Labels.__init__, "__defaults__", (1 << 19,))
    sizes, shown = [], []
    async with hosting(tmp_path, made_new(0)) as (scraper, host):
        tracemalloc.start()
        try:
            for number in range(18):
                host.daemons[0].recording = made_new(number)
                page = (await scraper.page(10)).body(openmetrics=False).decode()
                shown.append(page.count(f"{number}-199-x"))
                assert not failed(page, "osd.1")
                gc.collect()  # seldom by itself where many tests ran before
                sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    # A counter once, after the schema was asked for again; a new level of scrubs is no label.
    assert shown == [1, 0] * 9
    assert sizes[-1] - sizes[7] < 4e6, "ten scrapes with 1 MB of new labels each"


async def test_names_of_objects_that_are_no_text_cost_nothing(tmp_path: Path) -> None:
    """RADOS takes any bytes; Ceph puts them into descriptions of operations as they are."""
    ops = json.loads(GOOD.replies["ops"])
    ops["ops"] = [json.loads(GOOD.replies["dump_historic_ops"])["ops"][0] | {"age": 7.5}]
    bad = json.dumps(ops).encode().replace(b"osd_op(", b"osd_op(\xff\xc3\x28")
    assert b"\xff" in bad
    counters = json.loads(GOOD.replies["counter dump"])
    counters["osd"][0]["counters"]["op_wip"] = 1
    daemon = changed(ops=bad, counter_dump=counters)
    async with hosting(tmp_path, daemon) as (scraper, _):
        for _ in range(3):
            page = await page_of(scraper)
    assert re.search(r'^cephqos_ops_oldest_age_seconds{ceph_daemon="osd.0",.*} 7.5$', page, re.M)
    assert not failed(page)


@pytest.mark.parametrize("body", [b'{"a":"\xff"', b"\xff\xfe{}", b'["\xff",NaN]', b"\xff" * 99])
def test_what_is_no_text_and_no_json_is_neither(body: bytes) -> None:
    with pytest.raises(Malformed):
        decode_reply(body)


class ManySeries(StatusCollector):
    name = "many"

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        return [Command("status")]

    def collect(self, view: DaemonView) -> Iterable[Family]:
        family = Family("cephqos_test_many", "gauge", "As many as the reply says.")
        for i in range(view.reply("status")["num_pgs"]):
            family.add(type(view.labels)(f'{view.labels},n="{i}"'), i)
        return [family]


async def test_the_series_of_one_daemon_are_bounded_and_it_shows(tmp_path: Path) -> None:
    host = ReplayedHost(tmp_path)
    for pgs in (9, 101):
        host.add(RecordedDaemon(REPLIES | {"status": json.dumps({"num_pgs": pgs}).encode()}))
    async with scraping(host, [ManySeries(), StatusCollector()], max_series=100) as scraper:
        page = await text(scraper)
    assert page.count("cephqos_test_many{") == 9
    assert len(names(page, "cephqos_test_pgs", r"\d+")) == 2
    assert failed(page, "osd.1") == ["many"]
    labels = f'ceph_daemon="osd.1",cluster="{FSID}",reason="limit"'
    assert f"cephqos_daemon_samples_left_out{{{labels}}} 101\n" in page


async def test_one_absurd_reply_is_not_remembered(tmp_path: Path) -> None:
    """Infinite work, and a schema that describes other counters than there are."""
    huge = GOOD.replies["counter dump"].replace(b'"op_w":', b'"op_w": 1.5e308, "x":')
    huge = huge.replace(b'"op_r":', b'"op_r": 1.5e308, "y":')
    schema = json.loads(GOOD.replies["counter schema"])
    schema["osd"][0]["counters"]["not_there"] = schema["osd"][0]["counters"]["op"]
    async with hosting(tmp_path, GOOD) as (scraper, host):
        for _ in range(3):
            whole = await page_of(scraper)
        assert not failed(whole)
        daemon = host.daemons[0]
        for bad in (changed(counter_dump=huge), changed(counter_schema=schema)):
            daemon.recording = bad
            daemon.stop()
            daemon.start()
            page = ""
            for _ in range(3):
                page = await page_of(scraper)
                assert "NaN" not in page and "Inf " not in page
            daemon.recording = GOOD
            collectors = scraper._tracked[next(iter(scraper._tracked))]._collectors
            collectors._retry_at.clear()  # half a minute passes
            for _ in range(3):
                page = await page_of(scraper)
            assert not failed(page)
            assert page.count('"osd.0"') >= whole.count('"osd.0"')


async def test_a_dead_daemons_number_is_nobody_elses(tmp_path: Path) -> None:
    """Its socket is left behind, and its pid goes on with another process: here, this one."""
    async with hosting(tmp_path) as (scraper, host):
        await page_of(scraper)
        host.daemons[0].stop(unlink=False)
        rounds = next(iter(scraper._tracked.values()))
        assert rounds._fetcher.daemon is not None
        rounds._fetcher.daemon = replace(rounds._fetcher.daemon, pid=os.getpid())
        page = await page_of(scraper)
    assert "cephqos_threads_" not in page
    assert 'collector="threads"} 0' in page
    assert 'reason="refused"} 0' in page


@pytest.mark.parametrize("lives", [True, False])
async def test_a_hung_daemon_whose_process_is_another_shows_nothing_of_that(
    tmp_path: Path, lives: bool
) -> None:
    """It hung, was killed, and its number is another's before the probe has seen it."""
    async with hosting(tmp_path) as (scraper, host):
        await page_of(scraper)
        host.daemons[0].fault = Fault.HANG
        rounds = next(iter(scraper._tracked.values()))
        rounds._fetcher._silent = True
        assert rounds._fetcher.daemon is not None
        start = process_start(Host(), os.getpid())
        assert start is not None
        changes: dict[str, Any] = {"pid": os.getpid(), "start": start - (not lives)}
        rounds._fetcher.daemon = replace(rounds._fetcher.daemon, **changes)
        page = await page_of(scraper)
    assert ("cephqos_threads_wait_seconds_total{" in page) == lives
    assert f'collector="threads"}} {int(lives)}' in page
    assert 'reason="timeout"} 0' in page


def test_a_link_to_a_socket_does_not_rename_its_daemon(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "ceph-osd.7.asok"))
        for name in ("ceph-osd.0.asok", "ceph-osd.9.asok"):
            (tmp_path / name).symlink_to("ceph-osd.7.asok")
        (tmp_path / "ceph-osd.1.asok").symlink_to("ceph-osd.1.asok")
        (tmp_path / "ceph-osd.2.asok").symlink_to("nowhere")
        found = find_sockets([str(tmp_path)], ("osd",))
    assert [one.id for one in found] == ["7"]


def test_a_file_that_is_none_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "whoami")
    assert read_text(tmp_path / "whoami") is None
    assert read_text(Path("/dev/zero")) is None
    assert read_text(tmp_path) is None
    assert read_text(Path("/proc/self/comm"))
