"""Files of an archive that others may have made: regular ones, no links, no waiting."""

import hashlib
import json
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final

# More than any file of an hour's run with 16 OSDs by far; a bomb of a few KiB stops here.
MOST_UNPACKED_BYTES: Final = 1 << 30
# The manifest of a hundred thousand repeats has 140 MB. A hole of any length takes no room on disk.
MOST_JSON_BYTES: Final = 256 << 20
# Of a JSON file, or of all lines of one. An hour of 16 fio jobs has 12 million latency bins. As
# Python objects, values take up to 100 times their size in the file.
MOST_JSON_VALUES: Final = 32_000_000
_PIECE: Final = 1 << 20


class NotRegular(OSError):
    """A link, a pipe, a device or a directory where a file should be."""


def open_regular(path: Path) -> BinaryIO:
    """A file that is one. A link is not followed, a pipe is not waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise NotRegular(error.errno, "a link, not a file", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegular(0, "not a regular file", str(path))
    return os.fdopen(fd, "rb")


def read_regular(path: Path) -> bytes:
    """All of a file that is one; ValueError where it is longer than any of ours."""
    with open_regular(path) as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, MOST_JSON_BYTES) + 1)
    if len(data) > MOST_JSON_BYTES:
        raise ValueError(f"{path} is larger than {MOST_JSON_BYTES >> 20} MiB")
    return data


def read_json(path: Path) -> Any:
    """What a JSON file holds; ValueError where it is none, too large or too deep."""
    try:
        data = read_regular(path)
        check_values(values_in(data), path)
        return json.loads(data)
    except RecursionError:
        raise ValueError(f"{path} is nested too deep") from None


def values_in(text: bytes) -> int:
    """How many values a JSON text has at most, without reading it: each is behind one of these."""
    return 1 + sum(map(text.count, (b",", b"[", b"{", b":")))


def check_values(found: int, where: object, most: int = MOST_JSON_VALUES) -> None:
    if found > most:
        raise ValueError(f"{where} has {found:,} values or more, expected at most {most:,}")


def place_inside(folder: Path, name: str) -> Path | None:
    """Where a name of a manifest is, if that is inside the folder and no link leads to it."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\0" in name:
        return None
    place = folder
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            return None
    return place / parts[-1]


def size_and_digest(path: Path) -> tuple[int, str]:
    """How long a regular file is, and its SHA-256; it is read in pieces."""
    digest, size = hashlib.sha256(), 0
    with open_regular(path) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()
