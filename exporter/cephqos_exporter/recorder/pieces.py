"""Pieces of the recording that are kept: hard links to its segments, and why they are kept.

A piece holds the minutes before what happened and half as many after it. What happens in
that time belongs to the same piece, which grows. Nothing here removes a piece: that is the user's.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cephqos_exporter.recorder.ring import SUFFIX

ABOUT: Final = "piece.json"
MOST_PIECES: Final = 50
# Of the places and of the bytes: rules of the exporter itself leave the rest for alerts.
LOCAL_SHARE: Final = 0.5
LOCAL: Final = "local:"  # how their fingerprints begin
# A piece takes in what happens in so many times the minutes. What happens later begins the next.
LONGEST: Final = 6
_MOST_REASONS: Final = 100  # that a piece names
_NEW: Final = ".new"


class NoRoom(Exception):
    """Nothing more can be kept until some pieces are removed."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is kept. The same alert, by fingerprint and start, is one reason."""

    name: str
    fingerprint: str
    started: str

    @property
    def local(self) -> bool:
        return self.fingerprint.startswith(LOCAL)


@dataclass(slots=True)
class KeptPiece:
    """One piece. `grows_until` is of the monotonic clock; until then new segments belong to it."""

    folder: Path
    began: float  # seconds since 1970, as are the next two
    until: float
    reasons: list[Reason]
    grows_until: float = 0.0
    ends_at: float = 0.0  # of the monotonic clock: what happens later is not of it
    bytes: int = 0
    segments: dict[str, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.folder.name

    def measure(self) -> None:
        segments = sorted(self.folder.glob(f"*{SUFFIX}"))
        self.segments = {path.name: path.stat().st_size for path in segments}
        self.bytes = sum(self.segments.values())

    def about(self) -> dict[str, Any]:
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
        self._after = minutes * 60 / 2
        self._longest = minutes * 60 * LONGEST
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
        """Take up what is there, and drop what was not kept yet when a process died."""
        for folder in sorted(self._folder.glob("*")):
            if folder.name.endswith(_NEW):
                shutil.rmtree(folder, ignore_errors=True)
            elif piece := _read(folder):
                left = piece.until - time.time()
                if 0 < left <= self._after:
                    piece.grows_until = piece.ends_at = self._clock() + left
                piece.measure()
                self._pieces[piece.id] = piece

    def listing(self) -> list[dict[str, Any]]:
        """As JSON, the newest last. Pieces that the user has removed are forgotten."""
        self._look()
        return [
            {**piece.about(), "grows": self._grows(piece), "segments": piece.segments}
            for piece in self._pieces.values()
        ]

    def _look(self) -> None:
        for name, piece in list(self._pieces.items()):
            if not (piece.folder / ABOUT).exists():
                del self._pieces[name]
            elif self._grows(piece):
                piece.measure()

    def segment(self, piece: str, name: str) -> Path | None:
        """A segment's file: only of names that are known, so no path leads out."""
        folder = self._pieces.get(piece)
        if folder is None:
            return None
        folder.measure()
        return folder.folder / name if name in folder.segments else None

    def follow(self, segment: Path) -> None:
        """A new segment of the ring: it belongs to the pieces that grow."""
        with contextlib.suppress(OSError):  # as when the user removes one right now
            self._look()
        for piece in self._pieces.values():
            if self._grows(piece):
                with contextlib.suppress(OSError):
                    if self.size < self._most_bytes:
                        os.link(segment, piece.folder / segment.name)

    def keep(self, reasons: Sequence[Reason], segments: Sequence[Path]) -> KeptPiece:
        """Keep these segments, which are on the disk. The same reasons again keep nothing more."""
        self._look()
        known = {reason: piece for piece in self._pieces.values() for reason in piece.reasons}
        new = [reason for reason in dict.fromkeys(reasons) if reason not in known]
        if not new:
            return known[reasons[0]]
        for piece in self._pieces.values():
            if self._grows(piece) and self._clock() < piece.ends_at:
                return self._extend(piece, new)
        return self._begin(new, segments)

    def _grows(self, piece: KeptPiece) -> bool:
        return self._clock() < piece.grows_until

    def _extend(self, piece: KeptPiece, new: Sequence[Reason]) -> KeptPiece:
        more = [*piece.reasons, *new][:_MOST_REASONS]
        now = self._clock()
        grows_until = max(piece.grows_until, now + self._after)
        seconds = time.time() + grows_until - now
        changed = KeptPiece(piece.folder, piece.began, seconds, more, grows_until, piece.ends_at)
        _write(piece.folder, changed)
        changed.measure()
        self._pieces[piece.id] = changed
        return changed

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
        milliseconds = round(wall * 1000) % 1000
        name = time.strftime("%Y%m%dT%H%M%S", time.gmtime(wall)) + f".{milliseconds:03d}Z"
        place = self._folder / f"{name}{_NEW}"
        piece = KeptPiece(self._folder / name, wall, wall + self._after, list(reasons))
        piece.grows_until, piece.ends_at = now + self._after, now + self._longest
        place.mkdir(parents=True, mode=0o700)
        try:
            for segment in segments:
                os.link(segment, place / segment.name)
            _write(place, piece)
            place.rename(piece.folder)
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
            raise
        _sync(self._folder)
        piece.measure()
        self._pieces[name] = piece
        return piece


def _read(folder: Path) -> KeptPiece | None:
    """A piece; None where there is none."""
    try:
        about = json.loads((folder / ABOUT).read_bytes())
        reasons = [Reason(**reason) for reason in about["reasons"]]
        began, until = (float(about[f"{which}_unix_seconds"]) for which in ("began", "until"))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return KeptPiece(folder, began, until, reasons)


def _write(folder: Path, piece: KeptPiece) -> None:
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
