"""What a file of an archive says is compared with bounds before anything is made of it."""

import gzip
import json
import random
import struct
import time
import tracemalloc
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from cephqos_exporter.flight_recorder.ring import HEAD
from cephqos_loadgen.archive.run_samples import merge
from cephqos_loadgen.recorded_pieces import pages
from cephqos_loadgen.report.arrays.intervals import read_intervals
from cephqos_loadgen.report.arrays.samples import read_samples
from cephqos_loadgen.run_recording import columns, files, metrics, regular
from cephqos_loadgen.run_recording.columns import BLOCK_SAMPLES, MAGIC, Columns

_MOST_BYTES: Final = 32 << 20


@contextmanager
def without_much_memory(most: int = _MOST_BYTES) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak:,} bytes"


def frame(kind: bytes, payload: bytes) -> bytes:
    packed = zlib.compress(payload, 9)
    return kind + struct.pack("<I", len(packed)) + packed


def table(*names: str) -> bytes:
    return frame(b"S", json.dumps({"families": {}, "series": names}).encode())


def block(
    count: int, constants: list[int], changing: list[int], rest: bytes | None = None
) -> bytes:
    """A frame of samples that are all 0, or with something else behind its numbers."""
    head = struct.pack("<III", count, len(constants), len(changing))
    ids = array("I", constants + changing).tobytes()
    zeros = bytes(8 * len(constants) + 8 * count * len(changing))
    return frame(b"V", head + bytes(8 * count) + ids + (zeros if rest is None else rest))


def read_all(path: Path) -> object:
    return columns.read(path)


def read_some(path: Path) -> object:
    return read_samples(path, {"a"})


READERS: Final = pytest.mark.parametrize("read", [read_all, read_some])
_BLOCK: Final = struct.pack("<III", 10_000, 10_000, 0) + bytes(8 * 10_000)


@READERS
@pytest.mark.parametrize(
    ("frames", "said"),
    [
        # 10,000 times 10,000 samples of one series, in some hundred bytes.
        (
            table("a") + frame(b"V", _BLOCK + bytes(12 * 10_000)),
            "expected|unpacks",
        ),
        (
            table("a") + block(61, [0], []),
            "block of 61 samples of each series, expected at most 60",
        ),
        (table("a") + block(1, [0, 0], []), "block of 2 series, expected at most the 1 that"),
        (table("a", "b") + block(1, [0, 0], []), "has a series twice"),
        (table("a", "b") + block(1, [0], [0]), "has a series twice"),
        (table("a") + block(1, [7], []), "or one without a name"),
        (table("a") + block(2, [], [0], b"\0" * 15), "block of 47 bytes, expected 48"),
        (table("a") + block(2, [0], [], b"\0" * 9), "block of 41 bytes, expected 40"),
        (table("a") + frame(b"V", b"\0" * 5), "block of 5 bytes, expected a head"),
        (table("a", "a"), "names a series twice"),
        (frame(b"X", b""), "a frame of kind b'X', expected S or V"),
        (b"V" + struct.pack("<I", 0xFFFF_FFFF), "frame of 4,294,967,295 bytes, expected at most"),
    ],
    ids=lambda value: value if isinstance(value, str) else "frames",
)
def test_numbers_of_a_block_that_do_not_agree_are_an_error_that_names_file_and_number(
    frames: bytes, said: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "metrics.columns"
    path.write_bytes(MAGIC + frames)
    with without_much_memory(4 << 20), pytest.raises(ValueError, match=said) as raised:
        read(path)
    assert str(path) in str(raised.value)


@READERS
def test_the_samples_of_all_blocks_are_counted_before_they_are_made(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.columns"
    path.write_bytes(MAGIC + table("a", "b") + block(BLOCK_SAMPLES, [0], [1]) * 3)
    read(path)
    monkeypatch.setattr(columns, "MOST_SAMPLES", 300)
    with pytest.raises(ValueError, match="360 samples or more, expected at most 300"):
        read(path)


def test_a_file_cannot_say_much_more_than_its_size(tmp_path: Path) -> None:
    """Series that compress best, without a change for an hour. Each can be in a block once."""
    path = tmp_path / "metrics.columns"
    numbers = list(range(1000))
    names = [f"a{n}" for n in numbers]
    path.write_bytes(MAGIC + table(*names) + block(BLOCK_SAMPLES, numbers, []) * 60)
    samples = BLOCK_SAMPLES * 1000 * 60
    assert samples / path.stat().st_size < 50


@READERS
def test_a_table_is_no_longer_than_that_of_a_recording(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.columns"
    path.write_bytes(
        MAGIC + frame(b"S", b'{"families":{},"series":[' + b"[]," * 4_000_000 + b"0]}")
    )
    with without_much_memory(), pytest.raises(ValueError, match="unpacks to more than"):
        read(path)
    monkeypatch.setattr(columns, "MOST_SERIES", 3)
    path.write_bytes(MAGIC + table("a", "b") + table("c", "d"))
    with pytest.raises(ValueError, match="4 series, expected at most 3"):
        read(path)
    monkeypatch.setattr(columns, "_MOST_TABLE_VALUES", 10)
    path.write_bytes(MAGIC + table("a", *[f'b{{x="{n}",y="0"}}' for n in range(2)] * 10))
    with pytest.raises(ValueError, match="values or more, expected at most 10"):
        read(path)


def test_a_run_has_no_more_samples_than_can_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cephqos_loadgen.archive.run_samples.MOST_SAMPLES", 3)
    part = Columns({}, {"a": [(1.0, 1.0), (2.0, 1.0)]})
    with pytest.raises(ValueError, match="4 samples or more, expected at most 3"):
        merge(iter([part, part]))


def test_a_json_file_of_too_many_values_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular, "MOST_JSON_VALUES", 1000)
    monkeypatch.setattr(regular.check_values, "__defaults__", (1000,))
    path = tmp_path / "plan.json"
    path.write_text("[" + "[]," * 600 + "0]")
    with pytest.raises(ValueError, match=r"plan\.json has 1,202 values or more, expected at most"):
        regular.read_json(path)
    lines = tmp_path / "events.jsonl"
    lines.write_text("[0,0,0]\n" * 300)
    with pytest.raises(ValueError, match=r"events\.jsonl has 1,00\d values or more"):
        list(files.read_lines(lines))


def test_a_line_without_an_end_is_not_gathered(tmp_path: Path) -> None:
    path = tmp_path / "cluster.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(b" " * (1 << 20))
    with (
        without_much_memory(3 * files.MOST_LINE_BYTES),
        pytest.raises(ValueError, match=r"jsonl\.gz has a line of more than 16 MiB"),
    ):
        list(files.read_lines(path))


def test_intervals_take_the_memory_of_their_numbers() -> None:
    part = {"latency_bins_ns": {str(n): n for n in range(200)}, "ios": 1, "latency_mean_seconds": 1}
    part["bytes_per_second"] = 1.5
    line = {"phase": "a", "client": "b", "job": "c", "depth": 1, "end_unix_seconds": 1.0}
    line |= {"seconds": 1.0, "read": part, "write": None}
    with without_much_memory(200 * 2000 * 3 * 8 * 3):
        intervals = read_intervals(line for _ in range(2000))
    assert intervals.counts.dtype == np.int64
    assert int(intervals.counts.sum()) == 2000 * 199 * 100


def test_lines_are_cut_where_they_end_whatever_the_pieces_are(tmp_path: Path) -> None:
    chosen = random.Random(1)  # noqa: S311
    lines = [chosen.randbytes(chosen.randrange(12)).replace(b"\n", b"") for _ in range(200)]
    text = b"\n".join(lines)
    for _ in range(20):
        cuts = sorted(chosen.randrange(len(text)) for _ in range(30))
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        found = list(files._lines(parts, tmp_path))
        assert found == (lines if lines[-1] else lines[:-1])


def test_a_page_of_too_many_lines_is_not_split() -> None:
    reader = metrics.PageReader(lambda *_: None)
    page = "a 1\n" * (metrics.MOST_LINES + 1)
    with without_much_memory(), pytest.raises(ValueError, match="a page of 1,000,001 lines"):
        reader.read(page)


def member(data: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    return deflate.compress(data) + deflate.flush()


def test_a_segment_that_unpacks_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    head = member(f"{HEAD}{round(time.time() * 1000)} 1 boot".encode())
    monkeypatch.setattr(pages, "MOST_PAGE_BYTES", 1 << 20)
    segment = head + member(bytes(64 << 20))
    with without_much_memory(8 << 20), pytest.raises(ValueError, match="a page of more than 1 MiB"):
        list(pages.pages_of(segment))
    monkeypatch.setattr(pages, "MOST_SEGMENT_BYTES", 3 << 20)
    page = head + member(b"a 1\n" * 200_000)
    with pytest.raises(ValueError, match="it unpacks to more than 3 MiB"):
        list(pages.pages_of(page * 5))
