"""Metric samples as columns: a series is named once, and its values lie side by side.

`ColumnWriter` writes the file, `read` reads it back. It is a row of frames, each `kind, length,
payload`; payloads are zlib. A frame `S` adds series to the table (JSON: families with their type
and help, then series as `name{labels}`). A frame `V` has the samples of up to a minute: the times,
the numbers of the series present, and for each its values, a column.

A column whose values are all the same is kept as one value. Of the others each value is the XOR
with the one before it, and the first bytes of all values stand together, then the second ones, and
so on: that compresses well. A file that was cut off is good up to its last whole frame.
"""

import json
import math
import re
import struct
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from cephqos_exporter.labels import render_labels
from cephqos_loadgen.run_recording.regular import check_values, open_regular, values_in

MAGIC = b"cephqos-columns 1\n"
BLOCK_SAMPLES = 60
_FRAME = struct.Struct("<cI")
_HEAD = struct.Struct("<III")
_ABSENT = math.nan
# A frame is a minute of samples: of ten thousand series 5 MB. More than this is no recording.
_MOST_FRAME_BYTES = 256 << 20
MOST_SERIES_CHARACTERS: Final = 8192  # of one
# Of a file. 200 OSDs have 200,000 series.
MOST_SERIES: Final = 500_000
_MOST_SERIES_BYTES: Final = 4 + 8 * BLOCK_SAMPLES  # in a block: its number and its values
_MOST_TABLE_BYTES: Final = 128 << 20  # of the names of all series, types and helps
_MOST_TABLE_VALUES: Final = 8_000_000
# Of the table, for each byte of the file. A recording has about 5.
_MOST_TABLE_PER_BYTE: Final = 200
# An hour of 16 OSDs has tens of millions. As each series is in a block once, there are at most
# about 45 for each byte of the file.
MOST_SAMPLES: Final = 100_000_000

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_UNESCAPED: Final = {"n": "\n"}


class ColumnWriter:
    """Takes the samples of all series at one moment, and writes a frame per minute."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(MAGIC)
        self._ids: dict[str, int] = {}
        self._new: list[str] = []
        self._families: dict[str, tuple[str, str]] = {}
        self._new_families: dict[str, tuple[str, str]] = {}
        self._times: list[int] = []
        self._columns: dict[int, array[float]] = {}
        self.samples = 0

    def describe(self, family: str, kind: str, text: str) -> None:
        """The type and help of a family; a second call for it changes nothing."""
        if family not in self._families:
            self._families[family] = self._new_families[family] = (kind, text)

    def add(self, time: float, values: Mapping[str, float]) -> None:
        """The samples of one moment, by `name{labels}`."""
        at = len(self._times)
        self._times.append(round(time * 1000))
        ids, columns = self._ids, self._columns
        for series, value in values.items():
            number = ids.get(series)
            if number is None:
                number = ids[series] = len(ids)
                self._new.append(series)
            column = columns.get(number)
            if column is None:
                column = columns[number] = array("d")
            if len(column) < at:
                column.extend([_ABSENT] * (at - len(column)))
            column.append(value)
        self.samples += len(values)
        if len(self._times) >= BLOCK_SAMPLES:
            self.flush()

    def flush(self) -> None:
        """Write what there is."""
        if self._new or self._new_families:
            table = {"families": self._new_families, "series": self._new}
            self._frame(b"S", json.dumps(table).encode())
            self._new, self._new_families = [], {}
        if not self._times:
            return
        self._frame(b"V", _encode(self._times, self._columns))
        self._times, self._columns = [], {}
        self._file.flush()

    def _frame(self, kind: bytes, payload: bytes) -> None:
        packed = zlib.compress(payload, 6)
        self._file.write(_FRAME.pack(kind, len(packed)) + packed)

    def close(self) -> None:
        if not self._file.closed:
            try:
                self.flush()
            finally:
                self._file.close()


def _encode(times: list[int], columns: Mapping[int, "array[float]"]) -> bytes:
    count = len(times)
    constant_ids, changing_ids = array("I"), array("I")
    constants = array("d")
    changing: list[bytes] = []  # columns, after the XOR
    for number, column in columns.items():
        if len(column) < count:
            column.extend([_ABSENT] * (count - len(column)))
        raw = column.tobytes()
        if raw == raw[:8] * count:
            constant_ids.append(number)
            constants.append(column[0])
        else:
            changing_ids.append(number)
            changing.append(_xor_with_previous(raw))
    values = b"".join(changing)
    # The first bytes of all values, then the second ones, and so on.
    shuffled = b"".join(values[i::8] for i in range(8))
    head = _HEAD.pack(count, len(constant_ids), len(changing_ids))
    ids = constant_ids.tobytes() + changing_ids.tobytes()
    return head + array("q", times).tobytes() + ids + constants.tobytes() + shuffled


def _xor_with_previous(raw: bytes) -> bytes:
    """XOR of each 8-byte value with the one before it."""
    value = int.from_bytes(raw, "little")
    size = len(raw)
    mixed = value ^ ((value << 64) & ((1 << size * 8) - 1))
    return mixed.to_bytes(size, "little")


def _restore(raw: bytes) -> "array[float]":
    """The column that `_xor_with_previous` was given."""
    words = array("Q")
    words.frombytes(raw)
    for i in range(1, len(words)):
        words[i] ^= words[i - 1]
    column = array("d")
    column.frombytes(words.tobytes())
    return column


@dataclass(slots=True)
class Columns:
    """A file read back."""

    families: dict[str, tuple[str, str]]
    # series -> its samples, times in seconds since the epoch
    series: dict[str, list[tuple[float, float]]]


class Block(NamedTuple):
    """A frame of samples, taken apart. A series is named by its number."""

    times_ms: "array[int]"
    fixed: "array[int]"  # series that do not change
    fixed_values: "array[float]"  # the one value of each of them
    changing: "array[int]"  # the other series
    planes: bytes  # of their values, each XORed with the one before: all first bytes, then ...


def _taken_apart(payload: bytes) -> Block:
    """The parts of a frame of samples, whose numbers agree."""
    count, constants, changing = _HEAD.unpack_from(payload)
    rest = memoryview(payload)[_HEAD.size :]
    parts = []
    for kind, size in (("q", count), ("I", constants), ("I", changing), ("d", constants)):
        numbers: array[Any] = array(kind)
        numbers.frombytes(rest[: numbers.itemsize * size])
        rest = rest[numbers.itemsize * size :]
        parts.append(numbers)
    times, fixed, others, values = parts
    return Block(times, fixed, values, others, bytes(rest))


class SeriesTable:
    """The series that a file has named so far, by their numbers, and its families."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names: list[str] = []
        self.families: dict[str, tuple[str, str]] = {}
        self._known: set[str] = set()

    def blocks(self) -> Iterator[Block]:
        """The samples of the file, a block at a time, up to where it was cut off. ValueError where
        it says what no recording does."""
        size = self._path.stat().st_size
        most_bytes = min(_MOST_TABLE_BYTES, _MOST_TABLE_PER_BYTE * size)
        samples = 0
        for kind, packed in _frames(self._path):
            if kind == b"S":
                most_bytes -= self._add(_unpacked(packed, most_bytes, self._path))
            elif kind == b"V":
                longest = _HEAD.size + 8 * BLOCK_SAMPLES + len(self.names) * _MOST_SERIES_BYTES
                block = self._block(_unpacked(packed, longest, self._path))
                samples += len(block.times_ms) * (len(block.fixed) + len(block.changing))
                if samples > MOST_SAMPLES:
                    self._fail(f"{samples:,} samples or more", f"{MOST_SAMPLES:,}")
                yield block
            else:
                raise ValueError(f"{self._path}: a frame of kind {kind!r}, expected S or V")

    def _fail(self, found: str, most: str) -> NoReturn:
        raise ValueError(f"{self._path}: {found}, expected at most {most}")

    def _add(self, payload: bytes) -> int:
        """Take up a part of the table. Returns its length."""
        check_values(values_in(payload), f"{self._path}: a table", _MOST_TABLE_VALUES)
        table: dict[str, Any] = json.loads(payload)
        for family, (type_, text) in table["families"].items():
            self.families[family] = (type_, text)
        names: list[str] = table["series"]
        if len(self.names) + len(names) > MOST_SERIES:
            self._fail(f"{len(self.names) + len(names):,} series", f"{MOST_SERIES:,}")
        self._known.update(names)
        self.names += names
        if len(self._known) < len(self.names):
            raise ValueError(f"{self._path} names a series twice")
        return len(payload)

    def _block(self, payload: bytes) -> Block:
        if len(payload) < _HEAD.size:
            raise ValueError(f"{self._path}: a block of {len(payload)} bytes, expected a head")
        count, constants, changing = _HEAD.unpack_from(payload)
        if count > BLOCK_SAMPLES:
            self._fail(f"a block of {count:,} samples of each series", f"{BLOCK_SAMPLES}")
        if constants + changing > len(self.names):
            known = f"the {len(self.names):,} that the file names"
            self._fail(f"a block of {constants + changing:,} series", known)
        expected = _HEAD.size + 8 * count + 12 * constants + (4 + 8 * count) * changing
        if len(payload) != expected:
            raise ValueError(
                f"{self._path}: a block of {len(payload):,} bytes, expected {expected:,}"
            )
        block = _taken_apart(payload)
        numbers = {*block.fixed, *block.changing}
        if len(numbers) < constants + changing or max(numbers, default=-1) >= len(self.names):
            raise ValueError(f"{self._path}: a block has a series twice, or one without a name")
        return block


def read(path: Path) -> Columns:
    """All of a file, up to where it was cut off; ValueError where it is something else."""
    table = SeriesTable(path)
    series: dict[str, list[tuple[float, float]]] = {}
    for block in table.blocks():
        _decode(block, table.names, series)
    return Columns(table.families, series)


def _frames(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Kind and packed payload of each, one at a time: an hour is too large to be held."""
    with open_regular(path) as file:
        if (begin := file.read(len(MAGIC))) != MAGIC:
            raise ValueError(f"{path} begins with {begin!r}, expected {MAGIC!r}")
        while len(head := file.read(_FRAME.size)) == _FRAME.size:
            kind, length = _FRAME.unpack(head)
            if length > _MOST_FRAME_BYTES:
                raise ValueError(
                    f"{path}: a frame of {length:,} bytes, expected at most {_MOST_FRAME_BYTES:,}"
                )
            packed = file.read(length)
            if len(packed) < length:
                return
            yield kind, packed


def _unpacked(packed: bytes, most: int, path: Path) -> bytes:
    stream = zlib.decompressobj()
    data = stream.decompress(packed, most + 1)
    if len(data) > most or not stream.eof:
        raise ValueError(
            f"{path}: a frame is cut off, or unpacks to more than the {most:,} bytes expected"
        )
    return data


def _decode(block: Block, names: list[str], series: dict[str, list[tuple[float, float]]]) -> None:
    seconds = [time / 1000 for time in block.times_ms]
    for number, value in zip(block.fixed, block.fixed_values, strict=True):
        series.setdefault(names[number], []).extend((time, value) for time in seconds)
    count = len(seconds)
    size = count * len(block.changing)  # of a plane
    values = bytearray(len(block.planes))
    for i in range(8):
        values[i::8] = block.planes[i * size : (i + 1) * size]
    for index, number in enumerate(block.changing):
        column = _restore(bytes(values[index * 8 * count : (index + 1) * 8 * count]))
        present = [(t, v) for t, v in zip(seconds, column, strict=True) if not math.isnan(v)]
        series.setdefault(names[number], []).extend(present)


# -- series as text -----------------------------------------------------------------------------


def parse(text: str) -> tuple[str, dict[str, str]]:
    """Name and labels of `name{labels}`; ValueError where it is anything else."""
    shown = repr(text[:80])
    if len(text) > MOST_SERIES_CHARACTERS:
        raise ValueError(f"series longer than {MOST_SERIES_CHARACTERS} characters: {shown}")
    name, brace, rest = text.partition("{")
    if not _NAME.fullmatch(name) or (brace and not rest.endswith("}")):
        raise ValueError(f"not a series: {shown}")
    inside, labels, at = rest[:-1] if brace else "", {}, 0
    while at < len(inside):
        match = _LABEL.match(inside, at)
        if not match or match[1] in labels or match[1] == "__name__":
            raise ValueError(f"not a series: {shown}")
        labels[match[1]] = _ESCAPE.sub(lambda esc: _UNESCAPED.get(esc[1], esc[1]), match[2])
        at = match.end()
    return name, labels


def labelled(labels: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Labels with others added. Where one has the same name and another value, the added label wins
    and the first becomes `exported_NAME`, as in Prometheus."""
    all_labels = {}
    for name, value in labels.items():
        new_name = name
        while new_name in added and added[new_name] != value:
            new_name = f"exported_{new_name}"
        all_labels[new_name] = value
    return all_labels | dict(added)


def render(name: str, labels: Mapping[str, str]) -> str:
    return f"{name}{{{render_labels(dict(sorted(labels.items())))}}}"
