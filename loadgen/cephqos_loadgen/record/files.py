"""Files of an archive while it grows: compressed, and readable up to where a crash cut them off."""

import contextlib
import gzip
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
_PIECE = 64 << 10


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
    unpacked = bytearray()
    with (
        open_regular(path) as packed,
        gzip.GzipFile(fileobj=packed) as file,
        contextlib.suppress(EOFError, zlib.error, gzip.BadGzipFile),
    ):
        while piece := file.read1(_PIECE):
            unpacked += piece
            if len(unpacked) > MOST_UNPACKED_BYTES:
                raise ValueError(f"{path} unpacks to more than {MOST_UNPACKED_BYTES >> 20} MiB")
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
