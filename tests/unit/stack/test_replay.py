"""Archives become OpenMetrics text, labelled and shifted, and nothing in them gets past that."""

import argparse
import errno
import math
import re
import shutil
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recorded import ARCHIVE

from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.recorded import PerClass
from cephqos_exporter.labels import render_labels
from cephqos_loadgen.archive.openmetrics import TypeLine, family_of, pages
from cephqos_loadgen.archive.reader import ArchiveDamaged, open_archive
from cephqos_loadgen.archive.run_samples import RecordedRun, merge
from cephqos_loadgen.report.arrays.samples import read_samples
from cephqos_loadgen.run_recording import columns
from cephqos_loadgen.run_recording.columns import Columns, labelled, parse, render
from cephqos_stack.replay import blocks, cli
from cephqos_stack.replay.blocks import (
    check_archives,
    check_replayed,
    in_the_future,
    note_replayed,
    shifts,
)
from cephqos_stack.replay.gather import ReplayedBlocks, evaluated, load
from cephqos_stack.replay.layers import Rule, layers, leading_to, recording_rules, rule_file

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda it: it != "__name__")
LABELS = st.dictionaries(NAMES, st.text(st.characters(codec="utf-8"), max_size=12), max_size=4)
VALUES = st.floats(allow_nan=False)


def lines(recording: RecordedRun, shift_ms: int = 0, most_bytes: int = 1 << 20) -> list[str]:
    found = pages(recording, {"run": "r"}, shift_ms, most_bytes)
    return [line.removesuffix("\n") for page in found for line in page]


@given(NAMES, LABELS)
def test_a_series_is_read_back_as_it_was_written(name: str, labels: dict[str, str]) -> None:
    assert parse(f"{name}{{{render_labels(labels)}}}") == (name, labels)
    assert "\n" not in render(name, labels)


@pytest.mark.parametrize(
    "series",
    [
        "",
        "1up",
        "up{",
        "up{a}",
        'up{a="b}',
        'up{a="b"} 1\nother 2',
        'up{a="b\n"}',
        'up{a="b",a="c"}',
        'up{__name__="other"}',
        'up{a="b"x="c"}',
        "u" * 9000,
    ],
)
def test_what_is_no_series_is_refused(series: str) -> None:
    with pytest.raises(ValueError, match="series"):
        parse(series)


def test_a_label_of_the_archive_cannot_pass_for_the_name_of_the_run() -> None:
    assert labelled({"run": "forged", "osd": "1"}, {"run": "r"}) == {
        "exported_run": "forged",
        "osd": "1",
        "run": "r",
    }


@given(
    LABELS,
    st.dictionaries(st.integers(10**12, 2 * 10**12), VALUES, min_size=1, max_size=8),
    st.integers(-(10**9), 10**9),
)
def test_every_sample_keeps_its_exact_value_and_its_time_moves_by_the_shift(
    labels: dict[str, str], samples: dict[int, float], shift: int
) -> None:
    series = render("up", labels)
    written = lines(RecordedRun({"up": "gauge"}, {series: samples}), shift)
    assert written[0] == "# TYPE up gauge"
    assert written[-1] == "# EOF"
    found = {}
    for line in written[1:-1]:
        shown, value, time = line.rsplit(" ", 2)
        assert parse(shown)[1]["run"] == "r"
        found[round(float(time) * 1000) - shift] = float(value)
    assert found == samples
    assert list(found) == sorted(found)


@given(st.lists(st.integers(1, 30), max_size=30, unique=True))
def test_a_gap_stays_a_gap(seconds: list[int]) -> None:
    values = [(1e9 + second, float(second)) for second in seconds]
    found = merge([Columns({}, {"up": values})])
    assert sorted(found.series.get("up{}", {})) == sorted((10**9 + s) * 1000 for s in seconds)


def test_a_value_that_is_no_number_is_a_gap() -> None:
    assert merge([Columns({}, {"up": [(1e9, math.nan)]})]).series == {}


def test_repeats_of_a_run_continue_the_same_series() -> None:
    first = Columns({"up": ("gauge", "")}, {'up{a="1"}': [(1e9, 1.0)]})
    second = Columns({"up": ("gauge", "")}, {'up{a="1"}': [(1e9 + 5, 2.0)]})
    assert merge([first, second]).series == {
        'up{a="1"}': {10**12: 1.0, 10**12 + 5000: 2.0},
    }


def test_a_time_outside_this_century_is_refused() -> None:
    with pytest.raises(ValueError, match="since 1970"):
        merge([Columns({}, {"up": [(9e9, 1.0)]})])


@pytest.mark.parametrize(
    ("name", "types", "family"),
    [
        ("x_total", {"x_total": "counter"}, TypeLine("x", "counter")),
        ("x", {"x": "counter"}, TypeLine("x", "unknown")),
        ("x_total", {"x_total": "counter", "x": "gauge"}, TypeLine("x_total", "unknown")),
        ("x", {"x": "gauge"}, TypeLine("x", "gauge")),
        ("x_bucket", {"x": "histogram"}, TypeLine("x", "histogram")),
        ("x_sum", {"x": "summary"}, TypeLine("x", "summary")),
        ("x_sum", {"x_sum": "gauge"}, TypeLine("x_sum", "gauge")),
        ("x", {}, TypeLine("x", "unknown")),
        ("x", {"x": "evil\n# EOF"}, TypeLine("x", "unknown")),
    ],
)
def test_the_type_is_one_that_openmetrics_takes(
    name: str, types: dict[str, str], family: TypeLine
) -> None:
    assert family_of(name, types) == family


def test_a_histogram_stays_one_family() -> None:
    types = {"x": "histogram", "x_other": "gauge"}
    series = ('x_bucket{le="1.0"}', 'x_bucket{le="+Inf"}', "x_sum{}", "x_count{}", "x_other{}")
    written = lines(RecordedRun(types, {one: {10**12: 1.0} for one in series}))
    assert [line for line in written if line.startswith("# TYPE")] == [
        "# TYPE x histogram",
        "# TYPE x_other gauge",
    ]
    at = written.index("# TYPE x_other gauge")
    assert all(line.startswith("x_") for line in written[1:at])
    assert at == 5


def test_pages_are_bounded_and_hold_every_series_once() -> None:
    series = {f'up{{n="{n}"}}': {10**12 + t: 1.0 for t in range(10)} for n in range(50)}
    recording = RecordedRun({"up": "gauge"}, series)
    found = [list(page) for page in pages(recording, {}, 0, 10_000)]
    assert len(found) > 5
    assert all(sum(map(len, page)) < 10_000 and page[-1] == "# EOF\n" for page in found)
    assert sum(line.startswith("up{") for page in found for line in page) == 500


def test_rules_come_after_all_rules_that_they_read() -> None:
    rules = recording_rules(build_rules(RuleSettings(scrape_interval=1.0), []).values())
    order = layers(rules)
    assert sum(map(len, order)) == len(rules)
    done: list[str] = []
    for layer in order:
        for rule in layer:
            read = {it["record"] for it in rules} & set(re.findall(r"[\w:]+", rule["expr"]))
            # What comes later is its past: a rule that reads this one.
            assert all(rule["record"] in _read_by(rules, later) for later in read.difference(done))
        done += [rule["record"] for rule in layer]
        assert "interval" not in rule_file(layer)


def _read_by(rules: list[Rule], name: str) -> set[str]:
    return {rule["record"] for rule in leading_to(rules, [name])}


def test_rules_of_one_name_with_other_labels_are_other_rules() -> None:
    """Else all findings would be one circle, which is evaluated without all of them."""
    slow = {"record": "a:b", "labels": {"condition": "slow"}, "expr": 'a:b{condition="full"}'}
    full = {"record": "a:b", "labels": {"condition": "full"}, "expr": 'raw{condition="slow"}'}
    both = {"record": "c:d", "expr": 'a:b{condition=~"full|slow"}'}
    assert layers([slow, both, full]) == [[full], [slow], [both]]
    assert leading_to([slow, both, full], ["c:d"]) == [slow, both, full]


def test_of_rules_that_read_each_other_the_first_is_evaluated_without_the_past_of_the_others() -> (
    None
):
    """As it is at the first evaluation: the cause of a moment stays with whom it named before."""
    rules = [
        {"record": "behind:it", "expr": "a:b"},
        {"record": "a:b", "expr": "raw or c:d"},
        {"record": "c:d", "expr": "e:f"},
        {"record": "e:f", "expr": "a:b and raw"},
    ]
    order = [[rule["record"] for rule in layer] for layer in layers(rules)]
    assert order == [["a:b"], ["behind:it", "e:f"], ["c:d"]]
    assert [rule["record"] for rule in leading_to(rules, ["c:d"])] == ["a:b", "c:d", "e:f"]


def test_the_run_serves_its_own_series_again() -> None:
    archive = open_archive(ARCHIVE)
    recording = load(archive, 100.0)
    starts = [it for it in recording.series if it.startswith("cephqos_run_start_timestamp")]
    values = set(recording.series[starts[0]].values())
    assert values == {archive.manifest.start_unix_seconds + 100.0}
    ops = sum(
        max(samples.values())
        for series, samples in recording.series.items()
        if series.startswith("cephqos_client_ops_total")
    )
    assert ops == sum(
        figures.ios
        for repeat in archive.repeats
        for interval in repeat.intervals()
        for figures in (interval.read, interval.write)
        if figures
    )
    buckets = [it for it in recording.series if it.startswith("cephqos_client_latency_seconds_b")]
    whole = sum(max(recording.series[it].values()) for it in buckets if 'le="+Inf"' in it)
    assert whole == ops
    phases = {parse(it)[1]["phase"] for it in recording.series if it.startswith("cephqos_run_info")}
    assert phases >= {"client", "curve", "scrub"}
    since = {
        round(time / 1000 + 100.0 - start, 3)
        for series, samples in recording.series.items()
        if series.startswith("cephqos_run_phase_start_timestamp_seconds{")
        for time, start in samples.items()
    }
    assert min(since) >= 0 and max(since) < 60


def test_counters_of_clients_never_fall() -> None:
    for series, samples in load(open_archive(ARCHIVE)).series.items():
        if series.startswith("cephqos_client_") and "_total{" in series:
            values = [samples[time] for time in sorted(samples)]
            assert values == sorted(values), series


def test_all_runs_start_together_and_the_longest_ends_now() -> None:
    archive = open_archive(ARCHIVE)
    manifest = archive.manifest
    length = manifest.end_unix_seconds - manifest.start_unix_seconds
    assert shifts([archive], None) == [0.0]
    assert manifest.start_unix_seconds + shifts([archive], 2e9)[0] == 2e9
    begin = manifest.start_unix_seconds + shifts([archive], 2e9, now=True)[0]
    assert begin + length == pytest.approx(2e9)


def test_a_run_that_is_moved_into_the_future_is_said_to_end_there() -> None:
    archives = [open_archive(ARCHIVE)]
    end = archives[0].manifest.end_unix_seconds
    assert list(in_the_future(archives, [0.0], end)) == []
    (line,) = in_the_future(archives, [3600.0], end)
    assert "ends 3600 s in the future" in line and "--at now" in line


def test_a_run_lies_in_a_folder_once_or_well_apart(tmp_path: Path) -> None:
    """Twice "--at now", a few seconds apart, would mix two copies of every counter."""
    archives = [open_archive(ARCHIVE)]
    length = archives[0].manifest.end_unix_seconds - archives[0].manifest.start_unix_seconds
    check_replayed(tmp_path, archives, [0.0])
    note_replayed(tmp_path, archives, [0.0])
    check_replayed(tmp_path, archives, [0.0])
    check_replayed(tmp_path, archives, [length + 1])
    with pytest.raises(UsageError, match="already, 5 s apart"):
        check_replayed(tmp_path, archives, [5.0])
    note_replayed(tmp_path, archives, [length + 1])
    with pytest.raises(UsageError, match="already, 2 s apart"):
        check_replayed(tmp_path, archives, [length + 3])
    (tmp_path / "cephqos-replayed.json").write_text('{"a": [{"begin": 1}]}')
    check_replayed(tmp_path, archives, [5.0])


def test_a_time_is_now_or_a_number_or_a_date() -> None:
    assert cli.parse_at(None, 5.0) is None
    assert cli.parse_at("now", 5.0) == 5.0
    assert cli.parse_at("1800000000", 5.0) == 1.8e9
    assert cli.parse_at("2027-01-15T08:00:00Z", 5.0) == 1.8e9
    assert cli.parse_at("2027-01-15T08:00:00", 5.0) == 1.8e9
    for wrong in ("yesterday", "-1", "nan", "inf", "1e18", ""):
        with pytest.raises(UsageError, match="--at"):
            cli.parse_at(wrong, 5.0)


def test_a_file_and_an_address_of_another_kind_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="expected a folder"):
        cli.check_target(str(tmp_path / "file"))
    with pytest.raises(UsageError, match="expected a folder, or an address") as caught:
        cli.remote_address("ftp://me:secret@host/a")
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)
    assert cli.remote_address("data") is None
    address = cli.remote_address("http://me:secret@host:9090/api/v1/write/?db=a")
    assert address is not None and "secret" not in repr(address)
    assert address.url == "http://host:9090/api/v1/write/?db=a"
    assert address.headers == {"Authorization": "Basic bWU6c2VjcmV0"}
    with pytest.raises(UsageError, match="--into") as caught:
        cli.remote_address("http://me:secret@host:port/api/v1/write")
    assert "secret" not in str(caught.value)


async def test_a_damaged_archive_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(ARCHIVE, tmp_path / "copy"))
    metrics = next(copy.glob("repeats/*/metrics.columns"))
    metrics.write_bytes(metrics.read_bytes()[:-100])
    arguments = argparse.Namespace(archive=[copy], into=str(tmp_path / "db"), at=None)
    with pytest.raises(ArchiveDamaged, match=r"is damaged, nothing was replayed: .*metrics"):
        await cli._replay(arguments)
    assert not (tmp_path / "db").exists()


def test_a_run_named_twice_or_one_that_did_not_end_is_refused(tmp_path: Path) -> None:
    archive = open_archive(ARCHIVE)
    with pytest.raises(UsageError, match="named twice"):
        check_archives([archive, archive])
    (tmp_path / "run.partial").mkdir()
    with pytest.raises(CephqosError, match="--resume"):
        open_archive(tmp_path / "run.partial")


@pytest.mark.parametrize("read", [columns.read, lambda path: read_samples(path, {"x"})])
def test_a_frame_that_unpacks_to_more_than_a_minute_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(columns, "_MOST_FRAME_BYTES", 1000)
    packed = zlib.compress(b"0" * 100_000)
    path = tmp_path / "metrics.columns"
    path.write_bytes(columns.MAGIC + b"V" + struct.pack("<I", len(packed)) + packed)
    with pytest.raises(ValueError, match="more than the 492 bytes"):
        read(path)


async def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "page.om")

    monkeypatch.setattr(blocks, "write_blocks", full)
    monkeypatch.setattr(cli, "find_program", lambda name: [name])
    arguments = argparse.Namespace(archive=[ARCHIVE], into=str(tmp_path), at=None)
    with pytest.raises(CephqosError, match=r"^cannot write page.om: No space left on device$"):
        await cli._replay(arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_printed_without_control_characters() -> None:
    shown = cli.describe(ReplayedBlocks("\x1b[2J\n", 1e9, 1e9, 1, 1))
    assert shown.isprintable()


# Rules


async def test_rules_are_evaluated_layer_by_layer_over_blocks_of_the_whole_recording(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each layer is served what the ones before it wrote."""
    begin, end = (round(ms / 1000) for ms in load(open_archive(ARCHIVE)).span_ms())
    done: list[str] = []

    async def promtool(argv: list[str]) -> None:
        kind = argv[argv.index("create-blocks-from") + 1]
        done.append(kind)
        if kind == "rules":
            times = dict(part.removeprefix("--").split("=", 1) for part in argv if "=" in part)
            assert begin - 1 <= int(times["start"]) <= begin
            assert end <= int(times["end"]) <= end + 1
            assert Path(times["output-dir"]).name == "raw"

    @asynccontextmanager
    async def prometheus(blocks: Path, work: Path, **_: str) -> AsyncIterator[str]:
        assert blocks == work / "raw"
        done.append("served")
        yield "http://nowhere"

    async def query(_url: str, expr: str, at: int) -> list[dict[str, object]]:
        assert expr.startswith(f'{{__name__="{PerClass.CAUSE}"}}')
        return [{"metric": {"osd": "1"}, "values": [[at, "1"]]}]

    gather = "cephqos_stack.replay.gather"
    monkeypatch.setattr(f"{gather}.find_program", str)
    monkeypatch.setattr(f"{gather}.run_promtool", promtool)
    monkeypatch.setattr(f"{gather}.prometheus", prometheus)
    monkeypatch.setattr(f"{gather}.query_past", query)
    found = await evaluated(open_archive(ARCHIVE), [PerClass.CAUSE], print, time_scale=0.1)
    assert done[0] == "openmetrics"
    assert done[1:-1] == ["served", "rules"] * (len(done) // 2 - 1)
    assert len(done) > 4, "several layers lead to it"
    assert done[-1] == "served"
    assert list(found.series) == [f'{PerClass.CAUSE}{{osd="1"}}']
