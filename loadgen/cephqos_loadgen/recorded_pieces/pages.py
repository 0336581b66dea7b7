"""Reads what an exporter kept: a piece is a few segments, and a segment is a file of gzip members.

A member is a head line with the time (`flight_recorder.ring.HEAD`), a page of metrics, or slow
operations. What an exporter wrote while it died is cut off and left out.
"""

import contextlib
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cephqos_exporter.flight_recorder.operations import OPERATIONS_HEAD
from cephqos_exporter.flight_recorder.ring import HEAD, SEGMENT_SECONDS
from cephqos_loadgen.run_recording.regular import check_values, values_in

# A page of 200 OSDs has 16 MB.
MOST_PAGE_BYTES: Final = 64 << 20
# Of a segment, unpacked: two such pages a second for a minute.
MOST_SEGMENT_BYTES: Final = 4 << 30
_MOST_OPERATION_VALUES: Final = 1_000_000
_PIECE: Final = 256 << 10
# A change of the clock of more than this is a finding.
CLOCK_SET_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """A page, and when it was asked for."""

    wall_ms: int  # by the clock, since the epoch
    boot_ms: int  # since the boot of the host
    boot: str  # the id of that boot
    text: str

    @property
    def boot_time_ms(self) -> int:
        """When the boot was, by the clock at the moment of this page."""
        return self.wall_ms - self.boot_ms

    @property
    def openmetrics(self) -> bool:
        return self.text.endswith("# EOF\n")


def pages_of(segment: bytes) -> Iterator[RecordedPage]:
    """The whole pages of a segment, in order."""
    head: list[str] | None = None  # of the page that follows
    for member in _members(segment):
        text = member.decode(errors="replace")
        if text.startswith(HEAD):
            head = text.removeprefix(HEAD).split()
        elif head is not None:
            try:
                wall_ms, boot_ms, boot = head
                yield RecordedPage(int(wall_ms), int(boot_ms), boot, text)
            except ValueError:
                return
            head = None


def operations_of(segment: bytes) -> Iterator[tuple[RecordedPage, Any]]:
    """The operations that were recorded with pages, each with its page, whose text is empty. What
    has another shape is left out."""
    page = None
    for member in _members(segment):
        text = member.decode(errors="replace")
        if text.startswith(HEAD):
            with contextlib.suppress(ValueError):
                wall_ms, boot_ms, boot = text.removeprefix(HEAD).split()
                page = RecordedPage(int(wall_ms), int(boot_ms), boot, "")
        elif page is not None and text.startswith(OPERATIONS_HEAD):
            with contextlib.suppress(ValueError, RecursionError):
                check_values(values_in(member), "a list of operations", _MOST_OPERATION_VALUES)
                operations = json.loads(text.removeprefix(OPERATIONS_HEAD))
                yield from ((page, op) for op in operations if isinstance(operations, list))


def _members(data: bytes) -> Iterator[bytes]:
    """The whole gzip members, unpacked, up to where the data were cut off."""
    at = unpacked = 0
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
            if not piece:
                return
            if len(member) > MOST_PAGE_BYTES:
                raise ValueError(f"a page of more than {MOST_PAGE_BYTES >> 20} MiB")
        at -= len(inflate.unused_data)
        unpacked += len(member)
        if unpacked > MOST_SEGMENT_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_SEGMENT_BYTES >> 20} MiB")
        yield bytes(member)


class RecordedHost:
    """The pages of one host, with the times that its clock would have shown if no one had set it.

    The time since the boot runs evenly. It becomes a time of day by the last page of that boot.
    """

    def __init__(self, segments: Sequence[Path]) -> None:
        stamps_of: dict[Path, list[RecordedPage]] = {}  # pages without their text
        for path in segments:
            try:
                stamps_of[path] = [replace(page, text="") for page in pages_of(path.read_bytes())]
            except ValueError as error:
                raise ValueError(f"{path.name}: {error}") from None
        stamps = [stamp for of_segment in stamps_of.values() for stamp in of_segment]
        stamps.sort(key=lambda stamp: (stamp.boot_ms, stamp.wall_ms))
        # By boot: when it was, by its last page.
        self._boot_times = {stamp.boot: stamp.boot_time_ms for stamp in stamps}
        starts = {
            path: self._true_ms(of_segment[0])
            for path, of_segment in stamps_of.items()
            if of_segment
        }
        self._segments = sorted(starts, key=lambda path: starts[path])
        steps = [abs(stamp.boot_time_ms - self._boot_times[stamp.boot]) for stamp in stamps]
        self.clock_set_seconds = max(steps, default=0) / 1000
        self.times = sorted({self._true_ms(stamp) / 1000 for stamp in stamps})

    def _true_ms(self, page: RecordedPage) -> int:
        """When a page was asked for, by a clock that is never set."""
        return self._boot_times[page.boot] + page.boot_ms

    @property
    def interval(self) -> float:
        """How far apart the pages usually are."""
        distances = sorted(after - before for before, after in itertools.pairwise(self.times))
        return distances[len(distances) // 2] if distances else SEGMENT_SECONDS

    def pages(self) -> Iterator[tuple[float, RecordedPage]]:
        """The time of each page, and the page, in the order of time, each once."""
        last = 0.0
        for path in self._segments:
            for page in pages_of(path.read_bytes()):
                time = self._true_ms(page) / 1000
                if time > last:
                    last = time
                    yield time, page

    def operations(self) -> Iterator[tuple[float, Any]]:
        """Each operation, and the seconds that its host's clock was behind."""
        for path in self._segments:
            for page, op in operations_of(path.read_bytes()):
                if page.boot in self._boot_times:
                    yield (self._true_ms(page) - page.wall_ms) / 1000, op
