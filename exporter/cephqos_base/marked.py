"""Folders that cephqos made and may remove: each carries a mark that was written when it was made.

Nothing is removed by its name or place alone. A folder without the mark, of another user, of
another kind or behind a link is left, and the error says why.
"""

import json
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import UsageError

MARK: Final = ".made-by-cephqos"
_MAX_BYTES: Final = 4096


class NotOurs(UsageError):
    """The folder does not carry our mark: it is left as it is."""


def make(folder: Path, kind: str, **facts: Any) -> None:
    """Make a new folder with its mark. FileExistsError if there is something of that name.

    `kind`: what the folder is for, such as `work`. `facts`: more for `read` to return.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    mark(folder, kind, **facts)


def mark(folder: Path, kind: str, **facts: Any) -> None:
    """Mark a folder that this process has just made."""
    text = json.dumps({"kind": kind, "name": folder.name, **facts})
    new = os.open(folder / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(new, "w") as file:
        file.write(text)


def read(folder: Path, kind: str) -> Mapping[str, Any]:
    """What the mark of our folder says; NotOurs if we may not remove it."""
    own = os.geteuid()
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise NotOurs(f"{folder} is no folder: it is left as it is")
        if found.st_uid != own:
            raise NotOurs(
                f"{folder} belongs to user {found.st_uid}, not {own}: it is left as it is"
            )
        with os.fdopen(
            os.open(folder / MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as file:
            of_mark = os.fstat(file.fileno())
            text = file.read(_MAX_BYTES) if stat.S_ISREG(of_mark.st_mode) else b""
        if of_mark.st_uid != own:
            raise NotOurs(f"{folder / MARK} belongs to user {of_mark.st_uid}, not {own}")
        says = json.loads(text)
    except OSError as error:
        raise NotOurs(
            f"{folder} has no mark of cephqos ({MARK}: {error.strerror}): it is left as it is"
        ) from None
    except ValueError:
        says = None
    if not isinstance(says, dict) or (says.get("kind"), says.get("name")) != (kind, folder.name):
        raise NotOurs(
            f"{folder / MARK} does not say that cephqos made this folder as {kind} {folder.name}:"
            " it is left as it is"
        )
    return says


def remove(folder: Path, kind: str) -> None:
    """Remove our folder, its mark last; NotOurs, and nothing is removed, if it is not ours."""
    read(folder, kind)
    for entry in list(folder.iterdir()):
        if entry.name == MARK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    (folder / MARK).unlink()
    folder.rmdir()
