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
from typing import Any, Final, NamedTuple

from cephqos_exporter.labels import render_labels
from cephqos_loadgen.record.regular import open_regular

MAGIC = b"cephqos-columns 1\n"
BLOCK_SAMPLES = 60
_FRAME = struct.Struct("<cI")
_HEAD = struct.Struct("<III")
_ABSENT = math.nan
# A frame is a minute of samples: of ten thousand series 5 MB. More than this is no recording.
_MOST_FRAME_BYTES = 256 << 20
MOST_SERIES_CHARACTERS: Final = 8192

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


def read(path: Path) -> Columns:
    """All of a file, up to where it was cut off; ValueError where it is something else."""
    columns = Columns({}, {})
    names: list[str] = []
    for kind, payload in frames(path):
        if kind == b"S":
            table: dict[str, Any] = json.loads(payload)
            for family, (type_, text) in table["families"].items():
                columns.families[family] = (type_, text)
            names += table["series"]
        else:
            _decode(payload, names, columns.series)
    return columns


def frames(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Kind and payload of each, one at a time: an hour is too large to be held as a whole."""
    with open_regular(path) as file:
        if (begin := file.read(len(MAGIC))) != MAGIC:
            raise ValueError(f"{path} begins with {begin!r}, expected {MAGIC!r}")
        while len(head := file.read(_FRAME.size)) == _FRAME.size:
            kind, length = _FRAME.unpack(head)
            packed = file.read(length)
            if len(packed) < length:
                return
            yield kind, _unpacked(packed)


def _unpacked(packed: bytes) -> bytes:
    stream = zlib.decompressobj()
    data = stream.decompress(packed, _MOST_FRAME_BYTES)
    if not stream.eof:
        raise ValueError(f"a frame is cut off, or larger than {_MOST_FRAME_BYTES >> 20} MiB")
    return data


class Block(NamedTuple):
    """A frame of samples, taken apart. A series is named by its number."""

    times_ms: "array[int]"
    fixed: "array[int]"  # series that do not change
    fixed_values: "array[float]"  # the one value of each of them
    changing: "array[int]"  # the other series
    planes: bytes  # of their values, each XORed with the one before: all first bytes, then ...


def taken_apart(payload: bytes) -> Block:
    """The parts of a frame of samples."""
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


def _decode(payload: bytes, names: list[str], series: dict[str, list[tuple[float, float]]]) -> None:
    block = taken_apart(payload)
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
