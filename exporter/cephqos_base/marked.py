"""Folders that cephqos made and may remove: each carries a mark that was written when it was made.

Nothing is removed by its name or place alone. A folder without the mark, of another user, of
another kind, behind a link or with something mounted in it is left, and the error says why.
"""

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import UsageError

MARK: Final = ".made-by-cephqos"
_MAX_BYTES: Final = 4096
_MOUNTS: Final = Path("/proc/self/mountinfo")


class NotOurs(UsageError):
    """The folder does not carry our mark: it is left as it is."""


def make(folder: Path, kind: str, **facts: Any) -> None:
    """Make a new folder with its mark. FileExistsError if there is something of that name.

    `kind`: what the folder is for, such as `work`. `facts`: more for `read` to return.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    mark(folder, kind, **facts)


def renew(folder: Path, kind: str) -> None:
    """Make a new folder with its mark, in the place of ours or of an empty one, if there is one.

    NotOurs if something else is there.
    """
    with contextlib.suppress(OSError):
        folder.rmdir()
    if os.path.lexists(folder):
        try:
            remove(folder, kind)
        except NotOurs as error:
            raise NotOurs(f"{error}. Remove it yourself, or name another folder") from None
    make(folder, kind)


def mark(folder: Path, kind: str, **facts: Any) -> None:
    """Mark a folder that this process has just made. Only its user can open the mark."""
    text = json.dumps({"kind": kind, "name": folder.name, **facts})
    new = os.open(folder / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(new, "w") as file:
        file.write(text)


def read(folder: Path, kind: str) -> Mapping[str, Any]:
    """What the mark of our folder says; NotOurs if we may not remove it."""
    with _opened(folder, kind) as (_, says):
        return says


def remove(folder: Path, kind: str) -> None:
    """Remove our folder, its mark last; NotOurs, and nothing is removed, if it is not ours.

    OSError if something in it cannot be removed. Its mark stays then, so that it can be tried
    again. Everything goes through the descriptor that was checked: another folder that takes the
    place of ours is not touched.
    """
    with _opened(folder, kind) as (fd, _):
        if mounted := _mounted_below(fd):
            raise NotOurs(
                f"{mounted} is mounted inside of {folder}: unmount it; {folder} is left as it is"
            )
        failures: list[OSError] = []
        for name in os.listdir(fd):  # noqa: PTH208 - of a descriptor
            if name != MARK:
                _remove_entry(name, fd, failures)
        if failures:
            raise failures[0]
        os.unlink(MARK, dir_fd=fd)
    folder.rmdir()


@contextlib.contextmanager
def _opened(folder: Path, kind: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """A descriptor of our folder, and what its mark says; NotOurs if it is not ours."""
    own, left = os.geteuid(), "it is left as it is"
    if folder.is_symlink() or not folder.is_dir():
        raise NotOurs(f"{folder} is no folder: {left}")
    if (owner := folder.stat().st_uid) != own:
        raise NotOurs(f"{folder} belongs to user {owner}, not {own}: {left}")
    with contextlib.ExitStack() as stack:
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            stack.callback(os.close, fd)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(MARK, flags, dir_fd=fd), "rb") as file:
                of_mark = os.fstat(file.fileno())
                text = file.read(_MAX_BYTES) if stat.S_ISREG(of_mark.st_mode) else b""
        except OSError as error:
            raise NotOurs(
                f"{folder} has no mark of cephqos ({MARK}: {error.strerror}): {left}"
            ) from None
        for what, found in ((folder, os.fstat(fd)), (folder / MARK, of_mark)):
            if found.st_uid != own:
                raise NotOurs(f"{what} belongs to user {found.st_uid}, not {own}: {left}")
        says = _parsed(text)
        if (says.get("kind"), says.get("name")) != (kind, folder.name):
            raise NotOurs(
                f"{folder / MARK} does not say that cephqos made this folder as {kind}"
                f" {folder.name}: {left}"
            )
        yield fd, says


def _parsed(text: bytes) -> Mapping[str, Any]:
    try:
        says = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return says if isinstance(says, dict) else {}


def _mounted_below(fd: int) -> str | None:
    """A mount point inside of a folder, as this process sees it; None: there is none."""
    inside = os.readlink(f"/proc/self/fd/{fd}").rstrip("/") + "/"  # noqa: PTH115
    for line in _MOUNTS.read_text(errors="surrogateescape").splitlines():
        # Blanks and backslashes are written as octal numbers.
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split()[4])
        if point.startswith(inside):
            return point
    return None


def _remove_entry(name: str, fd: int, failures: list[OSError]) -> None:
    """Remove a file or folder of the folder `fd`, as far as it can be. Links are not followed."""

    def failed(_: object, path: object, info: tuple[Any, Any, Any]) -> None:
        error = info[1]
        if not isinstance(error, FileNotFoundError):
            failures.append(OSError(error.errno, error.strerror, str(path)))

    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=fd, onerror=failed)
        else:
            os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        failures.append(error)
