"""Finds the admin sockets of a host and the daemons behind them.

It knows the layouts of packages, cephadm and Rook, and several clusters on one host. The socket's
name says which daemon it is (ceph-osd.3.asok). The daemon itself says which cluster it belongs to.
A daemon that restarts makes a new file, which shows the restart even if its pid is not known.
"""

import asyncio
import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.pids import find_pid, has_our_pids, process_start
from cephqos_exporter.daemon import Daemon, Host
from cephqos_exporter.daemon_errors import ErrorReply, Malformed, UnknownCommand
from cephqos_exporter.procfs import OUT_OF_DESCRIPTORS

# Relative to the root of the run directory or of the host. Since 1.11 Rook gives all daemons of a
# host /var/lib/rook/exporter as their /run/ceph.
DEFAULT_PATTERNS: Final = (
    "/run/ceph/*.asok",
    "/run/ceph/*/*.asok",
    "/var/lib/rook/*/*.asok",
    "/var/lib/rook/*/*/*.asok",
    "/var/lib/rook/exporter/*.asok",
)

KINDS: Final = ("osd", "mon", "mgr", "mds", "client")

# $cluster-$type.$id.asok, of which the cluster may be left out; for clients $pid.$cctid follow.
_SOCKET_NAME: Final = re.compile(
    r"(?:(?P<cluster>.+?)-)?(?P<kind>osd|mon|mgr|mds|client)\.(?P<id>.+)\.asok"
)
_FSID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# To look through a host's processes takes time. Not asyncio's own threads: in those passwords are
# checked.
_PID_THREADS: Final = ThreadPoolExecutor(6, "pid")
# Of a reply with the fsid, at most; some hundred are usual.
_FSID_BYTES: Final = 64 << 10
_NO_FSID: Final = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Socket:
    """An admin socket's file. Equal as long as the same daemon listens there."""

    path: Path
    kind: str
    id: str
    identity: tuple[int, int]  # inode and change time: a restart makes a new file


def find_sockets(patterns: Sequence[str], kinds: Collection[str]) -> list[Socket]:
    """The admin sockets that match, in a stable order, each file once."""
    sockets: dict[tuple[int, int], Socket] = {}
    for pattern in patterns:
        # Links last: a daemon has the name of its socket, not that of a link to it.
        for path in sorted(_expand(pattern), key=os.path.islink):
            named = _SOCKET_NAME.fullmatch(path.name)
            if named is None or named["kind"] not in kinds:
                continue
            try:
                status = path.stat()
            except OSError:
                continue  # gone between the listing and now
            if not stat.S_ISSOCK(status.st_mode):
                continue
            # /var/run is /run on most systems: one file under two names is one socket.
            file = (status.st_dev, status.st_ino)
            if file not in sockets:
                identity = (status.st_ino, status.st_ctime_ns)
                name = os.fsencode(named["id"]).decode(errors="replace")  # it may be any bytes
                sockets[file] = Socket(path, named["kind"], name, identity)
    return sorted(sockets.values(), key=_order)


def _expand(pattern: str) -> Iterator[Path]:
    """Paths matching an absolute glob pattern; a directory stands for the sockets in it."""
    first, *rest = Path(pattern).parts
    if os.path.isdir(pattern):  # noqa: PTH112 - Path.is_dir raises where it may not look
        rest.append("*.asok")
    yield from map(Path, _matches(first, rest))


def _matches(base: str, parts: Sequence[str]) -> Iterator[str]:
    """Paths below `base` that match the parts of a pattern.

    Not Path.glob, which ends the whole search at a directory that cannot be read.
    """
    if not parts:
        yield base
        return
    part, rest = parts[0], parts[1:]
    if not any(character in part for character in "*?["):
        yield from _matches(f"{base.rstrip('/')}/{part}", rest)
        return
    if part == "**":  # it stands for no directory, or (below) for any number of them
        yield from _matches(base, rest)
    for name in _names_in(base, below=bool(rest)):
        path = f"{base.rstrip('/')}/{name}"
        if part != "**":
            if fnmatchcase(name, part):
                yield from _matches(path, rest)
        elif not os.path.islink(path):  # noqa: PTH114 - for a text
            yield from _matches(path, parts)


def _names_in(directory: str, *, below: bool) -> list[str]:
    """The names in a directory, with `below` only of what may be a directory; none if it cannot
    be read."""
    try:
        with os.scandir(directory) as entries:
            return sorted(e.name for e in entries if not below or e.is_symlink() or e.is_dir())
    except OSError as exc:
        if exc.errno in OUT_OF_DESCRIPTORS:
            raise  # the next directory could not be read either
        return []


def _order(socket: Socket) -> tuple[str, int, str, str]:
    number = int(socket.id) if socket.id.isdecimal() else -1
    return socket.kind, number, socket.id, str(socket.path)


def fsid_in_path(path: Path) -> str:
    """The cluster that a cephadm path names, or an empty string."""
    return next((part for part in reversed(path.parts) if _FSID.fullmatch(part)), "")


async def identify(socket: Socket, host: Host, *, deadline: float) -> Daemon:
    """Ask the daemon which cluster it belongs to; DaemonError if it does not say.

    `deadline` is of the event loop's clock.
    """
    fsid, peer = await _ask_fsid(str(socket.path), deadline)
    loop = asyncio.get_running_loop()
    pid, start = await loop.run_in_executor(_PID_THREADS, _process, socket, peer, host)
    return Daemon(
        socket.kind, socket.id, fsid or fsid_in_path(socket.path), socket.path, pid, start
    )


async def identify_process(
    daemon: Daemon, socket: Socket, host: Host, peer: int | None = None
) -> Daemon:
    """The daemon with its process, if that was not known and there is one candidate by now.

    If `host.proc` has our own pids, the socket's peer is the only candidate.
    """
    if peer is None and has_our_pids(host):
        return daemon
    loop = asyncio.get_running_loop()
    pid, start = await loop.run_in_executor(_PID_THREADS, _process, socket, peer, host)
    return daemon if pid is None else replace(daemon, pid=pid, start=start)


def _process(socket: Socket, peer: int | None, host: Host) -> tuple[int | None, int | None]:
    pid = find_pid(socket.kind, socket.id, peer, host)
    return pid, None if pid is None else process_start(host, pid)


async def _ask_fsid(path: str, deadline: float) -> tuple[str, int | None]:
    """The fsid of the cluster that the daemon is configured for, or else reports; and its pid."""
    loop = asyncio.get_running_loop()
    ask = partial(asok.ask, path, max_bytes=_FSID_BYTES)
    with contextlib.suppress(ErrorReply, UnknownCommand):
        configured = await ask("config get", {"var": "fsid"}, timeout=deadline - loop.time())
        fsid = _fsid(configured.value, "fsid")
        if fsid != _NO_FSID:
            return fsid, configured.pid
    status = await ask("status", timeout=deadline - loop.time())
    fsid = _fsid(status.value, "cluster_fsid")
    return "" if fsid == _NO_FSID else fsid, status.pid


def _fsid(reply: Any, key: str) -> str:
    """The fsid in a reply; _NO_FSID for an empty text. Checked, as it becomes a label."""
    value = reply.get(key) if isinstance(reply, dict) else None
    if value == "":
        return _NO_FSID
    if not isinstance(value, str) or not _FSID.fullmatch(value):
        raise Malformed(f"no fsid as {key!r} in the reply")
    return value
