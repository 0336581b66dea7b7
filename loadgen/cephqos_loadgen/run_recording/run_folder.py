"""Writes the folder of a run, and makes it an archive at the end, whatever the end is."""

import contextlib
import hashlib
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.repeat import Manifest
from cephqos_loadgen.run_recording import layout
from cephqos_loadgen.run_recording.files import JsonLines, write_json
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder, checksums

# Given back when the disk is full, so that the end of the run can still be written down.
_RESERVE_BYTES = 1 << 20
_RESERVE = "reserve"


class ArchiveWriter:
    """One run's folder while it grows."""

    def __init__(self, base: Path, run: str) -> None:
        self.run = run
        self.final = base / run
        self.folder = base / f"{run}{layout.PARTIAL}"
        self._made = [path for path in (base, *base.absolute().parents) if not path.exists()]
        try:
            self.folder.mkdir(parents=True)
            self._held = layout.hold(self.folder)
            (self.folder / _RESERVE).write_bytes(os.urandom(_RESERVE_BYTES))
        except OSError as error:
            raise UsageError(f"cannot write archives to {base}: {error}") from None
        self.events = JsonLines(self.folder / layout.EVENTS_FILE)
        self.started = time.time()

    def event(self, kind: str, **details: Any) -> None:
        """Written down if it can be: a full disk must not stop the way back."""
        with contextlib.suppress(OSError):
            self.events.write({"time": time.time(), "event": kind, **details})

    def json(self, name: str, data: Any) -> None:
        write_json(self.folder / name, data)

    def text(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def repeat(self, name: str) -> RepeatRecorder:
        return RepeatRecorder(self.folder / name)

    def give_reserve_back(self) -> None:
        (self.folder / _RESERVE).unlink(missing_ok=True)

    def discard(self) -> None:
        """As if there had never been a run: for one that was refused."""
        self.events.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._held)
        with contextlib.suppress(OSError):  # another run uses it by now
            for path in self._made:
                path.rmdir()

    def seal(self, manifest: Manifest) -> Path:
        """Write the manifest and give the folder its final name; returns that."""
        self.give_reserve_back()
        self.events.close()
        files = checksums(self.folder, (layout.MANIFEST, layout.MANIFEST_SUM))
        write_json(self.folder / layout.MANIFEST, to_json(replace(manifest, files=files)))
        digest = hashlib.sha256((self.folder / layout.MANIFEST).read_bytes()).hexdigest()
        self.text(layout.MANIFEST_SUM, f"{digest}  {layout.MANIFEST}\n")
        self.folder.rename(self.final)
        os.close(self._held)
        return self.final
