"""The metrics pages of the last minutes on disk, in segments of a minute each.

A page is two gzip members: a line with its times, and the page as a client got it. A third has the
slowest operations. So a segment is one gzip file. A page that was cut off is no whole member, and
readers leave it out.
"""

import contextlib
import errno
import io
import os
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

SUFFIX: Final = ".pages.gz"
HEAD: Final = "# cephqos page "  # then the two times, and which boot it is
SEGMENT_SECONDS: Final = 60.0
# Less free space than this share of the file system, and nothing is recorded: a disk that is full
# harms others more than a gap in the recording does.
LEAST_FREE: Final = 0.05
_GZIP_WINDOW: Final = 31


class Stamp(NamedTuple):
    """When a page was asked for: by the clock, and since the boot, which no one sets."""

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


def packed(data: bytes) -> bytes:
    """One gzip member."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    return compressor.compress(data) + compressor.flush()


class Ring:
    """Segments of the last `seconds`, of `most_bytes` together. Age is counted by a clock that no
    one sets: a change of the time removes nothing."""

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
        self._goes_on = False  # the last segment takes the next page

    @property
    def size(self) -> int:
        return sum(segment.bytes for segment in self._segments)

    @property
    def paths(self) -> list[Path]:
        return [segment.path for segment in self._segments]

    def load(self) -> None:
        """Take up what an earlier process left."""
        now, wall = self._clock(), time.time()
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            status = path.stat()
            age = max(0.0, wall - status.st_mtime)
            self._segments.append(_Segment(path, now - age - SEGMENT_SECONDS, status.st_size))
        self._drop(now)

    def add(self, stamp: Stamp, body: bytes) -> Path | None:
        """Write a page, which is a gzip member. Returns the segment if a new one began.

        OSError: it was not written, and what is there is as before.
        """
        now = self._clock()
        self._drop(now)
        began = None
        if not self._goes_on or now - self._segments[-1].began >= SEGMENT_SECONDS:
            began = self._begin(stamp, now)
        segment = self._segments[-1]
        data = packed(f"{HEAD}{stamp.wall_ms} {stamp.boot_ms} {self._boot}\n".encode()) + body
        try:
            self._write(segment.path, data)
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(segment.path, segment.bytes)
            self._goes_on = False
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
        self._goes_on = True
        self._segments.append(_Segment(path, now, 0))
        return path

    def sync(self) -> None:
        """Return when what was written is on the disk. What the user has removed is forgotten."""
        there = deque(segment for segment in self._segments if segment.path.exists())
        self._goes_on = self._goes_on and bool(there) and there[-1] is self._segments[-1]
        self._segments = there
        for segment in self._segments:
            with segment.path.open("rb") as file:
                os.fsync(file.fileno())

    def _drop(self, now: float) -> None:
        """Remove what is too old or too much. A segment ends where the next one begins."""
        while len(self._segments) > 1 and (
            self._segments[1].began <= now - self._seconds or self.size > self._most_bytes
        ):
            self._segments.popleft().path.unlink(missing_ok=True)
        oldest = now - self._seconds - SEGMENT_SECONDS
        if self._segments and not self._goes_on and self._segments[-1].began <= oldest:
            self._segments.pop().path.unlink(missing_ok=True)
