"""The recorder of an exporter: records pages, keeps pieces, and lists what is kept."""

import asyncio
import errno
import logging
import os
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

from cephqos_base.locks import try_lock
from cephqos_exporter.config import Settings
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.flight_recorder import options
from cephqos_exporter.flight_recorder.operations import Operations
from cephqos_exporter.flight_recorder.pieces import KeptPiece, NoRoom, Pieces, Reason
from cephqos_exporter.flight_recorder.ring import Ring, Stamp, packed
from cephqos_exporter.flight_recorder.triggers import Triggers
from cephqos_exporter.labels import render_labels
from cephqos_exporter.scrape.exposition import Page

log = logging.getLogger(__name__)

T = TypeVar("T")

RING_SHARE: Final = 0.25
# Two scrapers at the same time get the same figures: one page of them is enough.
_LEAST_APART_MS: Final = 500
# Pages that wait for the disk. More are lost: a disk that hangs must not fill the memory.
_MOST_WAITING: Final = 8
_CLOSE_SECONDS: Final = 2.0


class DiskBusy(Exception):
    """The disk has not finished what it was given before."""


class Recorder:
    """Everything that touches the disk is a job in one thread; jobs run in order."""

    def __init__(self, settings: Settings) -> None:
        self.minutes = settings[options.MINUTES]
        self.forward_to = settings[options.FORWARD]
        self._host = settings[options.HOST] or socket.gethostname()
        self._folder = folder = Path(settings[options.PATH])
        most = settings[options.MEGABYTES] * 10**6
        self._ring = Ring(folder / "ring", self.minutes * 60, round(most * RING_SHARE))
        self._pieces = Pieces(folder / "kept", self.minutes, round(most * (1 - RING_SHARE)))
        self._triggers = Triggers()
        self.operations = Operations()
        self._jobs: queue.Queue[Callable[[], object] | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._last = Stamp(0, 0)  # of the last page
        self._sizes = (0, 0, 0)  # bytes of the ring, bytes of the pieces, number of pieces
        self._recorded = 0  # pages
        self._lost: Counter[str] = Counter()
        self._logged_error = ""
        self._lock: int | None = None  # descriptor of the lock of the folder

    def start(self) -> None:
        self._thread.start()

    async def close(self) -> None:
        """Write what waits, within _CLOSE_SECONDS."""
        if self._thread.ident is None:  # it was never started
            return
        try:
            self._jobs.put_nowait(None)
        except queue.Full:
            return
        await asyncio.to_thread(self._thread.join, _CLOSE_SECONDS)

    def take(self, stamp: Stamp, page: Page, body: bytes, *, compressed: bool) -> None:
        """Record a page as a scraper got it. `body`: the page as text, or compressed."""
        if 0 <= stamp.boot_ms - self._last.boot_ms < _LEAST_APART_MS:
            return
        self._last = stamp
        operations = self.operations.take()

        def add() -> None:
            page = body if compressed else packed([body])
            self._add(stamp, page + packed([operations]) if operations else page)

        try:
            self._jobs.put_nowait(add)
        except queue.Full:
            self._lost["busy"] += 1
            return
        if reasons := self._triggers.look(page, stamp.wall_ms / 1000):
            self._run(lambda: self._keep(reasons)).add_done_callback(_log_kept)

    async def keep(self, reasons: Sequence[Reason]) -> KeptPiece:
        """Keep a piece, and return when it is on the disk; NoRoom, DiskBusy or OSError if not."""
        return await asyncio.wrap_future(self._run(lambda: self._keep(reasons)))

    async def listing(self) -> dict[str, Any]:
        """What is kept, as JSON."""
        pieces = await asyncio.wrap_future(self._run(self._pieces.listing))
        return {"host": self._host, "minutes": self.minutes, "pieces": pieces}

    async def segment(self, piece: str, name: str) -> bytes | None:
        """A kept segment; None where there is none."""

        def read() -> bytes | None:
            path = self._pieces.segment(piece, name)
            return None if path is None else path.read_bytes()

        return await asyncio.wrap_future(self._run(read))

    def missed(self, exporters: int) -> None:
        """Count exporters that did not keep a piece that was forwarded to them."""
        self._lost["forward"] += exporters

    def not_taken(self) -> None:
        """Count an answer with what is kept that a client did not take."""
        self._lost["slow_client"] += 1

    def families(self) -> Iterable[Family]:
        """Metrics of the recorder, shown among the exporter's own."""
        size = gauge(
            "cephqos_recorder_bytes",
            "Size of what the recorder has on disk. part: ring, the last minutes; kept, the pieces."
            " Absent while the recorder is off.",
        )
        ring, kept, number = self._sizes
        size.add(render_labels({"part": "ring"}), ring)
        size.add(render_labels({"part": "kept"}), kept)
        pieces = gauge("cephqos_recorder_pieces", "Pieces that the recorder keeps.")
        pieces.add(render_labels({}), number)
        pages = counter("cephqos_recorder_pages_total", "Metrics pages that were recorded.")
        pages.add(render_labels({}), self._recorded)
        lost = counter(
            "cephqos_recorder_lost_total",
            "Pages that were not recorded (disk: an error, a full disk, another exporter's folder;"
            " busy: the disk is slow), requests to keep a piece that were refused (full) or"
            " that other exporters did not answer (forward), and kept segments that a client did"
            " not take within a minute (slow_client)."
            " Absent while there are none.",
        )
        for reason, number in list(self._lost.items()):
            lost.add(render_labels({"reason": reason}), number)
        return size, pieces, pages, lost

    # -- in the thread ---------------------------------------------------------------------------

    def _work(self) -> None:
        """Run jobs until there is a None among them."""
        try:
            self._open()
        except OSError as exc:
            self._log_error(exc)
        while True:
            self._sizes = (self._ring.size, self._pieces.size, len(self._pieces))
            job = self._jobs.get()
            if job is None:
                break
            job()
        if self._lock is not None:
            os.close(self._lock)

    def _open(self) -> None:
        """Lock the folder and load what is in it, once; OSError if another exporter has it."""
        if self._lock is not None:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        held = os.open(self._folder / "lock", flags, 0o600)
        if not try_lock(held):
            os.close(held)
            why = "another exporter records here: give each its own --recorder.path"
            raise OSError(errno.EBUSY, why, str(self._folder))
        self._lock = held
        self._ring.load()
        self._pieces.load()

    def _run(self, do: Callable[[], T]) -> "Future[T]":
        """Run a function as a job; its result or error is in the future."""
        future: Future[T] = Future()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    self._open()
                    future.set_result(do())
                except Exception as exc:  # the caller of the future's result gets it
                    future.set_exception(exc)

        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            future.set_exception(DiskBusy("the disk of the recording is too slow"))
        return future

    def _add(self, stamp: Stamp, body: bytes) -> None:
        try:
            self._open()
            began = self._ring.add(stamp, body)
        except OSError as exc:
            self._lost["disk"] += 1
            self._log_error(exc)
            return
        self._recorded += 1
        self._logged_error = ""
        if began is not None:
            self._pieces.follow(began)

    def _keep(self, reasons: Sequence[Reason]) -> KeptPiece:
        try:
            self._ring.sync()
            return self._pieces.keep(reasons, self._ring.paths)
        except NoRoom:
            self._lost["full"] += 1
            raise

    def _log_error(self, exc: OSError) -> None:
        """Log it once, not at every page."""
        if str(exc) != self._logged_error:
            self._logged_error = str(exc)
            log.error("nothing is recorded: %s", exc)


def _log_kept(future: "Future[KeptPiece]") -> None:
    exc = future.exception()
    if exc is not None:
        log.warning("nothing is kept of what just happened: %s", exc)
    else:
        piece = future.result()
        log.info("keeping %s: %s", piece.folder, piece.reasons[-1].name)
