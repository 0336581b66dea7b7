"""Files of an archive while it grows: compressed, and readable up to where a crash cut them off."""

import contextlib
import gzip
import io
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import orjson

from cephqos_loadgen.run_recording.regular import (
    MOST_JSON_BYTES,
    MOST_UNPACKED_BYTES,
    check_values,
    open_regular,
    values_in,
)

# What a crash of the machine may cost, and what compresses well together.
_FLUSH_SECONDS = 5.0
_LEVEL = 1
_PIECE = 64 << 10
# An interval of a fio job has about 10 KB.
MOST_LINE_BYTES: Final = 16 << 20


class GzipWriter:
    """A gzip file that is flushed to the disk every few seconds."""

    def __init__(self, path: Path) -> None:
        self._file = gzip.GzipFile(path, "wb", compresslevel=_LEVEL)
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        self._file.write(data)
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()


class JsonLines:
    """One JSON object per line, each on disk before the next; `gz` in the name compresses."""

    def __init__(self, path: Path) -> None:
        compressed = path.suffix == ".gz"
        self._file: GzipWriter | io.BufferedWriter
        self._file = GzipWriter(path) if compressed else path.open("ab")
        self._flush = not compressed

    def write(self, entry: Any) -> None:
        self._file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
        if self._flush and isinstance(self._file, io.BufferedWriter):
            self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_gzip(path: Path) -> bytes:
    """All of a gzip file, up to where it was cut off."""
    return b"".join(_unpacked(path))


def _unpacked(path: Path) -> Iterator[bytes]:
    """A gzip file in pieces, up to where it was cut off."""
    size = 0
    with (
        open_regular(path) as packed,
        gzip.GzipFile(fileobj=packed) as file,
        contextlib.suppress(EOFError, zlib.error, gzip.BadGzipFile),
    ):
        while piece := file.read1(_PIECE):
            size += len(piece)
            if size > MOST_UNPACKED_BYTES:
                raise ValueError(f"{path} unpacks to more than {MOST_UNPACKED_BYTES >> 20} MiB")
            yield piece


def _plain(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > MOST_JSON_BYTES:
            raise ValueError(
                f"{path} has {size >> 20} MiB, expected at most {MOST_JSON_BYTES >> 20}"
            )
        while piece := file.read(_PIECE):
            yield piece


def _lines(pieces: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Lines without their ends, also a last one that has none."""
    begun = bytearray()
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        if whole:
            yield bytes(begun) + whole[0]
            yield from whole[1:]
            begun.clear()
        begun += rest
        if len(begun) > MOST_LINE_BYTES:
            raise ValueError(f"{path} has a line of more than {MOST_LINE_BYTES >> 20} MiB")
    if begun:
        yield bytes(begun)


def read_lines(path: Path) -> Iterator[Any]:
    """The objects of a JsonLines file; a last line that was cut off is left out. One at a time: all
    of them take many times their size."""
    values = 0
    for line in _lines(_unpacked(path) if path.suffix == ".gz" else _plain(path), path):
        values += values_in(line)
        check_values(values, path)
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            return


def write_json(path: Path, data: Any) -> None:
    """Write a new file, then rename it: readers never see half of it."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
