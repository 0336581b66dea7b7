"""Reads the segments of a piece. What an exporter wrote while it died is cut off and left out."""

import contextlib
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cephqos_exporter.recorder.operations import OPERATIONS_HEAD
from cephqos_exporter.recorder.ring import HEAD, SEGMENT_SECONDS

# A page of 200 OSDs has 16 MB.
MOST_PAGE_BYTES: Final = 256 << 20
_PIECE: Final = 256 << 10
# A change of the clock of more than this is said.
CLOCK_SET_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """A page, and when it was asked for: by the clock, and since a boot."""

    wall_ms: int
    boot_ms: int
    boot: str
    text: str

    @property
    def openmetrics(self) -> bool:
        return self.text.endswith("# EOF\n")


def pages_of(segment: bytes) -> Iterator[RecordedPage]:
    """The whole pages of a segment, in order."""
    times: list[str] | None = None
    for member in _members(segment):
        text = member.decode(errors="replace")
        if text.startswith(HEAD):
            times = text.removeprefix(HEAD).split()
        elif times is not None:
            try:
                wall, boot_time, boot = times
                yield RecordedPage(int(wall), int(boot_time), boot, text)
            except ValueError:
                return
            times = None


def operations_of(segment: bytes) -> Iterator[tuple[RecordedPage, Any]]:
    """The operations that were recorded with pages. What has another shape is left out."""
    page = None
    for member in _members(segment):
        text = member.decode(errors="replace")
        if text.startswith(HEAD):
            with contextlib.suppress(ValueError):
                wall, boot_time, boot = text.removeprefix(HEAD).split()
                page = RecordedPage(int(wall), int(boot_time), boot, "")
        elif page is not None and text.startswith(OPERATIONS_HEAD):
            with contextlib.suppress(ValueError, RecursionError):
                operations = json.loads(text.removeprefix(OPERATIONS_HEAD))
                yield from ((page, op) for op in operations if isinstance(operations, list))


def _members(data: bytes) -> Iterator[bytes]:
    """Whole gzip members, up to where it was cut off."""
    at = 0
    while at < len(data):
        inflate = zlib.decompressobj(31)
        member = bytearray()
        while not inflate.eof:
            piece = data[at : at + _PIECE]
            at += len(piece)
            try:
                member += inflate.decompress(piece, MOST_PAGE_BYTES + 1 - len(member))
            except zlib.error:
                return
            if not piece or len(member) > MOST_PAGE_BYTES:
                return
        at -= len(inflate.unused_data)
        yield bytes(member)


class RecordedHost:
    """The pages of one host, with the times that its clock would have shown if no one had set it.

    The time since the boot runs evenly. It becomes a time of day by the last page of that boot.
    """

    def __init__(self, segments: Sequence[Path]) -> None:
        last: dict[str, tuple[int, int]] = {}
        stamps = {}
        for path in segments:
            stamps[path] = [(it.boot, it.boot_ms, it.wall_ms) for it in pages_of(path.read_bytes())]
            for boot, since, wall in stamps[path]:
                last[boot] = max(last.get(boot, (0, 0)), (since, wall))
        self._offsets = {boot: wall - since for boot, (since, wall) in last.items()}
        starts = {path: self._offsets[its[0][0]] + its[0][1] for path, its in stamps.items() if its}
        self._segments = sorted(starts, key=lambda path: starts[path])
        every = [stamp for its in stamps.values() for stamp in its]
        steps = [abs(wall - since - self._offsets[boot]) for boot, since, wall in every]
        self.clock_set_seconds = max(steps, default=0) / 1000
        self.times = sorted({(self._offsets[boot] + since) / 1000 for boot, since, _ in every})

    @property
    def interval(self) -> float:
        """How far apart the pages usually are."""
        apart = sorted(after - before for before, after in itertools.pairwise(self.times))
        return apart[len(apart) // 2] if apart else SEGMENT_SECONDS

    def pages(self) -> Iterator[tuple[float, RecordedPage]]:
        """In the order of time, each once."""
        last = 0.0
        for path in self._segments:
            for page in pages_of(path.read_bytes()):
                at = (self._offsets[page.boot] + page.boot_ms) / 1000
                if at > last:
                    last = at
                    yield at, page

    def operations(self) -> Iterator[tuple[float, Any]]:
        """Each with what its host's clock was behind, in seconds."""
        for path in self._segments:
            for page, op in operations_of(path.read_bytes()):
                if page.boot in self._offsets:
                    yield (self._offsets[page.boot] + page.boot_ms - page.wall_ms) / 1000, op
