"""The folder of one repeat: all that is written down of it, whole on its own."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.repeat import FileSum, RepeatRecord
from cephqos_loadgen.run_recording import layout
from cephqos_loadgen.run_recording.child import Child, Launch
from cephqos_loadgen.run_recording.files import JsonLines, write_json
from cephqos_loadgen.run_recording.regular import size_and_digest


class RepeatRecorder:
    """Opens the files of a repeat, and writes `repeat.json` last: a repeat that has it is whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "output"
        self.output.mkdir(parents=True)
        self.events = JsonLines(folder / layout.EVENTS_FILE)
        self.cluster = JsonLines(folder / layout.CLUSTER_FILE)
        self.intervals = JsonLines(folder / layout.INTERVALS_FILE)
        self.children: list[Child] = []
        self._environment: dict[str, str] = {}
        self._names: dict[str, int] = {}
        self.prefix: Callable[[Sequence[str]], list[str]] = list
        self.listeners: list[Callable[..., None]] = []  # each gets every event

    def child(self, name: str, argv: Sequence[str], sink: Callable[[bytes], None] | None) -> Child:
        """A child of this repeat; a name that was used before gets a number."""
        count = self._names[name] = self._names.get(name, 0) + 1
        unique = name if count == 1 else f"{name}.{count}"
        launch = Launch(unique, self.prefix(argv), self._environment)
        child = Child(launch, self.output, sink)
        self.children.append(child)
        return child

    def in_place(
        self, prefix: Callable[[Sequence[str]], list[str]], environment: dict[str, str]
    ) -> None:
        """Where children run: what stands before them, and their environment."""
        self.prefix, self._environment = prefix, environment

    def event(self, kind: str, **details: Any) -> None:
        self.events.write({"time": time.time(), "event": kind, **details})
        for listener in self.listeners:
            listener(kind, **details)

    def close(self, record: RepeatRecord) -> None:
        """Close all files and seal the folder; the record goes into repeat.json."""
        self.close_files()
        children = tuple(child.record() for child in self.children)
        sealed = replace(record, children=children, files=checksums(self.folder))
        write_json(self.folder / layout.REPEAT_FILE, to_json(sealed))

    def close_preparation(self) -> None:
        """Close the folder of what is done before the first repeat: it has processes only."""
        self.close_files()
        write_json(
            self.folder / layout.CHILDREN_FILE, to_json([child.record() for child in self.children])
        )

    def close_files(self) -> None:
        for file in (self.events, self.cluster, self.intervals):
            file.close()


def checksums(folder: Path, leave_out: Sequence[str] = (layout.REPEAT_FILE,)) -> dict[str, FileSum]:
    """Size and SHA-256 of every file below a folder, by relative path."""
    sums = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and name not in leave_out:
            sums[name] = FileSum(*size_and_digest(path))
    return sums
