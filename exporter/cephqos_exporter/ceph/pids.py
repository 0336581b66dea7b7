"""Finds the process of a daemon, by its socket's peer or by the arguments of all processes."""

import os
import re
import threading
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from cephqos_exporter.daemon import Host
from cephqos_exporter.lookup import Lookup
from cephqos_exporter.procfs import process_ids

# Reads of arguments that are under way, by process and its start, as pids are used again.
_reading: Final[dict[tuple[Path, int | None], Lookup[str]]] = {}
_one_at_a_time: Final = threading.Lock()


def find_pid(kind: str, id_: str, peer: int | None, host: Host) -> int | None:
    """The daemon's pid as `host.proc` counts: the socket's peer, or else found by its arguments.

    The peer's pid is 0 when the daemon's PID namespace cannot be seen from ours, and another
    process's when `host.proc` is not our own /proc (a container with the host's /proc mounted).
    """
    if peer is not None and _looks_like(host, peer, kind):
        return peer
    if kind == "client" or (peer is not None and has_our_pids(host)):
        return None
    try:
        pids = process_ids(host.proc)
    except OSError:
        return None  # no /proc to look into: the collectors say so
    matches = [pid for pid in pids if _is_daemon(host, pid, kind, id_)]
    return matches[0] if len(matches) == 1 else None


def has_our_pids(host: Host) -> bool:
    """Whether `host.proc` has our own pids, so that the pid of a socket's peer is valid there."""
    try:
        return (host.proc / "self").readlink().name == str(os.getpid())
    except OSError:
        return False


def process_start(host: Host, pid: int) -> int | None:
    """When a process started, in clock ticks since the boot, or None if it has gone.

    Not a time of day, which changes when the clock is set.
    """
    fields = read_file(host.proc / str(pid) / "stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) >= 20 else None


def _looks_like(host: Host, pid: int, kind: str) -> bool:
    comm = read_file(host.proc / str(pid) / "comm").strip()
    return bool(comm) if kind == "client" else kind in comm


def _is_daemon(host: Host, pid: int, kind: str, id_: str) -> bool:
    if not _looks_like(host, pid, kind):  # before its arguments: reading those can block
        return False
    try:
        return daemon_id(kind, _arguments(host, pid)) == id_
    except TimeoutError:  # it cannot be read now
        return False


def daemon_id(kind: str, arguments: Sequence[str]) -> str:
    """The id, in any of the ways in which Ceph's daemons take it; empty if there is none."""
    attached_to = re.compile(rf"(?:-i|--id=|-n{kind}\.|--name={kind}\.)(.+)")
    for word, following in pairwise((*arguments, "")):
        if attached := attached_to.fullmatch(word):
            return attached[1]
        if word in ("-i", "--id"):
            return following
        if word in ("-n", "--name"):
            return following.removeprefix(f"{kind}.")
    return ""


def _arguments(host: Host, pid: int) -> list[str]:
    """The arguments of a process; TimeoutError while they cannot be read.

    They are in the memory of the process. A read waits while the process changes its memory, and
    for good if it hangs in the kernel then. So one thread waits for each such process, shared by
    all daemons that are looked for.
    """
    process = host.proc / str(pid)
    key = process, process_start(host, pid)
    with _one_at_a_time:
        for ended in [one for one, lookup in _reading.items() if not lookup.under_way]:
            del _reading[ended]
        lookup = _reading.setdefault(key, Lookup(partial(read_file, process / "cmdline")))
        return lookup.answer().split("\0")


def read_file(path: Path) -> str:
    """A file of a process; empty if the process has gone, or is another user's."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
