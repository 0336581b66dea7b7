"""Reads archives: the manifest, whether all is there and unchanged, repeats and their series."""

import contextlib
import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.version import __version__
from cephqos_loadgen.phase_kinds.registry import RESULTS
from cephqos_loadgen.results.figures import Interval
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.json_form import Misfit, from_json
from cephqos_loadgen.results.repeat import FileSum, Manifest, RepeatRecord
from cephqos_loadgen.run_recording import columns, layout, regular
from cephqos_loadgen.run_recording.files import read_gzip, read_lines

T = TypeVar("T")


class ArchiveDamaged(CephqosError):
    """An archive is not what its manifest says."""


@dataclass(frozen=True)
class RecordedRepeat:
    """One repeat of an archive."""

    folder: Path
    record: RepeatRecord

    @property
    def name(self) -> str:
        return f"{self.record.point} r{self.record.repeat}"

    def events(self) -> list[dict[str, Any]]:
        return list(read_lines(self.folder / layout.EVENTS_FILE))

    def intervals(self) -> list[Interval]:
        """The clients' figures per second and job."""
        path = self.folder / layout.INTERVALS_FILE
        return [typed(Interval, line, path) for line in read_lines(path)]

    def cluster(self) -> list[dict[str, Any]]:
        """Health and PG progress per second."""
        return list(read_lines(self.folder / layout.CLUSTER_FILE))

    def metrics(self) -> columns.Columns:
        """The exporters' samples."""
        return columns.read(self.folder / layout.METRICS_FILE)

    def operations(self) -> list[dict[str, Any]]:
        """Slow operations that exporters recorded by themselves, the slowest first."""
        path = self.folder / layout.OPERATIONS_FILE
        return list(read_lines(path)) if path.exists() else []

    def host(self) -> dict[str, HostUse]:
        """CPUs, disks and threads per phase; empty where the repeat failed before its first."""
        path = self.folder / layout.HOST_FILE
        if not path.exists():
            return {}
        uses: Mapping[str, Any] = regular.read_json(path)
        return {phase: typed(HostUse, use, path) for phase, use in uses.items()}

    def output(self, child: str) -> bytes:
        """All that a child wrote to its standard output."""
        return read_gzip(self.folder / "output" / f"{child}.stdout.gz")


@dataclass(frozen=True)
class Archive:
    """An archive of a format that this version reads."""

    folder: Path
    manifest: Manifest

    @cached_property
    def repeats(self) -> list[RecordedRepeat]:
        """Those of the manifest that have a record, in the order in which they ran. The last repeat
        of a run that was interrupted is only among the manifest's files."""
        in_manifest = {f"{line.folder}/{layout.REPEAT_FILE}" for line in self.manifest.repeats}
        in_manifest |= self.manifest.files.keys()
        return [
            RecordedRepeat(path.parent, read_record(path))
            for path in sorted(
                self.folder.glob(f"repeats/*/{layout.REPEAT_FILE}"), key=layout.repeat_order
            )
            if str(path.relative_to(self.folder)) in in_manifest
        ]

    @property
    def plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = regular.read_json(self.folder / layout.PLAN_FILE)
        return plan

    @property
    def environment(self) -> dict[str, Any]:
        """Of the last cluster. Empty when the run failed before it could look."""
        path = self.folder / layout.ENVIRONMENT_FILE
        return regular.read_json(path) if path.exists() else {}

    @property
    def environments(self) -> list[dict[str, Any]]:
        """Of all kinds of clusters, where there were several."""
        path = self.folder / layout.ENVIRONMENTS_FILE
        return list(regular.read_json(path)) if path.exists() else []

    def events(self) -> list[dict[str, Any]]:
        return list(read_lines(self.folder / layout.EVENTS_FILE))


def read_record(path: Path) -> RepeatRecord:
    """A `repeat.json`; ArchiveDamaged where it is none."""
    return typed(RepeatRecord, _json(path), path)


def typed(wanted: type[T], data: Any, path: Path) -> T:
    """Data of a file as the type that they are; ArchiveDamaged says what does not fit."""
    try:
        return from_json(wanted, data, RESULTS)
    except Misfit as error:
        raise ArchiveDamaged(f"{path}: {error}{_of_version(path)}") from None


def _of_version(path: Path) -> str:
    """For an error: the version that wrote the archive, if it is another than this one. Then it may
    be no damage."""
    manifests = (folder / layout.MANIFEST for folder in path.parents)
    manifest = next((manifest for manifest in manifests if manifest.exists()), path)
    with contextlib.suppress(OSError, ValueError):
        data = regular.read_json(manifest)
        version = data.get("cephqos") if isinstance(data, dict) else None
        if isinstance(version, str) and version != __version__:
            return f" (written by cephqos {version[:40]}, this is {__version__})"
    return ""


def _json(path: Path) -> Any:
    try:
        return regular.read_json(path)
    except (OSError, ValueError) as error:
        raise ArchiveDamaged(f"{path} cannot be read: {error}") from None


def open_archive(folder: Path) -> Archive:
    """UsageError where there is no archive, or one of a format that is not known here."""
    if not layout.is_archive(folder):
        if not folder.exists():
            raise UsageError(f"{folder}: no such archive (cephqos archive ls shows what there is)")
        if layout.is_running(folder):
            raise UsageError(f"{folder} is not an archive yet: the run is still going on")
        is_partial = folder.name.endswith(layout.PARTIAL)
        hint = " (a run that did not end properly: cephqos run --resume takes it up)"
        raise UsageError(f"{folder} is not an archive{hint if is_partial else ''}")
    data = _json(folder / layout.MANIFEST)
    number = data.get("format") if isinstance(data, dict) else None
    if not isinstance(number, int):
        raise ArchiveDamaged(
            f"{folder / layout.MANIFEST} cannot be read: it does not say its format"
        )
    if number != layout.FORMAT:
        raise UsageError(f"{folder} has format {number}; this version reads format {layout.FORMAT}")
    return Archive(folder, typed(Manifest, data, folder / layout.MANIFEST))


# What code raises on JSON that has another shape than it expects.
WRONG_SHAPES: Final = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, RecursionError),  # numbers that no machine holds, depth without an end
)


@contextlib.contextmanager
def damage_named(folder: Path) -> Iterator[None]:
    """ArchiveDamaged for all errors that reading a damaged archive may raise inside the block."""
    try:
        yield
    except (*WRONG_SHAPES, EOFError, zlib.error, struct.error) as error:
        reason = f"{type(error).__name__}: {error}"
    except OSError as error:
        inside = error.filename and Path(error.filename).is_relative_to(folder)
        if error.errno and not inside:
            raise UsageError(f"cannot write {error.filename or ''}: {error.strerror}") from None
        reason = str(error)
    else:
        return
    raise ArchiveDamaged(
        f"{folder} is damaged, cephqos archive verify names what is: {reason}"
    ) from None


def find_archives(base: Path) -> list[Path]:
    """Archives and unfinished runs below a folder, oldest first."""
    if not base.is_dir():
        return []
    return sorted(
        path
        for path in base.iterdir()
        if path.is_dir() and (layout.is_archive(path) or path.name.endswith(layout.PARTIAL))
    )


def problems(
    archive: Archive, *, added: bool = True, read_up_to: float = math.inf
) -> Iterator[str]:
    """All that differs from what the manifest says; nothing when the archive is sound.

    `added`: files that the manifest does not know count too. Of files of more than `read_up_to`
    bytes the size alone is looked at.
    """
    yield from _manifest_problems(archive.folder)
    files = archive.manifest.files
    for name, entry in files.items():
        path = regular.place_inside(archive.folder, name)
        if path is None:
            yield f"{name}: not a name inside the archive; it was not read"
            continue
        try:
            size, digest = _size_and_digest(path, entry, read_up_to)
        except FileNotFoundError:
            yield f"{name}: missing"
            continue
        except OSError as error:
            yield f"{name}: {error.strerror}"
            continue
        if size != entry.bytes:
            yield f"{name}: {size} bytes, expected {entry.bytes}"
        elif digest != entry.sha256:
            yield f"{name}: checksum is {digest}, expected {entry.sha256}"
    for path in sorted(archive.folder.rglob("*")) if added else ():
        name = str(path.relative_to(archive.folder))
        if (
            not path.is_dir()
            and name not in files
            and name not in (layout.MANIFEST, layout.MANIFEST_SUM)
        ):
            yield f"{name}: not in the manifest"


def _size_and_digest(path: Path, entry: FileSum, read_up_to: float) -> tuple[int, str]:
    if entry.bytes <= read_up_to:
        return regular.size_and_digest(path)
    with regular.open_regular(path) as file:
        return file.seek(0, os.SEEK_END), entry.sha256


def _manifest_problems(folder: Path) -> Iterator[str]:
    try:
        words = regular.read_regular(folder / layout.MANIFEST_SUM).decode().split()
    except (OSError, ValueError):
        words = []
    if not words:
        yield f"{layout.MANIFEST_SUM}: missing or empty, so {layout.MANIFEST} cannot be checked"
        return
    _, digest = regular.size_and_digest(folder / layout.MANIFEST)
    if digest != words[0]:
        yield f"{layout.MANIFEST}: checksum is {digest}, {layout.MANIFEST_SUM} says {words[0]}"
