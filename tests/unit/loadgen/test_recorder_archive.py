"""Pieces of several exporters become one archive of the usual format, with names replaced on
request."""

import json
import re
import shutil
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording_exporters import cephqos, recording_exporter

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.servers import HttpServer, NoAnswer
from cephqos_loadgen.archive.reader import Archive, open_archive, problems
from cephqos_loadgen.recorded_pieces import cli, redact, slow_operations
from cephqos_loadgen.recorded_pieces.redact import Redaction
from cephqos_loadgen.report.runs import read_runs
from cephqos_loadgen.run_recording.columns import parse, render

START = 1_795_000_000.0
OSD = 'cephqos_daemon_up{{ceph_daemon="osd.{0}",cluster="c1",reason=""}}'
POOL = 'cephqos_recovery_pool_objects_total{cluster="c1",pool="customer-acme"}'


def the_archive(folder: Path) -> Archive:
    (path,) = folder.iterdir()
    found = open_archive(path)
    assert list(problems(found)) == []
    return found


async def test_what_two_hosts_have_kept_becomes_one_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        recording_exporter(tmp_path / "a") as a,
        recording_exporter(tmp_path / "b") as b,
    ):
        for at in range(0, 120, 15):
            await a.record(START + at, {OSD.format(0): 1.0, POOL: at, "up_total": at})
            await b.record(START + at + 7, {OSD.format(1): float(at < 60), "up_total": 2.0 * at})
        both = ("--exporter", a.address, "--exporter", b.address)
        assert await cephqos("record", "keep", *both, "--reason", "slow disk") == 0
        assert await cephqos("record", "ls", *both) == 0
        assert capsys.readouterr().out.count("slow disk") == 2
        assert await cephqos("record", "fetch", *both, "--to", str(tmp_path / "runs")) == 0
    found = the_archive(tmp_path / "runs")
    (repeat,) = found.repeats
    assert repeat.record.metrics.interval_seconds == 15
    assert found.manifest.start_unix_seconds == START
    series = repeat.metrics().series
    of_a, of_b = (address.removeprefix("http://") for address in (a.address, b.address))
    assert series[f'up_total{{instance="{of_a}"}}'] == [
        (START + at, float(at)) for at in range(0, 120, 15)
    ]
    assert series[f'up_total{{instance="{of_b}"}}'][1] == (START + 22, 30.0)
    assert [event["reason"] for event in repeat.events() if event["event"] == "kept"] == [
        "slow disk"
    ] * 2
    assert list(repeat.record.metrics.daemon_gaps) == ["osd.1"]
    assert await cephqos("archive", "show", str(found.folder)) == 0
    assert "recorded: 112.0 s" in capsys.readouterr().out
    (run,) = read_runs([found.folder])
    assert run.problems == ()


TENANT = (
    'cephqos_tenants_seconds_total{{ceph_daemon="osd.0",cluster="c1",kind="image",pool_id="3",'
    'tenant="{}",state="working"}}'
)
SQUARES = 'cephqos_tenants_squared_seconds_total{ceph_daemon="osd.0",cluster="c1",state="working"}'
ACCOUNT = 'cephqos_account_seconds_total{ceph_daemon="osd.0",cluster="c1",state="queue",by=""}'
POOLS = 'cephqos_cluster_pool_info{cluster="c1",pool_id="3",pool="rbd"}'


async def test_who_and_blame_answer_from_an_archive_about_any_time_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with recording_exporter(tmp_path / "a") as a, recording_exporter(tmp_path / "b") as b:
        for at in range(0, 615, 15):
            late = max(0, at - 540)  # seconds of the last minute
            shown = {TENANT.format("17af"): 3.0 * at, TENANT.format("02bc"): 1.0 * at + 8.0 * late}
            shown |= {SQUARES: 96.0 * at, ACCOUNT: 0.5 * at + 2.0 * late}
            await a.record(START + at, shown)
            await b.record(START + at, {POOLS: 1.0, **shown})  # the same OSD counts once
        both = ("--exporter", a.address, "--exporter", b.address)
        await cephqos("record", "keep", *both)
        assert await cephqos("record", "fetch", *both, "--to", str(tmp_path / "runs")) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    capsys.readouterr()
    past = ("--archive", str(folder), "--since", "1m")
    assert await cephqos("who", *past, "--at", str(START + 500)) == 0
    assert (
        "image rbd/17af has 75 % of the work (44–92 %, 10 samples, bursts"
        in capsys.readouterr().out
    )
    assert await cephqos("who", *past) == 0
    assert "osd.0   image rbd/02bc has 75 % of the work" in capsys.readouterr().out
    for at, seconds in ((500, "0.50"), (600, "2.50")):
        assert await cephqos("blame", *past, "--at", str(START + at)) == 0
        assert f"Clients wait {seconds} seconds per second." in capsys.readouterr().out
    assert await cephqos("blame", *past, "--against", "100s") == 0
    compared = "Clients wait 2.50 seconds per second. 1 min 40 s before: 0.50 (+2.00)."
    assert compared in capsys.readouterr().out
    assert await cephqos("report", str(folder), "--out", str(tmp_path / "report")) == 0
    (row,) = (tmp_path / "report" / "tables" / "tenants.csv").read_text().splitlines()[1:]
    assert "recorded,osd.0,image rbd/17af" in row
    with pytest.raises(UsageError, match="no figures of that time"):
        await cephqos("who", *past, "--at", str(START - 1000))


async def test_times_are_right_although_the_clock_was_set_while_it_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with recording_exporter(tmp_path / "a") as a:
        for at, wrong in enumerate((3600.0, 3600.0, -50.0, 0.0, 0.0)):
            await a.record(START + at, {"x_total": float(at)}, shown=START + at + wrong)
        await cephqos("record", "keep", "--exporter", a.address)
        await cephqos("record", "fetch", "--exporter", a.address, "--to", str(tmp_path / "runs"))
    (repeat,) = the_archive(tmp_path / "runs").repeats
    ((_, samples),) = repeat.metrics().series.items()
    assert samples == [(START + at, float(at)) for at in range(5)]
    assert any("was set by 3600 s" in finding for finding in repeat.record.findings)


async def test_names_are_replaced_and_the_same_ones_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    image = 'cephqos_made_up{image="db-of-acme",client="acme-vm",object="rbd_data.acme",op="read"}'
    async with recording_exporter(tmp_path / "a") as a:
        await a.record(START, {POOL: 1.0, image: 1.0, OSD.format(3): 1.0})
        await cephqos("record", "keep", "--exporter", a.address)
        for to in ("one", "two"):
            argv = ("--exporter", a.address, "--to", str(tmp_path / to), "--redact-hosts")
            assert await cephqos("record", "fetch", *argv) == 0
    archives = [the_archive(tmp_path / to) for to in ("one", "two")]
    first, second = (archive.repeats[0].metrics().series.keys() for archive in archives)
    assert set(first) == set(second), "the key is kept"
    text = "".join(
        path.read_bytes().decode(errors="replace")
        for path in archives[0].folder.rglob("*")
        if path.is_file()
    ) + "".join(first)
    assert "acme" not in text and "127.0.0.1" not in text
    labels = [parse(series)[1] for series in first]
    assert {it["op"] for it in labels if "op" in it} == {"read"}
    assert {it["ceph_daemon"] for it in labels if "ceph_daemon" in it} == {"osd.3"}
    assert all(re.fullmatch(r"host-[0-9a-f]{10}", it["instance"]) for it in labels)
    key = tmp_path / "state" / "cephqos" / "redact.key"
    assert key.stat().st_mode & 0o777 == 0o600


def test_of_a_page_only_names_are_replaced() -> None:
    """What may pass is a closed list. It has all that the exporter shows today."""
    redaction = Redaction(b"x" * 32, hosts=True)
    pages = Path("tests/golden").rglob("*.prom")
    shown = {
        line.rpartition(" ")[0]
        for page in pages
        for line in page.read_text().splitlines()
        if line and not line.startswith("#")
    }
    assert len(shown) > 2000
    replaced: dict[str, set[str]] = {}
    for series in shown:
        (name, before), (same, after) = parse(series), parse(redaction.series(series))
        assert name == same
        for label, value in before.items():
            if value != after[label]:
                replaced.setdefault(label, set()).add(value)
    names = {"application", "pool", "image", "client", "tenant", "bucket"}
    assert replaced.keys() <= names, f"write in _WORDS of redact.py, if no names: {replaced}"


# Letters that no word of Ceph, and no pseudonym, has in a row.
NAMES = st.text(alphabet="qzxjw", min_size=4, max_size=12).flatmap(
    lambda it: st.sampled_from([it, f"{it}-1", f"{it}.example.org", f"rbd_{it}", it.upper()])
)
PLACES = (
    "{0}", "mon.{0}", "mgr.{0}.abcdef", "mds.{0}", "client.{0}", "client.rgw.realm.{0}.x",
    "osd.{0}", "rgw.{0}", "the disk of {0} is slow", "timeout: {0}", "1{0}", "sda{0}", "{0} 1",
    "18.2.4-1{0}1", "osd_{0}", "/dev/mapper/{0}", "READ_{0}", "bluestore_{0}",
)  # fmt: skip
PLACED = st.tuples(st.sampled_from(PLACES), NAMES).map(lambda it: it[0].format(it[1]))
LABELS = st.sampled_from([
    *redact._ALLOWED, *redact._NUMBERS, "ceph_daemon", "cluster", "peer", "tenant", "device",
    "instance", "pool", "hostname", "anything",
])  # fmt: skip
METRICS = st.sampled_from([
    "cephqos_daemon_up", "cephqos_daemon_mempool_bytes", "ceph_osd_op", "cephqos_tenants_total",
])  # fmt: skip


def holds(text: str, placed: str) -> bool:
    names = re.findall(r"[qzxjw]{4,}", placed.lower())
    return any(name in text.lower() for name in names)


@given(METRICS, st.dictionaries(LABELS, PLACED, min_size=1, max_size=6))
def test_no_name_passes_in_any_label(metric: str, labels: dict[str, str]) -> None:
    redacted = Redaction(b"x" * 32, hosts=True).series(render(metric, labels))
    assert not any(holds(redacted, value) for value in labels.values()), redacted


@given(st.tuples(st.sampled_from(["ceph_librbd_{0}", "ceph_{0}_x", "{0}_total"]), NAMES))
def test_no_name_passes_as_a_part_of_a_metric(made: tuple[str, str]) -> None:
    name = re.sub(r"[^a-zA-Z0-9_]", "_", made[0].format(made[1]))
    assert not holds(Redaction(b"x" * 32, hosts=True).metric(name), made[1])


@given(PLACED, PLACED, PLACED, PLACED)
def test_no_name_passes_in_an_operation(daemon: str, kind: str, event: str, where: str) -> None:
    redaction = Redaction(b"x" * 32, hosts=True)
    for described in (
        f"{kind}({where})",
        f"{kind}(client.1.0:7 2.1f 2:f8000000::{where}:{where}:head [write 0~4096])",
        f"osd_op({where} 2.1f 2:f8000000:::{where}:head [write 0~4096])",
    ):
        op = {
            "ceph_daemon": daemon, "cluster": where, "seconds": 1.0, "finished": True,
            "description": described, "initiated_at": BEGAN.format(11, 30),
            "events": [[BEGAN.format(11, 30), it] for it in (event, f"waiting for {event}")],
        }  # fmt: skip
        written = json.dumps(slow_operations._record(op, 0.0, redaction))
        assert not any(holds(written, it) for it in (daemon, kind, event, where)), written


def everything(archive: Archive) -> str:
    """All files of an archive as text, and its series unpacked."""
    files = (path for path in archive.folder.rglob("*") if path.is_file())
    columns = archive.repeats[0].metrics()
    return "".join(path.read_bytes().decode(errors="replace") for path in files) + repr(
        (columns.families, list(columns.series))
    )


async def test_daemons_hosts_clients_reasons_and_errors_leave_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    up = 'cephqos_daemon_up{{ceph_daemon="{0}",cluster="acme-main",reason="{1}"}}'
    named = ("mon.acme-mon1", "mgr.acme-mgr1.xyzabc", "client.rgw.acme.host1", "mds.acme-fs")
    async with (
        recording_exporter(tmp_path / "a") as a,
        recording_exporter(tmp_path / "b") as b,
        recording_exporter(tmp_path / "gone") as gone,
    ):
        for at in range(0, 120, 15):
            down = 45 <= at < 105
            await a.record(
                START + at,
                {
                    **{up.format(it, "timeout" if down else ""): float(not down) for it in named},
                    'ceph_acme_total{peer="acme"}': 1.0,
                    f'cephqos_ops{{ceph_daemon="osd.1",state="acme{at}"}}': 1.0,
                },
            )
        await b.record(START, {"no sample of acme": 1.0, "a{": 2.0})
        for one in (a, b):
            why = ("--reason", "disk of acme-host1 is slow")
            await cephqos("record", "keep", "--exporter", one.address, *why)
        each = [word for one in (a, b, gone) for word in ("--exporter", one.address)]
        argv = (*each, "--to", str(tmp_path / "runs"), "--redact-hosts")
        assert await cephqos("record", "fetch", *argv) == 0
    found = the_archive(tmp_path / "runs")
    text = everything(found)
    assert "acme" not in text and "127.0.0.1" not in text and socket.gethostname() not in text
    gaps = found.repeats[0].record.metrics.daemon_gaps
    assert len(gaps) == 4 and all(re.match(r"(mon|mgr|client|mds)\.daemon-", it) for it in gaps)
    kept = [event for event in found.repeats[0].events() if event["event"] == "kept"]
    assert len({event["reason"] for event in kept}) == 1, "the same reason is the same everywhere"


def test_pools_of_memory_are_no_names_and_pseudonyms_need_the_key() -> None:
    one, other = (Redaction(bytes([n]) * 32, hosts=False) for n in (1, 2))
    memory = 'cephqos_daemon_mempool_bytes{pool="osd_pglog"}'
    assert one.series(memory) == memory
    assert one.series(POOL) == one.series(POOL) != other.series(POOL)


async def test_an_exporter_that_lies_writes_nothing_outside(tmp_path: Path) -> None:
    good = {"id": "20261125T030211.123Z", "segments": {"1.pages.gz": 1}, "reasons": [],
            "began_unix_seconds": 1.0, "until_unix_seconds": 2.0}  # fmt: skip
    cli._check(good)
    every: list[dict[str, object]] = [
        {"id": "../../x"},
        {"segments": {"../x": 1}},
        {"segments": {f"{n}.pages.gz": 1 for n in range(5000)}},
        {"reasons": [{}]},
        {"began_unix_seconds": None},
    ]
    for bad in every:
        with pytest.raises((ValueError, TypeError, LookupError)):
            cli._check({**good, **bad})


WRITE = (
    "osd_op(client.4128.0:1508 2.1 2:8253546a:acme::rbd_data.17af.000000{}:head"
    " [call rbd.acme,write 0~4096] snapc 0=[] ondisk+write e20)"
)
BEGAN = "2026-11-18T{}:06:{}.000000+0000"  # START is 11:06:40


async def test_the_slowest_operations_are_shown_each_once_and_no_name_is_left_if_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    wrong, right = BEGAN.format(12, 30), BEGAN.format(11, 30)
    waits = ((wrong, "initiated"), (BEGAN.format(12, 32), "waiting for subops from 2,5"))
    async with recording_exporter(tmp_path / "a") as a, recording_exporter(tmp_path / "b") as b:
        for at, shown in ((0, 3600), (15, 3615), (30, 30)):  # the clock is set then
            if shown > at:
                a.operation("3", WRITE.format(1), wrong, *waits)
            await a.record(START + at, {OSD.format(3): 1.0}, shown=START + shown)
        b.operation("4", WRITE.format(1), right, (right, "delayed by acme.1"))
        await b.record(START, {OSD.format(4): 1.0})
        both = ("--exporter", a.address, "--exporter", b.address)
        await cephqos("record", "keep", *both)
        for to, more in (("plain", ()), ("redacted", ("--redact",))):
            argv = (*both, "--to", str(tmp_path / to), *more)
            assert await cephqos("record", "fetch", *argv) == 0
    plain, redacted = (the_archive(tmp_path / to) for to in ("plain", "redacted"))
    capsys.readouterr()
    assert await cephqos("archive", "show", str(plain.folder)) == 0
    said = capsys.readouterr().out
    assert "slowest of 2 recorded operations" in said
    assert (
        "11:06:30 osd.3 12.500 s, 10.500 s of it after 'waiting for subops from 2,5': osd_op(client"
        in said
    ), said
    assert await cephqos("report", str(plain.folder), "--out", str(tmp_path / "report")) == 0
    table = (tmp_path / "report/tables/operations.csv").read_text().splitlines()
    row = '2026-11-18 11:06:30,osd.3,12.5,10.5,"waiting for subops from 2,5","osd_op('
    assert len(table) == 3 and table[1].startswith(row), table
    texts = [op["description"] for op in redacted.repeats[0].operations()]
    assert len(texts) == 2 and len(set(texts)) == 1, "the same object of two hosts"
    assert re.fullmatch(r"osd_op\(client\.4128 2\.1 object-[0-9a-f]{10} …\)", texts[0])
    assert await cephqos("archive", "show", str(redacted.folder)) == 0
    files = [it.read_bytes() for it in redacted.folder.rglob("*") if it.is_file()]
    assert not any(name in content for content in files for name in (b"acme", b"17af"))
    assert "acme" not in capsys.readouterr().out


async def test_of_many_hosts_those_that_give_nothing_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recording_exporter(tmp_path / "gone") as gone:
        pass
    async with AsyncExitStack() as stack:
        each = [
            await stack.enter_async_context(recording_exporter(tmp_path / f"{number}"))
            for number in range(20)
        ]
        for number, one in enumerate(each):
            await one.record(START, {OSD.format(number): 1.0})
        named = [part for one in (*each, gone) for part in ("--exporter", one.address)]
        assert await cephqos("record", "keep", *named) == 1, "one did not keep it"
        empty, breaks = each[0], each[1]
        shutil.rmtree(next((tmp_path / "0" / "kept").iterdir()))
        ask = HttpServer.get

        async def get(self: HttpServer, path: str) -> bytes:
            if self.shown == breaks.address:
                raise NoAnswer("it ended meanwhile")
            return await ask(self, path)

        monkeypatch.setattr(HttpServer, "get", get)
        capsys.readouterr()
        assert await cephqos("record", "fetch", *named, "--to", str(tmp_path / "runs")) == 0
    said = capsys.readouterr().out
    (repeat,) = the_archive(tmp_path / "runs").repeats
    assert len(repeat.metrics().series) == 18
    for one, why in ((gone, ""), (empty, "keeps no piece of that time"), (breaks, "meanwhile")):
        (line,) = [line for line in said.splitlines() if line.startswith(one.address)]
        assert why in line and f"recording: {line}" in repeat.record.findings


async def test_with_nothing_kept_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    async with recording_exporter(tmp_path / "a") as a:
        with pytest.raises(CephqosError, match="cephqos record ls"):
            await cephqos("record", "fetch", "--exporter", a.address, "--to", str(tmp_path / "x"))
        await cephqos("record", "keep", "--exporter", a.address)
        with pytest.raises(CephqosError, match="whole page"):
            await cephqos("record", "fetch", "--exporter", a.address, "--to", str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()
