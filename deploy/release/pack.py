"""Archives whose bytes depend on their content only: not on the clock, the user or the disk."""

import gzip
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

# Modes in the archive, whatever umask the checkout was made with.
_FILE_MODE: Final = 0o644
_PROGRAM_MODE: Final = 0o755


def pack(target: Path, parts: Mapping[str, Path], moment: int) -> Path:
    """A .tar.gz with each file or folder under its name. All have this time, in Unix seconds. Links
    are followed."""
    content = {
        f"{name}/{inner}" if inner else name: path.read_bytes()
        for name, top in parts.items()
        for inner, path in _files(top)
    }
    programs = {name for name, data in content.items() if data.startswith(b"#!")}
    return _write(target, content, programs, moment)


def repack(target: Path, moment: int) -> Path:
    """The same archive, without what differs from one build to the next."""
    with tarfile.open(target) as archive:
        members = [member for member in archive if member.isfile()]
        content = {member.name: _data(archive, member) for member in members}
        programs = {member.name for member in members if member.mode & 0o100}
    return _write(target, content, programs, moment)


def _data(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


def _files(top: Path) -> Iterator[tuple[str, Path]]:
    if top.is_file():
        yield "", top
    for folder, _, names in os.walk(top, followlinks=True):
        for path in (Path(folder) / name for name in names):
            yield path.relative_to(top).as_posix(), path


def _write(target: Path, content: Mapping[str, bytes], programs: set[str], moment: int) -> Path:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(content):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content[name]), moment
            entry.mode = _PROGRAM_MODE if name in programs else _FILE_MODE
            archive.addfile(entry, io.BytesIO(content[name]))
    target.write_bytes(gzip.compress(raw.getvalue(), mtime=0))
    return target
