"""Pieces of the recording that are kept: hard links to its segments, and why they are kept.

    kept/20260131T030000.123Z/piece.json, 1769828280000.pages.gz, 1769828340000.pages.gz ...

A piece holds the minutes before an event and half as many after it. While it grows, further events
belong to the same piece. Pieces are removed by the user, and never here.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cephqos_exporter.flight_recorder.ring import SUFFIX

ABOUT: Final = "piece.json"
MOST_PIECES: Final = 50
# The share of pieces and of bytes for events that the exporter itself sees (triggers.py). The rest
# is for alerts.
LOCAL_SHARE: Final = 0.5
LOCAL: Final = "local:"  # the beginning of their fingerprints
# A piece takes in events for so many times `minutes` from its begin. A later one begins the next.
LONGEST: Final = 6
_MOST_REASONS: Final = 100  # that a piece names
_NEW: Final = ".new"


class NoRoom(Exception):
    """Nothing more can be kept until some pieces are removed."""


@dataclass(frozen=True, slots=True)
class Reason:
    """An event to keep a piece for. The same alert, by fingerprint and start, is one reason."""

    name: str  # for people
    fingerprint: str  # of the alert
    started: str  # as Alertmanager writes it

    @property
    def local(self) -> bool:
        return self.fingerprint.startswith(LOCAL)


@dataclass(slots=True)
class KeptPiece:
    """One piece."""

    folder: Path
    began: float  # seconds since 1970, as is the next
    until: float
    reasons: list[Reason]
    grows_until: float = 0.0  # on the monotonic clock: new segments belong to it
    takes_events_until: float = 0.0  # on the monotonic clock: later events begin the next piece
    bytes: int = 0
    segments: dict[str, int] = field(default_factory=dict)  # name -> bytes

    @property
    def id(self) -> str:
        return self.folder.name

    def measure(self) -> None:
        """Look in the folder, which segments there are."""
        segments = sorted(self.folder.glob(f"*{SUFFIX}"))
        self.segments = {path.name: path.stat().st_size for path in segments}
        self.bytes = sum(self.segments.values())

    def about(self) -> dict[str, Any]:
        """What piece.json says."""
        return {
            "id": self.id,
            "began_unix_seconds": self.began,
            "until_unix_seconds": self.until,
            "reasons": [asdict(reason) for reason in self.reasons],
        }


class Pieces:
    """All pieces of a folder."""

    def __init__(
        self,
        folder: Path,
        minutes: float,
        most_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._seconds_after = minutes * 60 / 2  # an event
        self._longest_seconds = minutes * 60 * LONGEST
        self._most_bytes = most_bytes
        self._clock = clock
        self._pieces: dict[str, KeptPiece] = {}

    @property
    def size(self) -> int:
        """A segment of two pieces counts twice."""
        return sum(piece.bytes for piece in self._pieces.values())

    def __len__(self) -> int:
        return len(self._pieces)

    def load(self) -> None:
        """Take up the pieces in the folder. Remove those that a process had not finished."""
        for folder in sorted(self._folder.glob("*")):
            if folder.name.endswith(_NEW):
                shutil.rmtree(folder, ignore_errors=True)
            elif piece := _read(folder):
                left = piece.until - time.time()
                if 0 < left <= self._seconds_after:
                    piece.grows_until = piece.takes_events_until = self._clock() + left
                piece.measure()
                self._pieces[piece.id] = piece

    def listing(self) -> list[dict[str, Any]]:
        """The pieces as JSON, the newest last."""
        self._refresh()
        return [
            {**piece.about(), "grows": self._grows(piece), "segments": piece.segments}
            for piece in self._pieces.values()
        ]

    def _refresh(self) -> None:
        """Forget pieces that the user has removed, and measure those that grow."""
        for name, piece in list(self._pieces.items()):
            if not (piece.folder / ABOUT).exists():
                del self._pieces[name]
            elif self._grows(piece):
                piece.measure()

    def segment(self, piece: str, name: str) -> Path | None:
        """A segment's file. Only names of known segments are accepted, so no path leads out."""
        kept = self._pieces.get(piece)
        if kept is None:
            return None
        kept.measure()
        return kept.folder / name if name in kept.segments else None

    def follow(self, segment: Path) -> None:
        """Add a new segment of the ring to the pieces that grow."""
        with contextlib.suppress(OSError):  # as when the user removes one right now
            self._refresh()
        for piece in self._pieces.values():
            if self._grows(piece):
                with contextlib.suppress(OSError):
                    if self.size < self._most_bytes:
                        os.link(segment, piece.folder / segment.name)

    def keep(self, reasons: Sequence[Reason], segments: Sequence[Path]) -> KeptPiece:
        """Keep these segments, which are on the disk. Nothing more is kept for known reasons."""
        self._refresh()
        known = {reason: piece for piece in self._pieces.values() for reason in piece.reasons}
        new = [reason for reason in dict.fromkeys(reasons) if reason not in known]
        if not new:
            return known[reasons[0]]
        for piece in self._pieces.values():
            if self._grows(piece) and self._clock() < piece.takes_events_until:
                return self._extend(piece, new)
        return self._begin(new, segments)

    def _grows(self, piece: KeptPiece) -> bool:
        return self._clock() < piece.grows_until

    def _extend(self, piece: KeptPiece, new: Sequence[Reason]) -> KeptPiece:
        reasons = [*piece.reasons, *new][:_MOST_REASONS]
        now = self._clock()
        grows_until = max(piece.grows_until, now + self._seconds_after)
        until = time.time() + grows_until - now
        extended = replace(piece, until=until, reasons=reasons, grows_until=grows_until)
        _write(piece.folder, extended)
        extended.measure()
        self._pieces[piece.id] = extended
        return extended

    def _begin(self, reasons: Sequence[Reason], segments: Sequence[Path]) -> KeptPiece:
        share = LOCAL_SHARE if all(reason.local for reason in reasons) else 1.0
        new = sum(segment.stat().st_size for segment in segments)
        if len(self) >= share * MOST_PIECES or self.size + new > share * self._most_bytes:
            raise NoRoom(
                f"{len(self)} pieces of {self.size / 1e6:.0f} MB are kept in {self._folder}, and"
                f" this one has {new / 1e6:.0f} MB; expected at most {share * MOST_PIECES:.0f} in"
                f" all, and {share * self._most_bytes / 1e6:.0f} MB: remove the folders of some"
            )
        now, wall = self._clock(), time.time()
        name = self._free_name(wall)
        unfinished = self._folder / f"{name}{_NEW}"
        piece = KeptPiece(self._folder / name, wall, wall + self._seconds_after, list(reasons))
        piece.grows_until = now + self._seconds_after
        piece.takes_events_until = now + self._longest_seconds
        unfinished.mkdir(parents=True, mode=0o700)
        try:
            for segment in segments:
                os.link(segment, unfinished / segment.name)
            _write(unfinished, piece)
            unfinished.rename(piece.folder)
        except OSError:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        _sync(self._folder)
        piece.measure()
        self._pieces[name] = piece
        return piece

    def _free_name(self, wall: float) -> str:
        """The time in milliseconds, or the next that no piece has: the clock may be set back."""
        milliseconds = int(wall * 1000)
        while True:
            seconds, rest = divmod(milliseconds, 1000)
            name = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + f".{rest:03d}Z"
            if not (self._folder / name).exists():
                return name
            milliseconds += 1


def _read(folder: Path) -> KeptPiece | None:
    """The piece in a folder; None if there is none."""
    try:
        about = json.loads((folder / ABOUT).read_bytes())
        reasons = [Reason(**reason) for reason in about["reasons"]]
        began, until = float(about["began_unix_seconds"]), float(about["until_unix_seconds"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return KeptPiece(folder, began, until, reasons)


def _write(folder: Path, piece: KeptPiece) -> None:
    """Write piece.json whole: beside it, to the disk, then renamed."""
    beside = folder / f"{ABOUT}{_NEW}"
    with beside.open("w", encoding="utf-8") as file:
        json.dump(piece.about(), file)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(folder / ABOUT)
    _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
