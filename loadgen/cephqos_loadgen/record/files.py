"""Files of an archive while it grows: compressed, and readable up to where a crash cut them off."""

import io
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import orjson

from cephqos_loadgen.record.regular import MOST_UNPACKED_BYTES, open_regular, read_regular

# What a crash of the machine may cost, and what compresses well together.
_FLUSH_SECONDS = 5.0
_LEVEL = 1
# Of a compressed file that is read: the end of each of its members leaves a copy of what is behind.
_PIECE = 16 << 10


class GzipWriter:
    """A gzip file that is flushed to the disk every few seconds."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._zip = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        self._file.write(self._zip.compress(data))
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._file.write(self._zip.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self._file.write(self._zip.flush())
        finally:
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
    unpacked = bytearray()
    with open_regular(path) as file:
        inflate = zlib.decompressobj(31)
        while data := file.read(_PIECE):
            while data:
                try:
                    unpacked += inflate.decompress(data, MOST_UNPACKED_BYTES + 1 - len(unpacked))
                except zlib.error:
                    return bytes(unpacked)
                if len(unpacked) > MOST_UNPACKED_BYTES:
                    limit = f"{MOST_UNPACKED_BYTES >> 20} MiB"
                    raise ValueError(f"{path} unpacks to more than {limit}")
                data = inflate.unused_data  # a copy: of a piece, and not of all that is left
                if inflate.eof:
                    inflate = zlib.decompressobj(31)
    return bytes(unpacked)


def read_lines(path: Path) -> Iterator[Any]:
    """The objects of a JsonLines file; a last line that was cut off is left out."""
    data = read_gzip(path) if path.suffix == ".gz" else read_regular(path)
    for line in io.BytesIO(data):  # one at a time: as a list they take many times their size
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
