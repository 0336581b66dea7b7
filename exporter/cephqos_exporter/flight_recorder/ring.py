"""The metrics pages of the last minutes on disk, in segments of a minute each.

Each page is two gzip members: a line with its times, and the page as a client got it. A third may
follow with the slowest operations. So a segment is one gzip file. The member of a page that was cut
off is incomplete, and readers leave it out.
"""

import contextlib
import errno
import io
import os
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

SUFFIX: Final = ".pages.gz"
HEAD: Final = "# cephqos page "  # then the two times of its Stamp, and the id of the boot
SEGMENT_SECONDS: Final = 60.0
# With less free space than this share of the file system, nothing is recorded: a full disk harms
# more than a gap in the recording.
LEAST_FREE: Final = 0.05
# Fast and nearly as small: the text repeats itself so much that level 1 takes 95 % off.
_GZIP_LEVEL: Final = 1
_GZIP_WINDOW: Final = 31  # for zlib: a window of 15 bits, plus 16 for a gzip header


class Stamp(NamedTuple):
    """When a page was asked for: by the wall clock, and since the boot, which cannot be set."""

    wall_ms: int
    boot_ms: int

    @classmethod
    def now(cls) -> Self:
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return cls(round(time.time() * 1000), round(boot * 1000))


@dataclass(slots=True)
class _Segment:
    path: Path
    began: float  # of the monotonic clock
    bytes: int


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "unknown"


def packed(pieces: Iterable[bytes]) -> bytes:
    """The pieces together as one gzip member."""
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return b"".join([*map(compressor.compress, pieces), compressor.flush()])


class Ring:
    """Segments of the last `seconds`, of `most_bytes` together. Their age is counted by the
    monotonic clock, so that a change of the time removes nothing."""

    def __init__(
        self,
        folder: Path,
        seconds: float,
        most_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._clock = clock
        self._boot = _boot()
        self._segments: deque[_Segment] = deque()
        self._last_is_open = False  # the last segment can take another page

    @property
    def size(self) -> int:
        return sum(segment.bytes for segment in self._segments)

    @property
    def paths(self) -> list[Path]:
        return [segment.path for segment in self._segments]

    def load(self) -> None:
        """Take up the segments that an earlier process left."""
        now, wall = self._clock(), time.time()
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            status = path.stat()
            age = max(0.0, wall - status.st_mtime)
            self._segments.append(_Segment(path, now - age - SEGMENT_SECONDS, status.st_size))
        self._drop(now)

    def add(self, stamp: Stamp, body: bytes) -> Path | None:
        """Write a page, which is gzip members. Returns the segment's path if a new one began.

        On OSError the segments are as before.
        """
        now = self._clock()
        self._drop(now)
        began = None
        if not self._last_is_open or now - self._segments[-1].began >= SEGMENT_SECONDS:
            began = self._begin(stamp, now)
        segment = self._segments[-1]
        data = packed([f"{HEAD}{stamp.wall_ms} {stamp.boot_ms} {self._boot}\n".encode()]) + body
        try:
            self._write(segment.path, data)
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(segment.path, segment.bytes)
            self._last_is_open = False
            raise
        segment.bytes += len(data)
        return began

    def _write(self, path: Path, data: bytes) -> None:
        left = memoryview(data)
        with io.FileIO(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), "w") as file:
            while left:
                left = left[file.write(left) :]

    def _begin(self, stamp: Stamp, now: float) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        space = os.statvfs(self._folder)
        if space.f_bavail < LEAST_FREE * space.f_blocks:
            raise OSError(errno.ENOSPC, "the file system is nearly full", str(self._folder))
        name = stamp.wall_ms
        while True:  # the clock may have been set back
            path = self._folder / f"{name:013d}{SUFFIX}"
            try:
                path.touch(0o600, exist_ok=False)
                break
            except FileExistsError:
                name += 1
        self._last_is_open = True
        self._segments.append(_Segment(path, now, 0))
        return path

    def sync(self) -> None:
        """Return when all segments are on the disk. Forget those that the user has removed."""
        present = deque(segment for segment in self._segments if segment.path.exists())
        if not present or present[-1] is not self._segments[-1]:
            self._last_is_open = False
        self._segments = present
        for segment in self._segments:
            with segment.path.open("rb") as file:
                os.fsync(file.fileno())

    def _drop(self, now: float) -> None:
        """Remove segments that are too old or too many. One ends when the next one begins."""
        while len(self._segments) > 1 and (
            self._segments[1].began <= now - self._seconds or self.size > self._most_bytes
        ):
            self._segments.popleft().path.unlink(missing_ok=True)
        oldest = now - self._seconds - SEGMENT_SECONDS
        if self._segments and not self._last_is_open and self._segments[-1].began <= oldest:
            self._segments.pop().path.unlink(missing_ok=True)
